// The steps of row-wise attention in SIMD: dot and additive scores, softmax and other selections of a row, products
// with values, gradients.
#include "kernels/attention/row_attention_steps.h"
#include "kernels/vector/vector_math-inl.h"
#include "kernels/vector/vector_tail-inl.h"

namespace fovea::kernels {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::ScalableTag<float>;
using V = hn::Vec<Tag>;

constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Tag()));
static_assert(kLanes <= 16, "strips are padded to 16 columns");

// 1 / x for x in [1, 8e37], within 3 ulp.
template <class D>
HWY_INLINE V reciprocal(D d, V x) {
#if HWY_ARCH_X86
  // An estimate of 12 bits and one Newton step keep the divider, slow on every x86, out of the loop.
  const V estimate = hn::ApproximateReciprocal(x);
  return hn::Mul(estimate, hn::NegMulAdd(x, estimate, hn::Set(d, 2.0f)));
#else
  return hn::Div(hn::Set(d, 1.0f), x);
#endif
}

// x = e^(2x) for |x| <= kAdditiveLimit, beyond which it stays: within 2e-7, or without kExact within 2e-7 (1
// + |x|).
template <bool kExact, int kCount, class D>
HWY_INLINE void exp_twice_each(D d, V (&x)[kCount]) {
  const hn::RebindToSigned<D> di;
  const V magic = hn::Set(d, 0x1.8p23f), high = hn::Set(d, 0x1.715476p+1f), low = hn::Set(d, 0x1.4ae0cp-25f);
  V biased[kCount], p[kCount];
  for (int j = 0; j < kCount; ++j) x[j] = vmath::clamp(d, x[j], -kAdditiveLimit, kAdditiveLimit);
  for (int j = 0; j < kCount; ++j) biased[j] = hn::MulAdd(x[j], high, magic);
  for (int j = 0; j < kCount; ++j) p[j] = hn::Sub(biased[j], magic);
  for (int j = 0; j < kCount; ++j) p[j] = hn::MulSub(x[j], high, p[j]);
  for (int j = 0; j < kCount; ++j) x[j] = kExact ? hn::MulAdd(x[j], low, p[j]) : p[j];
  for (int j = 0; j < kCount; ++j)
    p[j] = hn::MulAdd(x[j], hn::Set(d, 0.00132764493f), hn::Set(d, 0.00967556432f));
  for (int j = 0; j < kCount; ++j) p[j] = hn::MulAdd(x[j], p[j], hn::Set(d, 0.0555071352f));
  for (int j = 0; j < kCount; ++j) p[j] = hn::MulAdd(x[j], p[j], hn::Set(d, 0.240221193f));
  for (int j = 0; j < kCount; ++j) p[j] = hn::MulAdd(x[j], p[j], hn::Set(d, 0.693146967f));
  for (int j = 0; j < kCount; ++j) p[j] = hn::MulAdd(x[j], p[j], hn::Set(d, 1.00000007f));
  for (int j = 0; j < kCount; ++j)
    x[j] = hn::BitCast(d, hn::Add(hn::BitCast(di, p[j]), hn::ShiftLeft<23>(hn::BitCast(di, biased[j]))));
}

constexpr int64_t kPanel = 16;  // keys that are adjacent in a panel

