// Any text as model.safetensors.index.json over two shards: refused with an Error, or tensors that are there.
#include <cstdlib>

#include "base/error.h"
#include "folder.h"
#include "io/safetensors.h"
#include "io/weight_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static const FuzzFolder folder;
  static const bool ready = [] {
    const std::vector<float> values{1, 2, 3};
    for (const char* name : {"a", "b"})
      fovea::save_safetensors(folder.path() / (std::string(name) + ".safetensors"),
                              {fovea::TensorToWrite::floats(name, {3}, values)});
    return true;
  }();
  folder.write("model.safetensors.index.json", as_text(bytes, size));
  try {
    const fovea::WeightFolder weights(folder.path());
    for (const std::string& name : weights.names())
      if (!ready || weights.tensor(name).count() != 3) std::abort();
  } catch (const fovea::Error&) {
  }
  return 0;
}
