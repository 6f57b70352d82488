#include "kernels/recurrent/step_gradients.h"

#include <algorithm>

#include "base/parallel.h"
#include "kernels/gemm/gemm.h"
#include "kernels/vector/reduce.h"

namespace fovea::kernels {

void weight_gradient(const StepGradients& g, const float* inputs, int64_t in, float* d_weight) {
  if (d_weight == nullptr) return;
  gemm({.transpose_a = true,
        .m = g.columns,
        .n = in,
        .k = g.steps,
        .a = g.data,
        .lda = g.stride,
        .b = inputs,
        .ldb = in,
        .c = d_weight,
        .ldc = in});
}

void bias_gradient(const StepGradients& g, float* d_bias) {
  if (d_bias == nullptr) return;
  parallel_for(g.columns, 64, [&](int64_t begin, int64_t end) {
    reduce_kernels().sum_rows(g.data + begin, g.steps, end - begin, g.stride, d_bias + begin);
  });
}

void previous_states(const Runs& runs, const float* first, const float* states, int64_t hidden,
                     float* previous) {
  parallel_for(runs.sentences, 4, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      const int64_t row = runs.query_begin[s], last = runs.query_begin[s + 1];
      if (row == last) continue;
      if (first != nullptr)
        std::copy_n(first + s * hidden, hidden, previous + row * hidden);
      else
        std::fill_n(previous + row * hidden, hidden, 0.0f);
      std::copy_n(states + row * hidden, (last - row - 1) * hidden, previous + (row + 1) * hidden);
    }
  });
}

void sum_blocks(std::span<const float> parts, int64_t count, float* sums) {
  if (sums == nullptr) return;
  std::fill_n(sums, count, 0.0f);
  for (size_t first = 0; first < parts.size(); first += static_cast<size_t>(count))
    for (int64_t i = 0; i < count; ++i) sums[i] += parts[first + static_cast<size_t>(i)];
}

}  // namespace fovea::kernels
