#include "models/bert_pretraining.h"

#include <algorithm>

#include "autograd/ops.h"

namespace fovea::models {
namespace {

constexpr BertHeads kHeads{.pooler = true, .masked_lm = true, .next_sentence = true};

BertConfig bert_config_of(const BertPretrainingConfig& c) {
  check_ranges(c, "bert");
  BertConfig config;
  config.vocab_size = c.vocabulary;
  config.hidden_size = c.width;
  config.num_attention_heads = c.heads;
  config.intermediate_size = c.hidden;
  config.num_hidden_layers = c.layers;
  config.max_position_embeddings = c.max_positions;
  config.hidden_dropout_prob = c.dropout;
  config.attention_probs_dropout_prob = c.attention_dropout;
  return config;
}

// How many rows of [rows, classes] have their largest score at the target.
int64_t right_ones(const Tensor& scores, std::span<const int32_t> targets) {
  const int64_t classes = scores.size(1);
  int64_t right = 0;
  for (size_t i = 0; i < targets.size(); ++i) {
    const float* row = scores.data() + static_cast<int64_t>(i) * classes;
    right += std::max_element(row, row + classes) - row == targets[i];
  }
  return right;
}

double loss_sum(const Var& scores, std::span<const int32_t> targets) {
  return double{cross_entropy(scores, targets, {.reduction = Reduction::sum}).value().item()};
}

}  // namespace

BertPretraining::BertPretraining(const BertPretrainingConfig& config, Rng& rng)
    : BertPretraining(std::make_unique<Bert>(bert_config_of(config), kHeads, rng)) {}

BertPretraining::BertPretraining(std::unique_ptr<Bert> bert) : bert_(std::move(bert)) {
  require(bert_->masked_lm != nullptr && bert_->next_sentence != nullptr,
          "pre-training needs heads for masked tokens and for the next sentence");
  add_child("bert", *bert_);
}

Var BertPretraining::loss(const PretrainingBatch& batch, nn::Context& context) const {
  const Sentences texts{batch.tokens, batch.lengths};
  const Var hidden = bert_->hidden(texts, batch.types, context);
  const Var next = cross_entropy(bert_->next_logits(hidden, texts.lengths), batch.next);
  // A word that is masked as a whole may be too long for its sequence: then nothing is masked.
  if (batch.places.empty()) return next;
  return bert_->masked_loss(gather(hidden, batch.places), batch.targets) + next;
}

PretrainingScores BertPretraining::scores(const PretrainingBatch& batch) const {
  const NoGrad no_grad;
  nn::Context context;
  const Sentences texts{batch.tokens, batch.lengths};
  const Var hidden = bert_->hidden(texts, batch.types, context);
  const Var next = bert_->next_logits(hidden, texts.lengths);
  PretrainingScores scores{.pairs = static_cast<int64_t>(batch.lengths.size())};
  scores.next_loss = loss_sum(next, batch.next);
  scores.next_right = right_ones(next.value().contiguous(), batch.next);
  if (batch.places.empty()) return scores;
  const Var masked = bert_->token_logits(gather(hidden, batch.places));
  scores.masked = static_cast<int64_t>(batch.places.size());
  scores.masked_loss = loss_sum(masked, batch.targets);
  scores.masked_right = right_ones(masked.value().contiguous(), batch.targets);
  return scores;
}

}  // namespace fovea::models
