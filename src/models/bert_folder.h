// Hugging Face folders of the BERT family, as they are: config.json and model.safetensors to a network, and
// back.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/safetensors.h"
#include "io/weight_folder.h"
#include "models/bert.h"

namespace fovea::models {

// From the folder's config.json. Throws Error when the folder or the file is missing or damaged.
BertConfig read_bert_config(const std::filesystem::path& folder);

// The heads that a folder has weights for.
BertHeads heads_in(const WeightFolder& weights, const BertConfig& config);

struct LoadedBert {
  std::unique_ptr<Bert> network;
  std::vector<std::string> fresh;  // parameters that the folder lacks and that were drawn
};

// heads: those to have; empty: those that the folder has. A wanted head that the folder lacks, or whose
// classifier has another number of labels there, begins with fresh weights. Throws Error, naming the file and
// the tensor, when one is missing, has another shape, or is in the encoder without a place in the config.
// use: each layer is packed as soon as it is read (WeightReader), so that memory holds the weights once.
LoadedBert load_bert(const std::filesystem::path& folder, Rng& rng,
                     const std::optional<BertHeads>& heads = {}, std::optional<Compute> use = {});

// The parameters under the names that Hugging Face's loaders know: views of their memory, to be written while
// the network lives.
std::vector<TensorToWrite> bert_weights(const Bert& network);

// Writes config.json and model.safetensors, each atomically.
void save_bert(const std::filesystem::path& folder, const Bert& network);

}  // namespace fovea::models
