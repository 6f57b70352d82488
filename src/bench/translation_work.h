// Synthetic translation work of fixed size, for `fovea bench train` and `fovea bench translate`: the same
// shapes that bench/ gives the peers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/batches.h"
#include "models/translation.h"

namespace fovea::bench {

struct TranslationWork {
  std::string model;   // as in the registry
  std::string preset;  // "tiny", "base" or "marian"; "default" for other models than the transformer
  int64_t vocabulary = 10000;
  int64_t sentences = 0;              // of a training batch
  int64_t shortest = 0, longest = 0;  // tokens of a sentence, its end included

  // Tokens of sentence i: all lengths in turn, the targets in another order than the sources.
  int64_t source_length(int64_t i) const { return shortest + i % (longest - shortest + 1); }
  int64_t target_length(int64_t i) const { return shortest + (7 * i + 3) % (longest - shortest + 1); }

  // A fresh network with the preset's settings.
  std::unique_ptr<models::TranslationModel> make_network() const;
  data::Batch training_batch() const;
  std::vector<std::vector<int32_t>> sources(int64_t count) const;

  // Multiply-adds, counted twice, that no padding adds to: of a training step on the batch, and of
  // translating sources(count) into `length` tokens each with a beam. 0 for models whose work is not counted.
  double training_flops(const models::TranslationModel& network) const;
  double translation_flops(const models::TranslationModel& network, int64_t count, int64_t length,
                           int64_t beam) const;
};

// Throws Error on a preset or model that is not known.
TranslationWork translation_work(const std::string& model, const std::string& preset);

}  // namespace fovea::bench
