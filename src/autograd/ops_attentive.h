// What a recurrent decoder reads from a source sentence: attention over runs of keys, and the decoder that attends
// before every step.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "autograd/var.h"
#include "kernels/attention/run_attention.h"

namespace fovea {

// How a query meets a key; see kernels/attention/run_attention.h.
struct RunScore {
  kernels::ScoreFamily family = kernels::ScoreFamily::dot;
  float scale = 1;          // dot
  bool unit_query = false;  // dot: cosine, once keys have length 1
  Var vector{};             // additive: [d]
};

// Which keys each query sees. Queries and keys of a batch of sentences are packed one after the other.
struct KeyRuns {
  std::vector<int64_t> query_begin{0}, key_begin{0};  // of each sentence, and the end of the last
  std::vector<int32_t> first, count;                  // of each query: its run, within its sentence
  int64_t longest = 0;

  // Every query sees its whole sentence.
  static KeyRuns sentences(std::span<const int64_t> queries, std::span<const int64_t> keys);
  int64_t queries() const { return query_begin.back(); }
  int64_t keys() const { return key_begin.back(); }
  // Counts the longest run again, after `first` and `count` were changed.
  void measure();
};

struct SeenRuns {
  Var out;         // [queries, dv]
  Tensor weights;  // [queries, longest]: of each query's run, as they met v; 0 after its end
};

// Luong's local-p: weights are multiplied by exp(-(key - centre)^2 / (2 sigma^2)).
struct RunGaussian {
  Var centre{};  // [queries], counted among all keys; undefined: no gaussian
  float sigma = 0;
};

// q: [queries, d], k: [keys, d], v: [keys, dv]. Weights are only made where wanted.
SeenRuns attend_runs(const Var& q, const Var& k, const Var& v, const KeyRuns& runs, const RunScore& score,
                     const RunGaussian& gaussian = {}, bool want_weights = false);

// attend_runs() with keys and values that a decoder asks at every step of a pass, with what the steps share made once:
// of additive scores the keys' exponentials, and their gradient. Made for each pass; keys and score vector must
// keep their values until backward() has run.
class RepeatedRuns {
 public:
  RepeatedRuns(const Var& k, const Var& v, const RunScore& score);
  struct Seen {
    Var out;      // [queries, dv]
    Var weights;  // as in SeenRuns, with a gradient; undefined unless wanted
  };
  // The runs of all calls have the same sentences and keys.
  Seen operator()(const Var& q, const KeyRuns& runs, bool want_weights = false) const {
    return attend(q, runs, {}, want_weights);
  }

 private:
  friend SeenRuns attend_runs(const Var&, const Var&, const Var&, const KeyRuns&, const RunScore&,
                              const RunGaussian&, bool);
  struct Pass;
  RepeatedRuns(const Var& k, const Var& v, const RunScore& score, bool repeated);
  Seen attend(const Var& q, const KeyRuns& runs, const RunGaussian& gaussian, bool want_weights) const;

  std::shared_ptr<Pass> pass_;
  Var joint_;  // without a value: its turn in backward() comes after those of all calls
};

// A GRU that attends before every step; see kernels/recurrent/attentive_gru.h. Steps are the runs' queries.
struct AttentiveGru {
  Var products;                      // [steps, 3 H]: W x + b of the input
  Var state;                         // [sentences, H]: the first one
  Var keys;                          // [keys, d]
  Var values;                        // [keys, 3 H + E]
  Var weight, bias{};                // of the state: [3 H, H], [3 H] or undefined
  Var query_weight{}, query_bias{};  // [d, H] and [d]; undefined: the state itself is the query
  RunScore score{};
};
struct AttentiveStates {
  Var states;      // [steps, H]
  Var context;     // [steps, E]: what was seen of the values' last E columns
  Tensor weights;  // as in SeenRuns
};
AttentiveStates attentive_gru(const AttentiveGru& decoder, const KeyRuns& runs, bool want_weights = false);

// Stacked LSTMs that attend after every step and read the result at the next; see kernels/recurrent/attentive_lstm.h.
struct AttentiveLstm {
  Var products;  // [steps, 4 H]: W x + biases of layer 0
  struct Layer {
    Var input;          // [4 H, H]: of the layer below; of layer 0, of what was seen
    Var state;          // [4 H, H]
    Var bias{};         // [4 H] or undefined
    uint64_t seed = 0;  // of dropout on the layer below's states
  };
  std::vector<Layer> layers;
  Var h{}, c{};          // first states: [layers, sentences, H]
  Var keys{}, values{};  // [keys, d], [keys, H]
  Var combine{};         // [H, H]
  Var query_weight{}, query_bias{};
  RunScore score{};
  Var position_weight{}, position_vector{};  // [P, H], [P]; undefined: nothing is predicted
  int64_t window = 0;
  float sigma = 0;
  float dropout = 0;
};
struct FedStates {
  Var states;      // [steps, H]
  Tensor weights;  // as in SeenRuns
};
// Predicted places narrow the runs.
FedStates attentive_lstm(const AttentiveLstm& decoder, KeyRuns& runs, bool want_weights = false);

}  // namespace fovea
