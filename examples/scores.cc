// The general mechanism: weights = softmax(score(q, k)), output = sum of weights times values, with every
// score.
//
// One query meets four keys. The same three lines run each score; only the spec and its parameters change.
#include <fovea/fovea.h>

#include <cmath>
#include <cstdio>

using namespace fovea;

int main() {
  constexpr int64_t kWidth = 8, kHidden = 16, kKeys = 4;
  Rng rng(1);
  // [batch, heads, tokens, width]
  const Var q(nn::normal({1, 1, 1, kWidth}, 0, 1, rng));
  const Var k(nn::normal({1, 1, kKeys, kWidth}, 0, 1, rng));
  const Var v(nn::normal({1, 1, kKeys, kWidth}, 0, 1, rng));
  const auto matrix = [&](Shape shape) { return Var(nn::xavier_uniform(shape, rng)); };

  struct Case {
    Score score;
    AttentionParameters parameters = {};
  };
  const Case cases[] = {
      {dot()},
      {scaled_dot()},
      {cosine(0.5f)},
      {bilinear(), {.W = matrix({kWidth, kWidth})}},
      {additive(),
       {.W = matrix({kHidden, kWidth}),
        .U = matrix({kHidden, kWidth}),
        .v = Var(nn::normal({kHidden}, 0, 1, rng))}},
      // A small network on the pair [key; query]: Luong's concat.
      {concat(), {.W = matrix({kHidden, 2 * kWidth}), .v = Var(nn::normal({kHidden}, 0, 1, rng))}},
      // A learned row for each place: the keys themselves are not read.
      {location(), {.W = matrix({kKeys, kWidth})}},
  };

  bool all_sum_to_one = true;
  for (const Case& c : cases) {
    const AttentionSpec spec{.score = c.score};
    const AttentionResult result = attend(q, k, v, spec, {.parameters = c.parameters, .weights = true});
    std::printf("%-28s", to_string(spec).c_str());
    float sum = 0;
    for (int64_t j = 0; j < kKeys; ++j) {
      const float weight = result.weights.data()[j];
      std::printf("  %.3f", weight);
      sum += weight;
    }
    std::printf("\n");
    all_sum_to_one = all_sum_to_one && std::abs(sum - 1) < 1e-5f;
  }
  return all_sum_to_one ? 0 : 1;
}
