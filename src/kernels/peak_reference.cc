#include "kernels/peak.h"

namespace fovea::kernels {
namespace {

int64_t multiply_add(int64_t rounds, float* seeds) {
  const float a = seeds[0], b = seeds[1];
  float c = seeds[2];
  for (int64_t i = 0; i < rounds; ++i) c = c * b + a;
  seeds[0] = c;
  return rounds * 2;
}

float sum(const float* x, int64_t count) {
  float total = 0;
  for (int64_t i = 0; i < count; ++i) total += x[i];
  return total;
}

void triad(float* out, const float* a, const float* b, float scale, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = a[i] + scale * b[i];
}

}  // namespace

namespace scalar {
extern const PeakKernels peak_table;
const PeakKernels peak_table{multiply_add, sum, triad};
}  // namespace scalar

}  // namespace fovea::kernels
