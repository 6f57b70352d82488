// The last few lanes of an array, read and written without touching memory past its end.
// For X.simd.cc files only: everything here is compiled once per instruction-set level.
#pragma once

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

namespace fovea::kernels {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// The first `count` < Lanes(d) values at p; the other lanes are 0.
template <class D>
HWY_INLINE HWY_MAYBE_UNUSED hn::Vec<D> load_first(D d, const hn::TFromD<D>* p, int64_t count) {
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
  return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, p);
#else
  // Below AVX2 a masked load reads the whole vector, past the end of the array.
  HWY_ALIGN hn::TFromD<D> lanes[HWY_MAX_BYTES / sizeof(hn::TFromD<D>)] = {};
  for (int64_t i = 0; i < count; ++i) lanes[i] = p[i];
  return hn::Load(d, lanes);
#endif
}

// Writes the first `count` < Lanes(d) lanes to p.
template <class D>
HWY_INLINE HWY_MAYBE_UNUSED void store_first(hn::Vec<D> v, D d, hn::TFromD<D>* p, int64_t count) {
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
  hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(count)), d, p);
#else
  HWY_ALIGN hn::TFromD<D> lanes[HWY_MAX_BYTES / sizeof(hn::TFromD<D>)];
  hn::Store(v, d, lanes);
  for (int64_t i = 0; i < count; ++i) p[i] = lanes[i];
#endif
}

}  // namespace
}  // namespace fovea::kernels
