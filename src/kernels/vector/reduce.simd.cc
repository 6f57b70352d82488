#include "kernels/vector/reduce.h"

#include "kernels/vector/vector_row-inl.h"

namespace fovea::kernels {
namespace {

// Blocks are summed in float over many short chains, the blocks in double: fast, and good to the last digit.
double sum(const float* x, int64_t count) {
  constexpr int64_t kBlock = 2048;
  double total = 0;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const float* block = x + begin;
    total += sum_of(HWY_MIN(kBlock, count - begin),
                    [block](int64_t i, int64_t lanes) HWY_ATTR { return load(block + i, lanes); });
  }
  return total;
}

// Four rows at a time: one visit to y for each, and shorter chains of additions. The first ones are written, not added.
void sum_rows(const float* x, int64_t rows, int64_t columns, int64_t stride, float* y) {
  const auto four = [=](int64_t i, int64_t j, int64_t lanes) HWY_ATTR {
    const float *x0 = x + i * stride + j, *x1 = x0 + stride, *x2 = x1 + stride, *x3 = x2 + stride;
    return hn::Add(hn::Add(load(x0, lanes), load(x1, lanes)), hn::Add(load(x2, lanes), load(x3, lanes)));
  };
  if (rows < 4) {
    for_vectors(columns, [=](int64_t j, int64_t lanes) HWY_ATTR {
      V sum = hn::Zero(d);
      for (int64_t i = 0; i < rows; ++i) sum = hn::Add(sum, load(x + i * stride + j, lanes));
      store(sum, y + j, lanes);
    });
    return;
  }
  for_vectors(columns, [=](int64_t j, int64_t lanes) HWY_ATTR { store(four(0, j, lanes), y + j, lanes); });
  int64_t i = 4;
  for (; i + 4 <= rows; i += 4)
    for_vectors(columns, [=](int64_t j, int64_t lanes) HWY_ATTR {
      store(hn::Add(load(y + j, lanes), four(i, j, lanes)), y + j, lanes);
    });
  for (; i < rows; ++i) {
    const float* x0 = x + i * stride;
    for_vectors(columns, [=](int64_t j, int64_t lanes) HWY_ATTR {
      store(hn::Add(load(y + j, lanes), load(x0 + j, lanes)), y + j, lanes);
    });
  }
}

int64_t argmax(const float* x, int64_t count) {
  V nan = hn::Zero(d);
  const float largest = max_of(count, [&](int64_t i, int64_t lanes) HWY_ATTR {
    const V v = load(x + i, lanes);
    nan = hn::Or(nan, hn::IfThenElseZero(hn::IsNaN(v), hn::Set(d, 1.0f)));
    return keep_first(v, lanes, -__builtin_inff());
  });
  const bool has_nan = !hn::AllFalse(d, hn::Gt(nan, hn::Zero(d)));
  for (int64_t i = 0; i < count; ++i)
    if (has_nan ? x[i] != x[i] : x[i] == largest) return i;
  return 0;
}

}  // namespace

namespace FOVEA_LEVEL {
extern const ReduceKernels reduce_table;
const ReduceKernels reduce_table{.sum = sum, .sum_rows = sum_rows, .argmax = argmax};
}  // namespace FOVEA_LEVEL

}  // namespace fovea::kernels
