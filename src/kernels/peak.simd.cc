#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "kernels/peak.h"

namespace fovea::kernels {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// Twelve chains: two ports of latency four or five need at most ten, and twelve leave room for the operands
// in sixteen registers.
int64_t multiply_add(int64_t rounds, float* seeds) {
  const D d;
  constexpr int kChains = 12;
  const V a = hn::Set(d, seeds[0]), b = hn::Set(d, seeds[1]);
  // Every chain begins elsewhere: equal ones would be one to the compiler.
  const auto start = [&](int chain) { return hn::Set(d, seeds[2 + chain]); };
  V c0 = start(0), c1 = start(1), c2 = start(2), c3 = start(3), c4 = start(4), c5 = start(5);
  V c6 = start(6), c7 = start(7), c8 = start(8), c9 = start(9), c10 = start(10), c11 = start(11);
  for (int64_t i = 0; i < rounds; ++i) {
    c0 = hn::MulAdd(c0, b, a);
    c1 = hn::MulAdd(c1, b, a);
    c2 = hn::MulAdd(c2, b, a);
    c3 = hn::MulAdd(c3, b, a);
    c4 = hn::MulAdd(c4, b, a);
    c5 = hn::MulAdd(c5, b, a);
    c6 = hn::MulAdd(c6, b, a);
    c7 = hn::MulAdd(c7, b, a);
    c8 = hn::MulAdd(c8, b, a);
    c9 = hn::MulAdd(c9, b, a);
    c10 = hn::MulAdd(c10, b, a);
    c11 = hn::MulAdd(c11, b, a);
  }
  const V s0 = hn::Add(hn::Add(c0, c1), hn::Add(c2, c3));
  const V s1 = hn::Add(hn::Add(c4, c5), hn::Add(c6, c7));
  const V s2 = hn::Add(hn::Add(c8, c9), hn::Add(c10, c11));
  seeds[0] = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), s2)));
  return rounds * kChains * 2 * static_cast<int64_t>(hn::Lanes(d));
}

// Four streams at once: one alone does not keep enough cache lines on their way.
float sum(const float* x, int64_t count) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t quarter = count / 4 / lanes * lanes;
  V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  for (int64_t i = 0; i < quarter; i += lanes) {
    s0 = hn::Add(s0, hn::LoadU(d, x + i));
    s1 = hn::Add(s1, hn::LoadU(d, x + i + quarter));
    s2 = hn::Add(s2, hn::LoadU(d, x + i + 2 * quarter));
    s3 = hn::Add(s3, hn::LoadU(d, x + i + 3 * quarter));
  }
  float total = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
  for (int64_t i = 4 * quarter; i < count; ++i) total += x[i];
  return total;
}

void triad(float* out, const float* a, const float* b, float scale, int64_t count) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const V factor = hn::Set(d, scale);
  int64_t i = 0;
  for (; i < count && reinterpret_cast<uintptr_t>(out + i) % (lanes * sizeof(float)) != 0; ++i)
    out[i] = a[i] + scale * b[i];
  for (; i + lanes <= count; i += lanes)
    hn::Stream(hn::MulAdd(factor, hn::LoadU(d, b + i), hn::LoadU(d, a + i)), d, out + i);
  hwy::FlushStream();
  for (; i < count; ++i) out[i] = a[i] + scale * b[i];
}

}  // namespace

namespace FOVEA_LEVEL {
extern const PeakKernels peak_table;
const PeakKernels peak_table{multiply_add, sum, triad};
}  // namespace FOVEA_LEVEL

}  // namespace fovea::kernels
