// A module's weights and a safetensors file: the same names on both sides.
#pragma once

#include <filesystem>

#include "io/safetensors.h"
#include "nn/init.h"
#include "nn/module.h"

namespace fovea::nn {

// Views of the parameters' and buffers' own memory, to be written while the module lives.
std::vector<TensorToWrite> weights_of(const Module& module);

// Metadata of such a file: "format": "pt", which Hugging Face's loaders require, is PyTorch's layout of tensors.
Metadata weights_metadata();

// Replaces the file atomically; the same weights give the same bytes.
void save_weights(const Module& module, const std::filesystem::path& path);

// Copies the file's tensors into the module; matrices of int8 are read as floats. Throws Error, naming the
// tensor and leaving the module unchanged, when one is missing, has another shape, or belongs to nothing in
// the module.
void load_weights(const Module& module, const std::filesystem::path& path);
// The same without copies: the file's memory becomes the parameters' (SafetensorsFile::mapped). `where` is
// the file's name.
void take_weights(const Module& module, const SafetensorsFile& file, const std::string& where);

// A network whose weights come from a file: make() builds it without drawing any, and without memory for more
// parameters than the file has. Throws Error as load_weights() does.
template <class Make>
auto load_network(const std::filesystem::path& path, Make&& make) {
  const SafetensorsFile file(path);
  auto network = [&] {
    const ParametersFromFile from_file(file->element_count(), path.string());
    return make();
  }();
  take_weights(*network, file, path.string());
  return network;
}

}  // namespace fovea::nn
