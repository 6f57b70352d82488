// Writes a golden model as a folder in Hugging Face's layout.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "io/file.h"
#include "io/json.h"
#include "io/safetensors.h"

namespace fovea::models {

// May rename a tensor, or leave it out by returning false.
using ChangeTensor = std::function<bool(TensorToWrite&)>;

// Model i of a golden file: its tensors are named "i/weight/...".
inline void write_golden_folder(const SafetensorsFile& file, size_t i, const Json& config,
                                const std::filesystem::path& folder, const ChangeTensor& change) {
  make_directories(folder);
  save_json(folder / "config.json", config);
  const std::string prefix = std::to_string(i) + "/weight/";
  std::vector<TensorToWrite> tensors;
  for (const TensorEntry& entry : file->entries()) {
    if (!entry.name.starts_with(prefix)) continue;
    TensorToWrite tensor{entry.name.substr(prefix.size()), entry.dtype, entry.shape, file->bytes(entry)};
    if (change(tensor)) tensors.push_back(tensor);
  }
  save_safetensors(folder / "model.safetensors", tensors, {{"format", "pt"}});
}

}  // namespace fovea::models
