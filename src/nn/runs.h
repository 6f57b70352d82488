// What layers that look along runs of packed keys share: from a score of the algebra to a score of runs, and
// what was seen to an observer.
#pragma once

#include <string>
#include <string_view>

#include "attention/attention.h"
#include "autograd/ops_attentive.h"

namespace fovea::nn {

// A score alone: "additive", "scaled_dot", "cosine(0.1)"... Throws Error on anything else.
Score score_named(const std::string& name);

// How queries of this width meet keys; vector: [width], of additive and concat scores.
RunScore run_score(const Score& score, int64_t width, const Var& vector);

// How a call is told to observers.
struct ShownAs {
  std::string_view name;
  AttentionSite site = {};
};
// Shows weights [queries, longest run] to this thread's observer, where there is one that wishes it.
void show_runs(const ShownAs& as, const Score& score, const KeyRuns& runs, const Tensor& weights);

}  // namespace fovea::nn
