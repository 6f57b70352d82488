#include "models/translation.h"

#include "autograd/ops_math.h"
#include "nn/choices.h"

namespace fovea::models {
OutputLoss TranslationModel::loss(const data::Batch& batch, float smoothing, nn::Context& context) const {
  const OutputLayer output = output_layer();
  context.choices.clear();
  const Var read = states(batch, context);
  OutputLoss result =
      linear_cross_entropy(read, output.weight, output.bias, batch.target_out, {.smoothing = smoothing});
  // What hard attention drew is rewarded by the loss of its sentence.
  if (!context.choices.empty())
    result.loss = result.loss +
                  nn::choices_loss(context, sequence_losses(read, output, batch.target_out,
                                                            batch.target_lengths, {.smoothing = smoothing}));
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
