#include "infer/inference.h"

#include "base/error.h"
#include "infer/recurrent_decoders.h"
#include "infer/transformer_decoder.h"

namespace fovea {

std::unique_ptr<Inference> make_inference(const models::TranslationModel& model, Compute compute) {
  if (const auto* transformer = dynamic_cast<const models::Transformer*>(&model))
    return std::make_unique<TransformerInference>(*transformer, compute);
  require(compute == Compute::float32, "int8: the transformer alone has it; this model computes in float32");
  if (const auto* bahdanau = dynamic_cast<const models::Bahdanau*>(&model))
    return bahdanau_inference(*bahdanau);
  if (const auto* luong = dynamic_cast<const models::Luong*>(&model)) return luong_inference(*luong);
  FOVEA_ASSERT(false && "a model without inference");
  return nullptr;
}

}  // namespace fovea
