#include "explain/pattern_map.h"

#include <gtest/gtest.h>

#include <ctime>

#include "attention/spec.h"

namespace fovea {
namespace {

TEST(PatternMap, ShowsThePairsThatAreAllowed) {
  for (const char* text :
       {"full", "causal & window(3,0)", "window(1,1,3) | global(0)", "random_blocks(2,3,1)",
        "heads(causal; strided(4))", "within(5,9,6; window(1,0))", "layout(10;10,01)"}) {
    const PlanSizes sizes{.queries = 20, .keys = 20, .heads = 2};
    const Pattern pattern = parse_pattern(text);
    const Figure figure = pattern_figure(pattern, sizes);
    ASSERT_EQ(figure.panels.size(), std::string(text).starts_with("heads") ? 2u : 1u) << text;
    for (size_t panel = 0; panel < figure.panels.size(); ++panel)
      for (int64_t i = 0; i < 20; ++i)
        for (int64_t j = 0; j < 20; ++j)
          ASSERT_EQ(figure.panels[panel].weights[static_cast<size_t>(i * 20 + j)] > 0,
                    allowed(pattern, {20, 20, 0, static_cast<int64_t>(panel), i, j}))
              << text << ' ' << i << ' ' << j;
  }
}

TEST(PatternMap, ManyRandomBlocksOfManyHeadsTakeNoMinutes) {
  const std::clock_t before = std::clock();
  pattern_figure(random_blocks(1, 2000, 1), {.queries = 4096, .keys = 4096, .heads = 64});
  EXPECT_LT(static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC, 6);
}

}  // namespace
}  // namespace fovea
