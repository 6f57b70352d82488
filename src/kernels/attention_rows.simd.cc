#include "kernels/attention_rows_steps.h"
#include "kernels/vector_math-inl.h"
#include "kernels/vector_tail-inl.h"

namespace fovea::kernels {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::ScalableTag<float>;
using V = hn::Vec<Tag>;

constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Tag()));
static_assert(kLanes <= 16, "strips are padded to 16 columns");

void transpose(const RowList<const float>& x, int64_t count, int64_t width, float* t, int64_t columns) {
  const hn::FixedTag<float, 4> d4;
  int64_t n = 0;
  for (; n + 4 <= count; n += 4) {
    const float *x0 = x.at(n), *x1 = x.at(n + 1), *x2 = x.at(n + 2), *x3 = x.at(n + 3);
    int64_t c = 0;
    for (; c + 4 <= width; c += 4) {
      const auto a = hn::LoadU(d4, x0 + c), b = hn::LoadU(d4, x1 + c);
      const auto e = hn::LoadU(d4, x2 + c), f = hn::LoadU(d4, x3 + c);
      const auto ae_low = hn::InterleaveLower(d4, a, e), bf_low = hn::InterleaveLower(d4, b, f);
      const auto ae_high = hn::InterleaveUpper(d4, a, e), bf_high = hn::InterleaveUpper(d4, b, f);
      hn::StoreU(hn::InterleaveLower(d4, ae_low, bf_low), d4, t + c * columns + n);
      hn::StoreU(hn::InterleaveUpper(d4, ae_low, bf_low), d4, t + (c + 1) * columns + n);
      hn::StoreU(hn::InterleaveLower(d4, ae_high, bf_high), d4, t + (c + 2) * columns + n);
      hn::StoreU(hn::InterleaveUpper(d4, ae_high, bf_high), d4, t + (c + 3) * columns + n);
    }
    for (; c < width; ++c) {
      float* to = t + c * columns + n;
      to[0] = x0[c], to[1] = x1[c], to[2] = x2[c], to[3] = x3[c];
    }
  }
  for (; n < count; ++n)
    for (int64_t c = 0; c < width; ++c) t[c * columns + n] = x.at(n)[c];
  for (; n < columns; ++n)
    for (int64_t c = 0; c < width; ++c) t[c * columns + n] = 0;
}

// Scores of kRows rows against kVectors vectors of keys.
template <int kRows, int kVectors>
HWY_INLINE void dot_block(const RowList<const float>& x, int64_t row, int64_t width, const float* t,
                          int64_t columns, float* scores) {
  const Tag d;
  V sum[kRows][kVectors];
  const float* from[kRows];
  for (int r = 0; r < kRows; ++r) {
    from[r] = x.at(row + r);
    for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(d);
  }
  for (int64_t c = 0; c < width; ++c, t += columns) {
    V key[kVectors];
    for (int v = 0; v < kVectors; ++v) key[v] = hn::LoadU(d, t + v * kLanes);
    for (int r = 0; r < kRows; ++r) {
      const V value = hn::Set(d, from[r][c]);
      for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(value, key[v], sum[r][v]);
    }
  }
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sum[r][v], d, scores + (row + r) * columns + v * kLanes);
}

template <int kRows>
HWY_INLINE void dot_rows(const RowList<const float>& x, int64_t row, int64_t width, const float* t,
                         int64_t columns, float* scores) {
  int64_t n = 0;
  for (; n + 2 * kLanes <= columns; n += 2 * kLanes)
    dot_block<kRows, 2>(x, row, width, t + n, columns, scores + n);
  for (; n < columns; n += kLanes) dot_block<kRows, 1>(x, row, width, t + n, columns, scores + n);
}

void dot(const RowList<const float>& x, int64_t rows, int64_t width, const float* t, int64_t columns,
         float* scores) {
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) dot_rows<4>(x, r, width, t, columns, scores);
  for (; r < rows; ++r) dot_rows<1>(x, r, width, t, columns, scores);
}