void pack_panels(const RowList<const float>& x, int64_t count, int64_t width, float* panels) {
  const hn::FixedTag<float, 4> d4;
  int64_t n = 0;
  for (; n + 4 <= count; n += 4) {
    const float *x0 = x.at(n), *x1 = x.at(n + 1), *x2 = x.at(n + 2), *x3 = x.at(n + 3);
    float* to = panels + n / kPanel * width * kPanel + n % kPanel;
    int64_t c = 0;
    for (; c + 4 <= width; c += 4, to += 4 * kPanel) {
      const auto a = hn::LoadU(d4, x0 + c), b = hn::LoadU(d4, x1 + c);
      const auto e = hn::LoadU(d4, x2 + c), f = hn::LoadU(d4, x3 + c);
      const auto ae_low = hn::InterleaveLower(d4, a, e), bf_low = hn::InterleaveLower(d4, b, f);
      const auto ae_high = hn::InterleaveUpper(d4, a, e), bf_high = hn::InterleaveUpper(d4, b, f);
      hn::StoreU(hn::InterleaveLower(d4, ae_low, bf_low), d4, to);
      hn::StoreU(hn::InterleaveUpper(d4, ae_low, bf_low), d4, to + kPanel);
      hn::StoreU(hn::InterleaveLower(d4, ae_high, bf_high), d4, to + 2 * kPanel);
      hn::StoreU(hn::InterleaveUpper(d4, ae_high, bf_high), d4, to + 3 * kPanel);
    }
    for (; c < width; ++c, to += kPanel) to[0] = x0[c], to[1] = x1[c], to[2] = x2[c], to[3] = x3[c];
  }
  for (; n % kPanel != 0 || n < count; ++n) {
    float* to = panels + n / kPanel * width * kPanel + n % kPanel;
    for (int64_t c = 0; c < width; ++c) to[c * kPanel] = n < count ? x.at(n)[c] : 0;
  }
}

// Scores of kRows rows against one panel.
template <int kRows>
HWY_INLINE void dot_block(const RowList<const float>& x, int64_t row, int64_t width, const float* panel,
                          int64_t columns, float* scores) {
  constexpr int kVectors = kPanel / kLanes;
  const Tag d;
  V sum[kRows][kVectors];
  const float* from[kRows];
  for (int r = 0; r < kRows; ++r) {
    from[r] = x.at(row + r);
    for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(d);
  }
  for (int64_t c = 0; c < width; ++c, panel += kPanel) {
    V key[kVectors];
    for (int v = 0; v < kVectors; ++v) key[v] = hn::LoadU(d, panel + v * kLanes);
    for (int r = 0; r < kRows; ++r) {
      const V value = hn::Set(d, from[r][c]);
      for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(value, key[v], sum[r][v]);
    }
  }
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sum[r][v], d, scores + (row + r) * columns + v * kLanes);
}

void dot(const RowList<const float>& x, int64_t rows, int64_t width, const float* panels, int64_t columns,
         float* scores) {
  constexpr int kRows = 8 * kLanes / kPanel;  // 8 sums in flight: two additions a cycle, four cycles each
  for (int64_t n = 0; n < columns; n += kPanel, panels += width * kPanel) {
    int64_t r = 0;
    for (; r + kRows <= rows; r += kRows) dot_block<kRows>(x, r, width, panels, columns, scores + n);
    for (; r < rows; ++r) dot_block<1>(x, r, width, panels, columns, scores + n);
  }
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

// One row in, many rows out: nothing to keep in registers but the row.
void combine_outer(const CombineRows& c) {
  const Tag d;
  const float* in = c.in.at(0);
  for (int64_t m = 0; m < c.out_count; ++m) {
    float* out = c.out.at(m);
    const float value = c.weights[m * c.weight_row];
    if (value == 0 && c.skip_zeros && c.accumulate) continue;
    const V weight = hn::Set(d, value);
    const auto step = [&](V v, V before) HWY_ATTR {
      return value == 0 && c.skip_zeros ? before : hn::MulAdd(weight, v, before);
    };
    int64_t column = 0;
    for (; column + kLanes <= c.width; column += kLanes) {
      const V before = c.accumulate ? hn::LoadU(d, out + column) : hn::Zero(d);
      hn::StoreU(step(hn::LoadU(d, in + column), before), d, out + column);
    }
    if (const int64_t left = c.width - column; left > 0) {
      const V before = c.accumulate ? load_first(d, out + column, left) : hn::Zero(d);
      store_first(step(load_first(d, in + column, left), before), d, out + column, left);
    }
  }
}

void combine(const CombineRows& c) {
  if (c.in_count == 1) return combine_outer(c);
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
      V value[1] = {v};
      if (exponential) exp_twice_each<true>(d, value);
      hn::StoreU(value[0], d, packed + c);
    }
  }
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

// 1 + e^(2q) e^(2k), from the exponentials. Past 2^60, where tanh is 1 to the last bit, it stays, so that the
// product of two is finite. NaN stays NaN.
HWY_INLINE V one_plus_product(V q, V k) {
  const Tag d;
  return vmath::at_most(hn::Set(d, 0x1p60f), hn::MulAdd(q, k, hn::Set(d, 1.0f)));
}

