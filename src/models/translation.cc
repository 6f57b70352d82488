#include "models/translation.h"

#include <algorithm>

#include "autograd/ops.h"
#include "autograd/ops_loss.h"
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

void feed_own_tokens(const TranslationModel& model, float teacher_forcing, uint64_t seed,
                     data::Batch& batch) {
  const nn::Prepared prepared(model);
  const NoGrad no_grad;
  const OutputLayer output = model.output_layer();
  const auto decoder = model.decode({batch.source, batch.source_lengths});
  Rng rng(seed);
  struct Row {
    int64_t begin, length;  // in target_in
  };
  std::vector<Row> rows;
  int64_t begin = 0;
  for (const int32_t length : batch.target_lengths) {
    rows.push_back({begin, length});
    begin += length;
  }
  std::vector<bool> kept(batch.target_in.size());
  for (size_t i = 0; i < kept.size(); ++i) kept[i] = rng.uniform() < teacher_forcing;
  for (int64_t step = 0; !rows.empty(); ++step) {
    std::vector<int32_t> tokens, replaced, alive;
    for (const Row& row : rows) tokens.push_back(batch.target_in[static_cast<size_t>(row.begin + step)]);
    const Tensor states = decoder->step(tokens);
    std::vector<Row> left;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (step + 1 >= rows[i].length) continue;
      if (!kept[static_cast<size_t>(rows[i].begin + step + 1)]) replaced.push_back(static_cast<int32_t>(i));
      alive.push_back(static_cast<int32_t>(i));
      left.push_back(rows[i]);
    }
    if (!replaced.empty()) {
      const Tensor logits =
          linear(gather(Var(states), replaced), output.weight, output.bias).value().contiguous();
      const int64_t words = logits.size(1);
      for (size_t i = 0; i < replaced.size(); ++i) {
        const float* const row = logits.data() + static_cast<int64_t>(i) * words;
        const int64_t place = rows[static_cast<size_t>(replaced[i])].begin + step + 1;
        batch.target_in[static_cast<size_t>(place)] =
            static_cast<int32_t>(std::max_element(row, row + words) - row);
      }
    }
    rows = std::move(left);
    if (!rows.empty() && alive.size() < tokens.size()) decoder->reorder(alive);
  }
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
