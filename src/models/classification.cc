#include "models/classification.h"

#include "models/class_loss.h"

namespace fovea::models {

Var ClassificationModel::loss(const Sentences& texts, std::span<const int32_t> labels, float smoothing,
                              nn::Context& context) const {
  context.choices.clear();
  return class_loss(logits(texts, context), labels, smoothing, context);
}

void check_classes(const ClassSettings& s) {
  require(s.vocabulary > data::kSpecials, s.model, ": a vocabulary of ", s.vocabulary,
          " tokens, wanted more than the ", data::kSpecials, " special ones");
  require(s.classes >= 2, s.model, ": ", s.classes, " classes, wanted at least 2");
}

}  // namespace fovea::models
