#include "infer/bert_inference.h"

#include "kernels/elementwise.h"

namespace fovea {
namespace {

PackedLinear packed(const nn::Linear& layer, Compute compute) {
  return {layer.weight.value(), value_of(layer.bias), compute};
}

}  // namespace

BertInference::BertInference(const models::Bert& model, Compute compute)
    : config_(model.config()),
      heads_(model.heads()),
      words_(model.word_embedding.value()),
      positions_(model.position_embedding.value()),
      types_(value_of(model.type_embedding)),
      embedding_norm_(model.embedding_norm),
      encoder_(model.encoder, false, models::bert_activation(config_.hidden_act), compute) {
  if (model.pooler) pooler_ = packed(*model.pooler, compute);
  if (model.classifier) classifier_ = packed(*model.classifier, compute);
  if (!model.masked_lm) return;
  dense_ = packed(model.masked_lm->dense, compute);
  masked_norm_ = std::make_unique<PackedNorm>(model.masked_lm->norm);
  const Var& own = model.masked_lm->output;
  output_ = {own.defined() ? own.value() : words_, model.masked_lm->bias.value(), compute};
}

Tensor BertInference::embed(const models::Sentences& texts, std::span<const int32_t> types) const {
  const int64_t width = config_.hidden_size;
  const std::string& model = config_.model_type;
  require(texts.longest() <= config_.longest(), model, ": a text of ", texts.longest(),
          " tokens, but places were learned up to ", config_.longest());
  require(types.empty() || types.size() == texts.ids.size(), model, ": ", types.size(), " kinds for ",
          texts.ids.size(), " tokens");
  for (const int32_t id : texts.ids)
    require(id >= 0 && id < config_.vocab_size, model, ": token ", id, " of a vocabulary of ",
            config_.vocab_size);
  for (const int32_t type : types)
    require(type >= 0 && (type < config_.type_vocab_size || !types_.defined()), model, ": kind ", type,
            " of ", config_.type_vocab_size);
  Tensor x({texts.total(), width});
  int64_t token = 0;
  for (const int64_t length : texts.lengths) {
    for (int64_t place = 0; place < length; ++place, ++token) {
      const auto t = static_cast<size_t>(token);
      const float* word = words_.data() + texts.ids[t] * width;
      const float* position = positions_.data() + (config_.first_position() + place) * width;
      const float* type = types_.defined() ? types_.data() + (types.empty() ? 0 : types[t]) * width : nullptr;
      float* to = x.data() + token * width;
      for (int64_t i = 0; i < width; ++i) to[i] = word[i] + (type == nullptr ? 0 : type[i]) + position[i];
    }
  }
  return x;
}

Tensor BertInference::hidden(const models::Sentences& texts, std::span<const int32_t> types) const {
  return encoder_(embedding_norm_(embed(texts, types)), texts.lengths);
}

Tensor BertInference::token_logits(const Tensor& rows) const {
  require(masked_norm_ != nullptr, config_.model_type, ": the model has no head for masked tokens");
  // RoBERTa's head is gelu whatever the layers are.
  const auto activation =
      config_.model_type == "roberta" ? kernels::Epilogue::gelu : models::bert_activation(config_.hidden_act);
  return output_((*masked_norm_)(dense_(rows, activation)));
}

Tensor BertInference::class_logits(const Tensor& first) const {
  require(heads_.labels > 0, config_.model_type, ": the model has no classifier");
  const bool distilled = config_.model_type == "distilbert";
  const Tensor pooled = pooler_(first, distilled ? kernels::Epilogue::relu : kernels::Epilogue::none);
  if (!distilled) kernels::unary(kernels::Unary::tanh, pooled.data(), pooled.data(), pooled.count());
  return classifier_(pooled);
}

}  // namespace fovea