void dot_few(const RowList<const float>& x, int64_t rows, int64_t width, const RowList<const float>& y,
             int64_t count, float* scores, int64_t columns) {
  const Tag d;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t n = 0; n < count; ++n) {
      const float *a = x.at(r), *b = y.at(n);
      V even = hn::Zero(d), odd = hn::Zero(d);
      int64_t c = 0;
      for (; c + 2 * kLanes <= width; c += 2 * kLanes) {
        even = hn::MulAdd(hn::LoadU(d, a + c), hn::LoadU(d, b + c), even);
        odd = hn::MulAdd(hn::LoadU(d, a + c + kLanes), hn::LoadU(d, b + c + kLanes), odd);
      }
      for (; c + kLanes <= width; c += kLanes)
        even = hn::MulAdd(hn::LoadU(d, a + c), hn::LoadU(d, b + c), even);
      if (c < width) odd = hn::MulAdd(load_first(d, a + c, width - c), load_first(d, b + c, width - c), odd);
      scores[r * columns + n] = hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
    }
}

// kOut rows of results, kVectors vectors wide (the last of them `tail` lanes when kTail), kept in registers.
template <int kOut, int kVectors, bool kTail, bool kSkip>
HWY_INLINE void combine_block(const CombineRows& c, int64_t m, int64_t column, int64_t tail) {
  const Tag d;
  const auto load = [&](const float* p) HWY_ATTR { return kTail ? load_first(d, p, tail) : hn::LoadU(d, p); };
  V sum[kOut][kVectors];
  for (int o = 0; o < kOut; ++o)
    for (int v = 0; v < kVectors; ++v)
      sum[o][v] = c.accumulate ? load(c.out.at(m + o) + column + v * kLanes) : hn::Zero(d);
  const float* weights = c.weights + m * c.weight_row;
  for (int64_t n = 0; n < c.in_count; ++n, weights += c.weight_step) {
    if (kSkip && weights[0] == 0) continue;
    const float* from = c.in.at(n) + column;
    V value[kVectors];
    for (int v = 0; v < kVectors; ++v) value[v] = load(from + v * kLanes);
    for (int o = 0; o < kOut; ++o) {
      const V weight = hn::Set(d, weights[o * c.weight_row]);
      for (int v = 0; v < kVectors; ++v) sum[o][v] = hn::MulAdd(weight, value[v], sum[o][v]);
    }
  }
  for (int o = 0; o < kOut; ++o)
    for (int v = 0; v < kVectors; ++v) {
      float* to = c.out.at(m + o) + column + v * kLanes;
      if (kTail)
        store_first(sum[o][v], d, to, tail);
      else
        hn::StoreU(sum[o][v], d, to);
    }
}

template <int kOut, bool kSkip>
HWY_INLINE void combine_rows(const CombineRows& c, int64_t m) {
  constexpr int kWide = kOut == 1 ? 8 : 3;
  int64_t column = 0;
  for (; column + kWide * kLanes <= c.width; column += kWide * kLanes)
    combine_block<kOut, kWide, false, kSkip>(c, m, column, 0);
  for (; column + kLanes <= c.width; column += kLanes) combine_block<kOut, 1, false, kSkip>(c, m, column, 0);
  if (column < c.width) combine_block<kOut, 1, true, kSkip>(c, m, column, c.width - column);
}

void combine(const CombineRows& c) {
  int64_t m = 0;
  if (c.skip_zeros) {
    for (; m < c.out_count; ++m) combine_rows<1, true>(c, m);
    return;
  }
  for (; m + 4 <= c.out_count; m += 4) combine_rows<4, false>(c, m);
  for (; m < c.out_count; ++m) combine_rows<1, false>(c, m);
}

bool finite(const RowList<const float>& x, int64_t count, int64_t width) {
  // x - x is 0 for numbers and NaN for NaN and infinities.
  const Tag d;
  V sum = hn::Zero(d);
  for (int64_t n = 0; n < count; ++n) {
    const float* row = x.at(n);
    int64_t c = 0;
    for (; c + kLanes <= width; c += kLanes) {
      const V v = hn::LoadU(d, row + c);
      sum = hn::Add(sum, hn::Sub(v, v));
    }
    if (c < width) {
      const V v = load_first(d, row + c, width - c);
      sum = hn::Add(sum, hn::Sub(v, v));
    }
  }
  return hn::GetLane(hn::SumOfLanes(d, sum)) == 0;
}

