// Cuts attention over runs of keys into sentences and runs them in parallel, forward and backward.
#include "kernels/attention/run_attention.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "base/parallel.h"
#include "kernels/gemm/gemm.h"
#include "kernels/level_table.h"
#include "kernels/scratch.h"

FOVEA_LEVEL_TABLES(AttentionRunsKernels, attention_runs_table, attention_runs_kernels)

namespace fovea::kernels {
namespace {

int64_t longest_run(const Runs& runs) {
  const int64_t queries = runs.query_begin[runs.sentences];
  return queries == 0 ? 0 : *std::max_element(runs.count, runs.count + queries);
}

AttentionRun placed(const AttentionRunsForward& call, int64_t query) {
  AttentionRun run = run_of(call.runs, query);
  run.q = call.q + query * call.score.d;
  run.k = call.k + call.runs.first[query] * call.score.d;
  run.k_row = call.score.d;
  run.v = call.v + call.runs.first[query] * call.dv;
  run.v_row = run.dv = call.dv;
  return run;
}

}  // namespace

float run_gaussian(const AttentionRun& run, int64_t j) {
  if (run.sigma <= 0) return 1;
  const double x = (static_cast<double>(j) - run.centre) / run.sigma;
  return static_cast<float>(std::exp(-0.5 * x * x));
}

float predicted_share(const float* vector, const float* before, int64_t count) {
  float sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += vector[i] * std::tanh(before[i]);
  return 1 / (1 + std::exp(-sum));
}

PredictedRun predicted_run(float place, int64_t window, int64_t keys) {
  // Damaged weights are for the loss to show.
  if (std::isnan(place)) return {0, static_cast<int32_t>(keys)};
  const auto reach = static_cast<float>(window);
  const auto first = std::max<int64_t>(0, static_cast<int64_t>(std::ceil(place - reach)));
  const auto end = std::min<int64_t>(keys, static_cast<int64_t>(std::floor(place + reach)) + 1);
  if (first >= end) return {0, 0};
  return {static_cast<int32_t>(first), static_cast<int32_t>(end - first)};
}

AttentionRun run_of(const Runs& runs, int64_t query) {
  return {.count = runs.count[query],
          .centre = runs.centre == nullptr ? 0 : runs.centre[query] - static_cast<float>(runs.first[query]),
          .sigma = runs.centre == nullptr ? 0 : runs.sigma,
          .soft = runs.soft + query * runs.soft_row};
}

AttentionRun run_of(const Runs& runs, int64_t query, const float* keys, int64_t d, const float* values,
                    int64_t dv) {
  AttentionRun run = run_of(runs, query);
  run.k = keys + runs.first[query] * d;
  run.k_row = d;
  run.v = values + runs.first[query] * dv;
  run.v_row = run.dv = dv;
  return run;
}

void attention_runs_forward(const AttentionRunsForward& call, Level level) {
  const AttentionRunsKernels& kernels = attention_runs_kernels(level);
  parallel_for(call.runs.query_begin[call.runs.sentences], 8, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      AttentionRun run = placed(call, i);
      run.out = call.out + i * call.dv;
      kernels.forward(call.score, run, scratch_floats(0, call.score.d));
    }
  });
}

void run_values_gradient(const Runs& runs, const float* d_out, int64_t dv_width, float* dv) {
  parallel_chunks(runs.sentences, [&](int64_t s) {
    const int64_t query = runs.query_begin[s], queries = runs.query_begin[s + 1] - query;
    const int64_t key = runs.key_begin[s], keys = runs.key_begin[s + 1] - key;
    if (keys == 0) return;
    if (queries == 0) return std::fill_n(dv + key * dv_width, keys * dv_width, 0.0f), void();
    float* const weights = scratch_floats(1, queries * keys);
    std::fill_n(weights, queries * keys, 0.0f);
    for (int64_t i = 0; i < queries; ++i) {
      const AttentionRun run = run_of(runs, query + i);
      float* const row = weights + i * keys + runs.first[query + i] - key;
      for (int64_t j = 0; j < run.count; ++j) row[j] = run.soft[j] * run_gaussian(run, j);
    }
    gemm({.transpose_a = true,
          .m = keys,
          .n = dv_width,
          .k = queries,
          .a = weights,
          .lda = keys,
          .b = d_out + query * dv_width,
          .ldb = dv_width,
          .c = dv + key * dv_width,
          .ldc = dv_width});
  });
}

