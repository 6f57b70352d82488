// Classifiers of glimpses and of clips that nobody trained: small, made in an instant.
#pragma once

#include "models/registry/clip_classifiers.h"
#include "models/registry/glimpse_classifiers.h"
#include "tasks/clip_classifier.h"
#include "tasks/glimpse_classifier.h"

namespace fovea::tasks {

// Pictures of 16 x 16 in colour; labels bright and dark. model: ram or soft.
inline LoadedGlimpseClassifier untrained_glimpse_classifier(const std::string& model = "ram") {
  LoadedGlimpseClassifier loaded;
  loaded.model = model;
  loaded.labels = {"bright", "dark"};
  loaded.source = {16, 16, 3};
  loaded.config = models::model_config<models::GlimpseClassifiers>(
      model, Json{{"hidden", 8}, {"features", 4}, {"glimpses", 2}, {"patch", 4}},
      Json{{"classes", 2}, {"channels", 3}});
  Rng rng(7);
  loaded.network = models::make_model<models::GlimpseClassifiers>(model, loaded.config, rng);
  return loaded;
}

// Frames of 16 x 16 in colour; labels bright and dark.
inline LoadedClipClassifier untrained_clip_classifier(const std::string& pooling = "gated") {
  LoadedClipClassifier loaded;
  loaded.model = "lenet";
  loaded.labels = {"bright", "dark"};
  loaded.form = {16, 16, 3};
  loaded.config = models::model_config<models::ClipClassifiers>(
      "lenet", Json{{"filters", 2}, {"features", 4}, {"hidden", 4}, {"pooling", pooling}},
      Json{{"classes", 2}, {"channels", 3}, {"height", 16}, {"width", 16}});
  Rng rng(7);
  loaded.network = models::make_model<models::ClipClassifiers>("lenet", loaded.config, rng);
  return loaded;
}

}  // namespace fovea::tasks
