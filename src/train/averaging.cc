#include "train/averaging.h"

#include <utility>

#include "io/json.h"
#include "kernels/vector/optim.h"

namespace fovea::train {

Ema::Ema(std::vector<nn::NamedParameter> parameters, double decay)
    : parameters_(std::move(parameters)), decay_(decay) {
  require(decay >= 0 && decay < 1, "ema decay is ", decay, ", wanted at least 0 and below 1");
  for (const nn::NamedParameter& parameter : parameters_)
    averages_.push_back(parameter.value.value().clone());
}

void Ema::update() {
  std::vector<kernels::EmaTensor> tensors;
  for (size_t i = 0; i < parameters_.size(); ++i)
    tensors.push_back({averages_[i].data(), parameters_[i].value.value().data(), averages_[i].count()});
  kernels::ema_update(tensors, decay_);
}

void Ema::swap() {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor weights = parameters_[i].value.value().clone();
    parameters_[i].value.set_value(averages_[i]);
    averages_[i] = weights;
  }
}

std::vector<TensorToWrite> Ema::state() const {
  std::vector<TensorToWrite> all;
  for (size_t i = 0; i < parameters_.size(); ++i)
    all.push_back(TensorToWrite::floats(parameters_[i].name, averages_[i]));
  return all;
}

void Ema::load_state(const SafetensorsView& file) {
  std::vector<Tensor> loaded;
  for (const nn::NamedParameter& parameter : parameters_) {
    loaded.push_back(file.tensor(parameter.name));
    require(loaded.back().shape() == parameter.value.shape(), "the average of ", parameter.name,
            " has shape ", loaded.back().shape(), ", wanted ", parameter.value.shape());
  }
  averages_ = std::move(loaded);
}

void average_checkpoints(std::span<const std::filesystem::path> files, const std::filesystem::path& out) {
  require(!files.empty(), "no checkpoints to average");
  std::vector<SafetensorsFile> opened;
  for (const std::filesystem::path& path : files) opened.emplace_back(path);
  const SafetensorsView& first = *opened.front();
  for (size_t f = 0; f < files.size(); ++f)
    require(opened[f]->entries().size() == first.entries().size(), files[f].string(), " contains ",
            opened[f]->entries().size(), " tensors, ", files[0].string(), " contains ",
            first.entries().size());

  std::vector<Tensor> means;
  std::vector<TensorToWrite> to_write;
  for (const TensorEntry& entry : first.entries()) {
    std::vector<double> sums(static_cast<size_t>(entry.shape.count()));
    for (size_t f = 0; f < files.size(); ++f) {
      const Tensor values = opened[f]->tensor(entry.name);
      require(values.shape() == entry.shape, files[f].string(), ": ", in_quotes(entry.name), " has shape ",
              values.shape(), ", wanted ", entry.shape);
      const std::span<const float> span = values.span();
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += span[i];
    }
    const Tensor mean(entry.shape);
    const std::span<float> span = mean.span();
    for (size_t i = 0; i < sums.size(); ++i)
      span[i] = static_cast<float>(sums[i] / static_cast<double>(files.size()));
    means.push_back(mean);
    to_write.push_back(TensorToWrite::floats(entry.name, mean));
  }
  save_safetensors(out, std::move(to_write), first.metadata());
}

}  // namespace fovea::train
