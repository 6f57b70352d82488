// A module's weights and a safetensors file: the same names on both sides.
#pragma once

#include <filesystem>

#include "io/safetensors.h"
#include "nn/module.h"

namespace fovea::nn {

// Views of the parameters' and buffers' own memory, to be written while the module lives.
std::vector<TensorToWrite> weights_of(const Module& module);

// What such a file says of itself: "pt", asked for by Hugging Face's loaders, is PyTorch's layout of tensors.
Metadata weights_metadata();

// Replaces the file atomically; the same weights give the same bytes.
void save_weights(const Module& module, const std::filesystem::path& path);

// Throws Error, naming the tensor and leaving the module unchanged, when one is missing, has another shape,
// or belongs to nothing in the module.
void load_weights(const Module& module, const std::filesystem::path& path);

}  // namespace fovea::nn
