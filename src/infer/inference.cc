#include "infer/inference.h"

#include "base/error.h"
#include "infer/recurrent_decoders.h"
#include "infer/transformer_decoder.h"

namespace fovea {

std::unique_ptr<Inference> make_inference(const models::TranslationModel& model, Compute compute) {
  if (const auto* transformer = dynamic_cast<const models::Transformer*>(&model))
    return std::make_unique<TransformerInference>(*transformer, compute);
  if (const auto* bahdanau = dynamic_cast<const models::Bahdanau*>(&model))
    return bahdanau_inference(*bahdanau, compute);
  if (const auto* luong = dynamic_cast<const models::Luong*>(&model)) return luong_inference(*luong, compute);
  FOVEA_ASSERT(false && "a model without inference");
  return nullptr;
}

}  // namespace fovea
