// Training what draws hard choices (REINFORCE, Williams 1992).
//
// A layer that draws leaves the log-probability of its draws in the context. The loss of each example, less a
// baseline, says how good its draws were: the gradient of the expected loss is that of
//   mean over examples of (loss - baseline) * sum of the log-probabilities of the example's draws.
// The baseline is the mean loss of the other examples of the batch, or what the caller gives, such as a moving average of
// earlier losses: neither depends on the example's own draws, so the estimate stays unbiased.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "attention/spec.h"
#include "nn/module.h"

namespace fovea::nn {

// The selection of a layer that is trained, from its text. Throws Error, which `who` begins, on argmax: it trains nothing.
Selection trained_selection(const std::string& text, const char* who);

// Called by layers. log_probability: [B, H, N], of N rows in each of B sequences. Throws Error where the model
// does not say which rows belong to which example (Context::rows_of_example): its loss cannot reward them.
void keep_choices(Context& context, const Var& log_probability);

// Called by losses, after the forward pass. losses: of each example; baseline: of all of them, empty: of the others of the
// batch. A scalar of value 0 whose gradient is
// REINFORCE's, to be added to the mean loss of the batch; the choices are taken out of the context.
Var choices_loss(Context& context, std::span<const float> losses, std::optional<float> baseline = {});

}  // namespace fovea::nn
