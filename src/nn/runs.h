// What layers that attend to runs of packed keys share: a score of the algebra as a score of runs, any selection by
// the general path, and reports to observers.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "attention/attention.h"
#include "autograd/ops_attentive.h"
#include "nn/module.h"

namespace fovea::nn {

// A score alone: "additive", "scaled_dot", "cosine(0.1)"... Throws Error on anything else.
Score score_named(const std::string& name);

// The score of queries of this width and keys; vector: [width], of additive and concat scores.
RunScore run_score(const Score& score, int64_t width, const Var& vector);

// How observers see a call.
struct ShownAs {
  std::string_view name;
  AttentionSite site = {};
};
// Reports weights [queries, longest run] to this thread's observer, if there is one that captures them.
void show_runs(const ShownAs& as, const Score& score, const KeyRuns& runs, const Tensor& weights);

// What a spec says beyond which run of keys a query sees: by the query's own place among the keys of its sentence.
struct PlaceTerms {
  Pattern pattern = full();      // over (place of the query, key), both counted from the sentence's first key
  Terms terms = {};              // soft_cap, alibi, relative and sink
  Var relative = {}, sink = {};  // [buckets, 1] and [1], where the terms name them
};
// Where a query stands: at `place` of the keys [begin, begin + keys) of its sentence.
struct QueryPlace {
  int32_t place = 0, begin = 0, keys = 0;
};
// Step `step` of a decoder stands at the key of the same number, and after the source's end at its last key.
QueryPlace place_at(int64_t step, int64_t begin, int64_t keys);

// Queries and the runs of keys that they see: query i sees [first[i], first[i] + count[i]) of all keys.
struct RunQueries {
  Var q;                                  // [queries, d]
  Var k, v;                               // [keys, d], [keys, dv]
  std::span<const int32_t> first, count;  // [queries]
  RunScore score = {};
  RunGaussian gaussian = {};
  const PlaceTerms* place_terms = nullptr;  // null: none
  std::span<const QueryPlace> places = {};  // [queries], where place_terms are given
};
struct ChosenRuns : SeenRuns {
  Var entropy{};  // [queries, 1]: hard, training: of the distribution drawn from, in nats
};
// attend_runs() for any selection and any static pattern: slower. At use a query at a time, so that a result does not
// depend on the other queries; in training all at once where the runs have one length and lie one behind the other. What hard selection
// draws is kept in the context (nn/choices.h). Observers see nothing of it: the caller shows the weights.
ChosenRuns attend_runs_by(const Selection& selection, const RunQueries& queries, Context& context,
                          bool want_weights = false);

}  // namespace fovea::nn
