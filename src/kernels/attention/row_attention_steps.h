// Inside attention by rows: how a plan is read, and the steps that the driver takes on each instruction-set
// level.
#pragma once

#include <cstdint>

#include "base/cpu.h"
#include "kernels/attention/row_attention.h"

namespace fovea::kernels {

inline int64_t plan_group(const AttentionPlan& plan, int64_t b, int64_t h) {
  return (plan.batch_groups > 1 ? b : 0) * plan.head_groups + (plan.head_groups > 1 ? h : 0);
}

inline int32_t plan_key(const AttentionPlan& plan, const PlanSegment& segment, int32_t j) {
  return segment.gather >= 0 ? plan.indices[static_cast<size_t>(segment.gather) + static_cast<size_t>(j)]
                             : segment.key_first + j * segment.key_step;
}

// Whether row r of the tile sees key j of its segment.
inline bool plan_sees(const AttentionPlan& plan, const PlanTile& tile, const PlanSegment& segment, int32_t r,
                      int32_t j) {
  switch (segment.mask) {
    case SegmentMask::interval: {
      const int32_t* interval = plan.intervals.data() + segment.mask_offset + 2 * r;
      return interval[0] <= j && j < interval[1];
    }
    case SegmentMask::bits: {
      const auto words = static_cast<size_t>((tile.row_count + 31) / 32);
      return plan.bits[static_cast<size_t>(segment.mask_offset) + static_cast<size_t>(j) * words +
                       static_cast<size_t>(r / 32)] >>
                 (r % 32) &
             1;
    }
    case SegmentMask::full:
      return true;
  }
  return true;
}

namespace scalar {
void attention_rows_forward(const AttentionRowsForward& call);
void attention_rows_backward(const AttentionRowsBackward& call);
}  // namespace scalar

// Rows of floats: row n starts at data + (index ? index[n] : n) * stride.
template <class T>
struct RowList {
  T* data = nullptr;
  int64_t stride = 0;
  const int32_t* index = nullptr;
  [[gnu::always_inline]] T* at(int64_t n) const { return data + (index ? index[n] : n) * stride; }
};

// out_m (+)= sum_n weights[m * weight_row + n * weight_step] * in_n
struct CombineRows {
  const float* weights = nullptr;
  int64_t weight_row = 0, weight_step = 1;
  RowList<const float> in{};
  int64_t in_count = 0;
  RowList<float> out{};
  int64_t out_count = 0;
  int64_t width = 0;
  bool accumulate = false;
  bool skip_zeros = false;  // a row of weight 0 is not touched: many zeros, or NaN where they stand
};

// The additive family works on packed copies, row n at n * stride: of x itself, or of e^(2x), for which
//   tanh(q + k) = 1 - 2 r,  r = 1 / (1 + e^(2q) e^(2k)),  1 - tanh^2 = 4 r (1 - r)
// so that a pair costs one multiplication, one addition and half a division in place of a tanh.
struct AdditivePair {
  const float *q = nullptr, *k = nullptr;  // [rows, stride], [keys, stride]
  const float* vector = nullptr;           // [stride], 0 past the width
  int64_t rows = 0, keys = 0, stride = 0, width = 0;
};

struct AdditiveFew {
  RowList<const float> q{}, k{};
  const float* vector = nullptr;  // [width]
  int64_t rows = 0, keys = 0, width = 0;
};

struct AdditiveFewGradients {
  RowList<float> dq{}, dk{};
  bool fresh_dk = false;  // dk holds nothing yet
  float* d_vector = nullptr;
};

// Columns past the width are there for two whole vectors; the odd 16 keeps rows out of each other's cache
// sets.
constexpr int64_t additive_stride(int64_t width) {
  return (width + 31) / 32 * 32 + 16;
}
// With |x| up to here e^(2x) and e^(-2x) are normal numbers.
inline constexpr float kAdditiveLimit = 43;

// Score strips are [rows, columns], columns a multiple of 16; what a row does not see, and the columns past
// the last key, hold -inf.
constexpr int64_t strip_columns(int64_t keys) {
  return (keys + 15) / 16 * 16;
}

struct AttentionRowsSteps {
  // Packs rows for `dot`, transposed in panels of 16: value c of row n at (n / 16 * width + c) * 16 + n % 16;
  // 0 past the last row.
  void (*pack_panels)(const RowList<const float>& x, int64_t count, int64_t width, float* panels);
  // scores[r * columns + n] = x_r . y_n, y in panels.
  void (*dot)(const RowList<const float>& x, int64_t rows, int64_t width, const float* panels,
              int64_t columns, float* scores);
  // The same for few rows, y as it stands.
  void (*dot_few)(const RowList<const float>& x, int64_t rows, int64_t width, const RowList<const float>& y,
                  int64_t count, float* scores, int64_t columns);
  void (*combine)(const CombineRows& c);
  bool (*finite)(const RowList<const float>& x, int64_t count, int64_t width);

  // Packs x or e^(2x), and returns the largest |x|.
  float (*additive_pack)(const RowList<const float>& x, int64_t count, int64_t width, bool exponential,
                         float* packed);
  void (*additive_scores)(const AdditivePair& pair, bool exponential, float* scores, int64_t columns);
  // From d = gradient of the scores: dq = [rows, stride] is overwritten; dk = [keys, stride] and d_vector =
  // [stride] are added to. With skip_zeros (not with exponential) pairs without gradient are not touched.
  void (*additive_backward)(const AdditivePair& pair, bool exponential, bool skip_zeros, const float* d,
                            int64_t columns, float* dq, float* dk, float* d_vector);

  // The same for few queries, everything as it stands and nothing packed. r = 1 / (1 + e^(2 (q + k))) of
  // every pair is kept, [rows, keys, stride], when there is a place for it; the backward pass starts from
  // there. dq is overwritten, dk is when it is fresh and else added to, d_vector is added to.
  void (*additive_scores_few)(const AdditiveFew& few, float* kept, float* scores, int64_t columns);
  void (*additive_backward_few)(const AdditiveFew& few, const float* kept, const float* d, int64_t columns,
                                const AdditiveFewGradients& gradients);

  // Along one row of a strip, n a multiple of 16:
  // x = scale x, or cap tanh(scale x / cap) with its derivative by scale x in slope (unless null).
  void (*scale)(float* x, int64_t n, float scale, float cap, float* slope);
  // x -= slope |place - position|
  void (*alibi)(float* x, const float* position, int64_t n, float slope, float place);
  // factor *= exp(-((position - centre) / sigma)^2 / 2)
  void (*gaussian)(float* factor, const float* position, int64_t n, float centre, float sigma);
  // x = (x + Gumbel noise of bits) * inverse_tau
  void (*gumbel)(float* x, const uint32_t* bits, int64_t n, float inverse_tau);
  // x = softmax of x and one more logit; returns log(sum(exp)).
  float (*softmax)(float* x, int64_t n, float sink, float* sink_weight);
  void (*sigmoid)(float* x, int64_t n);
  // d = p (d - sum(p d)) * factor, 0 where p is; returns the sum.
  float (*softmax_backward)(const float* p, float* d, int64_t n, float factor);
  // The place of the largest value, of equals the one with the lowest key; -1 when all are -inf.
  int64_t (*argmax)(const float* x, const int32_t* key, int64_t n);
};

const AttentionRowsSteps& attention_rows_steps(Level level);

}  // namespace fovea::kernels
