// Sums across the lanes of several vectors at once. For X.simd.cc files only.
#pragma once

#include <hwy/highway.h>

namespace fovea::kernels {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// The sum of a vector's blocks of four lanes.
template <class D>
HWY_INLINE HWY_MAYBE_UNUSED auto sum_of_blocks(D, hn::Vec<D> x) {
  if constexpr (hn::MaxLanes(D()) <= 4) {
    return x;
  } else {
    const hn::Half<D> half;
    return sum_of_blocks(half, hn::Add(hn::LowerHalf(half, x), hn::UpperHalf(half, x)));
  }
}

// The sums of the lanes of four vectors, in four lanes.
template <class D>
HWY_INLINE HWY_MAYBE_UNUSED hn::Vec<hn::FixedTag<float, 4>> four_sums(D d, hn::Vec<D> x0, hn::Vec<D> x1,
                                                                      hn::Vec<D> x2, hn::Vec<D> x3) {
  const hn::RepartitionToWide<D> wide;
  const auto a = hn::BitCast(wide, hn::Add(hn::InterleaveLower(d, x0, x1), hn::InterleaveUpper(d, x0, x1)));
  const auto b = hn::BitCast(wide, hn::Add(hn::InterleaveLower(d, x2, x3), hn::InterleaveUpper(d, x2, x3)));
  // Every block of four lanes holds a share of the four sums.
  const auto shares = hn::Add(hn::BitCast(d, hn::InterleaveLower(wide, a, b)),
                              hn::BitCast(d, hn::InterleaveUpper(wide, a, b)));
  return sum_of_blocks(d, shares);
}

}  // namespace
}  // namespace fovea::kernels
