// Masks from bool arrays and from the block lists of FlexAttention.
#include "python/masks.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "python/arrays.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

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

Mask mask_from_bools(const AnyArray& array) {
  check_array<bool>(array, "mask", "bool; give numbers that are added to the scores as bias=");
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

}  // namespace

std::shared_ptr<SharedMask> find_mask(int64_t number) {
  return mask_table().find(number);
}

std::shared_ptr<const PreparedAttention> prepared_for(AttentionText text, const AttentionSizes& sizes,
                                                      SharedMask* mask) {
  static PreparedCache without_mask(32);
  if (mask == nullptr) return without_mask.prepare(text, sizes);
  text.mask = mask->mask;
  return mask->cache.prepare(text, sizes);
}

void add_masks(nb::module_& module) {
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
}

}  // namespace fovea::python
