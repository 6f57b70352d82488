// Converting a model folder: the same model with its weights in another form, or one that reads longer texts.
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

// Writes the BERT or RoBERTa in `folder` as a Longformer or BigBird folder `out` that reads up to max_tokens
// tokens; to: "longformer" or "bigbird". Returns the type that was made from. Throws Error when the folder holds
// something else, and when `out` is there already.
std::string convert_to_long(const std::filesystem::path& folder, const std::string& to, int64_t max_tokens,
                            const std::filesystem::path& out);

}  // namespace fovea::tasks
