// A captioner: a model folder opened, from pictures to sentences.
//
// The folder holds config.json, model.safetensors, the tokenizer and the frozen encoder (encoder.safetensors), and
// nothing else is needed.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/fields.h"
#include "data/tokenizer.h"
#include "io/json.h"
#include "models/show_attend_tell.h"
#include "tasks/picture_encoder.h"

namespace fovea::tasks {

struct CaptionOptions {
  int64_t beam = 5;
  int64_t n_best = 1;
  float length_penalty = 1;
  int64_t max_length = 30;

  static constexpr auto fields() {
    using T = CaptionOptions;
    return std::tuple{
        Field{"beam", &T::beam, "hypotheses kept at each step; 1 is greedy search"},
        Field{"n_best", &T::n_best, "captions printed for a picture, best first; at most --beam"},
        Field{"length_penalty", &T::length_penalty,
              "hypotheses are ranked by log-probability / length^N; a larger N prefers longer captions"},
        Field{"max_length", &T::max_length, "maximum number of tokens of a caption"}};
  }
};

struct Caption {
  std::string text;
  // log-probability / length^length_penalty; of a caption that was given, with a length penalty of 1
  double score = 0;
  std::vector<int32_t> tokens = {};  // ids, without begin and end
};

// Several threads may use one that was opened for use at once, as long as none changes it.
struct LoadedCaptioner {
  std::string model;  // its name in the registry
  Json config;
  std::unique_ptr<models::CaptionModel> network;
  std::shared_ptr<const data::Tokenizer> tokenizer;
  PictureEncoder encoder;
  Compute compute = Compute::float32;  // of the decoder's products
  nn::Prepared prepared = {};          // of a folder opened for use
};

// Opens a folder for use. compute: "float32" or "int8", which the decoder then uses; the encoder stays float32. Throws
// Error naming the file when something is missing, damaged or does not fit.
LoadedCaptioner load_captioner(const std::filesystem::path& folder, const std::string& compute = "float32");
// Writes config.json, the tokenizer, encoder.safetensors and model.safetensors, each atomically.
void save_captioner(const std::filesystem::path& folder, const LoadedCaptioner& loaded);
// All but the decoder's weights.
void save_captioner_config(const std::filesystem::path& folder, const LoadedCaptioner& loaded);

// Throws Error on options that make no sense.
void check(const CaptionOptions& options);
// For each picture its n_best captions, best first. features(pictures) gives [pictures, places, channels] of those with these
// numbers, one batch at a time: memory does not grow with their number. A picture's captions do not depend on the
// other pictures.
using ReadFeatures = FunctionRef<Tensor(std::span<const size_t> pictures)>;
std::vector<std::vector<Caption>> write_captions(const LoadedCaptioner& loaded, size_t pictures,
                                                 ReadFeatures features, const CaptionOptions& options);

// One caption of one picture as the model is fed it.
models::CaptionBatch caption_batch(const Tensor& features, std::span<const int32_t> tokens);

}  // namespace fovea::tasks
