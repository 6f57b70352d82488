// Hard attention: a query picks one key at random, by its weight, and carries away that key's value alone. A draw has no
// derivative, so the scores learn by REINFORCE: choices that were rewarded above the average become likelier.
//
// Eight keys, one of which is right for each of four queries. The reward is 1 for the right key and 0 otherwise.
#include <fovea/fovea.h>

#include <cstdio>

using namespace fovea;

int main() {
  constexpr int64_t kQueries = 4, kKeys = 8, kWidth = 16;
  constexpr int32_t kRight[kQueries] = {3, 0, 6, 5};
  Rng rng(1);
  const Var q(nn::normal({1, 1, kQueries, kWidth}, 0, 0.1f, rng), true);
  const Var k(nn::normal({1, 1, kKeys, kWidth}, 0, 1, rng), true);
  const Var v(nn::normal({1, 1, kKeys, kWidth}, 0, 1, rng));
  const AttentionSpec spec{.selection = hard()};
  train::Optimizer optimizer({{"q", q}, {"k", k}}, train::Adam{.learning_rate = 0.05});

  float baseline = 0;  // the average reward of the steps before: subtracting it makes the estimate less noisy
  for (uint64_t step = 0; step <= 400; ++step) {
    optimizer.clear_grad();
    const AttentionResult draw = attend(q, k, v, spec, {.training = true, .seed = step});
    const Tensor reward({1, 1, kQueries});
    float mean = 0;
    for (int64_t i = 0; i < kQueries; ++i) {
      reward.data()[i] = draw.chosen[static_cast<size_t>(i)] == kRight[i] ? 1.0f : 0.0f;
      mean += reward.data()[i] / kQueries;
    }
    reinforce_loss(draw.log_probability, reward, Tensor::scalar(baseline)).backward();
    optimizer.step();
    baseline += 0.1f * (mean - baseline);
    if (step % 100 == 0) std::printf("step %3d  average reward %.2f\n", static_cast<int>(step), baseline);
  }

  // At use nothing is drawn: each query takes its best key.
  const AttentionResult use = attend(q, k, v, spec);
  bool right = true;
  for (int64_t i = 0; i < kQueries; ++i) {
    std::printf("query %d takes key %d\n", static_cast<int>(i), use.chosen[static_cast<size_t>(i)]);
    right = right && use.chosen[static_cast<size_t>(i)] == kRight[i];
  }
  return right ? 0 : 1;
}