// Scores of kRows queries against one key, lanes along the hidden width.
template <int kRows>
HWY_INLINE void additive_scores_exponential(const AdditivePair& pair, int64_t row, float vector_sum,
                                            float* scores, int64_t columns) {
  const Tag d;
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
        const V d0 = one_plus_product(hn::LoadU(d, q + r * pair.stride + c), k0);
        const V d1 = one_plus_product(hn::LoadU(d, q + r * pair.stride + c + kLanes), k1);
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
    V gr[kRows], inside[kRows];
    for (int r = 0; r < kRows; ++r) {
      const V inverse = reciprocal(d, one_plus_product(q[r], k));
      gr[r] = hn::Mul(hn::Set(d, g[r * columns + n]), inverse);
      inside[r] = hn::NegMulAdd(gr[r], inverse, gr[r]);
      sum[r] = hn::Add(sum[r], inside[r]);
    }
    // Added up in pairs, so that one addition a key waits for the key before.
    if constexpr (kRows == 4) {
      gr[0] = hn::Add(hn::Add(gr[0], gr[1]), hn::Add(gr[2], gr[3]));
      inside[0] = hn::Add(hn::Add(inside[0], inside[1]), hn::Add(inside[2], inside[3]));
    }
    d_vector = hn::Add(d_vector, gr[0]);
    float* to = dk + n * pair.stride + c;
    hn::StoreU(hn::MulAdd(inside[0], scale, hn::LoadU(d, to)), d, to);
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

// Scores of one query against kKeys keys. The keys' chains of arithmetic are written side by side, stage by
// stage, because one chain is longer than the processor looks ahead.
template <int kKeys, bool kKeep>
HWY_INLINE void additive_few_keys(const AdditiveFew& few, int64_t r, int64_t n, float vector_sum, float* kept,
                                  float* scores) {
  const Tag d;
  const int64_t stride = additive_stride(few.width);
  const float *q = few.q.at(r), *k[kKeys];
  float* keep[kKeys];
  V sum[kKeys];
  for (int j = 0; j < kKeys; ++j) {
    k[j] = few.k.at(n + j);
    keep[j] = kKeep ? kept + (r * few.keys + n + j) * stride : nullptr;
    sum[j] = hn::Zero(d);
  }
  const auto step = [&](int64_t c, auto load) HWY_ATTR {
    const V query = load(q + c);
    V x[kKeys];
    for (int j = 0; j < kKeys; ++j) x[j] = hn::Add(query, load(k[j] + c));
    exp_twice_each<false>(d, x);  // where x is large tanh is flat
    for (int j = 0; j < kKeys; ++j) x[j] = hn::Add(hn::Set(d, 1.0f), x[j]);
    for (int j = 0; j < kKeys; ++j) x[j] = reciprocal(d, x[j]);
    if (kKeep)
      for (int j = 0; j < kKeys; ++j) hn::StoreU(x[j], d, keep[j] + c);
    const V vector = load(few.vector + c);
    for (int j = 0; j < kKeys; ++j) sum[j] = hn::MulAdd(vector, x[j], sum[j]);
  };
  int64_t c = 0;
  for (; c + kLanes <= few.width; c += kLanes)
    step(c, [&](const float* p) HWY_ATTR { return hn::LoadU(d, p); });
  if (c < few.width) step(c, [&](const float* p) HWY_ATTR { return load_first(d, p, few.width - c); });
  for (int j = 0; j < kKeys; ++j) scores[n + j] = vector_sum - 2 * hn::GetLane(hn::SumOfLanes(d, sum[j]));
}

template <bool kKeep>
HWY_INLINE void additive_few_rows(const AdditiveFew& few, float* kept, float* scores, int64_t columns) {
  const Tag d;
  V total = hn::Zero(d);
  int64_t c = 0;
  for (; c + kLanes <= few.width; c += kLanes) total = hn::Add(total, hn::LoadU(d, few.vector + c));
  if (c < few.width) total = hn::Add(total, load_first(d, few.vector + c, few.width - c));
  const float vector_sum = hn::GetLane(hn::SumOfLanes(d, total));
  for (int64_t r = 0; r < few.rows; ++r) {
    int64_t n = 0;
    for (; n + 4 <= few.keys; n += 4)
      additive_few_keys<4, kKeep>(few, r, n, vector_sum, kept, scores + r * columns);
    for (; n < few.keys; ++n) additive_few_keys<1, kKeep>(few, r, n, vector_sum, kept, scores + r * columns);
  }
}

void additive_scores_few(const AdditiveFew& few, float* kept, float* scores, int64_t columns) {
  if (kept)
    additive_few_rows<true>(few, kept, scores, columns);
  else
    additive_few_rows<false>(few, kept, scores, columns);
}

// kVectors vectors of the hidden width (the last of them `tail` lanes when kTail) for query r and all keys.
template <int kVectors, bool kTail>
HWY_INLINE void additive_backward_few_block(const AdditiveFew& few, const float* kept, const float* g,
                                            int64_t r, int64_t c, int64_t tail,
                                            const AdditiveFewGradients& to) {
  const Tag d;
  const auto load = [&](const float* p) HWY_ATTR { return kTail ? load_first(d, p, tail) : hn::LoadU(d, p); };
  const auto store = [&](V v, float* p) HWY_ATTR {
    if (kTail)
      store_first(v, d, p, tail);
    else
      hn::StoreU(v, d, p);
  };
  const bool fresh = to.fresh_dk && r == 0;
  const int64_t stride = additive_stride(few.width);
  V scale[kVectors], sum[kVectors], gr_sum[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    scale[v] = hn::Mul(hn::Set(d, 4.0f), load(few.vector + c + v * kLanes));
    sum[v] = gr_sum[v] = hn::Zero(d);
  }
  float g_sum = 0;
  for (int64_t n = 0; n < few.keys; ++n) {
    float* dk = to.dk.data ? to.dk.at(n) + c : nullptr;
    if (g[n] == 0) {
      if (dk && fresh)
        for (int v = 0; v < kVectors; ++v) store(hn::Zero(d), dk + v * kLanes);
      continue;
    }
    g_sum += g[n];
    for (int v = 0; v < kVectors; ++v) {
      const V inverse = hn::LoadU(d, kept + n * stride + c + v * kLanes);
      const V gr = hn::Mul(hn::Set(d, g[n]), inverse);
      const V inside = hn::NegMulAdd(gr, inverse, gr);
      sum[v] = hn::Add(sum[v], inside);
      gr_sum[v] = hn::Add(gr_sum[v], gr);
      if (dk) {
        const V before = fresh ? hn::Zero(d) : load(dk + v * kLanes);
        store(hn::MulAdd(inside, scale[v], before), dk + v * kLanes);
      }
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    const int64_t column = c + v * kLanes;
    if (to.dq.data) store(hn::Mul(sum[v], scale[v]), to.dq.at(r) + column);
    const V gained = hn::NegMulAdd(hn::Set(d, 2.0f), gr_sum[v], hn::Set(d, g_sum));
    store(hn::Add(load(to.d_vector + column), gained), to.d_vector + column);
  }
}

void additive_backward_few(const AdditiveFew& few, const float* kept, const float* g, int64_t columns,
                           const AdditiveFewGradients& to) {
  const int64_t plane = few.keys * additive_stride(few.width);
  for (int64_t r = 0; r < few.rows; ++r, kept += plane, g += columns) {
    int64_t c = 0;
    for (; c + 4 * kLanes <= few.width; c += 4 * kLanes)
      additive_backward_few_block<4, false>(few, kept, g, r, c, 0, to);
    for (; c + kLanes <= few.width; c += kLanes)
      additive_backward_few_block<1, false>(few, kept, g, r, c, 0, to);
    if (c < few.width) additive_backward_few_block<1, true>(few, kept, g, r, c, few.width - c, to);
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
    .pack_panels = pack_panels,
    .dot = dot,
    .dot_few = dot_few,
    .combine = combine,
    .finite = finite,
    .additive_pack = additive_pack,
    .additive_scores = additive_scores,
    .additive_backward = additive_backward,
    .additive_scores_few = additive_scores_few,
    .additive_backward_few = additive_backward_few,
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
