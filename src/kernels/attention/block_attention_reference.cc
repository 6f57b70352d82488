// Attention over a plan in plain loops and double precision: one query row at a time, scores, softmax, sum.
// The oracle of the fast kernels, and the level that runs where no other does.
#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"
#include "base/parallel.h"
#include "kernels/attention/block_attention.h"
#include "kernels/attention/dropout.h"

namespace fovea::kernels::scalar {
namespace {

// One query row and the keys it sees.
struct Row {
  int64_t b, h, kv_head, i;
  DropoutRow dropout;
  std::vector<int64_t> keys;
};

bool visible(const AttentionPlan& plan, const PlanTile& tile, const PlanSegment& segment, int row, int key) {
  switch (segment.mask) {
    case SegmentMask::full:
      return true;
    case SegmentMask::interval: {
      const int32_t* range = &plan.intervals[segment.mask_offset + 2 * row];
      return key >= range[0] && key < range[1];
    }
    case SegmentMask::bits: {
      const int words = (tile.row_count + 31) / 32;
      return plan.bits[segment.mask_offset + key * words + row / 32] >> (row % 32) & 1;
    }
  }
  return false;
}

// Calls body(row) for every query row of (b, h).
template <class Body>
void for_each_row(const AttentionForward& a, int64_t b, int64_t h, Body body) {
  const AttentionPlan& plan = *a.plan;
  const int64_t group = (plan.batch_groups > 1 ? b : 0) * plan.head_groups + (plan.head_groups > 1 ? h : 0);
  for (int t = plan.group_tiles[group]; t < plan.group_tiles[group + 1]; ++t) {
    const PlanTile& tile = plan.tiles[t];
    for (int r = 0; r < tile.row_count; ++r) {
      const int64_t i = tile.row_first + int64_t{r} * tile.row_step;
      Row row{b, h, h / (a.shape.heads / a.shape.kv_heads), i, dropout_row(a.terms.seed, b, h, i), {}};
      for (int s = tile.segment_begin; s < tile.segment_end; ++s) {
        const PlanSegment& segment = plan.segments[s];
        for (int j = 0; j < segment.key_count; ++j)
          if (visible(plan, tile, segment, r, j))
            row.keys.push_back(segment.gather >= 0 ? plan.indices[segment.gather + j]
                                                   : segment.key_first + int64_t{j} * segment.key_step);
      }
      body(row);
    }
  }
}

double dot(const float* x, const float* y, int64_t count) {
  double sum = 0;
  for (int64_t c = 0; c < count; ++c) sum += static_cast<double>(x[c]) * y[c];
  return sum;
}

double distance(const AttentionShape& shape, int64_t i, int64_t j) {
  return static_cast<double>(std::abs(i + shape.keys - shape.queries - j));
}

template <class T>
T& bias_at(const BiasView<T>& bias, int64_t b, int64_t h, int64_t i, int64_t j) {
  return bias.data[b * bias.batch + h * bias.head + i * bias.row + j * bias.column];
}

// tanh(x / c), or 0 without a soft cap.
double capped(const AttentionForward& a, const Row& row, int64_t j) {
  if (!(a.terms.soft_cap > 0)) return 0;
  const double x = a.terms.scale * dot(a.q.at(row.b, row.h, row.i), a.k.at(row.b, row.kv_head, j), a.shape.d);
  return std::tanh(x / a.terms.soft_cap);
}

double score(const AttentionForward& a, const Row& row, int64_t j) {
  const ScoreTerms& terms = a.terms;
  double x = terms.soft_cap > 0
                 ? terms.soft_cap * capped(a, row, j)
                 : terms.scale * dot(a.q.at(row.b, row.h, row.i), a.k.at(row.b, row.kv_head, j), a.shape.d);
  if (terms.alibi) x -= terms.alibi[row.h] * distance(a.shape, row.i, j);
  if (terms.bias.data) x += bias_at(terms.bias, row.b, row.h, row.i, j);
  return x;
}

// What dropout multiplies the weight of key j with: 1, 0 or 1 / (1 - p).
double kept(const AttentionForward& a, const Row& row, int64_t j) {
  const float p = a.terms.dropout;
  if (!(p > 0)) return 1;
  return dropout_draw(row.dropout, j) >= dropout_threshold(p) ? 1.0 / (1.0 - p) : 0;
}

// weights[t] = softmax over row.keys (and the sink), before dropout. Returns the log-sum-exp.
double softmax(const AttentionForward& a, const Row& row, std::vector<double>& weights) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  weights.resize(row.keys.size());
  double largest = a.terms.sink ? a.terms.sink[row.h] : -kInfinity;
  for (size_t t = 0; t < row.keys.size(); ++t) {
    weights[t] = score(a, row, row.keys[t]);
    if (!(weights[t] <= largest)) largest = weights[t];  // a NaN score makes the whole row NaN
  }
  if (largest == -kInfinity) {
    for (double& weight : weights) weight = 0;
    return -kInfinity;
  }
  double sum = a.terms.sink ? std::exp(a.terms.sink[row.h] - largest) : 0;
  for (double& weight : weights) sum += weight = std::exp(weight - largest);
  for (double& weight : weights) weight /= sum;
  return largest + std::log(sum);
}

void forward(const AttentionForward& a) {
  const AttentionShape& shape = a.shape;
  parallel_chunks(shape.batch * shape.heads, [&](int64_t chunk) {
    std::vector<double> weights, sum(shape.dv);
    for_each_row(a, chunk / shape.heads, chunk % shape.heads, [&](const Row& row) {
      const double lse = softmax(a, row, weights);
      if (a.lse) a.lse[(row.b * shape.heads + row.h) * shape.queries + row.i] = static_cast<float>(lse);
      sum.assign(shape.dv, 0);
      for (size_t t = 0; t < row.keys.size(); ++t) {
        const double weight = weights[t] * kept(a, row, row.keys[t]);
        if (weight == 0) continue;  // no weight takes nothing, whatever the value holds
        const float* v = a.v.at(row.b, row.kv_head, row.keys[t]);
        for (int64_t c = 0; c < shape.dv; ++c) sum[c] += weight * v[c];
      }
      for (int64_t c = 0; c < shape.dv; ++c) a.out.at(row.b, row.h, row.i)[c] = static_cast<float>(sum[c]);
    });
  });
}

// Gradients of one key head gathered in double; the query heads that share it add up here.
struct KeyGradients {
  std::vector<double> dk, dv;
  std::vector<double> alibi, sink;  // [heads], over the whole batch
};

void backward_row(const AttentionBackward& g, const Row& row, KeyGradients& sums) {
  const AttentionForward& a = g.forward;
  const AttentionShape& shape = a.shape;
  std::vector<double> weights, dq(shape.d);
  const double lse = softmax(a, row, weights);
  const float* d_out = g.d_out.at(row.b, row.h, row.i);
  const float* q = a.q.at(row.b, row.h, row.i);
  std::vector<double> d_weights(weights.size());
  double delta = 0;
  for (size_t t = 0; t < weights.size(); ++t) {
    const double factor = kept(a, row, row.keys[t]);
    if (weights[t] * factor == 0) continue;
    d_weights[t] = factor * dot(d_out, a.v.at(row.b, row.kv_head, row.keys[t]), shape.dv);
    delta += weights[t] * d_weights[t];
    double* dv = &sums.dv[row.keys[t] * shape.dv];
    for (int64_t c = 0; c < shape.dv; ++c) dv[c] += weights[t] * factor * d_out[c];
  }
  for (size_t t = 0; t < weights.size(); ++t) {
    if (weights[t] == 0) continue;
    const int64_t j = row.keys[t];
    double d_score = weights[t] * (d_weights[t] - delta);
    if (g.d_bias.data) bias_at(g.d_bias, row.b, row.h, row.i, j) += static_cast<float>(d_score);
    sums.alibi[row.h] -= d_score * distance(shape, row.i, j);
    const double tanh = capped(a, row, j);
    d_score *= a.terms.scale * (1 - tanh * tanh);
    const float* k = a.k.at(row.b, row.kv_head, j);
    double* dk = &sums.dk[j * shape.d];
    for (int64_t c = 0; c < shape.d; ++c) {
      dq[c] += d_score * k[c];
      dk[c] += d_score * q[c];
    }
  }
  if (a.terms.sink) sums.sink[row.h] -= std::exp(a.terms.sink[row.h] - lse) * delta;
  if (g.dq.data)
    for (int64_t c = 0; c < shape.d; ++c) g.dq.at(row.b, row.h, row.i)[c] = static_cast<float>(dq[c]);
}

void backward(const AttentionBackward& g) {
  const AttentionForward& a = g.forward;
  const AttentionShape& shape = a.shape;
  const int64_t shared = shape.heads / shape.kv_heads;
  KeyGradients sums;
  sums.alibi.assign(shape.heads, 0);
  sums.sink.assign(shape.heads, 0);
  if (g.d_bias_once)
    for (int64_t b = 0; b < shape.batch; ++b)
      for (int64_t h = 0; h < shape.heads; ++h)
        for (int64_t i = 0; i < shape.queries; ++i)
          for (int64_t j = 0; j < shape.keys; ++j) bias_at(g.d_bias, b, h, i, j) = 0;
  for (int64_t b = 0; b < shape.batch; ++b) {
    for (int64_t kv_head = 0; kv_head < shape.kv_heads; ++kv_head) {
      sums.dk.assign(shape.keys * shape.d, 0);
      sums.dv.assign(shape.keys * shape.dv, 0);
      for (int64_t h = kv_head * shared; h < (kv_head + 1) * shared; ++h)
        for_each_row(a, b, h, [&](const Row& row) { backward_row(g, row, sums); });
      for (int64_t j = 0; j < shape.keys; ++j) {
        if (g.dk.data)
          for (int64_t c = 0; c < shape.d; ++c)
            g.dk.at(b, kv_head, j)[c] = static_cast<float>(sums.dk[j * shape.d + c]);
        if (g.dv.data)
          for (int64_t c = 0; c < shape.dv; ++c)
            g.dv.at(b, kv_head, j)[c] = static_cast<float>(sums.dv[j * shape.dv + c]);
      }
    }
  }
  for (int64_t h = 0; h < shape.heads; ++h) {
    if (g.d_alibi) g.d_alibi[h] += static_cast<float>(sums.alibi[h]);
    if (g.d_sink) g.d_sink[h] += static_cast<float>(sums.sink[h]);
  }
}

}  // namespace

extern const AttentionKernels attention_table;
const AttentionKernels attention_table{forward, backward};

}  // namespace fovea::kernels::scalar
