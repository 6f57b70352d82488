// BERT as it is pre-trained (Devlin et al. 2019): it predicts masked words and whether two texts follow one another.
#pragma once

#include <memory>
#include <tuple>
#include <vector>

#include "models/bert.h"
#include "models/size_ranges.h"

namespace fovea::models {

struct BertPretrainingConfig {
  int64_t vocabulary = 0;
  int64_t width = 256, heads = 4, hidden = 1024, layers = 4;
  int64_t max_positions = 512;
  float dropout = 0.1f, attention_dropout = 0.1f;

  // Whether `fovea explain` has weights to show.
  bool has_attention() const { return false; }

  static constexpr auto fields() {
    using T = BertPretrainingConfig;
    return std::tuple{
        Sized{"vocabulary", &T::vocabulary, "tokens", kVocabularies},
        Sized{"width", &T::width, "features of a token between layers", kWidths},
        Sized{"heads", &T::heads, "attention heads of a layer", between(1, 1024)},
        Sized{"hidden", &T::hidden, "features inside the feed-forward net", kWidths},
        Sized{"layers", &T::layers, "encoder layers", kLayers},
        Sized{"max_positions", &T::max_positions, "longest text that the model can read, in tokens",
              between(8, 1 << 20)},
        Sized{"dropout", &T::dropout, "dropout rate on embeddings and sub-layers", probability()},
        Sized{"attention_dropout", &T::attention_dropout, "dropout rate on attention weights",
              probability()}};
  }
};

// Pairs of texts with some tokens masked, packed one after the other.
struct PretrainingBatch {
  std::vector<int32_t> tokens, types;  // [total]
  std::vector<int32_t> lengths;        // of each pair
  std::vector<int32_t> places;         // of the tokens to predict, among all
  std::vector<int32_t> targets;        // what they are
  std::vector<int32_t> next;           // of each pair: 0 where the second text follows the first, 1 otherwise
};

struct PretrainingScores {
  double masked_loss = 0, next_loss = 0;  // sums
  int64_t masked = 0, masked_right = 0, pairs = 0, next_right = 0;
};

// Parameters: bert... (Bert, with the heads for masked tokens and the next sentence).
class BertPretraining : public nn::Module {
 public:
  // With fresh weights. Throws Error on a config that makes no sense.
  BertPretraining(const BertPretrainingConfig& config, Rng& rng);
  // bert: with both heads.
  explicit BertPretraining(std::unique_ptr<Bert> bert);

  // The mean loss of masked tokens and that of the next sentence, added. Logits are made of masked places alone.
  Var loss(const PretrainingBatch& batch, nn::Context& context) const;
  // Without the tape.
  PretrainingScores scores(const PretrainingBatch& batch) const;
  const Bert& bert() const { return *bert_; }

 private:
  std::unique_ptr<Bert> bert_;
};

}  // namespace fovea::models
