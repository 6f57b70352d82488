// Sums, maxima and minima across the lanes of several vectors at once. For X.simd.cc files only.
#pragma once

#include <hwy/highway.h>

namespace fovea::kernels {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// A vector's blocks of four lanes, joined by `op`.
template <class D, class Op>
HWY_INLINE HWY_MAYBE_UNUSED auto join_blocks(D, hn::Vec<D> x, Op op) {
  if constexpr (hn::MaxLanes(D()) <= 4) {
    return x;
  } else {
    const hn::Half<D> half;
    return join_blocks(half, op(hn::LowerHalf(half, x), hn::UpperHalf(half, x)), op);
  }
}

// The lanes of each of four vectors joined by `op` (a sum, a maximum, a minimum), in four lanes.
template <class D, class Op>
HWY_INLINE HWY_MAYBE_UNUSED hn::Vec<hn::FixedTag<float, 4>> join_four(D tag, hn::Vec<D> x0, hn::Vec<D> x1,
                                                                      hn::Vec<D> x2, hn::Vec<D> x3, Op op) {
  const hn::RepartitionToWide<D> wide;
  const auto a = hn::BitCast(wide, op(hn::InterleaveLower(tag, x0, x1), hn::InterleaveUpper(tag, x0, x1)));
  const auto b = hn::BitCast(wide, op(hn::InterleaveLower(tag, x2, x3), hn::InterleaveUpper(tag, x2, x3)));
  // Every block of four lanes holds a share of the four results.
  const auto shares = op(hn::BitCast(tag, hn::InterleaveLower(wide, a, b)),
                         hn::BitCast(tag, hn::InterleaveUpper(wide, a, b)));
  return join_blocks(tag, shares, op);
}

struct AddLanes {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Add(a, b);
  }
};
struct MaxLanes {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Max(a, b);
  }
};
struct MinLanes {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Min(a, b);
  }
};

// The sums of the lanes of four vectors, in four lanes.
template <class D>
HWY_INLINE HWY_MAYBE_UNUSED hn::Vec<hn::FixedTag<float, 4>> four_sums(D tag, hn::Vec<D> x0, hn::Vec<D> x1,
                                                                      hn::Vec<D> x2, hn::Vec<D> x3) {
  return join_four(tag, x0, x1, x2, x3, AddLanes());
}

}  // namespace
}  // namespace fovea::kernels
