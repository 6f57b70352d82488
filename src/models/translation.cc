#include "models/translation.h"

#include "autograd/ops.h"
#include "autograd/ops_loss.h"
#include "nn/choices.h"

namespace fovea::models {
namespace {

// The loss of each sentence, scaled so that their mean is the loss of the batch, a mean over tokens.
std::vector<float> sentence_losses(const Var& states, const OutputLayer& output, const data::Batch& batch,
                                   float smoothing) {
  const NoGrad no_grad;
  const Tensor tokens = cross_entropy(linear(states, output.weight, output.bias), batch.target_out,
                                      {.smoothing = smoothing, .reduction = Reduction::none})
                            .value();
  std::vector<float> losses;
  int64_t token = 0;
  const auto scale = static_cast<double>(batch.target_lengths.size()) / static_cast<double>(tokens.count());
  for (const int32_t length : batch.target_lengths) {
    double sum = 0;
    for (int32_t i = 0; i < length; ++i) sum += tokens.data()[token++];
    losses.push_back(static_cast<float>(sum * scale));
  }
  return losses;
}

}  // namespace

OutputLoss TranslationModel::loss(const data::Batch& batch, float smoothing, nn::Context& context) const {
  const OutputLayer output = output_layer();
  context.choices.clear();
  const Var read = states(batch, context);
  OutputLoss result =
      linear_cross_entropy(read, output.weight, output.bias, batch.target_out, {.smoothing = smoothing});
  // What hard attention drew is rewarded by the loss of its sentence.
  if (!context.choices.empty())
    result.loss = result.loss + nn::choices_loss(context, sentence_losses(read, output, batch, smoothing));
  return result;
}

void check_tables(const TableSettings& s) {
  require(s.source_vocabulary > data::kSpecials && s.target_vocabulary > data::kSpecials, s.model,
          ": vocabularies of ", s.source_vocabulary, " and ", s.target_vocabulary,
          " tokens, wanted more than the ", data::kSpecials, " special ones");
  require(s.tie == "all" || s.tie == "output" || s.tie == "none", s.model, ": tie '", s.tie,
          "', wanted all, output or none");
  require(s.tie != "all" || s.source_vocabulary == s.target_vocabulary, s.model,
          ": tie 'all' wants one vocabulary for both sides, got ", s.source_vocabulary, " and ",
          s.target_vocabulary, " tokens; train a joint one or choose tie output");
}

}  // namespace fovea::models
