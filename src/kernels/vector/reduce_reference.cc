#include <cmath>

#include "kernels/vector/reduce.h"

namespace fovea::kernels::scalar {
namespace {

double sum(const float* x, int64_t count) {
  double total = 0;
  for (int64_t i = 0; i < count; ++i) total += x[i];
  return total;
}

void sum_rows(const float* x, int64_t rows, int64_t columns, int64_t stride, float* y) {
  for (int64_t j = 0; j < columns; ++j) {
    double total = 0;
    for (int64_t i = 0; i < rows; ++i) total += x[i * stride + j];
    y[j] = static_cast<float>(total);
  }
}

int64_t argmax(const float* x, int64_t count) {
  int64_t best = 0;
  for (int64_t i = 0; i < count && !std::isnan(x[best]); ++i)
    if (x[i] > x[best] || std::isnan(x[i])) best = i;
  return best;
}

}  // namespace

extern const ReduceKernels reduce_table;
const ReduceKernels reduce_table{.sum = sum, .sum_rows = sum_rows, .argmax = argmax};

}  // namespace fovea::kernels::scalar
