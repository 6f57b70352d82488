// A sequence summed up by attention: one learned query attends to its states.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "attention/spec.h"
#include "nn/module.h"
#include "nn/projection.h"

namespace fovea::nn {

// What is summed up: the words of a sentence or text, or the sentences of a text. Observers receive it as the
// layer of the site.
enum class PoolingLevel : int64_t { words, sentences };

struct AttentionPoolingOptions {
  int64_t width = 0;  // of the states
  // additive, concat: query . tanh(weight h + bias), the hidden layer of hierarchical attention. dot, scaled_dot,
  // cosine(0.1): of the query and the state h itself. bilinear: query . weight h. gated: query . (tanh(weight h +
  // bias) * sigmoid(gate_weight h + gate_bias)), the gated attention of Ilse et al. 2018.
  std::string score = "additive";
  int64_t hidden = 0;  // additive, concat and gated; 0: the width
  // How scores become weights: soft, hard, gumbel(1), sparsemax, top_k(4), sigmoid, identity. hard is trained by
  // REINFORCE, see nn/choices.h: before a call the model sets Context::rows_of_example for the sequences.
  std::string selection = "soft";
};

// Parameters: query [hidden] and, for additive, concat and gated scores, weight [hidden, width] and bias [hidden]; for
// gated also gate_weight and gate_bias; for the others query [width], and for bilinear weight [width, width].
class AttentionPooling : public Module {
 public:
  // Throws Error on the score location, which ignores the states, and on argmax, which trains nothing.
  AttentionPooling(const AttentionPoolingOptions& options, Rng& rng);

  // states: [tokens, width], sequence after sequence -> [sequences, width]: for each the weighted sum of its
  // states. A sequence without tokens gives 0. Weights are shown to observers as pooling of `level`, a row for
  // each sequence.
  Var operator()(const Var& states, std::span<const int64_t> lengths, Context& context,
                 PoolingLevel level = PoolingLevel::words) const;

 private:
  bool is_additive() const;
  Var keys_of(const Var& states) const;
  Var pool_by_runs(const Var& states, std::span<const int64_t> lengths, PoolingLevel level) const;
  Var pool(const Var& states, std::span<const int64_t> lengths, Context& context, PoolingLevel level) const;

  bool gated_;
  Score score_;  // of gated keys: dot
  Selection selection_;
  Var query_, weight_, bias_, gate_weight_, gate_bias_;
  Projection keys_;  // of weight_; of gated, with biases, of both
};

// The mean of each sequence's states, shown as the equal weights it is.
Var mean_pooling(const Var& states, std::span<const int64_t> lengths,
                 PoolingLevel level = PoolingLevel::words);

}  // namespace fovea::nn
