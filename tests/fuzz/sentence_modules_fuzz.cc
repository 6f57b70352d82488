// Any text as one of the files that describe a sentence-transformers model, the others being right: refused
// with an Error, or a model inside the folder.
#include <cstdlib>

#include "base/error.h"
#include "data/sentence_modules.h"
#include "folder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static const FuzzFolder folder;
  const std::pair<std::string, std::string> files[] = {
      {"modules.json", R"([{"type": "a.Transformer", "path": ""}, {"type": "a.Pooling", "path": "1_Pooling"},
                           {"type": "a.Dense", "path": "2_Dense"}, {"type": "a.Normalize", "path": "3_Normalize"}])"},
      {"1_Pooling/config.json", R"({"pooling_mode_mean_tokens": true})"},
      {"2_Dense/config.json",
       R"({"in_features": 8, "out_features": 4, "bias": true, "activation_function": "torch.nn.modules.activation.Tanh"})"},
      {"sentence_bert_config.json", R"({"max_seq_length": 128, "do_lower_case": false})"},
      {"config_sentence_transformers.json",
       R"({"default_prompt_name": "query", "prompts": {"query": "query: "}})"}};
  for (size_t chosen = 0; chosen < std::size(files); ++chosen) {
    for (size_t i = 0; i < std::size(files); ++i)
      folder.write(files[i].first, i == chosen ? as_text(bytes, size) : files[i].second);
    try {
      const fovea::data::SentenceModules modules = fovea::data::read_sentence_modules(folder.path());
      if (modules.max_tokens < 0 || !modules.model.string().starts_with(folder.path().string())) std::abort();
    } catch (const fovea::Error&) {
    }
  }
  return 0;
}
