// Walking a row of floats by vectors, the last one perhaps shorter. For X.simd.cc files only.
#pragma once

#include "kernels/vector/vector_tail-inl.h"

namespace fovea::kernels {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr D d;
constexpr int64_t kLanes = static_cast<int64_t>(HWY_LANES(float));

// `lanes` values at p, the rest 0.
HWY_INLINE HWY_MAYBE_UNUSED V load(const float* p, int64_t lanes) {
  return lanes == kLanes ? hn::LoadU(d, p) : load_first(d, p, lanes);
}
HWY_INLINE HWY_MAYBE_UNUSED void store(V v, float* p, int64_t lanes) {
  if (lanes == kLanes)
    hn::StoreU(v, d, p);
  else
    store_first(v, d, p, lanes);
}

// f(i, lanes) for every vector of [0, count), the last one perhaps shorter.
template <class F>
HWY_INLINE HWY_MAYBE_UNUSED void for_vectors(int64_t count, F f) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) f(i, kLanes);
  if (i < count) f(i, count - i);
}

// The first `lanes` lanes of v, the others replaced by `other`.
HWY_INLINE HWY_MAYBE_UNUSED V keep_first(V v, int64_t lanes, float other) {
  if (lanes == kLanes) return v;
  return hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(lanes)), v, hn::Set(d, other));
}

// The sum of term(i, lanes) over [0, count): four chains hide the latency of the additions. Lanes past
// `lanes` must come out as 0.
template <class Term>
HWY_INLINE HWY_MAYBE_UNUSED float sum_of(int64_t count, Term term) {
  V sum0 = hn::Zero(d), sum1 = sum0, sum2 = sum0, sum3 = sum0;
  int64_t i = 0;
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    sum0 = hn::Add(sum0, term(i, kLanes));
    sum1 = hn::Add(sum1, term(i + kLanes, kLanes));
    sum2 = hn::Add(sum2, term(i + 2 * kLanes, kLanes));
    sum3 = hn::Add(sum3, term(i + 3 * kLanes, kLanes));
  }
  for (; i + kLanes <= count; i += kLanes) sum0 = hn::Add(sum0, term(i, kLanes));
  if (i < count) sum1 = hn::Add(sum1, term(i, count - i));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3))));
}

// The largest term(i, lanes) over [0, count), -inf for none. Lanes past `lanes` must come out as -inf.
template <class Term>
HWY_INLINE HWY_MAYBE_UNUSED float max_of(int64_t count, Term term) {
  V max0 = hn::Neg(hn::Inf(d)), max1 = max0, max2 = max0, max3 = max0;
  int64_t i = 0;
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    max0 = hn::Max(max0, term(i, kLanes));
    max1 = hn::Max(max1, term(i + kLanes, kLanes));
    max2 = hn::Max(max2, term(i + 2 * kLanes, kLanes));
    max3 = hn::Max(max3, term(i + 3 * kLanes, kLanes));
  }
  for (; i + kLanes <= count; i += kLanes) max0 = hn::Max(max0, term(i, kLanes));
  if (i < count) max1 = hn::Max(max1, term(i, count - i));
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(hn::Max(max0, max1), hn::Max(max2, max3))));
}

}  // namespace
}  // namespace fovea::kernels
