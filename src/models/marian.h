// MarianMT and OPUS-MT folders of Hugging Face, as they are: config.json and model.safetensors to a
// models::Transformer, and back.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "io/json.h"
#include "models/transformer.h"

namespace fovea::models {

struct MarianConfig {
  TransformerConfig network;
  int32_t begin = 0, end = 0, pad = 0;  // ids: what a decoder is fed first, what ends a sentence, padding
  int64_t max_positions = 0;            // tokens of the longest sentence that the model has seen
};

// From a config.json with model_type marian. Names that are not known are left alone, for such files hold many; a
// known one with a value that makes no sense, or that asks for what is not here, is an Error beginning with
// `where`.
MarianConfig marian_config(const Json& json, const std::string& where);

// Throws Error, naming the file and the tensor, when one is missing, has another shape, or has no place in the
// model that the config describes. Takes no memory for more than the file holds. use: each layer is packed as soon as it
// is read (WeightReader), so that memory holds the weights of layers once.
std::unique_ptr<Transformer> load_marian(const std::filesystem::path& folder, const MarianConfig& config,
                                         std::optional<Compute> use = {});

// Writes config.json and model.safetensors, each atomically, as Hugging Face's loaders want them. `published`: the
// config.json that the network came with, which is kept.
void save_marian(const std::filesystem::path& folder, const Transformer& network, const Json& published);

}  // namespace fovea::models
