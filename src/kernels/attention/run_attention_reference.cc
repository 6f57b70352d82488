#include <cmath>
#include <vector>

#include "kernels/attention/run_attention.h"

namespace fovea::kernels::scalar {
namespace {

// A number of a query or a key.
double number(const RunScore& score, float x) {
  return score.exponential ? 0.5 * std::log(double{x}) : double{x};
}

std::vector<double> query_of(const RunScore& score, const AttentionRun& run, double& length) {
  std::vector<double> q;
  for (int64_t c = 0; c < score.d; ++c) q.push_back(number(score, run.q[c]));
  double squares = 0;
  for (const double x : q) squares += x * x;
  length = score.unit_query ? std::sqrt(squares) : 1;
  for (double& x : q) x = length > 0 ? x / length : 0;
  return q;
}

void forward(const RunScore& score, const AttentionRun& run, float*) {
  double length;
  const std::vector<double> q = query_of(score, run, length);
  std::vector<double> scores(static_cast<size_t>(run.count));
  double largest = -INFINITY, sum = 0;
  for (int64_t j = 0; j < run.count; ++j) {
    for (int64_t c = 0; c < score.d; ++c) {
      const double k = number(score, run.k[j * run.k_row + c]);
      scores[j] += score.family == ScoreFamily::additive ? score.vector[c] * std::tanh(q[c] + k)
                                                         : score.scale * q[c] * k;
    }
    largest = std::fmax(largest, scores[j]);
  }
  for (const double x : scores) sum += std::exp(x - largest);
  std::vector<double> out(static_cast<size_t>(run.dv));
  for (int64_t j = 0; j < run.count; ++j) {
    const double soft = std::exp(scores[j] - largest) / sum;
    run.soft[j] = static_cast<float>(soft);
    for (int64_t c = 0; c < run.dv; ++c) out[c] += soft * run_gaussian(run, j) * run.v[j * run.v_row + c];
  }
  for (int64_t c = 0; c < run.dv; ++c) run.out[c] = static_cast<float>(out[c]);
}

void backward(const RunScore& score, const AttentionRunBackward& b) {
  const AttentionRun& run = b.run;
  double length;
  const std::vector<double> q = query_of(score, run, length);
  std::vector<double> d_scores(static_cast<size_t>(run.count)), dq(q.size());
  double mean = 0, d_centre = 0;
  for (int64_t j = 0; j < run.count; ++j) {
    double d_weight = b.d_weights != nullptr ? double{b.d_weights[j]} : 0;
    for (int64_t c = 0; c < run.dv; ++c) d_weight += double{b.d_out[c]} * run.v[j * run.v_row + c];
    d_scores[j] = d_weight * run_gaussian(run, j);
    mean += d_scores[j] * run.soft[j];
    if (b.d_centre != nullptr)
      d_centre +=
          d_scores[j] * run.soft[j] * (static_cast<double>(j) - run.centre) / (double{run.sigma} * run.sigma);
  }
  for (int64_t j = 0; j < run.count; ++j) {
    const double d_score = run.soft[j] * (d_scores[j] - mean);
    b.scratch[j] = static_cast<float>(d_score);
    for (int64_t c = 0; c < score.d; ++c) {
      const double k = number(score, run.k[j * run.k_row + c]);
      double d_q, d_k;
      if (score.family == ScoreFamily::additive) {
        const double t = std::tanh(q[c] + k);
        if (b.d_vector != nullptr) b.d_vector[c] += static_cast<float>(d_score * t);
        d_q = d_k = d_score * score.vector[c] * (1 - t * t);
      } else {
        d_q = score.scale * d_score * k;
        d_k = score.scale * d_score * q[c];
      }
      dq[c] += d_q;
      if (b.dk != nullptr) b.dk[j * run.k_row + c] += static_cast<float>(d_k);
    }
  }
  double along = 0;
  for (size_t c = 0; c < q.size() && score.unit_query; ++c) along += q[c] * dq[c];
  for (size_t c = 0; c < q.size(); ++c)
    b.dq[c] = static_cast<float>(length > 0 ? (dq[c] - along * q[c]) / length : 0);
  if (b.d_centre != nullptr) *b.d_centre = static_cast<float>(d_centre);
}

void exponentials(const float* x, float* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = static_cast<float>(std::exp(2 * double{x[i]}));
}

void keys_backward(const RunScore& score, const AttentionKeysBackward& b) {
  for (int64_t c = 0; c < score.d; ++c) {
    double d_vector = 0;
    for (int64_t j = 0; j < b.keys; ++j) {
      double dk = 0;
      for (int64_t i = 0; i < b.queries; ++i) {
        const double t = std::tanh(number(score, b.q[i * score.d + c]) + number(score, b.k[j * score.d + c]));
        const double d_score = b.d_scores[i * b.keys + j];
        d_vector += d_score * t;
        dk += d_score * score.vector[c] * (1 - t * t);
      }
      b.dk[j * score.d + c] += static_cast<float>(dk);
    }
    b.d_vector[c] += static_cast<float>(d_vector);
  }
}

}  // namespace

extern const AttentionRunsKernels attention_runs_table;
const AttentionRunsKernels attention_runs_table{
    .forward = forward, .backward = backward, .exponentials = exponentials, .keys_backward = keys_backward};

}  // namespace fovea::kernels::scalar
