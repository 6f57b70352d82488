#include "io/weight_folder.h"

#include <set>

#include "io/file.h"
#include "io/json.h"

namespace fovea {
namespace fs = std::filesystem;
namespace {

constexpr const char* kWhole = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kPickled = "pytorch_model.bin";
constexpr uint64_t kLargestIndex = uint64_t{1} << 26;
constexpr size_t kMostShards = 1000;

[[noreturn]] void fail_without(const fs::path& folder) {
  require(!path_exists(folder / kPickled), folder.string(), " has ", kPickled, " but no ", kWhole,
          "; convert it in that folder with Python: import torch, safetensors.torch; "
          "safetensors.torch.save_file({k: v.contiguous().clone() for k, v in torch.load('",
          kPickled, "', weights_only=True).items()}, '", kWhole, "')");
  fail(folder.string(), " has no weights, wanted ", kWhole);
}

// A file beside the index: a name, not a path to somewhere else.
std::string shard_name(const nlohmann::json& value, const std::string& where) {
  require(value.is_string(), where, ": weight_map wants the name of a file for every tensor");
  const auto& name = value.get_ref<const std::string&>();
  require(name.ends_with(".safetensors") && name.find('/') == std::string::npos &&
              name.find('\\') == std::string::npos,
          where, ": got the shard ", in_quotes(name), ", wanted a .safetensors file beside it");
  return name;
}

}  // namespace

WeightFolder::WeightFolder(const fs::path& folder) : where_((folder / kWhole).string()) {
  if (path_exists(folder / kWhole)) {
    open(folder / kWhole);
    return;
  }
  const fs::path index = folder / kIndex;
  if (!path_exists(index)) fail_without(folder);
  where_ = index.string();
  const nlohmann::json json = parse_large_json(read_text(index, kLargestIndex), where_);
  require(json.is_object() && json.contains("weight_map") && json["weight_map"].is_object(), where_,
          ": wanted an object with weight_map");
  std::set<std::string> shards;
  for (const auto& item : json["weight_map"].items()) shards.insert(shard_name(item.value(), where_));
  require(shards.size() <= kMostShards, where_, ": ", shards.size(), " shards, wanted at most ", kMostShards);
  for (const std::string& shard : shards) {
    require(path_exists(folder / shard), where_, ": the shard ", in_quotes(shard), " is missing");
    open(folder / shard);
  }
  for (const auto& item : json["weight_map"].items())
    require(contains(item.key()), where_, ": no shard contains ", in_quotes(item.key()));
}

void WeightFolder::open(const fs::path& path) {
  const SafetensorsFile& file = files_.emplace_back(path);
  for (const TensorEntry& entry : file->entries()) {
    require(files_of_.emplace(entry.name, &file).second, path.string(), ": ", in_quotes(entry.name),
            " is in another shard already");
    names_.push_back(entry.name);
    element_count_ += entry.shape.count();
  }
}

Tensor WeightFolder::tensor(const std::string& name) const {
  // Whole numbers are weights that were quantised in a way that this folder's config does not tell.
  const Dtype dtype = entry(name).dtype;
  require(dtype == Dtype::f32 || dtype == Dtype::f16 || dtype == Dtype::bf16 || dtype == Dtype::f64, where_,
          ": ", in_quotes(name), " is of ", dtype_name(dtype), ", wanted F32, F16, BF16 or F64");
  Tensor tensor = file_of(name)->mapped(name);
  require_finite(tensor, name, where_);
  return tensor;
}

const SafetensorsFile* WeightFolder::file_of(const std::string& name) const {
  const auto place = files_of_.find(name);
  require(place != files_of_.end(), where_, ": no tensor ", in_quotes(name));
  return place->second;
}

}  // namespace fovea
