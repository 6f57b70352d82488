// Attention of one query over a run of neighbouring keys in SIMD, forward and backward.
#include "kernels/attention/run_attention.h"

#include "kernels/vector/vector_math-inl.h"
#include "kernels/vector/vector_row-inl.h"

namespace fovea::kernels {
namespace {

// Keys that are read side by side, so that sums are read and written less often.
constexpr int kTogether = 4;

HWY_INLINE float dot(const float* a, const float* b, int64_t count) {
  return sum_of(count, [&](int64_t i, int64_t lanes)
                           HWY_ATTR { return hn::Mul(load(a + i, lanes), load(b + i, lanes)); });
}

// The query divided by its length, in `unit`; returns 1 / length, or 0 for a query of zeros.
HWY_INLINE float normalise(const float* q, int64_t count, float* unit) {
  const float squares = dot(q, q, count);
  const float inverse = squares > 0 ? 1 / hn::GetLane(hn::Sqrt(hn::Set(d, squares))) : 0;
  for_vectors(count, [&](int64_t i, int64_t lanes) HWY_ATTR {
    store(hn::Mul(load(q + i, lanes), hn::Set(d, inverse)), unit + i, lanes);
  });
  return inverse;
}

HWY_INLINE float additive_score(const float* q, const float* k, const float* vector, int64_t count) {
  return sum_of(count, [&](int64_t i, int64_t lanes) HWY_ATTR {
    return hn::Mul(load(vector + i, lanes), vmath::tanh(d, hn::Add(load(q + i, lanes), load(k + i, lanes))));
  });
}

// 1 / (1 + e): of e = exp(2 (q + k)), tanh(q + k) = 1 - 2 r. With AVX-512 from the estimate of 14 bits and one step of
// Newton's method, half as long as a division takes.
HWY_INLINE V inverse_of(V q, V k) {
  const V x = hn::MulAdd(q, k, hn::Set(d, 1.0f));
#if HWY_TARGET <= HWY_AVX3
  const V r = hn::ApproximateReciprocal(x);
  return hn::MulAdd(r, hn::NegMulAdd(x, r, hn::Set(d, 1.0f)), r);
#else
  return hn::Div(hn::Set(d, 1.0f), x);
#endif
}

// sum_c vector[c] (1 - 2 r[c])
HWY_INLINE float exponential_score(const float* q, const float* k, const float* vector, int64_t count,
                                   float vector_sum) {
  const float sum = sum_of(count, [&](int64_t i, int64_t lanes) HWY_ATTR {
    return hn::Mul(load(vector + i, lanes), inverse_of(load(q + i, lanes), load(k + i, lanes)));
  });
  return vector_sum - 2 * sum;
}

// scores -> weights, in place.
HWY_INLINE void softmax(float* x, int64_t count) {
  float largest = x[0];
  for (int64_t j = 1; j < count; ++j) largest = HWY_MAX(largest, x[j]);
  const V top = hn::Set(d, largest);
  V sums = hn::Zero(d);
  for_vectors(count, [&](int64_t i, int64_t lanes) HWY_ATTR {
    const V e = keep_first(vmath::exp_nonpositive(d, hn::Sub(load(x + i, lanes), top)), lanes, 0);
    store(e, x + i, lanes);
    sums = hn::Add(sums, e);
  });
  const float inverse = 1 / hn::GetLane(hn::SumOfLanes(d, sums));
  for (int64_t j = 0; j < count; ++j) x[j] *= inverse;
}

HWY_INLINE float gaussian(const AttentionRun& run, int64_t j) {
  if (run.sigma <= 0) return 1;
  const float x = (static_cast<float>(j) - run.centre) / run.sigma;
  return hn::GetLane(vmath::exp_nonpositive(d, hn::Set(d, -0.5f * x * x)));
}

// out += sum of weight(j) v[j] over kRows keys from j on.
template <int kRows>
HWY_INLINE void weigh(const AttentionRun& run, int64_t j) {
  V weight[kRows];
  for (int i = 0; i < kRows; ++i) weight[i] = hn::Set(d, run.soft[j + i] * gaussian(run, j + i));
  const float* const v = run.v + j * run.v_row;
  for_vectors(run.dv, [&](int64_t c, int64_t lanes) HWY_ATTR {
    V sum = load(run.out + c, lanes);
    for (int i = 0; i < kRows; ++i) sum = hn::MulAdd(weight[i], load(v + i * run.v_row + c, lanes), sum);
    store(sum, run.out + c, lanes);
  });
}

void forward(const RunScore& score, const AttentionRun& run, float* scratch) {
  if (run.count == 0) {
    for (int64_t c = 0; c < run.dv; ++c) run.out[c] = 0;
    return;
  }
  if (score.exponential) {
    const float sum =
        sum_of(score.d, [&](int64_t i, int64_t lanes) HWY_ATTR { return load(score.vector + i, lanes); });
    for (int64_t j = 0; j < run.count; ++j)
      run.soft[j] = exponential_score(run.q, run.k + j * run.k_row, score.vector, score.d, sum);
  } else if (score.family == ScoreFamily::additive) {
    for (int64_t j = 0; j < run.count; ++j)
      run.soft[j] = additive_score(run.q, run.k + j * run.k_row, score.vector, score.d);
  } else {
    const float* q = run.q;
    if (score.unit_query) {
      normalise(run.q, score.d, scratch);
      q = scratch;
    }
    for (int64_t j = 0; j < run.count; ++j)
      run.soft[j] = score.scale * dot(q, run.k + j * run.k_row, score.d);
  }
  softmax(run.soft, run.count);
  for (int64_t c = 0; c < run.dv; ++c) run.out[c] = 0;
  int64_t j = 0;
  for (; j + kTogether <= run.count; j += kTogether) weigh<kTogether>(run, j);
  for (; j < run.count; ++j) weigh<1>(run, j);
}

// scores' gradients, in place of `x`: soft (x - sum soft x).
HWY_INLINE void softmax_back(const float* soft, float* x, int64_t count) {
  const float sum = dot(soft, x, count);
  for (int64_t j = 0; j < count; ++j) x[j] = soft[j] * (x[j] - sum);
}

HWY_INLINE void additive_back(const RunScore& score, const AttentionRunBackward& b, const float* d_scores) {
  for (int64_t j = 0; j < b.run.count; ++j) {
    const float *k = b.run.k + j * b.run.k_row, *q = b.run.q;
    float* dk = b.dk + j * b.run.k_row;
    const V slope = hn::Set(d, d_scores[j]), one = hn::Set(d, 1.0f);
    for_vectors(score.d, [&](int64_t i, int64_t lanes) HWY_ATTR {
      const V t = vmath::tanh(d, hn::Add(load(q + i, lanes), load(k + i, lanes)));
      store(hn::MulAdd(slope, t, load(b.d_vector + i, lanes)), b.d_vector + i, lanes);
      const V inner = hn::Mul(hn::Mul(slope, load(score.vector + i, lanes)), hn::NegMulAdd(t, t, one));
      store(hn::Add(inner, load(b.dq + i, lanes)), b.dq + i, lanes);
      store(hn::Add(inner, load(dk + i, lanes)), dk + i, lanes);
    });
  }
}

// dq += what kRows keys from j on give. With r as above, the slope of tanh is 4 (r - r^2); the factor 4 vector is the
// caller's.
template <int kRows>
HWY_INLINE void exponential_query(const RunScore& score, const AttentionRunBackward& b, const float* d_scores,
                                  int64_t j) {
  V slope[kRows];
  for (int i = 0; i < kRows; ++i) slope[i] = hn::Set(d, d_scores[j + i]);
  const float* const k = b.run.k + j * b.run.k_row;
  for_vectors(score.d, [&](int64_t c, int64_t lanes) HWY_ATTR {
    const V q = load(b.run.q + c, lanes);
    V sum = load(b.dq + c, lanes);
    for (int i = 0; i < kRows; ++i) {
      const V r = inverse_of(q, load(k + i * b.run.k_row + c, lanes));
      sum = hn::MulAdd(slope[i], hn::NegMulAdd(r, r, r), sum);
    }
    store(sum, b.dq + c, lanes);
  });
}

HWY_INLINE void exponential_back(const RunScore& score, const AttentionRunBackward& b,
                                 const float* d_scores) {
  int64_t j = 0;
  for (; j + kTogether <= b.run.count; j += kTogether) exponential_query<kTogether>(score, b, d_scores, j);
  for (; j < b.run.count; ++j) exponential_query<1>(score, b, d_scores, j);
  for_vectors(score.d, [&](int64_t c, int64_t lanes) HWY_ATTR {
    const V four = hn::Mul(hn::Set(d, 4.0f), load(score.vector + c, lanes));
    store(hn::Mul(four, load(b.dq + c, lanes)), b.dq + c, lanes);
  });
}

// The columns c ... of dk and d_vector: kVectors of them, the last with so many lanes.
template <int kVectors>
HWY_INLINE void exponential_keys(const RunScore& score, const AttentionKeysBackward& b, int64_t c,
                                 int64_t lanes) {
  const auto at = [&](const float* p, int i) HWY_ATTR {
    return kVectors == 1 ? load(p + c, lanes) : hn::LoadU(d, p + c + i * kLanes);
  };
  const auto put = [&](V v, float* p, int i) HWY_ATTR {
    if (kVectors == 1)
      store(v, p + c, lanes);
    else
      hn::StoreU(v, d, p + c + i * kLanes);
  };
  V of_vector[kVectors], four[kVectors];
  for (int i = 0; i < kVectors; ++i) {
    of_vector[i] = hn::Zero(d);
    four[i] = hn::Mul(hn::Set(d, 4.0f), at(score.vector, i));
  }
  float total = 0;
  for (int64_t j = 0; j < b.keys; ++j) {
    V k[kVectors], sums[kVectors];
    for (int i = 0; i < kVectors; ++i) {
      k[i] = at(b.k + j * score.d, i);
      sums[i] = hn::Zero(d);
    }
    for (int64_t t = 0; t < b.queries; ++t) {
      const float slope = b.d_scores[t * b.keys + j];
      total += slope;
      for (int i = 0; i < kVectors; ++i) {
        const V r = inverse_of(at(b.q + t * score.d, i), k[i]), part = hn::Mul(hn::Set(d, slope), r);
        of_vector[i] = hn::Add(of_vector[i], part);
        sums[i] = hn::Add(sums[i], hn::NegMulAdd(part, r, part));
      }
    }
    float* const dk = b.dk + j * score.d;
    for (int i = 0; i < kVectors; ++i) put(hn::MulAdd(four[i], sums[i], at(dk, i)), dk, i);
  }
  for (int i = 0; i < kVectors; ++i)
    put(hn::Add(at(b.d_vector, i), hn::NegMulAdd(hn::Set(d, 2.0f), of_vector[i], hn::Set(d, total))),
        b.d_vector, i);
}

void keys_backward(const RunScore& score, const AttentionKeysBackward& b) {
  constexpr int kVectors = 4;
  int64_t c = 0;
  for (; c + kVectors * kLanes <= score.d; c += kVectors * kLanes)
    exponential_keys<kVectors>(score, b, c, kLanes);
  for (; c < score.d; c += kLanes) exponential_keys<1>(score, b, c, HWY_MIN(kLanes, score.d - c));
}

void exponentials(const float* x, float* y, int64_t count) {
  for_vectors(count, [&](int64_t i, int64_t lanes) HWY_ATTR {
    const V value = load(x + i, lanes);
    store(vmath::exp(d, hn::Add(value, value)), y + i, lanes);
  });
}

HWY_INLINE void dot_back(const RunScore& score, const AttentionRunBackward& b, const float* d_scores,
                         float* unit) {
  const float* q = b.run.q;
  float inverse = 1;
  if (score.unit_query) {
    inverse = normalise(b.run.q, score.d, unit);
    q = unit;
  }
  for (int64_t j = 0; j < b.run.count; ++j) {
    const float* k = b.run.k + j * b.run.k_row;
    float* dk = b.dk + j * b.run.k_row;
    const V slope = hn::Set(d, score.scale * d_scores[j]);
    for_vectors(score.d, [&](int64_t i, int64_t lanes) HWY_ATTR {
      store(hn::MulAdd(slope, load(k + i, lanes), load(b.dq + i, lanes)), b.dq + i, lanes);
      store(hn::MulAdd(slope, load(q + i, lanes), load(dk + i, lanes)), dk + i, lanes);
    });
  }
  if (!score.unit_query) return;
  const V along = hn::Set(d, dot(unit, b.dq, score.d)), shrink = hn::Set(d, inverse);
  for_vectors(score.d, [&](int64_t i, int64_t lanes) HWY_ATTR {
    const V across = hn::NegMulAdd(along, load(unit + i, lanes), load(b.dq + i, lanes));
    store(hn::Mul(across, shrink), b.dq + i, lanes);
  });
}

void backward(const RunScore& score, const AttentionRunBackward& b) {
  for (int64_t c = 0; c < score.d; ++c) b.dq[c] = 0;
  if (b.d_centre != nullptr) *b.d_centre = 0;
  float* d_scores = b.scratch;
  const AttentionRun& run = b.run;
  for (int64_t j = 0; j < run.count; ++j) {
    float d_weight = dot(b.d_out, run.v + j * run.v_row, run.dv);
    if (b.d_weights != nullptr) d_weight += b.d_weights[j];
    const float g = gaussian(run, j);
    if (b.d_centre != nullptr)
      *b.d_centre +=
          d_weight * run.soft[j] * g * (static_cast<float>(j) - run.centre) / (run.sigma * run.sigma);
    d_scores[j] = d_weight * g;
  }
  softmax_back(run.soft, d_scores, run.count);
  if (score.exponential) {
    exponential_back(score, b, d_scores);
  } else if (score.family == ScoreFamily::additive) {
    additive_back(score, b, d_scores);
  } else {
    dot_back(score, b, d_scores, b.scratch + run.count);
  }
}

}  // namespace

namespace FOVEA_LEVEL {
extern const AttentionRunsKernels attention_runs_table;
const AttentionRunsKernels attention_runs_table{
    .forward = forward, .backward = backward, .exponentials = exponentials, .keys_backward = keys_backward};
}  // namespace FOVEA_LEVEL

}  // namespace fovea::kernels
