// Converting a model folder: the same model with its weights in another form.
#pragma once

#include <filesystem>
#include <string>

namespace fovea::tasks {

struct Conversion {
  int64_t bytes_before = 0, bytes_after = 0;  // of model.safetensors
};

// Writes the translator in `folder` as a new folder `out`, which appears whole; to: "int8" or "float32".
// Throws Error when the folder is no translator, the model has no int8, or `out` is there already.
Conversion convert_translation(const std::filesystem::path& folder, const std::string& to,
                               const std::filesystem::path& out);

}  // namespace fovea::tasks
