#include "kernels/norm/softmax.h"

#include "kernels/vector/vector_math-inl.h"
#include "kernels/vector/vector_row-inl.h"

namespace fovea::kernels {
namespace {

constexpr float kInfinity = __builtin_inff();

// Scores of one row; hidden ones are -inf.
struct Row {
  const float* x;
  const float* seen;  // null: all up to `limit`
  int64_t limit;

  HWY_INLINE V scores(int64_t i, int64_t lanes) const {
    V v = keep_first(load(x + i, lanes), lanes, -kInfinity);
    if (seen) v = hn::IfThenElse(hn::Eq(load(seen + i, lanes), hn::Zero(d)), hn::Set(d, -kInfinity), v);
    return v;
  }
};

HWY_INLINE void fill(float value, float* y, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) y[i] = value;
}

void softmax(const Softmax& args, int64_t begin, int64_t end) {
  const int64_t n = args.columns;
  for (int64_t r = begin; r < end; ++r) {
    const Row row{args.x + r * n, args.mask.seen_row(r, n), args.mask.limit(r, n)};
    float* y = args.y + r * n;
    const float largest =
        max_of(row.limit, [&](int64_t i, int64_t lanes) HWY_ATTR { return row.scores(i, lanes); });
    if (largest == -kInfinity) {
      fill(0, y, 0, n);
      continue;
    }
    const V shift = hn::Set(d, largest);
    const float sum = sum_of(row.limit, [&](int64_t i, int64_t lanes) HWY_ATTR {
      const V e = vmath::exp_nonpositive(d, hn::Sub(row.scores(i, lanes), shift));
      store(e, y + i, lanes);
      return e;
    });
    const V inverse = hn::Set(d, 1 / sum);
    for_vectors(row.limit, [&](int64_t i, int64_t lanes)
                               HWY_ATTR { store(hn::Mul(load(y + i, lanes), inverse), y + i, lanes); });
    fill(0, y, row.limit, n);
  }
}

void log_softmax(const Softmax& args, int64_t begin, int64_t end) {
  const int64_t n = args.columns;
  for (int64_t r = begin; r < end; ++r) {
    const Row row{args.x + r * n, args.mask.seen_row(r, n), args.mask.limit(r, n)};
    float* y = args.y + r * n;
    const float largest =
        max_of(row.limit, [&](int64_t i, int64_t lanes) HWY_ATTR { return row.scores(i, lanes); });
    if (largest == -kInfinity) {
      fill(-kInfinity, y, 0, n);
      continue;
    }
    const V shift = hn::Set(d, largest);
    const float sum = sum_of(row.limit, [&](int64_t i, int64_t lanes) HWY_ATTR {
      return vmath::exp_nonpositive(d, hn::Sub(row.scores(i, lanes), shift));
    });
    const V log_sum = vmath::log(d, hn::Set(d, sum));
    for_vectors(row.limit, [&](int64_t i, int64_t lanes) HWY_ATTR {
      store(hn::Sub(hn::Sub(row.scores(i, lanes), shift), log_sum), y + i, lanes);
    });
    fill(-kInfinity, y, row.limit, n);
  }
}

void softmax_backward(const SoftmaxBackward& args, int64_t begin, int64_t end) {
  const int64_t n = args.columns;
  for (int64_t r = begin; r < end; ++r) {
    const float *y = args.y + r * n, *dy = args.dy + r * n;
    float* dx = args.dx + r * n;
    // Where y is 0 nothing passes, so that a NaN in the gradient of a hidden column stays there.
    const float dot = sum_of(n, [=](int64_t i, int64_t lanes) HWY_ATTR {
      const V p = load(y + i, lanes);
      return hn::IfThenZeroElse(hn::Eq(p, hn::Zero(d)), hn::Mul(p, load(dy + i, lanes)));
    });
    const V shift = hn::Set(d, dot);
    for_vectors(n, [=](int64_t i, int64_t lanes) HWY_ATTR {
      const V p = load(y + i, lanes);
      const V g = hn::Mul(p, hn::Sub(load(dy + i, lanes), shift));
      store(hn::IfThenZeroElse(hn::Eq(p, hn::Zero(d)), g), dx + i, lanes);
    });
  }
}

void log_softmax_backward(const SoftmaxBackward& args, int64_t begin, int64_t end) {
  const int64_t n = args.columns;
  const V hidden = hn::Set(d, -kInfinity);
  for (int64_t r = begin; r < end; ++r) {
    const float *y = args.y + r * n, *dy = args.dy + r * n;
    float* dx = args.dx + r * n;
    const float sum = sum_of(n, [=](int64_t i, int64_t lanes) HWY_ATTR {
      return hn::IfThenZeroElse(hn::Eq(load(y + i, lanes), hidden), load(dy + i, lanes));
    });
    const V total = hn::Set(d, sum);
    for_vectors(n, [=](int64_t i, int64_t lanes) HWY_ATTR {
      const V log_p = load(y + i, lanes);
      const V g = hn::NegMulAdd(vmath::exp_nonpositive(d, log_p), total, load(dy + i, lanes));
      store(hn::IfThenZeroElse(hn::Eq(log_p, hidden), g), dx + i, lanes);
    });
  }
}

}  // namespace

namespace FOVEA_LEVEL {
extern const SoftmaxKernels softmax_table;
const SoftmaxKernels softmax_table{.softmax = softmax,
                                   .log_softmax = log_softmax,
                                   .softmax_backward = softmax_backward,
                                   .log_softmax_backward = log_softmax_backward};
}  // namespace FOVEA_LEVEL

}  // namespace fovea::kernels
