// What a folder says of cross-encoders: models that read two texts at once, as sentence-transformers saves them.
#pragma once

#include <filesystem>
#include <optional>

namespace fovea::tasks {

// What becomes of a single logit.
enum class ScoreActivation { identity, sigmoid };

struct CrossEncoderSettings {
  bool is_one = false;                             // sentence-transformers saved it as a CrossEncoder
  std::optional<ScoreActivation> activation = {};  // where the folder names one
};

// folder: as the user named it; model: the folder of its config.json. The activation is in
// config_sentence_transformers.json, or in config.json as sentence_transformers.activation_fn or, of older versions,
// sbert_ce_default_activation_function. Throws Error, naming the file, on another function than Identity and Sigmoid of
// PyTorch.
CrossEncoderSettings read_cross_encoder(const std::filesystem::path& folder,
                                        const std::filesystem::path& model);

}  // namespace fovea::tasks
