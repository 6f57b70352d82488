#include "nn/weights.h"

#include <set>

#include "io/json.h"

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

void load_weights(const Module& module, const std::filesystem::path& path) {
  const SafetensorsFile file(path);
  std::set<std::string_view> wanted;
  const std::vector<NamedParameter> state = module.state();
  for (const NamedParameter& parameter : state) wanted.insert(parameter.name);
  for (const TensorEntry& entry : file->entries())
    require(wanted.contains(entry.name) || counts_batches(entry.name), path.string(),
            ": the model has no parameter ", in_quotes(entry.name));
  load_parameters(module, [&](std::string_view name) {
    const std::string text(name);
    return file->contains(text) ? file->tensor(text) : Tensor();
  });
}

}  // namespace fovea::nn
