#include "kernels/attention_step.h"

#include "kernels/vector_math-inl.h"
#include "kernels/vector_tail-inl.h"

namespace fovea::kernels {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr D tag;
constexpr int64_t kLanes = static_cast<int64_t>(HWY_LANES(float));
// Vectors of one head that the weighted sum keeps in registers.
constexpr int64_t kHeld = 8;

HWY_INLINE float dot(const float* a, const float* b, int64_t count) {
  V sum0 = hn::Zero(tag), sum1 = sum0;
  int64_t c = 0;
  for (; c + 2 * kLanes <= count; c += 2 * kLanes) {
    sum0 = hn::MulAdd(hn::LoadU(tag, a + c), hn::LoadU(tag, b + c), sum0);
    sum1 = hn::MulAdd(hn::LoadU(tag, a + c + kLanes), hn::LoadU(tag, b + c + kLanes), sum1);
  }
  for (; c + kLanes <= count; c += kLanes)
    sum0 = hn::MulAdd(hn::LoadU(tag, a + c), hn::LoadU(tag, b + c), sum0);
  if (c < count)
    sum1 = hn::MulAdd(load_first(tag, a + c, count - c), load_first(tag, b + c, count - c), sum1);
  return hn::GetLane(hn::SumOfLanes(tag, hn::Add(sum0, sum1)));
}

// scores -> weights, in place.
HWY_INLINE void softmax(float* scores, int64_t count) {
  float largest = scores[0];
  for (int64_t j = 1; j < count; ++j) largest = HWY_MAX(largest, scores[j]);
  const V top = hn::Set(tag, largest);
  V sums = hn::Zero(tag);
  int64_t j = 0;
  for (; j + kLanes <= count; j += kLanes) {
    const V e = vmath::exp_nonpositive(tag, hn::Sub(hn::LoadU(tag, scores + j), top));
    hn::StoreU(e, tag, scores + j);
    sums = hn::Add(sums, e);
  }
  if (j < count) {
    const V e = vmath::exp_nonpositive(tag, hn::Sub(load_first(tag, scores + j, count - j), top));
    store_first(e, tag, scores + j, count - j);
    sums = hn::Add(sums, load_first(tag, scores + j, count - j));
  }
  const float inverse = 1 / hn::GetLane(hn::SumOfLanes(tag, sums));
  for (int64_t i = 0; i < count; ++i) scores[i] *= inverse;
}

// Where the keys of one row stand, for one head.
struct Keys {
  const int32_t* index;
  int64_t first, row, head;
  int64_t at(int64_t j) const { return (index != nullptr ? index[first + j] : first + j) * row + head; }
};

// out[0 .. kVectors * kLanes) = sum_j weights[j] * v[key j]
template <int64_t kVectors>
HWY_INLINE void weighted_sum(const float* weights, int64_t count, const Keys& keys, const float* v,
                             float* out) {
  V sums[kVectors];
  for (int64_t i = 0; i < kVectors; ++i) sums[i] = hn::Zero(tag);
  for (int64_t j = 0; j < count; ++j) {
    const V weight = hn::Set(tag, weights[j]);
    const float* value = v + keys.at(j);
    for (int64_t i = 0; i < kVectors; ++i)
      sums[i] = hn::MulAdd(weight, hn::LoadU(tag, value + i * kLanes), sums[i]);
  }
  for (int64_t i = 0; i < kVectors; ++i) hn::StoreU(sums[i], tag, out + i * kLanes);
}

HWY_INLINE void weighted_tail(const float* weights, int64_t count, const Keys& keys, const float* v,
                              float* out, int64_t lanes) {
  V sum = hn::Zero(tag);
  for (int64_t j = 0; j < count; ++j)
    sum = hn::MulAdd(hn::Set(tag, weights[j]), load_first(tag, v + keys.at(j), lanes), sum);
  store_first(sum, tag, out, lanes);
}

void rows(const AttentionStep& s, int64_t begin, int64_t end, float* scratch) {
  const int64_t group = s.heads / HWY_MAX(int64_t{1}, s.kv_heads);
  for (int64_t r = begin; r < end; ++r) {
    const int64_t count = s.count[r];
    for (int64_t h = 0; h < s.heads; ++h) {
      const float* q = s.q + r * s.q_row + h * s.d;
      float* out = s.out + r * s.out_row + h * s.d;
      const Keys keys{s.keys, s.first[r], s.kv_row, h / group * s.d};
      if (count == 0) {
        for (int64_t c = 0; c < s.d; ++c) out[c] = 0;
        continue;
      }
      for (int64_t j = 0; j < count; ++j) scratch[j] = dot(q, s.k + keys.at(j), s.d) * s.scale;
      softmax(scratch, count);
      int64_t c = 0;
      for (; c + kHeld * kLanes <= s.d; c += kHeld * kLanes)
        weighted_sum<kHeld>(scratch, count, keys, s.v + c, out + c);
      for (; c + 4 * kLanes <= s.d; c += 4 * kLanes) weighted_sum<4>(scratch, count, keys, s.v + c, out + c);
      for (; c + kLanes <= s.d; c += kLanes) weighted_sum<1>(scratch, count, keys, s.v + c, out + c);
      if (c < s.d) weighted_tail(scratch, count, keys, s.v + c, out + c, s.d - c);
      if (s.weights != nullptr)
        for (int64_t j = 0; j < count; ++j) s.weights[(r * s.heads + h) * s.weights_row + j] = scratch[j];
    }
  }
}

}  // namespace

namespace FOVEA_LEVEL {
extern const AttentionStepKernels attention_step_table;
const AttentionStepKernels attention_step_table{.rows = rows};
}  // namespace FOVEA_LEVEL

}  // namespace fovea::kernels
