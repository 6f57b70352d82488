#include "infer/output_layer.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "kernels/gemm/int8_gemm.h"
#include "kernels/gemm/packed_gemm.h"
#include "kernels/vector/topk.h"

namespace fovea {
namespace {

// A row of x, |x| its length, meets weights w that int8 says are v:
//   |x.w - y.v| <= |x| |w - v| + |x - y| |v|     where y is what int8 says x is.
// To |w - v| is added what float32 may round off while it sums x.w, and a bias has its own share of that.
struct Distance {
  float error, norm;  // |w - v|, |v|
};

// What rounding may take from or add to a sum of so many terms, as a share of their size.
double rounding(int64_t count) {
  return std::ldexp(static_cast<double>(count + 16), -23);
}

Distance distance(int64_t count, const float* w, const int8_t* q, float scale) {
  double error = 0, norm = 0, length = 0;
  for (int64_t p = 0; p < count; ++p) {
    const double v = double{scale} * q[p];
    error += (w[p] - v) * (w[p] - v);
    norm += v * v;
    length += double{w[p]} * w[p];
  }
  return {static_cast<float>(1.000001 * (std::sqrt(error) + rounding(count) * std::sqrt(length))),
          static_cast<float>(1.000001 * std::sqrt(norm))};
}

// |x| and |x - y| of a row x, y being x in steps of this share of its largest (kernels/gemm/int8_gemm.h).
void measure(int64_t count, const float* x, double step, kernels::Uncertain& row) {
  double squares = 0;
  float largest = 0;
  for (int64_t p = 0; p < count; ++p) {
    squares += double{x[p]} * x[p];
    largest = std::max(largest, std::fabs(x[p]));
  }
  const double half_step = largest <= 2e-30f ? double{largest} : 0.501 * double{largest} * step;
  row.length = static_cast<float>(1.000001 * std::sqrt(squares));
  row.error = static_cast<float>(half_step * std::sqrt(static_cast<double>(count)));
}

}  // namespace

struct OutputLayer::Screen {
  Screen(const Tensor& weight, const Tensor& bias)
      : errors(Shape{weight.size(0)}), norms(Shape{weight.size(0)}) {
    const int64_t count = weight.size(0), in = weight.size(1);
    std::vector<int8_t> q(static_cast<size_t>(in));
    for (int64_t j = 0; j < count; ++j) {
      const float* row = weight.data() + j * in;
      float scale = 0;
      if (!kernels::quantize_int8(1, in, row, q.data(), &scale)) fail_damaged_logits();
      const Distance d = distance(in, row, q.data(), scale);
      errors.data()[j] = d.error;
      norms.data()[j] = d.norm;
    }
    for (int64_t j = 0; bias.defined() && j < count; ++j)
      slack = std::max(slack, static_cast<float>(rounding(in) * std::fabs(bias.data()[j])));
    layer = nn::PreparedLinear(weight, bias, Compute::int8);
  }
  nn::PreparedLinear layer;
  Tensor errors, norms;  // [vocabulary]
  float slack = 0;       // what rounding adds where there is a bias
};

OutputLayer::OutputLayer(const Tensor& weight, const Tensor& bias, Compute compute)
    : weight_(weight.contiguous()), bias_(bias), compute_(compute), layer_(weight_, bias, compute) {}
OutputLayer::~OutputLayer() = default;

const OutputLayer::Screen& OutputLayer::screen() const {
  const std::lock_guard lock(mutex_);
  if (screen_ == nullptr) screen_ = std::make_unique<Screen>(weight_, bias_);
  return *screen_;
}

Logits OutputLayer::logits(const Tensor& x) const {
  Logits result(x.size(0), layer_.out());
  layer_.run(x, result.values.data(), kernels::kTopBlock,
             [&](int64_t begin, int64_t end, int64_t column, int64_t column_end) {
               result.summarise(begin, end, column, column_end);
             });
  return result;
}

std::vector<int32_t> OutputLayer::best(const Tensor& x, std::span<const int32_t> skipped) const {
  const int64_t rows = x.size(0), in = x.size(1), vocabulary = weight_.size(0);
  FOVEA_ASSERT(skipped.size() == static_cast<size_t>(rows));
  const Screen* const screen = compute_ == Compute::int8 ? nullptr : &this->screen();
  const Tensor near = screen != nullptr ? screen->layer(x) : layer_(x);
  const double step = kernels::int8_activation_step(kernels::int8_kernels().together, in);
  std::vector<int32_t> tokens(static_cast<size_t>(rows), -1);
  parallel_for(rows, 4, [&](int64_t begin, int64_t end) {
    thread_local std::vector<int32_t> columns;
    thread_local std::vector<float> values;
    columns.resize(static_cast<size_t>(vocabulary));
    for (int64_t r = begin; r < end; ++r) {
      kernels::Uncertain row{.count = vocabulary,
                             .x = near.data() + r * vocabulary,
                             .skipped = skipped[static_cast<size_t>(r)],
                             .columns = columns.data()};
      if (screen != nullptr) {
        row.errors = screen->errors.data();
        row.norms = screen->norms.data();
        row.slack = screen->slack;
        measure(in, x.data() + r * in, step, row);
      } else {
        row.errors = row.norms = row.x;  // times 0: these logits are what they are
      }
      const int64_t found = kernels::top_k_kernels().candidates(row);
      if (found == 0) continue;
      int64_t choice = 0;
      if (screen != nullptr && found > 1) {
        values.resize(static_cast<size_t>(found));
        kernels::packed_gemm_kernels().elements({.k = in,
                                                 .a = x.data() + r * in,
                                                 .b = weight_.data(),
                                                 .bias = bias_.defined() ? bias_.data() : nullptr,
                                                 .count = found,
                                                 .columns = columns.data(),
                                                 .c = values.data()});
        choice = std::max_element(values.begin(), values.end()) - values.begin();
      }
      tokens[static_cast<size_t>(r)] = columns[static_cast<size_t>(choice)];
    }
  });
  if (std::find(tokens.begin(), tokens.end(), -1) != tokens.end()) fail_damaged_logits();
  return tokens;
}

}  // namespace fovea
