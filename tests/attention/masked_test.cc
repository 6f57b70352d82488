// attend_masked(): a boolean mask [B or 1, H or 1, Nq or 1, Nk] against the same mask as a bias of -inf, forward and every
// gradient, for scores, patterns and selections.
#include <gtest/gtest.h>

#include <limits>

#include "attention/attend_masked.h"
#include "base/rng.h"

namespace fovea {
namespace {

constexpr int64_t kBatch = 2, kHeads = 4, kKeyHeads = 2, kQueries = 37, kKeys = 53, kWidth = 8;

Tensor random(const Shape& shape, Rng& rng) {
  const Tensor tensor(shape);
  for (float& x : tensor.span()) x = static_cast<float>(rng.normal());
  return tensor;
}

// Runs of keys that are seen and not seen; a row that sees nothing, and one that sees all.
std::vector<uint8_t> draw_mask(const KeyMask::Sizes& sizes, Rng& rng) {
  std::vector<uint8_t> sees(static_cast<size_t>(sizes.batches * sizes.heads * sizes.queries * sizes.keys));
  for (size_t i = 0; i < sees.size(); ++i) {
    const auto key = static_cast<int64_t>(i) % sizes.keys, row = static_cast<int64_t>(i) / sizes.keys;
    const bool drawn = key == 0 || rng.below(6) == 0;
    sees[i] = drawn ? static_cast<uint8_t>(rng.below(2) * (1 + rng.below(200))) : sees[i - 1];
    if (sizes.queries > 1 && row % sizes.queries == 5) sees[i] = 0;
    if (row % sizes.queries == 6) sees[i] = 1;
  }
  return sees;
}

struct Results {
  Tensor out;
  std::vector<Tensor> gradients;
};

void expect_near(const Tensor& got, const Tensor& wanted, const std::string& what) {
  ASSERT_EQ(got.shape(), wanted.shape()) << what;
  const Tensor a = got.contiguous(), b = wanted.contiguous();
  for (int64_t i = 0; i < a.count(); ++i)
    ASSERT_NEAR(a.data()[i], b.data()[i], 2e-5) << what << " element " << i;
}

TEST(AttendMasked, EqualsABiasOfMinusInfinityForwardAndBackward) {
  const char* const specs[] = {"scaled_dot / full / soft",
                               "scaled_dot / causal / soft",
                               "scaled_dot + alibi / window(9,4) | global(0,30) / soft",
                               "cosine(0.3) / heads(full; window(6,6,3)) / sparsemax",
                               "dot / full / sigmoid",
                               "scaled_dot / full / identity",
                               "scaled_dot / full / top_k(3)",
                               "scaled_dot / full / soft(0.25)",
                               "scaled_dot / full / gumbel(0.7)"};
  const KeyMask::Sizes masks[] = {{.batches = 1, .heads = 1, .queries = kQueries, .keys = kKeys},
                                  {.batches = kBatch, .heads = 1, .queries = kQueries, .keys = kKeys},
                                  {.batches = 1, .heads = kHeads, .queries = kQueries, .keys = kKeys},
                                  {.batches = kBatch, .heads = kHeads, .queries = kQueries, .keys = kKeys},
                                  {.batches = kBatch, .heads = 1, .queries = 1, .keys = kKeys}};
  Rng rng(5);
  for (const char* text : specs)
    for (const KeyMask::Sizes& sizes : masks) {
      SCOPED_TRACE(message(text, " mask ", sizes.batches, "x", sizes.heads, "x", sizes.queries));
      const AttentionSpec spec = parse_spec(text);
      const std::vector<uint8_t> sees = draw_mask(sizes, rng);
      const int64_t rows = sizes.queries * sizes.keys;
      const KeyMask mask =
          KeyMask::from_bools({sees.data(), {sizes.heads * rows, rows, sizes.keys, 1}}, sizes);
      const Tensor bias({sizes.batches, sizes.heads, sizes.queries, sizes.keys});
      for (int64_t i = 0; i < bias.count(); ++i)
        bias.data()[i] = sees[static_cast<size_t>(i)] ? 0 : -std::numeric_limits<float>::infinity();
      const Tensor q = random({kBatch, kHeads, kQueries, kWidth}, rng),
                   k = random({kBatch, kKeyHeads, kKeys, kWidth}, rng),
                   v = random({kBatch, kKeyHeads, kKeys, kWidth}, rng),
                   d = random({kBatch, kHeads, kQueries, kWidth}, rng);
      const auto run = [&](bool masked) {
        const Var vars[] = {Var(q.clone(), true), Var(k.clone(), true), Var(v.clone(), true)};
        AttentionRequest request{.training = true, .seed = 9};
        AttentionSpec own = spec;
        if (!masked) {
          own.terms.bias = true;
          request.parameters.bias = Var(bias);
        }
        const AttentionResult result =
            attend_masked(vars[0], vars[1], vars[2], own, request, masked ? &mask : nullptr);
        result.output.backward(d);
        Results results{result.output.value().contiguous(), {}};
        for (const Var& var : vars) results.gradients.push_back(var.grad());
        return results;
      };
      const Results got = run(true), wanted = run(false);
      expect_near(got.out, wanted.out, "output");
      for (size_t i = 0; i < 3; ++i)
        expect_near(got.gradients[i], wanted.gradients[i], std::string("gradient of ") + "qkv"[i]);
    }
}

}  // namespace
}  // namespace fovea
