#include "nn/runs.h"

#include <algorithm>
#include <cmath>

#include "attention/attention.h"

namespace fovea::nn {

Score score_named(const std::string& name) {
  const AttentionSpec spec = parse_spec(name);
  require(spec == AttentionSpec{.score = spec.score}, "attention: got '", name,
          "', wanted a score alone: additive, dot, scaled_dot, cosine, bilinear or concat");
  return spec.score;
}

RunScore run_score(const Score& score, int64_t width, const Var& vector) {
  const float number = score.number;
  switch (score.kind) {
    case ScoreKind::additive:
    case ScoreKind::concat:
      return {.family = kernels::ScoreFamily::additive, .vector = vector};
    case ScoreKind::scaled_dot:
      return {.scale = number != 0 ? 1 / number : 1 / std::sqrt(static_cast<float>(width))};
    case ScoreKind::cosine:
      return {.scale = number != 0 ? 1 / number : 1, .unit_query = true};
    case ScoreKind::dot:
    case ScoreKind::bilinear:  // the keys are W k
      return {};
  }
  fail("attention: a score without a form for runs of keys, wanted one of the algebra's");
}

void show_runs(std::string_view name, const Score& score, const KeyRuns& runs, const Tensor& weights) {
  AttentionObserver* const observer = attention_observer();
  if (observer == nullptr) return;
  const AttentionSpec spec{.score = score};
  const AttentionObserver::Call call{name, spec, 1, 1, runs.queries(), runs.keys()};
  const AttentionObserver::Wish wish = observer->wish(call);
  if (wish.heads.empty() || wish.rows.empty()) return;
  const Tensor shown = Tensor::zeros({1, 1, static_cast<int64_t>(wish.rows.size()), runs.keys()});
  for (size_t i = 0; i < wish.rows.size(); ++i) {
    const int64_t row = wish.rows[i];
    require(row >= 0 && row < runs.queries(), "attention: weights of row ", row,
            " were asked for; there are ", runs.queries());
    std::copy_n(weights.data() + row * weights.size(1), runs.count[static_cast<size_t>(row)],
                shown.data() + static_cast<int64_t>(i) * runs.keys() + runs.first[static_cast<size_t>(row)]);
  }
  observer->see(call, wish, {shown, {}});
}

}  // namespace fovea::nn
