#include "models/classification.h"

#include "autograd/ops.h"
#include "autograd/ops_loss.h"
#include "nn/choices.h"

namespace fovea::models {

Var ClassificationModel::loss(const Sentences& texts, std::span<const int32_t> labels, float smoothing,
                              nn::Context& context) const {
  context.choices.clear();
  const Var scores = logits(texts, context);
  const Var mean = cross_entropy(scores, labels, {.smoothing = smoothing});
  if (context.choices.empty()) return mean;
  const Tensor each =
      cross_entropy(scores.detach(), labels, {.smoothing = smoothing, .reduction = Reduction::none}).value();
  return mean + nn::choices_loss(context, each.contiguous().span());
}

void check_classes(const ClassSettings& s) {
  require(s.vocabulary > data::kSpecials, s.model, ": a vocabulary of ", s.vocabulary,
          " tokens, wanted more than the ", data::kSpecials, " special ones");
  require(s.classes >= 2, s.model, ": ", s.classes, " classes, wanted at least 2");
}

}  // namespace fovea::models
