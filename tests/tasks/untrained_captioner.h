// A captioner that knows nothing, with an encoder of random weights: for tests that need a folder.
#pragma once

#include "models/registry/captioners.h"
#include "tasks/captioner.h"

namespace fovea::tasks {

inline LoadedCaptioner untrained_captioner(const std::string& attention = "soft") {
  LoadedCaptioner loaded;
  Rng rng(5);
  loaded.encoder = {.config = {.width = 0.25f, .blocks = 3}, .size = 32, .network = nullptr};
  loaded.encoder.network = std::make_unique<models::MobileNet>(loaded.encoder.config, rng);
  const std::vector<std::string> captions{"a dog runs in the snow", "a man sits on a bench"};
  const std::span<const std::string> texts(captions);
  loaded.tokenizer = data::count_words({&texts, 1});
  loaded.model = "show_attend_tell";
  loaded.config = models::model_config<models::Captioners>(
      loaded.model, Json{{"embedding", 6}, {"width", 8}, {"attention", attention}},
      Json{{"vocabulary", loaded.tokenizer->size()}, {"channels", loaded.encoder.channels()}});
  loaded.network = models::make_model<models::Captioners>(loaded.model, loaded.config, rng);
  return loaded;
}

}  // namespace fovea::tasks
