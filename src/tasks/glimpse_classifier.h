// A glimpse classifier: a model folder opened, from pictures to labels and to the path of its glimpses.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/scenes.h"
#include "io/json.h"
#include "models/glimpse.h"
#include "tasks/prediction.h"

namespace fovea::tasks {

// The seed of the scenes of validation and tests: the same ones for every model.
inline constexpr uint64_t kTestScenes = 2014;

// Several threads may use one that was opened for use at once, as long as none changes it.
struct LoadedGlimpseClassifier {
  std::string model;  // its name in the registry
  Json config;
  std::vector<std::string> labels;
  data::PictureForm source;  // of the pictures that scenes are made of
  data::Scene scene;
  std::unique_ptr<models::GlimpseClassifier> network;
  nn::Prepared prepared = {};  // of a folder opened for use

  // Of the pictures that the network takes.
  data::PictureForm form() const { return data::scene_form(scene, source); }
};

// Opens a folder for use; compute as for load_image_classifier(). Throws Error naming the file when something is
// missing, damaged or does not fit.
LoadedGlimpseClassifier load_glimpse_classifier(const std::filesystem::path& folder,
                                                const std::string& compute = "float32");
// Writes config.json and model.safetensors, each atomically; the second all but the weights.
void save_glimpse_classifier(const std::filesystem::path& folder, const LoadedGlimpseClassifier& loaded);
void save_glimpse_config(const std::filesystem::path& folder, const LoadedGlimpseClassifier& loaded);

// A prediction for each scene, in order. rollouts: paths drawn for each, whose probabilities are averaged; 0: the path
// of the means.
std::vector<Prediction> classify_scenes(const LoadedGlimpseClassifier& loaded, const data::Pictures& scenes,
                                        int64_t rollouts = 0);

}  // namespace fovea::tasks
