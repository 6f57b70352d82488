// attend() under a mask that is given as data besides the spec's pattern, for callers that have one.
#pragma once

#include "attention/attention.h"
#include "attention/key_mask.h"

namespace fovea {

// mask: null, or joined (&) with the pattern. The plan of a mask is compiled at every call.
AttentionResult attend_masked(const Var& q, const Var& k, const Var& v, const AttentionSpec& spec,
                              const AttentionRequest& request, const KeyMask* mask);

// What a call does of its spec: at use, nothing is drawn.
AttentionSpec acting_spec(const AttentionSpec& spec, bool training);

// Throws Error unless the heads or rows (`what`) whose weights are requested are below count and ascend.
void check_chosen_weights(const std::vector<int32_t>& chosen, int64_t count, std::string_view what);

}  // namespace fovea
