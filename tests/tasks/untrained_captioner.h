// A captioner that knows nothing, with an encoder of random weights: for tests that need a folder.
#pragma once

#include "models/registry.h"
#include "tasks/captioner.h"

namespace fovea::tasks {

inline CaptionParts untrained_captioner(const std::string& attention = "soft") {
  CaptionParts parts;
  Rng rng(5);
  parts.encoder = {.config = {.width = 0.25f, .blocks = 3}, .size = 32, .network = nullptr};
  parts.encoder.network = std::make_unique<models::MobileNet>(parts.encoder.config, rng);
  const std::vector<std::string> captions{"a dog runs in the snow", "a man sits on a bench"};
  const std::span<const std::string> texts(captions);
  parts.tokenizer = data::count_words({&texts, 1});
  parts.model = "show_attend_tell";
  parts.config = models::model_config<models::Captioners>(
      parts.model, Json{{"embedding", 6}, {"width", 8}, {"attention", attention}},
      Json{{"vocabulary", parts.tokenizer->size()}, {"channels", parts.encoder.channels()}});
  parts.network = models::make_model<models::Captioners>(parts.model, parts.config, rng);
  return parts;
}

}  // namespace fovea::tasks
