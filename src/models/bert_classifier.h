// A classifier of texts on an encoder of the BERT family: the classes are read off the first token.
#pragma once

#include <memory>

#include "models/bert.h"
#include "models/classification.h"

namespace fovea::models {

// Parameters: bert... (Bert, with the head for labels).
class BertClassifier : public ClassificationModel {
 public:
  // bert has a head for labels.
  explicit BertClassifier(std::unique_ptr<Bert> bert);
  data::TextForm form() const override { return data::TextForm::marked; }
  Var logits(const Sentences& texts, nn::Context& context) const override;
  // Longformer and BigBird: the global tokens, those of BigBird's global blocks among them.
  TextView view(std::span<const int32_t> ids) const override;
  // From now on logits() go through a sigmoid: the scores of cross-encoders with one label, in use.
  void use_sigmoid() { sigmoid_ = true; }
  const Bert& bert() const { return *bert_; }
  Bert& bert() { return *bert_; }

 private:
  std::unique_ptr<Bert> bert_;
  bool sigmoid_ = false;
};

}  // namespace fovea::models
