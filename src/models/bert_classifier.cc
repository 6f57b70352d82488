#include "models/bert_classifier.h"

#include "autograd/ops_math.h"
#include "base/error.h"

namespace fovea::models {

BertClassifier::BertClassifier(std::unique_ptr<Bert> bert) : bert_(std::move(bert)) {
  require(bert_->classifier != nullptr, "bert: a model without a head for labels cannot classify");
  add_child("bert", *bert_);
}

Var BertClassifier::logits(const Sentences& texts, nn::Context& context) const {
  const Var logits =
      bert_->class_logits(bert_->hidden(texts, texts.types(), context), texts.lengths, context);
  return sigmoid_ ? sigmoid(logits) : logits;
}

ClassificationModel::TextView BertClassifier::view(std::span<const int32_t> ids) const {
  return {.added = bert_->config().added_global_tokens, .global = bert_->global_places(ids)};
}

}  // namespace fovea::models
