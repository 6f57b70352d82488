#include "nn/weights.h"

#include <set>

#include "io/json.h"

namespace fovea::nn {

std::vector<TensorToWrite> weights_of(const Module& module) {
  std::vector<TensorToWrite> all;
  for (const NamedParameter& parameter : module.parameters())
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
  const std::vector<NamedParameter> parameters = module.parameters();
  for (const NamedParameter& parameter : parameters) wanted.insert(parameter.name);
  for (const TensorEntry& entry : file->entries())
    require(wanted.contains(entry.name), path.string(), ": the model has no parameter ",
            in_quotes(entry.name));
  load_parameters(module, [&](std::string_view name) {
    const std::string text(name);
    return file->contains(text) ? file->tensor(text) : Tensor();
  });
}

}  // namespace fovea::nn
