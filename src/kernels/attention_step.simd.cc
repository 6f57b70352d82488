#include "kernels/attention_step.h"

#include "kernels/vector_math-inl.h"
#include "kernels/vector_sums-inl.h"
#include "kernels/vector_tail-inl.h"

namespace fovea::kernels {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr D tag;
constexpr int64_t kLanes = static_cast<int64_t>(HWY_LANES(float));
// Vectors of one head that the weighted sum keeps in registers.
constexpr int64_t kHeld = 8;

// Keys whose scores are made together: their sums of lanes then cost one row of shuffles instead of four.
constexpr int64_t kTogether = 4;

// Where the keys of one row stand, for one head.
struct Keys {
  const int32_t* index;
  int64_t first, row, head;
  int64_t at(int64_t j) const { return (index != nullptr ? index[first + j] : first + j) * row + head; }
};

// scores[0 .. kTogether) = scale * q . the keys j ... j + kTogether - 1, the last one repeated past `count`.
HWY_INLINE void score(const float* q, const float* k, const Keys& keys, int64_t j, int64_t count, int64_t d,
                      float scale, float* scores) {
  const float* key[kTogether];
  for (int64_t i = 0; i < kTogether; ++i) key[i] = k + keys.at(HWY_MIN(j + i, count - 1));
  V sums[kTogether];
  for (int64_t i = 0; i < kTogether; ++i) sums[i] = hn::Zero(tag);
  int64_t c = 0;
  for (; c + kLanes <= d; c += kLanes) {
    const V query = hn::LoadU(tag, q + c);
    for (int64_t i = 0; i < kTogether; ++i) sums[i] = hn::MulAdd(query, hn::LoadU(tag, key[i] + c), sums[i]);
  }
  if (c < d) {
    const V query = load_first(tag, q + c, d - c);
    for (int64_t i = 0; i < kTogether; ++i)
      sums[i] = hn::MulAdd(query, load_first(tag, key[i] + c, d - c), sums[i]);
  }
  const hn::FixedTag<float, kTogether> four;
  hn::StoreU(hn::Mul(four_sums(tag, sums[0], sums[1], sums[2], sums[3]), hn::Set(four, scale)), four, scores);
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

// out[0 .. kVectors * kLanes) = sum_j weights[j] * v[key j], even and odd keys in sums of their own: a short
// head alone has too few to hide the latency of the additions.
template <int64_t kVectors>
HWY_INLINE void weighted_sum(const float* weights, int64_t count, const Keys& keys, const float* v,
                             float* out) {
  constexpr int64_t kChains = kVectors <= 4 ? 2 : 1;
  V sums[kChains][kVectors];
  for (auto& chain : sums)
    for (V& sum : chain) sum = hn::Zero(tag);
  const auto add = [&](int64_t j, V(&into)[kVectors]) HWY_ATTR {
    const V weight = hn::Set(tag, weights[j]);
    const float* value = v + keys.at(j);
    for (int64_t i = 0; i < kVectors; ++i)
      into[i] = hn::MulAdd(weight, hn::LoadU(tag, value + i * kLanes), into[i]);
  };
  int64_t j = 0;
  for (; j + kChains <= count; j += kChains) {
    add(j, sums[0]);
    if constexpr (kChains == 2) add(j + 1, sums[1]);
  }
  if (j < count) add(j, sums[0]);
  for (int64_t i = 0; i < kVectors; ++i)
    hn::StoreU(kChains == 2 ? hn::Add(sums[0][i], sums[1][i]) : sums[0][i], tag, out + i * kLanes);
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
      for (int64_t j = 0; j < count; j += kTogether) score(q, s.k, keys, j, count, s.d, s.scale, scratch + j);
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
