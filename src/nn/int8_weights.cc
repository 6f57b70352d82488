#include "nn/int8_weights.h"

#include <sys/mman.h>

#include <cmath>
#include <vector>

#include "autograd/tape.h"
#include "base/error.h"
#include "io/json.h"
#include "kernels/gemm/int8_gemm.h"

namespace fovea::nn {
namespace {

constexpr std::string_view kScaleEnding = ".scale";

struct Int8Matrix {
  std::vector<int8_t> q;
  std::vector<float> scales;
};

Int8Matrix quantized(const NamedParameter& parameter) {
  const Tensor weight = parameter.value.value().contiguous();
  Int8Matrix matrix;
  matrix.q.resize(static_cast<size_t>(weight.count()));
  matrix.scales.resize(static_cast<size_t>(weight.size(0)));
  require(kernels::quantize_int8(weight.size(0), weight.size(1), weight.data(), matrix.q.data(),
                                 matrix.scales.data()),
          "int8: ", in_quotes(parameter.name), " contains a weight that is not finite; the model is damaged");
  return matrix;
}

Tensor dequantized(const Int8Matrix& matrix, const Shape& shape) {
  Tensor weight(shape);
  const int64_t columns = shape[1];
  for (int64_t i = 0; i < weight.count(); ++i)
    weight.data()[i] = static_cast<float>(matrix.q[static_cast<size_t>(i)]) *
                       matrix.scales[static_cast<size_t>(i / columns)];
  return weight;
}

// Memory that goes back to the system with the last tensor that uses it, for a matrix that may soon be dropped
// (prepare_for_use()): what the allocator has given out, it keeps.
Tensor short_lived(const Shape& shape) {
  const auto bytes = static_cast<size_t>(shape.count()) * sizeof(float);
  if (bytes == 0) return Tensor(shape);
  void* const block = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED) return Tensor(shape);
  auto* const data = static_cast<float*>(block);
  return Tensor::wrap({data, [bytes](float* begin) { ::munmap(begin, bytes); }}, data, shape);
}

}  // namespace

void round_to_int8(const Module& module, const std::string& where) {
  for (const NamedParameter& parameter : module.parameters()) {
    if (parameter.value.rank() != 2) continue;
    try {
      take_value(parameter.value, dequantized(quantized(parameter), parameter.value.shape()));
    } catch (const Error& error) {
      fail(where, ": ", error.what());
    }
  }
}

Prepared prepare_for_use(const Module& network, Compute compute, const std::string& where) {
  return Prepared(network, compute, [&](const Module& part) {
    if (compute == Compute::int8) round_to_int8(part, where);
  });
}

void save_int8_weights(const Module& module, const std::filesystem::path& path, const Metadata& metadata) {
  const std::vector<NamedParameter> state = module.state();
  std::vector<Int8Matrix> matrices;
  matrices.reserve(state.size());  // what is to be written points into it
  std::vector<TensorToWrite> tensors;
  for (const NamedParameter& parameter : state) {
    if (parameter.value.rank() != 2) {
      tensors.push_back(TensorToWrite::floats(parameter.name, parameter.value.value()));
      continue;
    }
    const Int8Matrix& matrix = matrices.emplace_back(quantized(parameter));
    tensors.push_back(
        {parameter.name, Dtype::i8, parameter.value.shape(), std::as_bytes(std::span(matrix.q))});
    tensors.push_back(TensorToWrite::floats(parameter.name + std::string(kScaleEnding),
                                            {parameter.value.size(0)}, matrix.scales));
  }
  save_safetensors(path, std::move(tensors), metadata);
}

bool is_scale(const SafetensorsView& file, std::string_view name) {
  if (!name.ends_with(kScaleEnding)) return false;
  const std::string matrix(name.substr(0, name.size() - kScaleEnding.size()));
  return file.contains(matrix) && file.entry(matrix).dtype == Dtype::i8;
}

Tensor read_weight(const SafetensorsFile& whole, const std::string& name) {
  const SafetensorsView& file = *whole;
  if (!file.contains(name)) return {};
  const TensorEntry& entry = file.entry(name);
  if (entry.dtype != Dtype::i8) return whole.mapped(name);
  const std::string scale_name = name + std::string(kScaleEnding);
  require(entry.shape.rank() == 2, in_quotes(name), " is int8 of shape ", entry.shape, ", wanted a matrix");
  require(file.contains(scale_name), in_quotes(name), " is int8, but there is no ", in_quotes(scale_name));
  const TensorEntry& scale_entry = file.entry(scale_name);
  require(scale_entry.shape == Shape{entry.shape[0]}, in_quotes(scale_name), " has shape ", scale_entry.shape,
          ", wanted ", Shape{entry.shape[0]});
  const std::vector<float> scales = file.read(scale_name);
  for (const float scale : scales)
    require(std::isfinite(scale) && scale >= 0, in_quotes(scale_name), " contains ", scale,
            ", which is no scale; wanted 0 or more");
  const Tensor weight = short_lived(entry.shape);
  file.read(entry, weight.span());
  for (int64_t i = 0; i < weight.count(); ++i)
    weight.data()[i] *= scales[static_cast<size_t>(i / entry.shape[1])];
  return weight;
}

}  // namespace fovea::nn
