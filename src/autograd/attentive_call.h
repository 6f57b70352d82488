// What the ops of ops_attentive.h share between their Vars and the kernels.
#pragma once

#include "autograd/ops_attentive.h"
#include "autograd/optional.h"

namespace fovea::attentive {

inline Tensor dense(const Var& v) {
  return v.defined() ? v.value().contiguous() : Tensor();
}
inline void pass(const Var& v, const Tensor& gradient) {
  if (v.defined() && gradient.defined()) v.add_grad(gradient);
}

inline kernels::RunScore kernel_score(const RunScore& score, int64_t d, const Tensor& vector) {
  require(score.family != kernels::ScoreFamily::additive ||
              (score.vector.defined() && score.vector.shape() == Shape{d}),
          "attention: an additive score wants a vector of [", d, "]");
  return {.family = score.family,
          .d = d,
          .scale = score.scale,
          .unit_query = score.unit_query,
          .vector = data_or_null(vector)};
}

inline kernels::Runs kernel_runs(const KeyRuns& runs, const Tensor& centre, float sigma, const Tensor& soft) {
  return {.sentences = static_cast<int64_t>(runs.query_begin.size()) - 1,
          .query_begin = runs.query_begin.data(),
          .key_begin = runs.key_begin.data(),
          .first = runs.first.data(),
          .count = runs.count.data(),
          .centre = data_or_null(centre),
          .sigma = sigma,
          .soft = soft.data(),
          .soft_row = runs.longest};
}

// The weights as they met v: the softmax times the gaussian, 0 after the end of a run.
inline Tensor weights_of(const kernels::Runs& runs, int64_t queries) {
  const Tensor weights = Tensor::zeros({queries, runs.soft_row});
  for (int64_t i = 0; i < queries; ++i) {
    const kernels::AttentionRun run = kernels::run_of(runs, i);
    for (int64_t j = 0; j < run.count; ++j)
      weights.data()[i * runs.soft_row + j] = run.soft[j] * kernels::run_gaussian(run, j);
  }
  return weights;
}

inline void check_runs(const KeyRuns& runs) {
  require(!runs.query_begin.empty() && runs.query_begin.size() == runs.key_begin.size(),
          "attention: got the places of ", runs.query_begin.size(), " query runs and ", runs.key_begin.size(),
          " key runs, wanted as many");
  require(runs.first.size() == static_cast<size_t>(runs.queries()) && runs.count.size() == runs.first.size(),
          "attention: got ", runs.first.size(), " first keys and ", runs.count.size(), " counts for ",
          runs.queries(), " queries");
}

inline void check_shape(const char* what, const Var& got, const Shape& wanted) {
  require(got.defined() && got.shape() == wanted, "attention: got ", what, " of shape ",
          got.defined() ? got.shape() : Shape{}, ", wanted ", wanted);
}

// The queries of a decoder: its state, through a matrix where there is one.
inline void check_query(const Var& query_weight, int64_t d, int64_t hidden) {
  if (query_weight.defined()) return check_shape("the query's weight", query_weight, {d, hidden});
  require(d == hidden, "attention: got keys of ", d, " features for states of ", hidden,
          ", wanted the same, or a weight for the query");
}

// Steps of each sentence.
inline std::vector<int64_t> step_counts(const KeyRuns& runs) {
  std::vector<int64_t> counts;
  for (size_t s = 0; s + 1 < runs.query_begin.size(); ++s)
    counts.push_back(runs.query_begin[s + 1] - runs.query_begin[s]);
  return counts;
}

}  // namespace fovea::attentive
