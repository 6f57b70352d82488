// The attention of a recurrent decoder: any score, over the whole source sentence or a part of it.
//
// The layer says how queries meet keys and which they see; attend_runs() and attentive_gru() compute the attention, and
// attend_runs_by() what those cannot.
// Keys are projected once for a sentence. Values are the caller's.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "attention/spec.h"
#include "autograd/ops_attentive.h"
#include "nn/module.h"
#include "nn/runs.h"

namespace fovea::nn {

// Names of Luong et al. (2015) for specs. score: of the algebra, or "general" for bilinear. locality: "global", the
// whole sentence; "local_m", `window` keys on either side of the target token's own place; "local_p", on either side of
// a predicted place, weighed by a Gaussian around it with sigma = window / 2. Throws Error on anything else.
struct AlignmentNames {
  std::string score = "additive", locality = "global";
  int64_t window = 10;
  std::string selection = "soft";
  friend bool operator==(const AlignmentNames&, const AlignmentNames&) = default;
};
AttentionSpec alignment_spec(const AlignmentNames& names);
// The spec written as `text`; where that is empty, the one that the names make. Throws Error when both say something: when
// names differ from `standard`.
AttentionSpec alignment_spec(const std::string& text, const AlignmentNames& names,
                             const AlignmentNames& standard);

struct DecoderAttentionOptions {
  int64_t query_width = 0, key_width = 0;
  // Any score, any selection, and any pattern that means the same in every sentence: token t stands at key t, after the
  // source's end at its last key, and patterns and terms count from there. With the term gaussian(sigma) the pattern is
  // window(n,n), around a predicted place. The fused kernels compute full and window(left,right) with soft selection
  // and no other term. The rest takes the general path, which is slower: a step and a query at a time.
  AttentionSpec spec = {.score = additive()};
  int64_t hidden = 0;  // of additive and concat scores, and of the predicted place; 0: the query's width
  int64_t max_positions = 256;  // score location: keys after that many are not seen
};

// Parameters: W, U, b, v of the score as AttentionParameters has them; key [Dq, Dk] for the scores by dot
// product where widths differ; table [max_positions, Dq] for location; position.W [hidden, Dq] and
// position.v [hidden] for local_p; relative [buckets, 1] and sink [1] of these terms.
class DecoderAttention : public Module {
 public:
  // Throws Error on a spec that it cannot compute.
  DecoderAttention(const DecoderAttentionOptions& options, Rng& rng);

  // What queries meet. memory: [keys, Dk], sentence after sentence -> [keys, d].
  Var keys(const Var& memory, std::span<const int64_t> lengths) const;
  // The two steps of that: memory times key_weight (undefined: memory itself), and what follows.
  Var key_weight() const;
  Var finished_keys(const Var& projected, std::span<const int64_t> lengths) const;
  // The query is states query_weight^T + query_bias, or, where those are undefined, the state itself.
  Var query_weight() const;
  Var query_bias() const;
  RunScore score() const;
  const Selection& selection() const { return options_.spec.selection; }
  // What a run of keys and a predicted place cannot say, or null.
  const PlaceTerms* place_terms() const { return place_terms_ ? &*place_terms_ : nullptr; }
  // Whether the fused kernels (attend_runs, attentive_gru, attentive_lstm) compute the spec, as computed_by_runs() of
  // attention/kernel_call.h says. Otherwise see nn/attentive_steps.h.
  bool fused(const Context& context) const;
  // The run of keys within which each query sees, before a place is predicted: for local_p the whole sentence.
  KeyRuns runs(std::span<const int64_t> queries, std::span<const int64_t> keys) const;
  // local_p: the predicted places p = S sigmoid(v^T tanh(W state) / sqrt(hidden)) of states [queries, Dq],
  // counted among all keys. Narrows the runs to the keys within the window.
  RunGaussian predict(const Var& states, KeyRuns& runs) const;
  // The same of one step: states [rows, Dq] of these sentences, whose runs are those of these tokens.
  RunGaussian predict_step(const Var& states, std::span<const int32_t> sentences,
                           std::span<const int32_t> tokens, KeyRuns& runs) const;

  // All queries at once. states: [queries, Dq], values: [keys, Dv] -> [queries, Dv]. Shown to observers
  // under `name`. Without a context: at use.
  Var operator()(const Var& states, const Var& keys, const Var& values, KeyRuns runs, Context& context,
                 std::string_view name = {}) const;
  Var operator()(const Var& states, const Var& keys, const Var& values, KeyRuns runs,
                 std::string_view name = {}) const;
  // Shows weights [queries, longest run] to this thread's observer.
  void show(std::string_view name, const KeyRuns& runs, const Tensor& weights) const;

  const DecoderAttentionOptions& options() const { return options_; }
  // Whether each query predicts the position that it attends around.
  bool predicts() const { return options_.spec.terms.gaussian > 0; }
  float sigma() const { return options_.spec.terms.gaussian; }
  int64_t window() const;  // keys on either side of a predicted place
  Var position_weight() const { return position_W_; }
  // v / sqrt(hidden): the place, a sum over hidden units that all move at once, would else run to an end of
  // the sentence within some dozen steps of Adam, where the sigmoid is flat and holds it.
  Var position_vector() const;

 private:
  void add_score_parameters(Rng& rng);

  DecoderAttentionOptions options_;
  std::optional<PlaceTerms> place_terms_;
  Var W_, U_, b_, v_, key_, table_, position_W_, position_v_;
};

// The keys that step `step` sees of a sentence of `keys`, before a place is predicted: [first, first +
// count).
struct KeyRun {
  int32_t first, count;
};
KeyRun run_at(const DecoderAttentionOptions& options, int64_t step, int64_t keys);

}  // namespace fovea::nn
