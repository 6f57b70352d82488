// Attention of one query over a run of neighbouring keys in SIMD, forward and backward.
#include "kernels/attention/run_attention.h"

#include "kernels/vector/vector_math-inl.h"
#include "kernels/vector/vector_row-inl.h"

namespace fovea::kernels {
namespace {

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

// out[c ...] = sum_j weight(j) v[j][c ...] for kVectors vectors from c on.
template <int kVectors>
HWY_INLINE void weigh(const AttentionRun& run, int64_t c) {
  V sums[kVectors];
  for (int i = 0; i < kVectors; ++i) sums[i] = hn::Zero(d);
  for (int64_t j = 0; j < run.count; ++j) {
    const V weight = hn::Set(d, run.soft[j] * gaussian(run, j));
    const float* value = run.v + j * run.v_row + c;
    for (int i = 0; i < kVectors; ++i)
      sums[i] = hn::MulAdd(weight, hn::LoadU(d, value + i * kLanes), sums[i]);
  }
  for (int i = 0; i < kVectors; ++i) hn::StoreU(sums[i], d, run.out + c + i * kLanes);
}

void forward(const RunScore& score, const AttentionRun& run, float* scratch) {
  if (run.count == 0) {
    for (int64_t c = 0; c < run.dv; ++c) run.out[c] = 0;
    return;
  }
  if (score.family == ScoreFamily::additive) {
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
  int64_t c = 0;
  for (; c + 8 * kLanes <= run.dv; c += 8 * kLanes) weigh<8>(run, c);
  for (; c + kLanes <= run.dv; c += kLanes) weigh<1>(run, c);
  if (c == run.dv) return;
  V sum = hn::Zero(d);
  for (int64_t j = 0; j < run.count; ++j)
    sum = hn::MulAdd(hn::Set(d, run.soft[j] * gaussian(run, j)),
                     load_first(d, run.v + j * run.v_row + c, run.dv - c), sum);
  store_first(sum, d, run.out + c, run.dv - c);
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
    const float d_weight = dot(b.d_out, run.v + j * run.v_row, run.dv), g = gaussian(run, j);
    if (b.d_centre != nullptr)
      *b.d_centre +=
          d_weight * run.soft[j] * g * (static_cast<float>(j) - run.centre) / (run.sigma * run.sigma);
    d_scores[j] = d_weight * g;
  }
  softmax_back(run.soft, d_scores, run.count);
  if (score.family == ScoreFamily::additive) {
    additive_back(score, b, d_scores);
  } else {
    dot_back(score, b, d_scores, b.scratch + run.count);
  }
}

}  // namespace

namespace FOVEA_LEVEL {
extern const AttentionRunsKernels attention_runs_table;
const AttentionRunsKernels attention_runs_table{.forward = forward, .backward = backward};
}  // namespace FOVEA_LEVEL

}  // namespace fovea::kernels