bool run_exponentials(const float* x, float* y, int64_t count, Level level) {
  constexpr int64_t kPiece = 1 << 14;
  std::atomic<bool> small{true};
  parallel_for(count, kPiece, [&](int64_t begin, int64_t end) {
    int beyond = 0;
    for (int64_t i = begin; i < end; ++i) beyond |= !(std::fabs(x[i]) <= kMostExponent);
    if (beyond != 0) return small.store(false, std::memory_order_relaxed);
    attention_runs_kernels(level).exponentials(x + begin, y + begin, end - begin);
  });
  return small.load();
}

void run_keys_gradient(const RunScore& score, std::span<const RunQueriesSeen> calls, const float* keys,
                       float* dk, float* d_vector, Level level) {
  const int64_t d = score.d, sentences = calls[0].runs->sentences;
  std::vector<float> vectors(static_cast<size_t>(sentences * d));
  parallel_chunks(sentences, [&](int64_t s) {
    const int64_t key = calls[0].runs->key_begin[s], count = calls[0].runs->key_begin[s + 1] - key;
    int64_t queries = 0;
    for (const RunQueriesSeen& call : calls)
      queries += call.runs->query_begin[s + 1] - call.runs->query_begin[s];
    std::fill_n(dk + key * d, count * d, 0.0f);
    float* const q = scratch_floats(1, queries * (d + count));
    float* const d_scores = q + queries * d;
    std::fill_n(d_scores, queries * count, 0.0f);
    int64_t row = 0;
    for (const RunQueriesSeen& call : calls)
      for (int64_t i = call.runs->query_begin[s]; i < call.runs->query_begin[s + 1]; ++i, ++row) {
        std::copy_n(call.q + i * d, d, q + row * d);
        std::copy_n(call.d_scores + i * call.runs->soft_row, call.runs->count[i],
                    d_scores + row * count + call.runs->first[i] - key);
      }
    attention_runs_kernels(level).keys_backward(score, {.queries = queries,
                                                        .keys = count,
                                                        .q = q,
                                                        .k = keys + key * d,
                                                        .d_scores = d_scores,
                                                        .dk = dk + key * d,
                                                        .d_vector = vectors.data() + s * d});
  });
  std::fill_n(d_vector, d, 0.0f);
  for (int64_t s = 0; s < sentences; ++s)
    for (int64_t c = 0; c < d; ++c) d_vector[c] += vectors[static_cast<size_t>(s * d + c)];
}

void attention_runs_backward(const AttentionRunsBackward& call, Level level) {
  const AttentionRunsForward& f = call.forward;
  const AttentionRunsKernels& kernels = attention_runs_kernels(level);
  const int64_t d = f.score.d, longest = longest_run(f.runs), sentences = f.runs.sentences;
  // A sentence's keys belong to one thread; the score vector's sums meet in the order of the sentences.
  const bool additive = f.score.family == ScoreFamily::additive && call.dk != nullptr;
  std::vector<float> vectors(additive ? static_cast<size_t>(sentences * d) : 0);
  parallel_chunks(sentences, [&](int64_t s) {
    if (call.dk != nullptr && !call.add_dk)
      std::fill(call.dk + f.runs.key_begin[s] * d, call.dk + f.runs.key_begin[s + 1] * d, 0.0f);
    for (int64_t i = f.runs.query_begin[s]; i < f.runs.query_begin[s + 1]; ++i)
      kernels.backward(
          f.score, {.run = placed(f, i),
                    .d_out = call.d_out + i * f.dv,
                    .d_weights = call.d_weights == nullptr ? nullptr : call.d_weights + i * f.runs.soft_row,
                    .dq = call.dq + i * d,
                    .dk = call.dk == nullptr ? nullptr : call.dk + f.runs.first[i] * d,
                    .d_vector = additive ? vectors.data() + s * d : nullptr,
                    .d_centre = call.d_centre == nullptr ? nullptr : call.d_centre + i,
                    .scratch = call.dk == nullptr ? call.d_scores + i * f.runs.soft_row
                                                  : scratch_floats(0, longest + d)});
  });
  if (call.dv != nullptr) run_values_gradient(f.runs, call.d_out, f.dv, call.dv);
  if (call.d_vector == nullptr || call.dk == nullptr) return;
  std::fill_n(call.d_vector, d, 0.0f);
  for (int64_t s = 0; s < sentences; ++s)
    for (int64_t c = 0; c < d; ++c) call.d_vector[c] += vectors[s * d + c];
}

}  // namespace fovea::kernels