float additive_pack(const RowList<const float>& x, int64_t count, int64_t width, bool exponential,
                    float* packed) {
  const Tag d;
  const int64_t stride = additive_stride(width);
  V largest = hn::Zero(d);
  for (int64_t n = 0; n < count; ++n, packed += stride) {
    const float* row = x.at(n);
    for (int64_t c = 0; c < stride; c += kLanes) {
      const int64_t left = width - c;
      const V v = left >= kLanes ? hn::LoadU(d, row + c)
                  : left > 0     ? load_first(d, row + c, left)
                                 : hn::Zero(d);
      largest = hn::Max(hn::Abs(v), largest);
      hn::StoreU(exponential ? vmath::exp(d, hn::Add(v, v)) : v, d, packed + c);
    }
  }
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

// Scores of kRows queries against one key, lanes along the hidden width.
template <int kRows>
HWY_INLINE void additive_scores_exponential(const AdditivePair& pair, int64_t row, float vector_sum,
                                            float* scores, int64_t columns) {
  const Tag d;
  const V one = hn::Set(d, 1.0f);
  const float* q = pair.q + row * pair.stride;
  const int64_t padded = pair.stride - 16;
  for (int64_t n = 0; n < pair.keys; ++n) {
    const float* k = pair.k + n * pair.stride;
    V sum[kRows];
    for (int r = 0; r < kRows; ++r) sum[r] = hn::Zero(d);
    for (int64_t c = 0; c < padded; c += 2 * kLanes) {
      const V k0 = hn::LoadU(d, k + c), k1 = hn::LoadU(d, k + c + kLanes);
      const V a0 = hn::LoadU(d, pair.vector + c), a1 = hn::LoadU(d, pair.vector + c + kLanes);
      for (int r = 0; r < kRows; ++r) {
        // a0 / d0 + a1 / d1 with one division
        const V d0 = hn::MulAdd(hn::LoadU(d, q + r * pair.stride + c), k0, one);
        const V d1 = hn::MulAdd(hn::LoadU(d, q + r * pair.stride + c + kLanes), k1, one);
        const V top = hn::MulAdd(a0, d1, hn::Mul(a1, d0));
        sum[r] = hn::Add(sum[r], hn::Div(top, hn::Mul(d0, d1)));
      }
    }
    for (int r = 0; r < kRows; ++r)
      scores[(row + r) * columns + n] = vector_sum - 2 * hn::GetLane(hn::SumOfLanes(d, sum[r]));
  }
}

void additive_scores(const AdditivePair& pair, bool exponential, float* scores, int64_t columns) {
  const Tag d;
  const int64_t padded = pair.stride - 16;
  if (exponential) {
    V total = hn::Zero(d);
    for (int64_t c = 0; c < padded; c += kLanes) total = hn::Add(total, hn::LoadU(d, pair.vector + c));
    const float vector_sum = hn::GetLane(hn::SumOfLanes(d, total));
    int64_t r = 0;
    for (; r + 4 <= pair.rows; r += 4) additive_scores_exponential<4>(pair, r, vector_sum, scores, columns);
    for (; r < pair.rows; ++r) additive_scores_exponential<1>(pair, r, vector_sum, scores, columns);
    return;
  }
  for (int64_t r = 0; r < pair.rows; ++r)
    for (int64_t n = 0; n < pair.keys; ++n) {
      const float *q = pair.q + r * pair.stride, *k = pair.k + n * pair.stride;
      V even = hn::Zero(d), odd = hn::Zero(d);
      for (int64_t c = 0; c < padded; c += 2 * kLanes) {
        const V t0 = vmath::tanh(d, hn::Add(hn::LoadU(d, q + c), hn::LoadU(d, k + c)));
        const V t1 = vmath::tanh(d, hn::Add(hn::LoadU(d, q + c + kLanes), hn::LoadU(d, k + c + kLanes)));
        even = hn::MulAdd(t0, hn::LoadU(d, pair.vector + c), even);
        odd = hn::MulAdd(t1, hn::LoadU(d, pair.vector + c + kLanes), odd);
      }
      scores[r * columns + n] = hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
    }
}

// One vector of the hidden width, kRows queries, all keys. Everything is linear in the score's gradient g, so
// the sums are of g r (1 - r) and g r; the constants 4, 2 and the score vector come at the end.
template <int kRows>
HWY_INLINE void additive_backward_exponential(const AdditivePair& pair, int64_t row, int64_t c,
                                              const float* g, int64_t columns, float* dq, float* dk,
                                              V& vector_sum) {
  const Tag d;
  const V one = hn::Set(d, 1.0f);
  const V scale = hn::Mul(hn::Set(d, 4.0f), hn::LoadU(d, pair.vector + c));
  V q[kRows], sum[kRows];
  for (int r = 0; r < kRows; ++r) {
    q[r] = hn::LoadU(d, pair.q + (row + r) * pair.stride + c);
    sum[r] = hn::Zero(d);
  }
  g += row * columns;
  V d_vector = hn::Zero(d);
  for (int64_t n = 0; n < pair.keys; ++n) {
    const V k = hn::LoadU(d, pair.k + n * pair.stride + c);
    V key_sum = hn::Zero(d);
    V below[kRows], inverse[kRows];
    for (int r = 0; r < kRows; ++r) below[r] = hn::MulAdd(q[r], k, one);
    if constexpr (kRows % 2 == 0) {
      for (int r = 0; r < kRows; r += 2) {  // two reciprocals with one division
        const V both = hn::Div(one, hn::Mul(below[r], below[r + 1]));
        inverse[r] = hn::Mul(both, below[r + 1]);
        inverse[r + 1] = hn::Mul(both, below[r]);
      }
    } else {
      for (int r = 0; r < kRows; ++r) inverse[r] = hn::Div(one, below[r]);
    }
    for (int r = 0; r < kRows; ++r) {
      const V gr = hn::Mul(hn::Set(d, g[r * columns + n]), inverse[r]);
      const V inside = hn::NegMulAdd(gr, inverse[r], gr);
      sum[r] = hn::Add(sum[r], inside);
      key_sum = hn::Add(key_sum, inside);
      d_vector = hn::Add(d_vector, gr);
    }
    float* to = dk + n * pair.stride + c;
    hn::StoreU(hn::MulAdd(key_sum, scale, hn::LoadU(d, to)), d, to);
  }
  vector_sum = hn::Add(vector_sum, d_vector);
  for (int r = 0; r < kRows; ++r) hn::StoreU(hn::Mul(sum[r], scale), d, dq + (row + r) * pair.stride + c);
}

void additive_backward(const AdditivePair& pair, bool exponential, bool skip_zeros, const float* g,
                       int64_t columns, float* dq, float* dk, float* d_vector) {
  const Tag d;
  const int64_t padded = pair.stride - 16;
  if (exponential) {
    float g_sum = 0;
    for (int64_t r = 0; r < pair.rows; ++r)
      for (int64_t n = 0; n < pair.keys; ++n) g_sum += g[r * columns + n];
    for (int64_t c = 0; c < padded; c += kLanes) {
      V vector_sum = hn::Zero(d);
      int64_t r = 0;
      for (; r + 4 <= pair.rows; r += 4)
        additive_backward_exponential<4>(pair, r, c, g, columns, dq, dk, vector_sum);
      for (; r < pair.rows; ++r) additive_backward_exponential<1>(pair, r, c, g, columns, dq, dk, vector_sum);
      // sum of g tanh = sum of g - 2 sum of g r
      const V gained = hn::NegMulAdd(hn::Set(d, 2.0f), vector_sum, hn::Set(d, g_sum));
      hn::StoreU(hn::Add(hn::LoadU(d, d_vector + c), gained), d, d_vector + c);
    }
    return;
  }
  for (int64_t c = 0; c < padded; c += kLanes) {
    const V vector = hn::LoadU(d, pair.vector + c);
    V vector_sum = hn::LoadU(d, d_vector + c);
    for (int64_t r = 0; r < pair.rows; ++r) {
      const V q = hn::LoadU(d, pair.q + r * pair.stride + c);
      V sum = hn::Zero(d);
      for (int64_t n = 0; n < pair.keys; ++n) {
        if (skip_zeros && g[r * columns + n] == 0) continue;
        const V gradient = hn::Set(d, g[r * columns + n]);
        const V t = vmath::tanh(d, hn::Add(q, hn::LoadU(d, pair.k + n * pair.stride + c)));
        const V gt = hn::Mul(gradient, t);
        const V inside = hn::Mul(vector, hn::NegMulAdd(gt, t, gradient));
        vector_sum = hn::Add(vector_sum, gt);
        sum = hn::Add(sum, inside);
        float* to = dk + n * pair.stride + c;
        hn::StoreU(hn::Add(hn::LoadU(d, to), inside), d, to);
      }
      hn::StoreU(sum, d, dq + r * pair.stride + c);
    }
    hn::StoreU(vector_sum, d, d_vector + c);
  }
}

void scale(float* x, int64_t n, float factor, float cap, float* slope) {
  const Tag d;
  const V scale = hn::Set(d, factor), one = hn::Set(d, 1.0f);
  for (int64_t j = 0; j < n; j += kLanes) {
    V v = hn::Mul(hn::LoadU(d, x + j), scale);
    if (cap > 0) {
      const V t = vmath::tanh(d, hn::Div(v, hn::Set(d, cap)));
      v = hn::Mul(t, hn::Set(d, cap));
      if (slope) hn::StoreU(hn::NegMulAdd(t, t, one), d, slope + j);
    }
    hn::StoreU(v, d, x + j);
  }
}

void alibi(float* x, const float* position, int64_t n, float slope, float place) {
  const Tag d;
  for (int64_t j = 0; j < n; j += kLanes) {
    const V distance = hn::Abs(hn::Sub(hn::Set(d, place), hn::LoadU(d, position + j)));
    hn::StoreU(hn::NegMulAdd(hn::Set(d, slope), distance, hn::LoadU(d, x + j)), d, x + j);
  }
}

void gaussian(float* factor, const float* position, int64_t n, float centre, float sigma) {
  const Tag d;
  for (int64_t j = 0; j < n; j += kLanes) {
    const V away = hn::Div(hn::Sub(hn::LoadU(d, position + j), hn::Set(d, centre)), hn::Set(d, sigma));
    const V bell = vmath::exp_nonpositive(d, hn::Mul(hn::Set(d, -0.5f), hn::Mul(away, away)));
    hn::StoreU(hn::Mul(hn::LoadU(d, factor + j), bell), d, factor + j);
  }
}

void gumbel(float* x, const uint32_t* bits, int64_t n, float inverse_tau) {
  const Tag d;
  const hn::Rebind<int32_t, Tag> di;
  for (int64_t j = 0; j < n; j += kLanes) {
    const auto high = hn::ShiftRight<9>(hn::LoadU(hn::Rebind<uint32_t, Tag>(), bits + j));
    const V whole = hn::ConvertTo(d, hn::BitCast(di, high));
    const V u = hn::Mul(hn::Add(whole, hn::Set(d, 0.5f)), hn::Set(d, 0x1p-23f));
    const V noise = hn::Neg(vmath::log(d, hn::Neg(vmath::log(d, u))));
    hn::StoreU(hn::Mul(hn::Add(hn::LoadU(d, x + j), noise), hn::Set(d, inverse_tau)), d, x + j);
  }
}

float softmax(float* x, int64_t n, float sink, float* sink_weight) {
  const Tag d;
  V most = hn::Set(d, sink);
  for (int64_t j = 0; j < n; j += kLanes) most = hn::Max(hn::LoadU(d, x + j), most);
  const V largest = hn::MaxOfLanes(d, most);
  const V minus_infinity = hn::Neg(hn::Inf(d));
  if (hn::AllTrue(d, hn::Eq(largest, minus_infinity))) {
    // Nothing is visible; a NaN among the scores is visible and stays one.
    for (int64_t j = 0; j < n; j += kLanes) {
      const V v = hn::LoadU(d, x + j);
      hn::StoreU(hn::IfThenElse(hn::IsNaN(v), v, hn::Zero(d)), d, x + j);
    }
    *sink_weight = 0;
    return hn::GetLane(minus_infinity);
  }
  V sum = hn::Zero(d);
  for (int64_t j = 0; j < n; j += kLanes) {
    const V e = vmath::exp_nonpositive(d, hn::Sub(hn::LoadU(d, x + j), largest));
    hn::StoreU(e, d, x + j);
    sum = hn::Add(sum, e);
  }
  const V extra = vmath::exp_nonpositive(d, hn::Sub(hn::Set(d, sink), largest));
  const V total = hn::Add(hn::SumOfLanes(d, sum), extra);
  const V inverse = hn::Div(hn::Set(d, 1.0f), total);
  for (int64_t j = 0; j < n; j += kLanes) hn::StoreU(hn::Mul(hn::LoadU(d, x + j), inverse), d, x + j);
  *sink_weight = hn::GetLane(hn::Mul(extra, inverse));
  return hn::GetLane(hn::Add(largest, vmath::log(d, total)));
}

void sigmoid(float* x, int64_t n) {
  const Tag d;
  for (int64_t j = 0; j < n; j += kLanes) hn::StoreU(vmath::sigmoid(d, hn::LoadU(d, x + j)), d, x + j);
}

float softmax_backward(const float* p, float* g, int64_t n, float factor) {
  const Tag d;
  V sum = hn::Zero(d);
  for (int64_t j = 0; j < n; j += kLanes) {
    const V weight = hn::LoadU(d, p + j);
    const V seen = hn::IfThenElse(hn::Eq(weight, hn::Zero(d)), hn::Zero(d), hn::LoadU(d, g + j));
    hn::StoreU(seen, d, g + j);
    sum = hn::MulAdd(weight, seen, sum);
  }
  const V mean = hn::SumOfLanes(d, sum);
  for (int64_t j = 0; j < n; j += kLanes) {
    const V weight = hn::Mul(hn::LoadU(d, p + j), hn::Set(d, factor));
    hn::StoreU(hn::Mul(weight, hn::Sub(hn::LoadU(d, g + j), mean)), d, g + j);
  }
  return hn::GetLane(mean);
}

int64_t argmax(const float* x, const int32_t* key, int64_t n) {
  const Tag d;
  V most = hn::Neg(hn::Inf(d));
  for (int64_t j = 0; j < n; j += kLanes) most = hn::Max(hn::LoadU(d, x + j), most);
  const float largest = hn::GetLane(hn::MaxOfLanes(d, most));
  if (largest == hn::GetLane(hn::Neg(hn::Inf(d)))) return -1;
  int64_t best = -1;
  for (int64_t j = 0; j < n; ++j)
    if (x[j] == largest && (best < 0 || key[j] < key[best])) best = j;
  return best;
}

}  // namespace

namespace FOVEA_LEVEL {
extern const AttentionRowsSteps attention_rows_table;
const AttentionRowsSteps attention_rows_table{
    .transpose = transpose,
    .dot = dot,
    .dot_few = dot_few,
    .combine = combine,
    .finite = finite,
    .additive_pack = additive_pack,
    .additive_scores = additive_scores,
    .additive_backward = additive_backward,
    .scale = scale,
    .alibi = alibi,
    .gaussian = gaussian,
    .gumbel = gumbel,
    .softmax = softmax,
    .sigmoid = sigmoid,
    .softmax_backward = softmax_backward,
    .argmax = argmax,
};
}  // namespace FOVEA_LEVEL
}  // namespace fovea::kernels
