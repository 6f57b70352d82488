#include "models/decoder.h"

#include <algorithm>

#include "autograd/ops.h"
#include "autograd/ops_loss.h"

namespace fovea::models {

void check_step(std::span<const int32_t> tokens, int64_t rows) {
  require(static_cast<int64_t>(tokens.size()) == rows, "decoder step: got ", tokens.size(), " tokens for ",
          rows, " rows, wanted one for each");
}

std::vector<float> sequence_losses(const Var& states, const OutputLayer& output,
                                   std::span<const int32_t> targets, std::span<const int32_t> lengths,
                                   const OutputLossOptions& options) {
  const NoGrad no_grad;
  const Tensor tokens =
      cross_entropy(
          linear(states, output.weight, output.bias), targets,
          {.smoothing = options.smoothing, .ignored = options.ignored, .reduction = Reduction::none})
          .value();
  std::vector<float> losses;
  int64_t token = 0;
  const auto count =
      static_cast<int64_t>(targets.size()) - std::count(targets.begin(), targets.end(), options.ignored);
  const double scale = static_cast<double>(lengths.size()) / static_cast<double>(std::max<int64_t>(1, count));
  for (const int32_t length : lengths) {
    double sum = 0;
    for (int32_t i = 0; i < length; ++i) sum += tokens.data()[token++];
    losses.push_back(static_cast<float>(sum * scale));
  }
  return losses;
}

}  // namespace fovea::models
