// A ship detector made by `fovea train partition`: a model folder opened, from pictures to ships.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/labelled_pictures.h"
#include "data/ships.h"
#include "infer/ships_from_maps.h"
#include "io/json.h"
#include "models/partition.h"

namespace fovea::tasks {

// Several threads may use one that was opened for use at once, as long as none changes it.
struct LoadedPartitioner {
  Json config;
  int64_t size = 0;            // side in pixels to which a picture is fitted
  data::PixelMoments moments;  // of the training pictures
  std::unique_ptr<models::Partition> network;
  nn::Prepared prepared = {};  // of a folder opened for use
};

// Throws Error naming the file when something is missing, damaged or does not fit.
LoadedPartitioner load_partition(const std::filesystem::path& folder);
// Writes config.json and model.safetensors, each atomically.
void save_partition(const std::filesystem::path& folder, const LoadedPartitioner& loaded);
// All but the weights.
void save_partition_config(const std::filesystem::path& folder, const LoadedPartitioner& loaded);

// Where scenes come from: the word "scenes" for harbours drawn by the program, or a folder of HRSC2016's form.
struct SceneSource {
  std::string path;
  int64_t count = 0;  // of drawn scenes
  uint64_t seed = 0;  // of drawn scenes
};
inline constexpr const char* kDrawnScenes = "scenes";
// The series of drawn scenes that validation and tests use, whatever the seed of a training.
inline constexpr uint64_t kValidationHarbours = 0xA11CE, kTestHarbours = 0x7E57;
// Scenes of size x size pixels. Throws Error naming the file.
std::vector<data::ShipScene> read_scenes(const SceneSource& source, int64_t size);

// The scenes as the network reads them: [scenes, size, size, 3].
Tensor picture_batch(std::span<const data::ShipScene* const> scenes, const data::PixelMoments& moments);

// What the network says of one picture of the model's size.
struct PartitionMaps {
  int64_t height = 0, width = 0;        // of the maps, in cells
  std::vector<float> probabilities;     // [height, width, 5]: bow, stern, body, sea, land
  std::vector<infer::FoundShip> ships;  // in pixels of the picture given
};
// The pictures may have any size; ships come back in their pixels.
std::vector<PartitionMaps> partition_pictures(const LoadedPartitioner& loaded,
                                              std::span<const data::Image> pictures);
// Against true ships, at an overlap of 0.5.
infer::DetectionCounts evaluate_scenes(const LoadedPartitioner& loaded,
                                       std::span<const data::ShipScene> scenes);
infer::DetectionCounts evaluate_partition(const std::filesystem::path& folder, const SceneSource& source);

// {"x", "y", "length", "width", "angle" (degrees), "score", "bow": [x, y], "stern": [x, y], "corners": [...]}
Json ship_json(const infer::FoundShip& ship);
Json to_json(const infer::DetectionCounts& counts);
std::string to_text(const infer::DetectionCounts& counts);

}  // namespace fovea::tasks
