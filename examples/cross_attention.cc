// Queries of one sequence meet keys and values of another: cross attention, values apart from keys, heads
// that share keys (grouped queries), and padding that gets no weight at all.
#include <fovea/fovea.h>

#include <cmath>
#include <cstdio>
#include <limits>

using namespace fovea;

int main() {
  Rng rng(1);
  constexpr int64_t kBatch = 2, kHeads = 4, kGroups = 2, kQueries = 3, kKeys = 5;
  const Var q(nn::normal({kBatch, kHeads, kQueries, 8}, 0, 1, rng), true);
  // Two query heads read each key head; values are wider than keys.
  const Tensor keys = nn::normal({kBatch, kGroups, kKeys, 8}, 0, 1, rng);
  const Tensor values = nn::normal({kBatch, kGroups, kKeys, 12}, 0, 1, rng);

  // The second sequence has 3 keys. Whatever the padding holds, it never reaches the output.
  for (int64_t g = 0; g < kGroups; ++g)
    for (int64_t j = 3; j < kKeys; ++j)
      for (int64_t c = 0; c < 12; ++c)
        values.data()[((1 * kGroups + g) * kKeys + j) * 12 + c] = std::numeric_limits<float>::quiet_NaN();

  const AttentionResult result =
      attend(q, Var(keys, true), Var(values, true), {.pattern = lengths({5, 3})}, {.weight_heads = {0}});
  std::printf("output [%ld, %ld, %ld, %ld]\n", static_cast<long>(kBatch), static_cast<long>(kHeads),
              static_cast<long>(kQueries), 12L);
  bool right = true;
  for (int64_t b = 0; b < kBatch; ++b) {
    std::printf("sequence %ld, head 0, query 0: ", static_cast<long>(b));
    for (int64_t j = 0; j < kKeys; ++j) {
      const float weight = result.weights.data()[b * kQueries * kKeys + j];
      std::printf(" %.3f", weight);
      right = right && (b == 0 || j < 3 || weight == 0);
    }
    std::printf("\n");
  }
  const Tensor out = result.output.value().contiguous();
  for (int64_t i = 0; i < out.count(); ++i) right = right && std::isfinite(out.data()[i]);
  sum(result.output).backward();
  return right && q.grad().defined() ? 0 : 1;
}
