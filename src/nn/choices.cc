#include "nn/choices.h"

#include <numeric>
#include <utility>

#include "base/error.h"

namespace fovea::nn {

Selection trained_selection(const std::string& text, const char* who) {
  const Selection selection = parse_selection(text);
  require(
      selection.kind != SelectionKind::argmax, who,
      ": selection argmax: no gradient reaches the query through it; choose hard, which is trained by REINFORCE and "
      "takes the largest score at use");
  return selection;
}

void keep_choices(Context& context, const Var& log_probability) {
  require(
      !context.rows_of_example.empty(),
      "hard attention: this model cannot train it, because its loss is not known for each example; choose "
      "soft or gumbel(1,straight_through)");
  const int64_t batch = log_probability.size(0), heads = log_probability.size(1),
                rows = log_probability.size(2);
  std::vector<int32_t> owner;
  for (size_t e = 0; e < context.rows_of_example.size(); ++e)
    owner.insert(owner.end(), static_cast<size_t>(context.rows_of_example[e]), static_cast<int32_t>(e));
  FOVEA_ASSERT(static_cast<int64_t>(owner.size()) == batch * rows);
  DrawnChoices drawn{log_probability, {}};
  drawn.example.reserve(static_cast<size_t>(log_probability.count()));
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      drawn.example.insert(drawn.example.end(), owner.begin() + b * rows, owner.begin() + (b + 1) * rows);
  context.choices.push_back(std::move(drawn));
}

Var choices_loss(Context& context, std::span<const float> losses, std::optional<float> given) {
  const std::vector<DrawnChoices> choices = std::exchange(context.choices, {});
  const auto examples = static_cast<int64_t>(losses.size());
  const double sum = std::accumulate(losses.begin(), losses.end(), 0.0);
  // (loss - baseline) / examples.
  std::vector<float> advantage;
  for (const float loss : losses) {
    const double others = examples > 1 ? (sum - loss) / static_cast<double>(examples - 1) : 0;
    const double baseline = given ? double{*given} : others;
    advantage.push_back(static_cast<float>((loss - baseline) / static_cast<double>(examples)));
  }
  std::vector<Var> parents;
  for (const DrawnChoices& drawn : choices) parents.push_back(drawn.log_probability);
  const auto give = [choices, advantage](std::span<const Tensor> grads) {
    const float seed = grads[0].item();
    for (const DrawnChoices& drawn : choices) {
      const Tensor d(drawn.log_probability.shape());
      for (size_t i = 0; i < drawn.example.size(); ++i)
        d.data()[i] = seed * advantage[static_cast<size_t>(drawn.example[i])];
      drawn.log_probability.add_grad(d);
    }
  };
  return record_many({Tensor::scalar(0)}, parents, give)[0];
}

}  // namespace fovea::nn
