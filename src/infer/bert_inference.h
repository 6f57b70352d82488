// A model of the BERT family made ready for reading texts: weights packed once. A text's result does not
// depend on the texts beside it, nor on the number of threads.
#pragma once

#include <memory>
#include <span>

#include "infer/packed_encoder.h"
#include "infer/packed_linear.h"
#include "models/bert.h"

namespace fovea {

class BertInference {
 public:
  // The model may go, but its weights must not change while this is in use: some are shared.
  explicit BertInference(const models::Bert& model, Compute compute = Compute::float32);

  // texts: tokens with their marks, packed. types: as models::Bert::hidden() has them. -> [tokens, E]
  Tensor hidden(const models::Sentences& texts, std::span<const int32_t> types) const;
  // rows: [rows, E] of hidden -> [rows, vocab_size]. Throws Error when the model has no such head.
  Tensor token_logits(const Tensor& rows) const;
  // first: [texts, E], the hidden states of first tokens -> [texts, labels]. Throws Error when the model has
  // no such head.
  Tensor class_logits(const Tensor& first) const;

  const models::BertConfig& config() const { return config_; }

 private:
  Tensor embed(const models::Sentences& texts, std::span<const int32_t> types) const;

  models::BertConfig config_;
  models::BertHeads heads_;
  Tensor words_, positions_, types_;
  PackedNorm embedding_norm_;
  PackedEncoder encoder_;
  PackedLinear pooler_, classifier_, dense_, output_;
  std::unique_ptr<PackedNorm> masked_norm_;
};

}  // namespace fovea
