#include "base/rng.h"

#include <gtest/gtest.h>

#include <cmath>

namespace fovea {
namespace {

// Known answers of Philox 4x32-10 as published with Random123.
TEST(Philox, GivesThePublishedAnswers) {
  EXPECT_EQ(philox(0, 0, 0), (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(~0ull, ~0ull, ~0ull),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(Rng, StateRestoresTheFuture) {
  Rng a(7);
  for (int i = 0; i < 5; ++i) a.bits();
  Rng b(a.state());
  for (int i = 0; i < 9; ++i) EXPECT_EQ(a.bits(), b.bits());
}

TEST(Rng, SplitStreamsDiffer) {
  const Rng root(3);
  EXPECT_NE(root.split(1).state().key, root.split(2).state().key);
  EXPECT_EQ(root.split(1).state().key, root.split(1).state().key);
}

TEST(Rng, NormalHasUnitVariance) {
  Rng rng(1);
  double sum = 0, squares = 0;
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = rng.normal();
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.02);
  EXPECT_NEAR(squares / kDraws, 1, 0.02);
}

TEST(Rng, BelowStaysInRangeAndReachesAll) {
  Rng rng(2);
  int seen[7] = {};
  for (int i = 0; i < 7000; ++i) ++seen[rng.below(7)];
  for (const int count : seen) EXPECT_NEAR(count, 1000, 200);
}

}  // namespace
}  // namespace fovea
