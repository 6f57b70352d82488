#include "models/image_classifier.h"

#include "models/class_loss.h"

namespace fovea::models {

Var ImageClassifier::loss(const Var& x, std::span<const int32_t> labels, float smoothing,
                          nn::Context& context) const {
  context.choices.clear();
  return class_loss(logits(x, context), labels, smoothing, context);
}

}  // namespace fovea::models
