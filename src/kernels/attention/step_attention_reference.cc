#include <algorithm>
#include <cmath>

#include "kernels/attention/step_attention.h"

namespace fovea::kernels::scalar {
namespace {

void rows(const AttentionStep& s, int64_t begin, int64_t end, float* scratch, int64_t) {
  const int64_t group = s.heads / std::max<int64_t>(1, s.kv_heads);
  for (int64_t r = begin; r < end; ++r) {
    for (int64_t h = 0; h < s.heads; ++h) {
      const auto key = [&](int64_t j) {
        const int64_t place = s.first[r] + j;
        return (s.keys != nullptr ? s.keys[place] : place) * s.kv_row + h / group * s.d;
      };
      const float* q = s.q + r * s.q_row + h * s.d;
      float* out = s.out + r * s.out_row + h * s.d;
      double largest = -INFINITY;
      for (int64_t j = 0; j < s.count[r]; ++j) {
        double score = 0;
        for (int64_t c = 0; c < s.d; ++c) score += double{q[c]} * s.k[key(j) + c];
        scratch[j] = static_cast<float>(score * s.scale);
        largest = std::max(largest, double{scratch[j]});
      }
      double sum = 0;
      for (int64_t j = 0; j < s.count[r]; ++j) sum += std::exp(scratch[j] - largest);
      std::fill(out, out + s.d, 0.0f);
      for (int64_t j = 0; j < s.count[r]; ++j) {
        const auto weight = static_cast<float>(std::exp(scratch[j] - largest) / sum);
        for (int64_t c = 0; c < s.d; ++c) out[c] += weight * s.v[key(j) + c];
        if (s.weights != nullptr) s.weights[(r * s.heads + h) * s.weights_row + j] = weight;
      }
    }
  }
}

}  // namespace

extern const AttentionStepKernels attention_step_table;
const AttentionStepKernels attention_step_table{.rows = rows};

}  // namespace fovea::kernels::scalar
