// Attention of a recurrent decoder: a query sees a run of neighbouring keys, the whole source sentence or a
// window in it. One head, any of the two score families, with the gradient; a query at a time, so that a step
// of a decoder can ask between its products.
//
//   weights = softmax(score(q, k)) * gaussian,  out = sum_j weights[j] v[j]
#pragma once

#include <cstdint>

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
};

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
  float* dq = nullptr;           // [d], overwritten
  float* dk = nullptr;           // rows k_row apart, added to
  float* d_vector = nullptr;     // additive: [d], added to
  float* d_centre = nullptr;     // one number, overwritten; null without a gaussian
  float* scratch = nullptr;      // count + d floats
};

struct AttentionRunsKernels {
  void (*forward)(const RunScore& score, const AttentionRun& run, float* scratch);  // scratch: d floats
  void (*backward)(const RunScore& score, const AttentionRunBackward& back);
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

// Gradients are overwritten. Null ones (but not dq and dk) are skipped.
struct AttentionRunsBackward {
  AttentionRunsForward forward{};  // out is not read
  const float* d_out = nullptr;    // [queries, dv]
  float* dq = nullptr;
  float* dk = nullptr;
  float* dv = nullptr;
  float* d_vector = nullptr;
  float* d_centre = nullptr;
  bool add_dk = false;  // dk is added to instead
};
void attention_runs_backward(const AttentionRunsBackward& call, Level level = current_level());

// The run of query i.
AttentionRun run_of(const Runs& runs, int64_t query);
// The same with its keys [all keys, d] and values [all keys, dv].
AttentionRun run_of(const Runs& runs, int64_t query, const float* keys, int64_t d, const float* values,
                    int64_t dv);

// dv[j] = sum of weights[i][j] d_out[i] over all queries i: a product for each sentence. d_out: rows dv_width
// apart.
void run_values_gradient(const Runs& runs, const float* d_out, int64_t dv_width, float* dv);

}  // namespace fovea::kernels
