// Any text as the config.json of a BERT-family folder: refused with an Error, or sizes that make sense and
// that are written and read back the same.
#include <cstdlib>

#include "base/error.h"
#include "folder.h"
#include "io/json.h"
#include "models/bert.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  try {
    const fovea::models::BertConfig config =
        fovea::models::bert_config(fovea::parse_json(as_text(bytes, size), "input"), "input");
    if (config.vocab_size < 1 || config.hidden_size < 1 || config.num_hidden_layers < 0 ||
        config.num_attention_heads < 1 || config.hidden_size % config.num_attention_heads != 0 ||
        config.longest() < 1)
      std::abort();
  } catch (const fovea::Error&) {
  }
  return 0;
}
