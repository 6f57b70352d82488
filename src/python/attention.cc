// attention() for NumPy and DLPack arrays, and the calls under fovea.torch, which fill tensors that PyTorch made.
#include "python/attention.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "attention/strided.h"
#include "base/error.h"
#include "base/thread_limit.h"
#include "python/tensors.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

using AnyArray = nb::ndarray<nb::ro>;
using IntArray = nb::ndarray<nb::ro>;
using Counts = std::optional<std::vector<int64_t>>;
using NumpyFloats = nb::ndarray<nb::numpy, float>;

std::string dtype_name(nb::dlpack::dtype type) {
  static const std::map<int, std::string> kinds{{0, "int"},    {1, "uint"},    {2, "float"},
                                                {4, "bfloat"}, {5, "complex"}, {6, "bool"}};
  const auto found = kinds.find(type.code);
  return (found == kinds.end() ? "type" : found->second) + (type.code == 6 ? "" : std::to_string(type.bits));
}

template <class T>
void check_array(const AnyArray& array, const char* name, const char* wanted) {
  require(array.device_type() == nb::device::cpu::value, name,
          ": got an array on another device, wanted one on the CPU");
  require(array.dtype() == nb::dtype<T>(), name, ": got dtype ", dtype_name(array.dtype()), ", wanted ",
          wanted);
  require(array.ndim() <= 4, name, ": got ", array.ndim(), " dimensions, wanted at most 4");
}

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

// A mask that calls share, with what was prepared for it.
struct SharedMask {
  explicit SharedMask(KeyMask given) : mask(std::make_shared<const KeyMask>(std::move(given))) {}
  const std::shared_ptr<const KeyMask> mask;
  PreparedCache cache{8};
};
// As Python holds it.
struct Mask {
  std::shared_ptr<SharedMask> shared;
};

// Masks by number, as long as Python holds them: the arguments of PyTorch's ops are tensors, numbers and texts.
class MaskTable {
 public:
  int64_t add(const std::shared_ptr<SharedMask>& mask) {
    const std::lock_guard lock(mutex_);
    std::erase_if(masks_, [](const auto& entry) { return entry.second.expired(); });
    masks_[++last_] = mask;
    return last_;
  }
  std::shared_ptr<SharedMask> find(int64_t number) {
    const std::lock_guard lock(mutex_);
    const auto found = masks_.find(number);
    std::shared_ptr<SharedMask> mask = found == masks_.end() ? nullptr : found->second.lock();
    require(mask != nullptr, "attention: mask ", number, " is not held in this process (any more)");
    return mask;
  }

 private:
  std::mutex mutex_;
  std::map<int64_t, std::weak_ptr<SharedMask>> masks_;
  int64_t last_ = 0;
};
MaskTable& mask_table() {
  static MaskTable table;
  return table;
}

PreparedCache& shared_cache() {
  static PreparedCache cache(32);
  return cache;
}

Mask mask_from_bools(const AnyArray& array) {
  check_array<bool>(array, "mask", "bool");
  const size_t rank = array.ndim();
  require(rank >= 1,
          "mask: got a single value, wanted an array that broadcasts to [batch, heads, queries, keys]");
  std::array<int64_t, 4> sizes{1, 1, 1, 1}, strides{};
  for (size_t i = 0; i < rank; ++i) {
    sizes[4 - rank + i] = static_cast<int64_t>(array.shape(i));
    strides[4 - rank + i] = array.stride(i);
  }
  const nb::gil_scoped_release release;
  return {std::make_shared<SharedMask>(
      KeyMask::from_bools({static_cast<const uint8_t*>(array.data()), strides},
                          {.batches = sizes[0], .heads = sizes[1], .queries = sizes[2], .keys = sizes[3]}))};
}

using Int32s = nb::ndarray<const int32_t, nb::c_contig, nb::device::cpu>;
using Bytes = nb::ndarray<const uint8_t, nb::c_contig, nb::device::cpu>;

KeyMask::BlockList list_of(const Int32s& counts, const Int32s& indices) {
  return {.counts = {counts.data(), counts.size()},
          .indices = {indices.data(), indices.size()},
          .slots = indices.ndim() > 0 ? static_cast<int64_t>(indices.shape(indices.ndim() - 1)) : 0};
}

