// An image classifier: a model folder opened, from pictures to labels.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/labelled_pictures.h"
#include "io/json.h"
#include "models/image_classifier.h"
#include "tasks/prediction.h"

namespace fovea::tasks {

// Several threads may use one that was opened for use at once, as long as none changes it.
struct LoadedImageClassifier {
  std::string model;  // its name in the registry
  Json config;
  std::vector<std::string> labels;
  data::PictureForm form;
  data::PixelMoments moments;  // of the training pictures
  std::unique_ptr<models::ImageClassifier> network;
  nn::Prepared prepared = {};  // of a folder opened for use
};

// Opens a folder for use. compute: "float32" or "int8", which the gates and the output layer then use;
// convolutions stay float32. Throws Error naming the file when something is missing, damaged or does not fit.
LoadedImageClassifier load_image_classifier(const std::filesystem::path& folder,
                                            const std::string& compute = "float32");
// Writes config.json and model.safetensors, each atomically.
void save_image_classifier(const std::filesystem::path& folder, const LoadedImageClassifier& loaded);
// All but the weights.
void save_image_classifier_config(const std::filesystem::path& folder, const LoadedImageClassifier& loaded);

// A prediction for each picture, in order.
std::vector<Prediction> classify_pictures(const LoadedImageClassifier& loaded, const data::Pictures& pictures,
                                          int64_t batch = 128);
// Of picture files.
std::vector<Prediction> classify_picture_files(const LoadedImageClassifier& loaded,
                                               std::span<const std::string> files);

}  // namespace fovea::tasks
