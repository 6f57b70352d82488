// One decoding step of attention over keys scattered in a cache, in SIMD.
#include "kernels/attention/step_attention.h"

#include "kernels/vector/vector_math-inl.h"
#include "kernels/vector/vector_sums-inl.h"
#include "kernels/vector/vector_tail-inl.h"

namespace fovea::kernels {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr D tag;
constexpr int64_t kLanes = static_cast<int64_t>(HWY_LANES(float));
// Vectors of one head that the weighted sum keeps in registers.
constexpr int64_t kHeld = 4;
// Keys whose scores are made together: their sums of lanes then cost one row of shuffles instead of four.
constexpr int64_t kTogether = 4;
// Rows that see the same keys and take them from registers together.
#if HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr int64_t kMostRows = 4;
#else
constexpr int64_t kMostRows = 2;
#endif
static_assert(kMostRows <= kStepRows);

// Where the keys of one row stand, for one head.
struct Keys {
  const int32_t* index;
  int64_t first, row, head;
  int64_t at(int64_t j) const { return (index != nullptr ? index[first + j] : first + j) * row + head; }
};

// Rows side by side in memory that see the same keys, one head of them; row i's scores, then its weights, at
// scores + i * scores_row.
struct Together {
  Keys keys;
  int64_t count;  // of keys, at least 1
  const float* q;
  float* out;
  float* scores;
  int64_t scores_row;
};

// The scores of keys j ... j + kTogether - 1, the last one repeated past the count.
template <int64_t kRows>
HWY_INLINE void score(const AttentionStep& s, const Together& t, int64_t j) {
  const float* key[kTogether];
  for (int64_t i = 0; i < kTogether; ++i) key[i] = s.k + t.keys.at(HWY_MIN(j + i, t.count - 1));
  V sums[kRows][kTogether];
  for (auto& row : sums)
    for (V& sum : row) sum = hn::Zero(tag);
  const auto add = [&](const V(&keys)[kTogether], auto query_of) HWY_ATTR {
    for (int64_t r = 0; r < kRows; ++r) {
      const V query = query_of(t.q + r * s.q_row);
      for (int64_t i = 0; i < kTogether; ++i) sums[r][i] = hn::MulAdd(query, keys[i], sums[r][i]);
    }
  };
  V keys[kTogether];
  int64_t c = 0;
  for (; c + kLanes <= s.d; c += kLanes) {
    for (int64_t i = 0; i < kTogether; ++i) keys[i] = hn::LoadU(tag, key[i] + c);
    add(keys, [&](const float* q) HWY_ATTR { return hn::LoadU(tag, q + c); });
  }
  if (c < s.d) {
    for (int64_t i = 0; i < kTogether; ++i) keys[i] = load_first(tag, key[i] + c, s.d - c);
    add(keys, [&](const float* q) HWY_ATTR { return load_first(tag, q + c, s.d - c); });
  }
  const hn::FixedTag<float, kTogether> four;
  for (int64_t r = 0; r < kRows; ++r) {
    const auto all = four_sums(tag, sums[r][0], sums[r][1], sums[r][2], sums[r][3]);
    hn::StoreU(hn::Mul(all, hn::Set(four, s.scale)), four, t.scores + r * t.scores_row + j);
  }
}

// scores -> weights, in place; lanes past `count` become 0, up to a whole vector.
HWY_INLINE void softmax(float* scores, int64_t count) {
  const int64_t whole = (count + kLanes - 1) / kLanes * kLanes;
  for (int64_t j = count; j < whole; ++j) scores[j] = -__builtin_inff();
  V largest = hn::LoadU(tag, scores);
  for (int64_t j = kLanes; j < whole; j += kLanes) largest = hn::Max(largest, hn::LoadU(tag, scores + j));
  const V top = hn::MaxOfLanes(tag, largest);
  V sums = hn::Zero(tag);
  for (int64_t j = 0; j < whole; j += kLanes) {
    const V e = vmath::exp_nonpositive(tag, hn::Sub(hn::LoadU(tag, scores + j), top));
    hn::StoreU(e, tag, scores + j);
    sums = hn::Add(sums, e);
  }
  const V inverse = hn::Div(hn::Set(tag, 1.0f), hn::SumOfLanes(tag, sums));
  for (int64_t j = 0; j < whole; j += kLanes)
    hn::StoreU(hn::Mul(hn::LoadU(tag, scores + j), inverse), tag, scores + j);
}

// out[c ... c + kVectors * kLanes) = sum_j weights[j] * v[key j], of every row.
template <int64_t kRows, int64_t kVectors>
HWY_INLINE void weighted_sum(const AttentionStep& s, const Together& t, int64_t c) {
  V sums[kRows][kVectors];
  for (auto& row : sums)
    for (V& sum : row) sum = hn::Zero(tag);
  for (int64_t j = 0; j < t.count; ++j) {
    const float* from = s.v + t.keys.at(j) + c;
    V value[kVectors];
    for (int64_t i = 0; i < kVectors; ++i) value[i] = hn::LoadU(tag, from + i * kLanes);
    for (int64_t r = 0; r < kRows; ++r) {
      const V weight = hn::Set(tag, t.scores[r * t.scores_row + j]);
      for (int64_t i = 0; i < kVectors; ++i) sums[r][i] = hn::MulAdd(weight, value[i], sums[r][i]);
    }
  }
  for (int64_t r = 0; r < kRows; ++r)
    for (int64_t i = 0; i < kVectors; ++i)
      hn::StoreU(sums[r][i], tag, t.out + r * s.out_row + c + i * kLanes);
}

HWY_INLINE void weighted_tail(const AttentionStep& s, const Together& t, int64_t row, int64_t c) {
  V sum = hn::Zero(tag);
  for (int64_t j = 0; j < t.count; ++j)
    sum = hn::MulAdd(hn::Set(tag, t.scores[row * t.scores_row + j]),
                     load_first(tag, s.v + t.keys.at(j) + c, s.d - c), sum);
  store_first(sum, tag, t.out + row * s.out_row + c, s.d - c);
}

template <int64_t kRows>
HWY_NOINLINE void attend(const AttentionStep& s, const Together& t) {
  for (int64_t j = 0; j < t.count; j += kTogether) score<kRows>(s, t, j);
  for (int64_t r = 0; r < kRows; ++r) softmax(t.scores + r * t.scores_row, t.count);
  int64_t c = 0;
  for (; c + kHeld * kLanes <= s.d; c += kHeld * kLanes) weighted_sum<kRows, kHeld>(s, t, c);
  for (; c + kLanes <= s.d; c += kLanes) weighted_sum<kRows, 1>(s, t, c);
  if (c < s.d)
    for (int64_t r = 0; r < kRows; ++r) weighted_tail(s, t, r, c);
}
template <int64_t kMost = kMostRows>
HWY_INLINE void attend_rows(int64_t rows, const AttentionStep& s, const Together& t) {
  if (rows == kMost) return attend<kMost>(s, t);
  if constexpr (kMost > 1) attend_rows<kMost - 1>(rows, s, t);
}

// Hypotheses of one sentence stand side by side and see the same source.
int64_t rows_together(const AttentionStep& s, int64_t r, int64_t end) {
  int64_t last = r + 1;
  while (s.keys == nullptr && last < HWY_MIN(end, r + kMostRows) && s.first[last] == s.first[r] &&
         s.count[last] == s.count[r])
    ++last;
  return last - r;
}

void rows(const AttentionStep& s, int64_t begin, int64_t end, float* scratch, int64_t scratch_row) {
  const int64_t group = s.heads / HWY_MAX(int64_t{1}, s.kv_heads);
  for (int64_t r = begin, count; r < end; r += count) {
    count = rows_together(s, r, end);
    for (int64_t h = 0; h < s.heads; ++h) {
      const Together t{.keys = {s.keys, s.first[r], s.kv_row, h / group * s.d},
                       .count = s.count[r],
                       .q = s.q + r * s.q_row + h * s.d,
                       .out = s.out + r * s.out_row + h * s.d,
                       .scores = scratch,
                       .scores_row = scratch_row};
      if (t.count > 0) attend_rows(count, s, t);
      for (int64_t i = 0; i < count; ++i) {
        if (t.count == 0)
          for (int64_t c = 0; c < s.d; ++c) t.out[i * s.out_row + c] = 0;
        if (s.weights != nullptr)
          for (int64_t j = 0; j < t.count; ++j)
            s.weights[((r + i) * s.heads + h) * s.weights_row + j] = scratch[i * scratch_row + j];
      }
    }
  }
}

}  // namespace

namespace FOVEA_LEVEL {
extern const AttentionStepKernels attention_step_table;
const AttentionStepKernels attention_step_table{.rows = rows};
}  // namespace FOVEA_LEVEL

}  // namespace fovea::kernels
