// The loss of classifiers, of texts and of pictures alike.
#pragma once

#include <span>

#include "nn/module.h"

namespace fovea::models {

// The mean cross-entropy of logits [examples, classes], and the reward of what hard attention drew on the way
// to them: the loss of its own example (nn/choices.h).
Var class_loss(const Var& logits, std::span<const int32_t> labels, float smoothing, nn::Context& context);

}  // namespace fovea::models
