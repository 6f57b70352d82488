// Writing the places of an image, as all gates do. For X.simd.cc files only.
#pragma once

#include <hwy/cache_control.h>

#include "kernels/vector/vector_row-inl.h"

namespace fovea::kernels {
namespace {

// The last places of an image are the ones still in the cache: body(begin, end) over blocks of [0, places),
// the last block first.
template <class Body>
HWY_INLINE HWY_MAYBE_UNUSED void from_the_end(int64_t places, int64_t channels, Body body) {
  const int64_t most = 8192 / channels, block = most > 0 ? most : 1;  // 32 KiB
  for (int64_t end = places; end > 0; end -= block) body(end > block ? end - block : 0, end);
}

struct ThroughCache {
  static HWY_INLINE void put(V v, float* p, int64_t lanes) { store(v, p, lanes); }
};
struct PastCache {
  static HWY_INLINE void put(V v, float* p, int64_t /*lanes*/) { hn::Stream(v, d, p); }
};

// write(how): past the cache where it was requested and all vectors of y are whole and aligned.
template <class Write>
HWY_INLINE HWY_MAYBE_UNUSED void write_rows(bool past_cache, const float* y, int64_t channels, Write write) {
  const bool aligned =
      channels % kLanes == 0 && reinterpret_cast<uintptr_t>(y) % (kLanes * sizeof(float)) == 0;
  if (past_cache && aligned) {
    write(PastCache());
    hwy::FlushStream();  // other threads see it once this call is over
  } else {
    write(ThroughCache());
  }
}

}  // namespace
}  // namespace fovea::kernels
