// Classifiers of texts and of pictures that nobody trained: small, made in an instant.
#pragma once

#include <string>
#include <vector>

#include "models/registry.h"
#include "tasks/classifier.h"
#include "tasks/image_classifier.h"
#include "tasks/partition.h"

namespace fovea::tasks {

// Knows the words one ... six; labels neg and pos; reads 16 tokens.
inline ClassifierParts untrained_classifier(const std::string& model = "lstm",
                                            const Json& settings = Json{{"embedding", 6}, {"width", 8}}) {
  const std::vector<std::string> lines{"one two three four five six", "three five two one six four"};
  const std::span<const std::string> texts[] = {lines};
  ClassifierParts parts;
  parts.model = model;
  parts.labels = {"neg", "pos"};
  parts.tokenizer = data::count_words(texts);
  parts.config = models::model_config<models::Classifiers>(
      model, settings, models::vocabulary_and_classes(parts.tokenizer->size(), 2));
  Rng rng(7);
  parts.network = models::make_model<models::Classifiers>(model, parts.config, rng);
  parts.encoding = {.form = parts.network->form(), .max_tokens = 16, .lowercase = true};
  return parts;
}

inline ImageClassifierParts untrained_image_model(const std::string& model, const Json& settings) {
  ImageClassifierParts parts;
  parts.model = model;
  parts.labels = {"bright", "dark"};
  parts.form.height = parts.form.width = 16;
  parts.moments.mean = parts.moments.deviation = {0.5f, 0.5f, 0.5f};
  parts.config =
      models::model_config<models::ImageClassifiers>(model, settings, models::classes_and_size(2, 3, 16, 16));
  Rng rng(7);
  parts.network = models::make_model<models::ImageClassifiers>(model, parts.config, rng);
  return parts;
}

// Pictures of 16 x 16 in colour; labels bright and dark.
inline ImageClassifierParts untrained_image_classifier(const std::string& gate = "cbam") {
  return untrained_image_model("resnet", {{"depth", 8}, {"width", 4}, {"gate", gate}, {"reduction", 2}});
}

// The same with self-attention over 4 x 4 patches: two layers of two heads.
inline ImageClassifierParts untrained_vit() {
  return untrained_image_model("vit", {{"width", 8}, {"heads", 2}, {"hidden", 16}, {"layers", 2}});
}

// Pictures of 64 x 64.
inline PartitionParts untrained_partition() {
  PartitionParts parts;
  parts.size = 64;
  parts.moments.mean = parts.moments.deviation = {0.5f, 0.5f, 0.5f};
  parts.config = models::model_config<models::Partitioners>("partition", Json{{"width", 4}});
  Rng rng(7);
  parts.network = models::make_model<models::Partitioners>("partition", parts.config, rng);
  return parts;
}

}  // namespace fovea::tasks