// sizes: batches, heads, queries, keys.
Mask mask_from_blocks(const std::array<int64_t, 4>& sizes, int64_t query_block, int64_t key_block,
                      const Int32s& full_counts, const Int32s& full_indices, const Int32s& partial_counts,
                      const Int32s& partial_indices, const Bytes& bits) {
  const KeyMask::Blocks blocks{.query_block = query_block,
                               .key_block = key_block,
                               .full = list_of(full_counts, full_indices),
                               .partial = list_of(partial_counts, partial_indices),
                               .bits = {bits.data(), bits.size()}};
  const nb::gil_scoped_release release;
  return {std::make_shared<SharedMask>(KeyMask::from_blocks(
      blocks, {.batches = sizes[0], .heads = sizes[1], .queries = sizes[2], .keys = sizes[3]}))};
}

// What chooses a prepared call, as both front ends give it.
AttentionText text_of(std::string spec, const StridedInputs& inputs, const Counts& lengths,
                      const Counts& query_lengths, const Counts& documents, double dropout, bool training) {
  return {.spec = std::move(spec),
          .bias = inputs.bias.present,
          .alibi = inputs.slopes.present,
          .sink = inputs.sink.present,
          .dropout = static_cast<float>(dropout),
          .lengths = lengths.value_or(std::vector<int64_t>{}),
          .query_lengths = query_lengths.value_or(std::vector<int64_t>{}),
          .documents = documents.value_or(std::vector<int64_t>{}),
          .training = training};
}

std::shared_ptr<const PreparedAttention> prepared_for(AttentionText text, const StridedInputs& inputs,
                                                      SharedMask* mask) {
  const AttentionSizes sizes = attention_sizes(inputs.q, inputs.k, inputs.v);
  if (mask == nullptr) return shared_cache().prepare(text, sizes);
  text.mask = mask->mask;
  return mask->cache.prepare(text, sizes);
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
  const auto prepared = prepared_for(text_of(options.spec, inputs, options.lengths, options.query_lengths,
                                             options.documents, options.dropout, options.training),
                                     inputs, mask);
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

constexpr std::array<const char*, 12> kInputNames{"q",        "k",    "v", "bias", "slopes", "relative",
                                                  "position", "sink", "W", "U",    "b",      "score_vector"};

// The inputs in the order of kInputNames.
template <class Array, class Inputs>
std::array<Array Inputs::*, 12> input_members() {
  return {&Inputs::q,        &Inputs::k,    &Inputs::v, &Inputs::bias, &Inputs::slopes, &Inputs::relative,
          &Inputs::position, &Inputs::sink, &Inputs::W, &Inputs::U,    &Inputs::b,      &Inputs::score_v};
}

// The members of kInputNames at `places`, each from the tensor beside it.
template <class Array, class Inputs>
Inputs tensors_at(const nb::tuple& places, const nb::tuple& tensors) {
  Inputs arrays;
  const auto members = input_members<Array, Inputs>();
  require(places.size() == tensors.size(), "attention: got ", tensors.size(), " tensors for ", places.size(),
          " places");
  for (size_t i = 0; i < places.size(); ++i) {
    const auto place = nb::cast<size_t>(places[i]);
    require(place < members.size(), "attention: got place ", place, ", wanted less than ", members.size());
    if constexpr (std::is_same_v<Array, StridedInput>)
      arrays.*members[place] = input_view(tensors[i]);
    else
      arrays.*members[place] = tensor_view(tensors[i]);
  }
  return arrays;
}

// What ops of PyTorch pass besides arrays.
struct RawOptions {
  std::string spec;
  Counts lengths, query_lengths, documents;
  int64_t mask;
  double dropout;
  bool training;
};

struct RawCall {
  StridedInputs inputs;
  std::shared_ptr<SharedMask> mask;
  std::shared_ptr<const PreparedAttention> prepared;

  RawCall(const nb::tuple& places, const nb::tuple& tensors, const RawOptions& o)
      : inputs(tensors_at<StridedInput, StridedInputs>(places, tensors)) {
    if (o.mask != 0) mask = mask_table().find(o.mask);
    prepared =
        prepared_for(text_of(o.spec, inputs, o.lengths, o.query_lengths, o.documents, o.dropout, o.training),
                     inputs, mask.get());
  }
};

}  // namespace

