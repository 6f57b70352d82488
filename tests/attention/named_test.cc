#include "attention/named.h"

#include <gtest/gtest.h>

#include "attention/compile.h"
#include "base/error.h"

namespace fovea {
namespace {

TEST(Named, EachIsOneLineOfTheAlgebra) {
  EXPECT_EQ(to_string(longformer({.window = 8, .dilation = 2, .global = {0, 5}})),
            "window(4,4,2) | global(0,5)");
  EXPECT_EQ(to_string(bigbird({.block = 16, .window = 3, .random = 2, .global = {0, 1}, .seed = 7})),
            "block_window(16,1,1) | random_blocks(16,2,7) | global(0..1)");
  EXPECT_EQ(to_string(bigbird({.block = 16, .random = 2, .added = 16})),
            "block_window(16,1,1) | random_blocks(16,2,0) | global(0..15)");
  EXPECT_EQ(to_string(sparse_strided(8)), "heads(window(7,0); causal & strided(8))");
  EXPECT_EQ(to_string(sparse_strided(8, true)), "causal & (window(7,0) | strided(8))");
  EXPECT_EQ(to_string(sparse_fixed(8, 2)), "causal & fixed(8,2)");
  EXPECT_EQ(to_string(streaming(8, 4)), "causal & (window(7,0) | global(0..3))");
  EXPECT_EQ(to_string(local_m(3)), "window(3,3,top_left)");
}

TEST(Named, OddWindowsAndEvenBlocksAreRefused) {
  EXPECT_THROW(longformer({.window = 7}), Error);
  EXPECT_THROW(bigbird({.window = 2}), Error);
  EXPECT_THROW(streaming(0, 4), Error);
}

// Work grows with the length, not with its square.
TEST(Named, VisitedPairsGrowLinearly) {
  const auto pairs = [](const Pattern& pattern, int64_t n) {
    return visited_pairs(compile(pattern, {.queries = n, .keys = n, .heads = 2}), 1, 2);
  };
  for (const Pattern& pattern : {longformer({.window = 64}), longformer({.window = 64, .dilation = 4}),
                                 streaming(64, 4), bigbird({.block = 16, .global = {0}}), window(10, 10)})
    EXPECT_NEAR(static_cast<double>(pairs(pattern, 8192)) / static_cast<double>(pairs(pattern, 4096)), 2, 0.1)
        << pattern;
}

}  // namespace
}  // namespace fovea
