#include "models/bert_classifier.h"

#include "base/error.h"

namespace fovea::models {

BertClassifier::BertClassifier(std::unique_ptr<Bert> bert) : bert_(std::move(bert)) {
  require(bert_->classifier != nullptr, "bert: a model without a head for labels cannot classify");
  add_child("bert", *bert_);
}

Var BertClassifier::logits(const Sentences& texts, nn::Context& context) const {
  return bert_->class_logits(bert_->hidden(texts, texts.types(), context), texts.lengths, context);
}

}  // namespace fovea::models
