// Classifiers of glimpses and of clips that nobody trained: small, made in an instant.
#pragma once

#include "models/vision_registry.h"
#include "tasks/clip_classifier.h"
#include "tasks/glimpse_classifier.h"

namespace fovea::tasks {

// Pictures of 16 x 16 in colour; labels bright and dark. model: ram or soft.
inline GlimpseParts untrained_glimpse_classifier(const std::string& model = "ram") {
  GlimpseParts parts;
  parts.model = model;
  parts.labels = {"bright", "dark"};
  parts.source = {16, 16, 3};
  parts.config = models::model_config<models::GlimpseClassifiers>(
      model, Json{{"hidden", 8}, {"features", 4}, {"glimpses", 2}, {"patch", 4}},
      Json{{"classes", 2}, {"channels", 3}});
  Rng rng(7);
  parts.network = models::make_model<models::GlimpseClassifiers>(model, parts.config, rng);
  return parts;
}

// Frames of 16 x 16 in colour; labels bright and dark.
inline ClipParts untrained_clip_classifier(const std::string& pooling = "gated") {
  ClipParts parts;
  parts.model = "lenet";
  parts.labels = {"bright", "dark"};
  parts.form = {16, 16, 3};
  parts.config = models::model_config<models::ClipClassifiers>(
      "lenet", Json{{"filters", 2}, {"features", 4}, {"hidden", 4}, {"pooling", pooling}},
      Json{{"classes", 2}, {"channels", 3}, {"height", 16}, {"width", 16}});
  Rng rng(7);
  parts.network = models::make_model<models::ClipClassifiers>("lenet", parts.config, rng);
  return parts;
}

}  // namespace fovea::tasks
