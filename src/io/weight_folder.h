// The weights of a model folder as one: model.safetensors, or the shards that model.safetensors.index.json
// lists.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

#include "io/safetensors.h"

namespace fovea {

class WeightFolder {
 public:
  // Throws Error when there are none, saying how to convert them where they are there in another form; when a
  // shard is missing or lacks what the index promises; when two shards hold one name.
  explicit WeightFolder(const std::filesystem::path& folder);

  bool contains(const std::string& name) const { return files_of_.contains(name); }
  // Both throw Error when there is no such tensor; tensor() also when it holds NaN or infinity.
  const TensorEntry& entry(const std::string& name) const { return (*file_of(name))->entry(name); }
  Tensor tensor(const std::string& name) const;
  // In the order of the files.
  const std::vector<std::string>& names() const { return names_; }
  // Elements of all tensors together: no model read from here is larger.
  int64_t element_count() const { return element_count_; }
  // The file that messages name.
  const std::string& where() const { return where_; }

 private:
  const SafetensorsFile* file_of(const std::string& name) const;
  void open(const std::filesystem::path& path);

  std::string where_;
  std::deque<SafetensorsFile> files_;
  std::unordered_map<std::string, const SafetensorsFile*> files_of_;
  std::vector<std::string> names_;
  int64_t element_count_ = 0;
};

}  // namespace fovea
