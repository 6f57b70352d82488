#include "models/class_loss.h"

#include "autograd/ops.h"
#include "autograd/ops_loss.h"
#include "nn/choices.h"

namespace fovea::models {

Var class_loss(const Var& logits, std::span<const int32_t> labels, float smoothing, nn::Context& context) {
  const Var mean = cross_entropy(logits, labels, {.smoothing = smoothing});
  if (context.choices.empty()) return mean;
  const Tensor each =
      cross_entropy(logits.detach(), labels, {.smoothing = smoothing, .reduction = Reduction::none}).value();
  return mean + nn::choices_loss(context, each.contiguous().span());
}

}  // namespace fovea::models