void add_attention(nb::module_& module) {
  nb::class_<Mask>(module, "Mask").def_prop_ro("shape", [](const Mask& self) {
    const KeyMask::Sizes& s = self.shared->mask->sizes();
    return nb::make_tuple(s.batches, s.heads, s.queries, s.keys);
  });
  module.def("mask_from_bools", &mask_from_bools, nb::arg("mask"));
  module.def(
      "mask_from_blocks",
      [](std::tuple<int64_t, int64_t, int64_t, int64_t> sizes, int64_t query_block, int64_t key_block,
         const Int32s& full_counts, const Int32s& full_indices, const Int32s& partial_counts,
         const Int32s& partial_indices, const Bytes& bits) {
        const auto [b, h, q, k] = sizes;
        return mask_from_blocks({b, h, q, k}, query_block, key_block, full_counts, full_indices,
                                partial_counts, partial_indices, bits);
      },
      nb::arg("sizes"), nb::arg("query_block"), nb::arg("key_block"), nb::arg("full_counts"),
      nb::arg("full_indices"), nb::arg("partial_counts"), nb::arg("partial_indices"), nb::arg("bits"));
  module.def(
      "join_masks",
      [](const std::vector<Mask>& rows) {
        std::vector<const KeyMask*> parts;
        for (const Mask& mask : rows) parts.push_back(mask.shared->mask.get());
        return Mask{std::make_shared<SharedMask>(KeyMask::join_rows(parts))};
      },
      nb::arg("rows"));
  // The number by which ops name a mask.
  module.def("mask_number", [](const Mask& mask) { return mask_table().add(mask.shared); });
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
  // For fovea.torch alone: the caller vouches for float32 tensors on the CPU. places: which input each tensor is, in the
  // order of kInputNames.
  module.def(
      "raw_forward",
      [](const nb::tuple& places, const nb::tuple& tensors, nb::handle out, nb::handle lse, std::string spec,
         Counts lengths, Counts query_lengths, Counts documents, int64_t mask, double dropout, bool training,
         int64_t seed, int threads) {
        const RawCall call(places, tensors,
                           {std::move(spec), std::move(lengths), std::move(query_lengths),
                            std::move(documents), mask, dropout, training});
        const StridedResults results{.out = tensor_view(out), .lse = tensor_view(lse).data};
        const nb::gil_scoped_release release;
        const ThreadLimit limit(threads);
        call.prepared->forward(call.inputs, results, static_cast<uint64_t>(seed));
      },
      nb::arg("places"), nb::arg("tensors"), nb::arg("out"), nb::arg("lse").none(), nb::arg("spec"),
      nb::arg("lengths").none(), nb::arg("query_lengths").none(), nb::arg("documents").none(),
      nb::arg("mask"), nb::arg("dropout"), nb::arg("training"), nb::arg("seed"), nb::arg("threads"));
  // gradients: a tensor for each of `tensors`, or None.
  module.def("raw_backward", [](const nb::tuple& places, const nb::tuple& tensors, nb::handle out,
                                nb::handle lse, nb::handle d_out, const nb::tuple& gradients,
                                std::string spec, Counts lengths, Counts query_lengths, Counts documents,
                                int64_t mask, double dropout, bool training, int64_t seed, int threads) {
    const RawCall call(places, tensors,
                       {std::move(spec), std::move(lengths), std::move(query_lengths), std::move(documents),
                        mask, dropout, training});
    const StridedResults results{.out = tensor_view(out), .lse = tensor_view(lse).data};
    const StridedInput d = input_view(d_out);
    const auto to = tensors_at<StridedOutput, StridedGradients>(places, gradients);
    const nb::gil_scoped_release release;
    const ThreadLimit limit(threads);
    call.prepared->backward(call.inputs, results, d, to, static_cast<uint64_t>(seed));
  });
  module.def(
      "raw_weights",
      [](const nb::tuple& places, const nb::tuple& tensors, const std::vector<int32_t>& heads,
         const std::vector<int32_t>& rows, nb::handle weights, std::string spec, Counts lengths,
         Counts query_lengths, Counts documents, int64_t mask, double dropout, bool training, int64_t seed,
         int threads) {
        const RawCall call(places, tensors,
                           {std::move(spec), std::move(lengths), std::move(query_lengths),
                            std::move(documents), mask, dropout, training});
        float* const to = tensor_view(weights).data;
        const nb::gil_scoped_release release;
        const ThreadLimit limit(threads);
        call.prepared->weights(call.inputs, heads, rows, to, static_cast<uint64_t>(seed));
      },
      nb::arg("places"), nb::arg("tensors"), nb::arg("heads"), nb::arg("rows"), nb::arg("weights"),
      nb::arg("spec"), nb::arg("lengths").none(), nb::arg("query_lengths").none(),
      nb::arg("documents").none(), nb::arg("mask"), nb::arg("dropout"), nb::arg("training"), nb::arg("seed"),
      nb::arg("threads"));
}

}  // namespace fovea::python
