// What every translation model is: a network that scores target tokens given a source sentence.
#pragma once

#include <cstdint>
#include <string>

#include "autograd/ops_output.h"
#include "data/batches.h"
#include "models/sentences.h"
#include "nn/module.h"

namespace fovea::models {

// logits = states weight^T + bias.
struct OutputLayer {
  Var weight;  // [vocabulary, in]
  Var bias{};  // [vocabulary] or undefined
};

class TranslationModel : public nn::Module {
 public:
  // The targets fed token by token (batch.target_in): what the output layer reads, [target tokens, in]. An
  // AttentionObserver sees on the way where every token looked: calls named "decoder...cross" are of
  // target_in by source, all sentences of the batch packed one after the other.
  virtual Var states(const data::Batch& batch, nn::Context& context) const = 0;
  virtual OutputLayer output_layer() const = 0;

  // The loss of the targets given the sources, teacher-forced.
  OutputLoss loss(const data::Batch& batch, float smoothing, nn::Context& context) const;
};

// The settings that every translation model has: what a config says of vocabularies and shared tables.
struct TableSettings {
  const char* model;
  int64_t source_vocabulary, target_vocabulary;
  const std::string& tie;  // "all": source, target and output share one table; "output"; "none"
};
// Throws Error on vocabularies that are too small, an unknown tie, or one that does not fit them.
void check_tables(const TableSettings& settings);

}  // namespace fovea::models
