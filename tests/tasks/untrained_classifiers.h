// Classifiers of texts and of pictures that nobody trained: small, made in an instant.
#pragma once

#include <string>
#include <vector>

#include "models/registry/classifiers.h"
#include "models/registry/image_classifiers.h"
#include "models/registry/partitioners.h"
#include "tasks/classifier.h"
#include "tasks/image_classifier.h"
#include "tasks/partition.h"

namespace fovea::tasks {

// Knows the words one ... six; labels neg and pos; reads 16 tokens.
inline LoadedClassifier untrained_classifier(const std::string& model = "lstm",
                                             const Json& settings = Json{{"embedding", 6}, {"width", 8}}) {
  const std::vector<std::string> lines{"one two three four five six", "three five two one six four"};
  const std::span<const std::string> texts[] = {lines};
  LoadedClassifier loaded;
  loaded.model = model;
  loaded.labels = {"neg", "pos"};
  loaded.tokenizer = data::count_words(texts);
  loaded.config = models::model_config<models::Classifiers>(
      model, settings, models::vocabulary_and_classes(loaded.tokenizer->size(), 2));
  Rng rng(7);
  loaded.network = models::make_model<models::Classifiers>(model, loaded.config, rng);
  loaded.encoding = {.form = loaded.network->form(), .max_tokens = 16, .lowercase = true};
  return loaded;
}

inline LoadedImageClassifier untrained_image_model(const std::string& model, const Json& settings) {
  LoadedImageClassifier loaded;
  loaded.model = model;
  loaded.labels = {"bright", "dark"};
  loaded.form.height = loaded.form.width = 16;
  loaded.moments.mean = loaded.moments.deviation = {0.5f, 0.5f, 0.5f};
  loaded.config =
      models::model_config<models::ImageClassifiers>(model, settings, models::classes_and_size(2, 3, 16, 16));
  Rng rng(7);
  loaded.network = models::make_model<models::ImageClassifiers>(model, loaded.config, rng);
  return loaded;
}

// Pictures of 16 x 16 in colour; labels bright and dark.
inline LoadedImageClassifier untrained_image_classifier(const std::string& gate = "cbam") {
  return untrained_image_model("resnet", {{"depth", 8}, {"width", 4}, {"gate", gate}, {"reduction", 2}});
}

// The same with self-attention over 4 x 4 patches: two layers of two heads.
inline LoadedImageClassifier untrained_vit() {
  return untrained_image_model("vit", {{"width", 8}, {"heads", 2}, {"hidden", 16}, {"layers", 2}});
}

// Pictures of 64 x 64.
inline LoadedPartitioner untrained_partition() {
  LoadedPartitioner loaded;
  loaded.size = 64;
  loaded.moments.mean = loaded.moments.deviation = {0.5f, 0.5f, 0.5f};
  loaded.config = models::model_config<models::Partitioners>("partition", Json{{"width", 4}});
  Rng rng(7);
  loaded.network = models::make_model<models::Partitioners>("partition", loaded.config, rng);
  return loaded;
}

}  // namespace fovea::tasks
