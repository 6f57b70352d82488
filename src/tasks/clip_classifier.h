// A clip classifier: a model folder opened, from clips and bags of pictures to labels and to the weight of each frame.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/clips.h"
#include "io/json.h"
#include "models/clip.h"
#include "tasks/prediction.h"

namespace fovea::tasks {

// The seed of the clips made for validation and tests: the same ones for every model.
inline constexpr uint64_t kTestClips = 2018;

// Clips made by the program from labelled pictures; see data/clips.h.
struct MadeClips {
  std::string kind = "bags";  // or "clips": a key frame among fragments
  int64_t count = 200, test_count = 1000;
  std::string target = "9";  // bags

  data::Clips make(const data::Pictures& pictures, int64_t clips, uint64_t seed) const;
};

// Several threads may use one that was opened for use at once, as long as none changes it.
struct LoadedClipClassifier {
  std::string model;  // its name in the registry
  Json config;
  std::vector<std::string> labels;
  data::PictureForm form;         // of a frame
  std::optional<MadeClips> made;  // how its clips were made; empty: read from files
  std::unique_ptr<models::ClipClassifier> network;
  nn::Prepared prepared = {};  // of a folder opened for use
};

// Opens a folder for use; compute as for load_image_classifier(). Throws Error naming the file when something is
// missing, damaged or does not fit.
LoadedClipClassifier load_clip_classifier(const std::filesystem::path& folder,
                                          const std::string& compute = "float32");
// Writes config.json and model.safetensors, each atomically; the second all but the weights.
void save_clip_classifier(const std::filesystem::path& folder, const LoadedClipClassifier& loaded);
void save_clip_config(const std::filesystem::path& folder, const LoadedClipClassifier& loaded);

struct ClipPredictions {
  std::vector<Prediction> clips;
  std::vector<float> weights;  // of each frame in its clip; empty for mean and max
};
// A prediction for each clip, in order.
ClipPredictions classify_clips(const LoadedClipClassifier& loaded, const data::Clips& clips);

// The mean share of weight on the frames that a label rests on, over the clips that have any; empty where weights or
// keys are not known.
std::optional<double> weight_on_keys(const data::Clips& clips, std::span<const float> weights);

// Clips of the files that people name: a list file or a folder; or, of a model whose clips were made, two IDX files of
// pictures and labels, of which its test clips are made.
data::Clips read_test_clips(const LoadedClipClassifier& loaded, const std::vector<std::string>& paths);

// Frames [first, first + count) as values from 0 to 1: [count, height, width, channels].
Tensor frame_values(const data::Clips& clips, int64_t first, int64_t count);

}  // namespace fovea::tasks
