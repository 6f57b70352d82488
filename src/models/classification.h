// What every text classifier is: a network that scores the classes of a text.
#pragma once

#include "data/labelled_text.h"
#include "models/sentences.h"
#include "nn/module.h"

namespace fovea::models {

class ClassificationModel : public nn::Module {
 public:
  // How a text's tokens must be laid out.
  virtual data::TextForm form() const = 0;
  // -> [texts, classes]. An AttentionObserver sees on the way what the model looked at: pooling of
  // words (a row for each text, or for each sentence of a model that has them) and of sentences (a row for each
  // text), and self-attention.
  virtual Var logits(const Sentences& texts, nn::Context& context) const = 0;

  // What training minimises: the mean cross entropy of the texts' labels. What hard attention drew on the way is
  // rewarded by the loss of its text (nn/choices.h).
  Var loss(const Sentences& texts, std::span<const int32_t> labels, float smoothing,
           nn::Context& context) const;
};

// The settings that every classifier has.
struct ClassSettings {
  const char* model;
  int64_t vocabulary, classes;
};
// Throws Error on a vocabulary or a number of classes that is too small.
void check_classes(const ClassSettings& settings);

}  // namespace fovea::models
