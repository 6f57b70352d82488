// Beam search over anything that continues sequences step by step; a beam of 1 is greedy search.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "infer/logits.h"

namespace fovea {

// A model with memory: one row for each hypothesis alive. At first there is one row a sentence.
class StepDecoder {
 public:
  virtual ~StepDecoder() = default;
  // Feeds the last token of every row and returns the logits of the next.
  virtual Logits step(std::span<const int32_t> tokens) = 0;
  // The same, but returns the token with the largest logit of each row, as OutputLayer::best() does.
  virtual std::vector<int32_t> best(std::span<const int32_t> tokens, std::span<const int32_t> skipped) = 0;
  // Row i becomes a copy of what row parents[i] was; rows may repeat, and those not named are gone.
  virtual void reorder(std::span<const int32_t> parents) = 0;
};

struct BeamOptions {
  int beam = 5;
  int n_best = 1;            // hypotheses returned for a sentence, at most `beam`
  float length_penalty = 1;  // a hypothesis of n tokens (with its end) scores log p / n^length_penalty
  int min_length = 0;        // tokens before an end may come; a sentence's most tokens come before this
  bool scores = true;  // false, with a beam of 1: hypotheses get no log-probability, which is much faster
  int32_t begin = 1, end = 2;
  int32_t never = -1;  // a token that is never chosen; -1: any may be; does not go with min_length
};

struct Hypothesis {
  std::vector<int32_t> tokens;  // without begin and end
  double log_probability = 0;   // of the tokens and the end
  double score = 0;             // with the length penalty; what hypotheses are ranked by
};

// Best first, for every sentence. max_lengths[s] is the most tokens sentence s may get before its end is
// forced. Of equal scores the earlier hypothesis and the smaller token win, so results do not depend on the
// batch.
std::vector<std::vector<Hypothesis>> beam_search(StepDecoder& decoder, std::span<const int32_t> max_lengths,
                                                 const BeamOptions& options = {});

}  // namespace fovea
