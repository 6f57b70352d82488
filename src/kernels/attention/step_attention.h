// One step of generation: each row has one query, which attends to a list of keys scattered over a cache.
//
// A row's keys are named by number, so hypotheses that share a beginning share its keys, and reordering a
// beam moves numbers instead of caches.
#pragma once

#include <cstdint>

#include "base/cpu.h"

namespace fovea::kernels {

// Row r sees keys index(first[r]) ... index(first[r] + count[r] - 1), index(i) = keys[i], or i where keys is
// null. Feature c of head h: q at q[r * q_row + h * d + c], k at k[key * kv_row + g * d + c] with g = h /
// (heads / kv_heads). A row without keys gives 0. Its result does not depend on the other rows.
struct AttentionStep {
  int64_t rows = 0, heads = 0, kv_heads = 0, d = 0;
  float scale = 1;
  const float* q = nullptr;
  int64_t q_row = 0;
  const float* k = nullptr;
  const float* v = nullptr;
  int64_t kv_row = 0;
  const int32_t* keys = nullptr;
  const int32_t* first = nullptr;  // [rows]
  const int32_t* count = nullptr;  // [rows]
  float* out = nullptr;            // row r, head h at out[r * out_row + h * d]
  int64_t out_row = 0;
  // null, or where the weights of row r, head h go: weights[(r * heads + h) * weights_row]
  float* weights = nullptr;
  int64_t weights_row = 0;
};

// Rows that may be computed together, and floats beyond the largest count that each needs.
inline constexpr int64_t kStepRows = 4, kStepScratch = 16;

struct AttentionStepKernels {
  // Rows [begin, end) on the calling thread; `scratch` is [kStepRows, scratch_row], a row of it as long as
  // the largest count and kStepScratch more.
  void (*rows)(const AttentionStep& step, int64_t begin, int64_t end, float* scratch, int64_t scratch_row);
};
const AttentionStepKernels& attention_step_kernels(Level level = current_level());

void attention_step(const AttentionStep& step,
                    const AttentionStepKernels& kernels = attention_step_kernels());

}  // namespace fovea::kernels
