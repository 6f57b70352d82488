// Attention of a recurrent decoder: a query sees a run of neighbouring keys, the whole source sentence or a
// window in it. One head, any of the two score families, with the gradient; a query at a time, so that a step
// of a decoder can ask between its products.
//
//   weights = softmax(score(q, k)) * gaussian,  out = sum_j weights[j] v[j]
#pragma once

#include <cstdint>
#include <span>

#include "base/cpu.h"
#include "kernels/attention/row_attention.h"

namespace fovea::kernels {

// How a query meets a key.
struct RunScore {
  ScoreFamily family = ScoreFamily::dot;
  int64_t d = 0;                  // width of queries and keys
  float scale = 1;                // dot
  bool unit_query = false;        // dot: the query is divided by its length first
  const float* vector = nullptr;  // additive: [d]
  // Additive: queries and keys are given as exp(2 x), for which the tanh of a sum costs little more than a reciprocal.
  // Gradients are those of x. No |x| may exceed kMostExponent.
  bool exponential = false;
};
inline constexpr float kMostExponent = 20;

// One query and its keys.
struct AttentionRun {
  const float* q = nullptr;  // [d]
  int64_t count = 0;         // keys; without any, the output is 0
  const float* k = nullptr;  // of the first key; rows k_row apart
  int64_t k_row = 0;
  const float* v = nullptr;
  int64_t v_row = 0, dv = 0;
  // sigma > 0: a weight is multiplied by exp(-(j - centre)^2 / (2 sigma^2)), j counted from the first key of
  // the run, after the softmax and without normalising again.
  float centre = 0, sigma = 0;
  float* soft = nullptr;  // [count]: softmax of the scores, without the gaussian; backward reads it
  float* out = nullptr;   // [dv]
};

// Gradients of one query. dv is not among them: the caller has weights and d_out of all queries, and makes
// one product of them (run_values_gradient).
struct AttentionRunBackward {
  AttentionRun run;              // as it was; out is not read
  const float* d_out = nullptr;  // [dv]
  // [count]: what the weights themselves have as a gradient, besides that of out; or null
  const float* d_weights = nullptr;
  float* dq = nullptr;        // [d], overwritten
  float* dk = nullptr;        // rows k_row apart, added to; null with exponentials: keys_backward() makes it
  float* d_vector = nullptr;  // additive: [d], added to; null where dk is
  float* d_centre = nullptr;  // one number, overwritten; null without a gaussian
  float* scratch =
      nullptr;  // count + d floats, additive: count; holds the gradients of the scores afterwards
};

// The gradients of keys and score vector by all queries of a sentence at once, additive scores of exponentials.
struct AttentionKeysBackward {
  int64_t queries = 0, keys = 0;
  const float* q = nullptr;         // [queries, d]
  const float* k = nullptr;         // [keys, d]
  const float* d_scores = nullptr;  // [queries, keys]: 0 where a query does not see a key
  float* dk = nullptr;              // [keys, d], added to
  float* d_vector = nullptr;        // [d], added to
};

struct AttentionRunsKernels {
  void (*forward)(const RunScore& score, const AttentionRun& run, float* scratch);  // scratch: d floats
  void (*backward)(const RunScore& score, const AttentionRunBackward& back);
  void (*exponentials)(const float* x, float* y, int64_t count);  // y = exp(2 x), |x| <= kMostExponent
  void (*keys_backward)(const RunScore& score, const AttentionKeysBackward& back);
};
const AttentionRunsKernels& attention_runs_kernels(Level level = current_level());

// exp(-(j - centre)^2 / (2 sigma^2)), or 1 without a gaussian.
float run_gaussian(const AttentionRun& run, int64_t j);

// Luong's local-p. The predicted place as a share of the sentence: sigmoid(vector . tanh(before)).
float predicted_share(const float* vector, const float* before, int64_t count);
// The keys within `window` of a place among `keys`: [first, first + count).
struct PredictedRun {
  int32_t first, count;
};
PredictedRun predicted_run(float place, int64_t window, int64_t keys);

// Sentences whose queries and keys are packed one after the other; query i of all sees the keys
// [first[i], first[i] + count[i]) of all, which lie in its own sentence.
struct Runs {
  int64_t sentences = 0;
  const int64_t* query_begin = nullptr;  // [sentences + 1]
  const int64_t* key_begin = nullptr;    // [sentences + 1]
  const int32_t* first = nullptr;        // [queries]
  const int32_t* count = nullptr;        // [queries]
  const float* centre = nullptr;         // [queries], among all keys; or null
  float sigma = 0;
  float* soft = nullptr;  // [queries, soft_row]
  int64_t soft_row = 0;
};

// All queries of all sentences at once. q: [queries, d]; k, v: [keys, ...]; out: [queries, dv].
struct AttentionRunsForward {
  RunScore score{};
  Runs runs{};
  int64_t dv = 0;
  const float* q = nullptr;
  const float* k = nullptr;
  const float* v = nullptr;
  float* out = nullptr;
};
void attention_runs_forward(const AttentionRunsForward& call, Level level = current_level());

// Gradients are overwritten. Null ones (but not dq) are skipped; dk only with exponentials.
struct AttentionRunsBackward {
  AttentionRunsForward forward{};    // out is not read
  const float* d_out = nullptr;      // [queries, dv]
  const float* d_weights = nullptr;  // [queries, soft_row] or null
  float* dq = nullptr;
  float* dk = nullptr;
  float* dv = nullptr;
  float* d_vector = nullptr;
  float* d_centre = nullptr;
  bool add_dk = false;        // dk is added to instead
  float* d_scores = nullptr;  // [queries, soft_row]: where dk is null, for run_keys_gradient()
};
void attention_runs_backward(const AttentionRunsBackward& call, Level level = current_level());

// Whether all numbers are small enough for exponentials; if so, y = exp(2 x).
bool run_exponentials(const float* x, float* y, int64_t count, Level level = current_level());

// dk and d_vector of the queries of many calls: `calls` have the same sentences, and the queries' d_scores. Overwritten.
struct RunQueriesSeen {
  const Runs* runs = nullptr;       // soft is not read
  const float* q = nullptr;         // [queries, d], exponentials
  const float* d_scores = nullptr;  // [queries, soft_row]
};
void run_keys_gradient(const RunScore& score, std::span<const RunQueriesSeen> calls, const float* keys,
                       float* dk, float* d_vector, Level level = current_level());

// The run of query i.
AttentionRun run_of(const Runs& runs, int64_t query);
// The same with its keys [all keys, d] and values [all keys, dv].
AttentionRun run_of(const Runs& runs, int64_t query, const float* keys, int64_t d, const float* values,
                    int64_t dv);

// dv[j] = sum of weights[i][j] d_out[i] over all queries i: a product for each sentence. d_out: rows dv_width
// apart.
void run_values_gradient(const Runs& runs, const float* d_out, int64_t dv_width, float* dv);

}  // namespace fovea::kernels
