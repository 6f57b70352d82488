#include "nn/weights.h"

#include <set>

#include "io/json.h"
#include "nn/int8_weights.h"

namespace fovea::nn {
namespace {

// PyTorch counts the batches that a batch norm has seen, and uses the count only where there is no momentum.
bool counts_batches(std::string_view name) {
  return name.ends_with(".num_batches_tracked");
}

}  // namespace

std::vector<TensorToWrite> weights_of(const Module& module) {
  std::vector<TensorToWrite> all;
  for (const NamedParameter& parameter : module.state())
    all.push_back(TensorToWrite::floats(parameter.name, parameter.value.value()));
  return all;
}

Metadata weights_metadata() {
  return {{"format", "pt"}};
}

void save_weights(const Module& module, const std::filesystem::path& path) {
  save_safetensors(path, weights_of(module), weights_metadata());
}

namespace {

FindTensor finder(const Module& module, const SafetensorsFile& file, const std::string& where) {
  std::set<std::string> known;
  for (const NamedParameter& parameter : module.state()) known.insert(parameter.name);
  for (const TensorEntry& entry : file->entries())
    require(known.contains(entry.name) || counts_batches(entry.name) || is_scale(*file, entry.name), where,
            ": the model has no parameter ", in_quotes(entry.name));
  return [&file](std::string_view name) { return read_weight(file, std::string(name)); };
}

template <class Load>
void with_name(const std::string& where, const Load& load) {
  try {
    load();
  } catch (const Error& error) {
    fail(where, ": ", error.what());
  }
}

}  // namespace

void load_weights(const Module& module, const std::filesystem::path& path) {
  const SafetensorsFile file(path);
  const FindTensor find = finder(module, file, path.string());
  with_name(path.string(), [&] { load_parameters(module, find); });
}

void take_weights(const Module& module, const SafetensorsFile& file, const std::string& where) {
  const FindTensor find = finder(module, file, where);
  with_name(where, [&] { take_parameters(module, find); });
}

}  // namespace fovea::nn
