#include "kernels/attention/step_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/parallel.h"
#include "base/rng.h"

namespace fovea::kernels {
namespace {

struct Case {
  int64_t rows, heads, kv_heads, d;
  bool gathered;
};

struct Outcome {
  std::vector<float> out, weights;
};

Outcome run(const Case& c, Level level) {
  Rng rng(static_cast<uint64_t>(c.rows * 1000 + c.d));
  constexpr int64_t kKeys = 23;
  const auto draw = [&](int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& x : values) x = rng.normal();
    return values;
  };
  const auto q = draw(c.rows * c.heads * c.d), k = draw(kKeys * c.kv_heads * c.d),
             v = draw(kKeys * c.kv_heads * c.d);
  std::vector<int32_t> keys, first, count;
  for (int64_t r = 0; r < c.rows; ++r) {
    const auto seen = static_cast<int32_t>(r % 4 == 3 ? 0 : 1 + rng.below(kKeys));
    count.push_back(seen);
    first.push_back(c.gathered ? static_cast<int32_t>(keys.size())
                               : static_cast<int32_t>(rng.below(kKeys - seen + 1)));
    for (int32_t j = 0; j < seen; ++j) keys.push_back(static_cast<int32_t>(rng.below(kKeys)));
  }
  Outcome result{std::vector<float>(q.size(), 7),
                 std::vector<float>(static_cast<size_t>(c.rows * c.heads * kKeys))};
  attention_step({.rows = c.rows,
                  .heads = c.heads,
                  .kv_heads = c.kv_heads,
                  .d = c.d,
                  .scale = 0.3f,
                  .q = q.data(),
                  .q_row = c.heads * c.d,
                  .k = k.data(),
                  .v = v.data(),
                  .kv_row = c.kv_heads * c.d,
                  .keys = c.gathered ? keys.data() : nullptr,
                  .first = first.data(),
                  .count = count.data(),
                  .out = result.out.data(),
                  .out_row = c.heads * c.d,
                  .weights = result.weights.data(),
                  .weights_row = kKeys},
                 attention_step_kernels(level));
  return result;
}

TEST(AttentionStep, EqualsTheReferenceOnEveryLevel) {
  for (const int64_t d : {1, 3, 8, 16, 32, 37, 64, 65, 128, 130}) {
    for (const bool gathered : {false, true}) {
      for (const Case& c :
           {Case{1, 1, 1, d, gathered}, Case{9, 4, 2, d, gathered}, Case{5, 3, 1, d, gathered}}) {
        const Outcome wanted = run(c, Level::scalar);
        for (const Level level : available_levels()) {
          const Outcome got = run(c, level);
          for (size_t i = 0; i < got.out.size(); ++i)
            ASSERT_NEAR(got.out[i], wanted.out[i], 2e-6 * (1 + std::abs(wanted.out[i])) * 5)
                << level_name(level) << " d " << d;
          for (size_t i = 0; i < got.weights.size(); ++i)
            ASSERT_NEAR(got.weights[i], wanted.weights[i], 2e-6) << level_name(level) << " d " << d;
        }
      }
    }
  }
}

TEST(AttentionStep, BytesDoNotDependOnThreadsOrOtherRows) {
  set_num_threads(1);
  const Outcome one = run({64, 8, 8, 64, true}, current_level());
  set_num_threads(3);
  EXPECT_EQ(run({64, 8, 8, 64, true}, current_level()).out, one.out);
  set_num_threads(0);
}

TEST(AttentionStep, RowsThatShareKeysGiveTheBytesTheyGiveAlone) {
  constexpr int64_t kHeads = 3, kKeys = 40;
  for (const Level level : available_levels()) {
    for (const int64_t d : {16, 37, 64, 130}) {
      const int64_t width = kHeads * d;
      Rng rng(static_cast<uint64_t>(d));
      // Sentences of 1 to 6 hypotheses each, the last one without keys.
      std::vector<int32_t> first, count;
      for (int32_t sentence = 0; sentence < 7; ++sentence)
        for (int32_t row = 0; row < 1 + sentence % 6; ++row) {
          first.push_back(3 * sentence);
          count.push_back(sentence == 6 ? 0 : 1 + 3 * sentence);
        }
      const auto rows = static_cast<int64_t>(first.size());
      std::vector<float> q(static_cast<size_t>(rows * width)), kv(static_cast<size_t>(kKeys * 2 * width)),
          together(q.size()), alone(q.size());
      for (float& x : q) x = rng.normal();
      for (float& x : kv) x = rng.normal();
      AttentionStep step{.rows = rows,
                         .heads = kHeads,
                         .kv_heads = kHeads,
                         .d = d,
                         .scale = 0.2f,
                         .q = q.data(),
                         .q_row = width,
                         .k = kv.data(),
                         .v = kv.data() + width,
                         .kv_row = 2 * width,
                         .first = first.data(),
                         .count = count.data(),
                         .out = together.data(),
                         .out_row = width};
      attention_step(step, attention_step_kernels(level));
      step.rows = 1;
      for (int64_t r = 0; r < rows; ++r) {
        step.q = q.data() + r * width;
        step.first = first.data() + r;
        step.count = count.data() + r;
        step.out = alone.data() + r * width;
        attention_step(step, attention_step_kernels(level));
      }
      EXPECT_EQ(together, alone) << level_name(level) << " d " << d;
    }
  }
}

}  // namespace
}  // namespace fovea::kernels
