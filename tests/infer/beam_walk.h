// Rows of a decoder moved about as a beam moves them: their pasts must go with them.
#pragma once

#include <cmath>
#include <functional>
#include <vector>

#include "base/rng.h"
#include "data/batches.h"
#include "infer/beam.h"

namespace fovea::testing {

// Walks three sentences; after every step, check(sentence, the row's tokens so far, its logits) for each row.
inline void walk_as_a_beam(StepDecoder& decoder, Rng& rng,
                           const std::function<void(size_t sentence, const std::vector<int32_t>& prefix,
                                                    const float* logits)>& check) {
  std::vector<std::vector<int32_t>> prefixes(3, {data::kBegin});
  std::vector<size_t> sentence{0, 1, 2};
  const std::vector<std::vector<int32_t>> moves{{0, 0, 1, 2, 2}, {4, 1, 2}, {0, 1, 1, 2}, {3, 0}};
  for (size_t turn = 0; turn <= moves.size(); ++turn) {
    std::vector<int32_t> tokens;
    for (const auto& prefix : prefixes) tokens.push_back(prefix.back());
    const Tensor logits = decoder.step(tokens).values;
    for (size_t r = 0; r < prefixes.size(); ++r)
      check(sentence[r], prefixes[r], logits.data() + static_cast<int64_t>(r) * logits.size(1));
    if (turn == moves.size()) break;
    decoder.reorder(moves[turn]);
    std::vector<std::vector<int32_t>> next;
    std::vector<size_t> next_sentence;
    for (const int32_t parent : moves[turn]) {
      next.push_back(prefixes[static_cast<size_t>(parent)]);
      next.back().push_back(static_cast<int32_t>(4 + rng.below(26)));
      next_sentence.push_back(sentence[static_cast<size_t>(parent)]);
    }
    prefixes = next;
    sentence = next_sentence;
  }
}

// The root of the mean square of found - wanted, over that of wanted.
inline double relative_difference(const std::vector<float>& found, const std::vector<float>& wanted) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    difference += std::pow(double{found[i]} - double{wanted[i]}, 2);
    size += std::pow(double{wanted[i]}, 2);
  }
  return std::sqrt(difference / size);
}

}  // namespace fovea::testing
