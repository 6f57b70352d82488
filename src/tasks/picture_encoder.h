// A frozen encoder of pictures: what a photograph shows, place by place, computed once for each picture and kept in a
// file.
//
// Features are rounded to 16 bits wherever they are used, so that a model sees the same numbers whether they come from
// the file or were computed a moment ago.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/captions.h"
#include "data/labelled_pictures.h"
#include "io/json.h"
#include "io/record_file.h"
#include "models/mobilenet.h"
#include "tasks/training_run.h"

namespace fovea::tasks {

struct PictureEncoder {
  models::MobileNetConfig config;
  int64_t size = 224;  // pictures are brought to size x size pixels
  std::unique_ptr<models::MobileNet> network;

  int64_t side() const { return network->out_side(size); }  // places along a side
  int64_t places() const { return side() * side(); }
  int64_t channels() const { return network->out_channels(); }
  data::PictureForm form() const { return {size, size, 3}; }
};

// path: weights as load_mobilenet() reads them, by their common beginning or by the name of either file; or a folder that
// holds one pair of them. Throws Error saying what is missing.
PictureEncoder read_encoder(const std::string& path, int64_t blocks, int64_t size);

inline constexpr const char* kEncoderFile = "encoder.safetensors";
// In a model folder: encoder.safetensors, and the settings under "encoder" in config.json.
void save_encoder(const std::filesystem::path& folder, const PictureEncoder& encoder);
Json encoder_json(const PictureEncoder& encoder);
PictureEncoder load_encoder(const std::filesystem::path& folder, const Json& settings);

// What the features depend on besides the picture, with a checksum of the weights: "features of MobileNet 00ab..., 14 x
// 14 x 512".
std::string describe(const PictureEncoder& encoder);

// Features as they are kept: 16 bits each, 0 ... 6 (the network ends with ReLU6).
using FeatureCodes = std::vector<uint16_t>;
// pixels: [size, size, 3] -> [places, channels]. One picture at a time: the result depends on nothing else.
FeatureCodes encode_picture(const PictureEncoder& encoder, std::span<const uint8_t> pixels);
void decode_features(std::span<const uint16_t> codes, float* features);
// Pictures in the encoder's form -> [pictures, places, channels].
Tensor picture_features(const PictureEncoder& encoder, std::span<const std::vector<uint8_t>> pictures);

// The features of a collection, in a file that several runs may share.
class FeatureCache {
 public:
  // Throws Error when the file holds features of another encoder.
  FeatureCache(const std::filesystem::path& path, const PictureEncoder& encoder);

  // Computes the features that are not in the file yet, a few pictures at a time, on all threads; says how far it is.
  // False when should_stop() ended it: the same call continues there. Throws Error naming a picture that cannot be
  // read.
  bool fill(const data::PictureFiles& files, std::span<const std::string> names, RunObserver& observer,
            const std::function<bool()>& should_stop);
  // picture: a place among the names -> [places, channels]. Safe to call from several threads after fill().
  void read(int64_t picture, float* features) const;

 private:
  const PictureEncoder& encoder_;
  RecordFile file_;
  std::vector<RecordKey> keys_;  // of the names
};

}  // namespace fovea::tasks
