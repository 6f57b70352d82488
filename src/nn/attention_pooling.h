// A sequence summed up by attention: one learned query looks at its states.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "attention/spec.h"
#include "nn/module.h"

namespace fovea::nn {

struct AttentionPoolingOptions {
  int64_t width = 0;  // of the states
  // additive: query . tanh(weight h + bias), the small network of hierarchical attention. dot, scaled_dot,
  // cosine(0.1): the query meets the states themselves.
  std::string score = "additive";
  int64_t hidden = 0;  // additive; 0: the width
};

// Parameters: query [hidden] and, of the additive score, weight [hidden, width] and bias [hidden]; of the
// others query [width].
class AttentionPooling : public Module {
 public:
  // Throws Error on a score that has no use for a query that never changes.
  AttentionPooling(const AttentionPoolingOptions& options, Rng& rng);

  // states: [tokens, width], sequence after sequence -> [sequences, width]: for each the sum of its states by
  // weights that add up to 1. A sequence without tokens gives 0. Weights are shown to observers under `name`,
  // a row for each sequence.
  Var operator()(const Var& states, std::span<const int64_t> lengths, std::string_view name) const;

 private:
  Score score_;
  Var query_, weight_, bias_;
};

// The mean of each sequence's states, shown as the equal weights it is.
Var mean_pooling(const Var& states, std::span<const int64_t> lengths, std::string_view name);

}  // namespace fovea::nn
