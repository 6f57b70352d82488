// attention() for NumPy and DLPack arrays.
#include "python/attention.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attention/strided.h"
#include "base/error.h"
#include "base/thread_limit.h"
#include "python/arrays.h"
#include "python/masks.h"
#include "python/tensors.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

using NumpyFloats = nb::ndarray<nb::numpy, float>;

StridedInput input_of(const AnyArray& array, const char* name) {
  check_array<float>(array, name, "float32");
  StridedInput view{.data = static_cast<const float*>(array.data()),
                    .rank = static_cast<int>(array.ndim()),
                    .present = true};
  for (size_t i = 0; i < array.ndim(); ++i) {
    view.sizes[i] = static_cast<int64_t>(array.shape(i));
    view.strides[i] = array.stride(i);
  }
  return view;
}
StridedInput input_of(const std::optional<AnyArray>& array, const char* name) {
  return array ? input_of(*array, name) : StridedInput{};
}

// New memory that a NumPy array owns.
struct Floats {
  explicit Floats(const std::vector<size_t>& shape) : shape_(shape) {
    size_t count = 1;
    for (const size_t size : shape) {
      require(size == 0 || count <= (size_t{1} << 60) / size, "attention: the result is too large");
      count *= size;
    }
    data_ = std::make_unique_for_overwrite<float[]>(count);
  }
  float* data() const { return data_.get(); }
  NumpyFloats release() {
    float* data = data_.release();
    const nb::capsule owner(data, [](void* memory) noexcept { delete[] static_cast<float*>(memory); });
    return NumpyFloats(data, shape_.size(), shape_.data(), owner);
  }

 private:
  std::vector<size_t> shape_;
  std::unique_ptr<float[]> data_;
};

StridedOutput output_of(float* data, const AttentionSizes& s) {
  return {.data = data,
          .rank = 4,
          .sizes = {s.batch, s.heads, s.queries, s.dv},
          .strides = {s.heads * s.queries * s.dv, s.queries * s.dv, s.dv, 1},
          .present = true};
}

std::vector<size_t> sizes_of(std::initializer_list<int64_t> sizes) {
  return {sizes.begin(), sizes.end()};
}

std::vector<int32_t> chosen_or_all(const std::optional<std::vector<int32_t>>& chosen, int64_t count) {
  if (chosen) return *chosen;
  std::vector<int32_t> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

struct Options {
  std::string spec;
  Counts lengths, query_lengths, documents;
  double dropout = 0;
  uint64_t seed = 0;
  bool training = false, lse = false;
  // heads and rows whose weights are asked for; the inner empty: all
  bool weights = false;
  std::optional<std::vector<int32_t>> weight_heads, weight_rows;
  int threads = 0;
};

// (output, lse or None, weights or None)
nb::tuple attention(const StridedInputs& inputs, const Options& options, SharedMask* mask) {
  const auto prepared = prepared_for({.spec = options.spec,
                                      .bias = inputs.bias.present,
                                      .alibi = inputs.slopes.present,
                                      .sink = inputs.sink.present,
                                      .dropout = static_cast<float>(options.dropout),
                                      .lengths = options.lengths.value_or(std::vector<int64_t>{}),
                                      .query_lengths = options.query_lengths.value_or(std::vector<int64_t>{}),
                                      .documents = options.documents.value_or(std::vector<int64_t>{}),
                                      .training = options.training},
                                     attention_sizes(inputs.q, inputs.k, inputs.v), mask);
  const AttentionSizes& s = prepared->sizes();
  Floats out(sizes_of({s.batch, s.heads, s.queries, s.dv}));
  std::optional<Floats> lse, weights;
  if (options.lse) lse.emplace(sizes_of({s.batch, s.heads, s.queries}));
  const std::vector<int32_t> heads =
      options.weights ? chosen_or_all(options.weight_heads, s.heads) : std::vector<int32_t>{};
  const std::vector<int32_t> rows =
      options.weights ? chosen_or_all(options.weight_rows, s.queries) : std::vector<int32_t>{};
  if (options.weights)
    weights.emplace(
        sizes_of({s.batch, static_cast<int64_t>(heads.size()), static_cast<int64_t>(rows.size()), s.keys}));
  {
    const nb::gil_scoped_release release;
    const ThreadLimit limit(options.threads);
    prepared->forward(inputs, {.out = output_of(out.data(), s), .lse = lse ? lse->data() : nullptr},
                      options.seed);
    if (weights) prepared->weights(inputs, heads, rows, weights->data(), options.seed);
  }
  return nb::make_tuple(out.release(), lse ? nb::cast(lse->release()) : nb::none(),
                        weights ? nb::cast(weights->release()) : nb::none());
}

}  // namespace

void add_attention(nb::module_& module) {
  module.def(
      "canonical_spec", [](const std::string& spec) { return to_string(parse_spec(spec)); }, nb::arg("spec"));
  module.def(
      "attention",
      [](const AnyArray& q, const AnyArray& k, const AnyArray& v, std::string spec,
         const std::vector<std::optional<AnyArray>>& parameters, const Mask* mask, Counts lengths,
         Counts query_lengths, Counts documents, double dropout, uint64_t seed, bool training,
         bool return_lse, bool weights, std::optional<std::vector<int32_t>> weight_heads,
         std::optional<std::vector<int32_t>> weight_rows, int threads) {
        StridedInputs inputs{.q = input_of(q, "q"), .k = input_of(k, "k"), .v = input_of(v, "v")};
        const auto members = input_members<StridedInput, StridedInputs>();
        require(parameters.size() + 3 == members.size(), "attention: got ", parameters.size(), " parameters");
        for (size_t i = 0; i < parameters.size(); ++i)
          inputs.*members[i + 3] = input_of(parameters[i], kInputNames[i + 3]);
        return attention(
            inputs,
            {std::move(spec), std::move(lengths), std::move(query_lengths), std::move(documents), dropout,
             seed, training, return_lse, weights, std::move(weight_heads), std::move(weight_rows), threads},
            mask == nullptr ? nullptr : mask->shared.get());
      },
      nb::arg("q"), nb::arg("k"), nb::arg("v"), nb::arg("spec"), nb::arg("parameters"),
      nb::arg("mask").none(), nb::arg("lengths").none(), nb::arg("query_lengths").none(),
      nb::arg("documents").none(), nb::arg("dropout"), nb::arg("seed"), nb::arg("training"),
      nb::arg("return_lse"), nb::arg("weights"), nb::arg("weight_heads").none(),
      nb::arg("weight_rows").none(), nb::arg("threads"));
}

}  // namespace fovea::python
