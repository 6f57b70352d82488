// The interface of text classifiers: a network that scores the classes of a text, or of a pair of texts. Its scores
// are read as one class, as any number of labels, or as one number.
#pragma once

#include "data/labelled_text.h"
#include "models/sentences.h"
#include "nn/layers.h"
#include "nn/module.h"

namespace fovea::models {

class ClassificationModel : public nn::Module {
 public:
  // How a text's tokens must be laid out.
  virtual data::TextForm form() const = 0;
  // How logits are read: one (the default), several or number, whose single logit becomes a number by a scale and a
  // shift that belong to the weights (the buffer "target_scale": deviation and mean). To be called once, before
  // weights are loaded.
  void read_as(data::LabelForm form);
  data::LabelForm read_as() const { return form_; }
  // Of numbers: logits are trained as (number - mean) / deviation. deviation > 0.
  void set_target_scale(float mean, float deviation);
  struct TargetScale {
    float mean = 0, deviation = 1;
  };
  TargetScale target_scale() const;
  // -> [texts, classes]: logits, or [texts, 1]: numbers as the training text has them.
  Var outputs(const Sentences& texts, nn::Context& context) const;

  // Looks tokens up that the model chooses by what they are (global tokens). To be called once before use, with the
  // tokenizer whose vocabulary the model has. Throws Error where a setting names a token that is not there.
  virtual void use_tokenizer(const data::Tokenizer& tokenizer) { (void)tokenizer; }
  // How the model sees one text, for those who show its attention.
  struct TextView {
    int64_t added = 0;                 // learned tokens in front of the text, all of them global
    std::vector<int64_t> global = {};  // places of the text's own global tokens
    bool reads_last = false;           // without pooling: the last token's state is read, not the first's
  };
  virtual TextView view(std::span<const int32_t> ids) const {
    (void)ids;
    return {};
  }

  // -> [texts, classes]. An AttentionObserver receives the attention of the pass: pooling of
  // words (a row for each text, or for each sentence of a model that has them) and of sentences (a row for each
  // text), and self-attention.
  virtual Var logits(const Sentences& texts, nn::Context& context) const = 0;

  // What training minimises, as the mean over texts: cross entropy of one label (with label smoothing), the binary
  // cross entropy of several, or the squared error of a number in units of the target scale. What hard attention
  // drew on the way is rewarded by the loss of its text (nn/choices.h). Throws Error on targets of another form.
  Var loss(const Sentences& texts, const data::Targets& targets, float smoothing, nn::Context& context) const;
  Var loss(const Sentences& texts, std::span<const int32_t> labels, float smoothing,
           nn::Context& context) const;

 private:
  data::LabelForm form_ = data::LabelForm::one;
  Var target_scale_;  // number: [2], deviation and mean
};

// What two encoded texts say of each other (Conneau et al. 2017): [u; v; |u - v|; u * v], through one hidden layer.
// Parameters: hidden.weight [width, 4 width], hidden.bias.
class PairFeatures : public nn::Module {
 public:
  PairFeatures(int64_t width, Rng& rng);
  // encoded: [2 pairs, width], first, second, first, second... -> [pairs, width].
  Var operator()(const Var& encoded) const;

 private:
  nn::Linear hidden_;
};

// The settings that every classifier has.
struct ClassSettings {
  const char* model;
  int64_t vocabulary, classes;
};
// Throws Error on a vocabulary or a number of classes that is too small.
void check_classes(const ClassSettings& settings);

}  // namespace fovea::models
