// Long inputs: Longformer's window with a global token and BigBird's blocks cost time in proportion to the
// length, full attention in proportion to its square.
#include <fovea/attention/named.h>
#include <fovea/fovea.h>

#include <chrono>
#include <cstdio>

using namespace fovea;

namespace {

double milliseconds(const Pattern& pattern, int64_t n) {
  Rng rng(1);
  const Var x(nn::normal({1, 2, n, 64}, 0, 1, rng), true);
  double best = 1e30;
  for (int run = 0; run < 3; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    sum(attention(x, x, x, {.pattern = pattern})).backward();
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
    best = std::min(best, time.count());
    x.clear_grad();
  }
  return best;
}

}  // namespace

int main() {
  const struct {
    const char* name;
    Pattern pattern;
  } cases[] = {
      {"full", full()},
      {"window(128,128) | global(0)", window(128, 128) | global({0})},
      {"BigBird: neighbours, 3 random, 2 global blocks",
       block_window(64, 1, 1) | random_blocks(64, 3, 7) | global_range(0, 63)},
  };
  std::printf("forward and backward, 2 heads of width 64, milliseconds for 1024, 2048 and 4096 tokens\n");
  for (const auto& c : cases) {
    std::printf("%-48s", c.name);
    for (const int64_t n : {1024, 2048, 4096}) std::printf(" %9.1f", milliseconds(c.pattern, n));
    std::printf("\n");
  }
  // Not a timing test: what is checked is how many pairs of tokens each pattern lets through.
  const auto pairs = [](const Pattern& pattern, int64_t n) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j)
        count += allowed(pattern, {.queries = n, .keys = n, .query = i, .key = j});
    return static_cast<double>(count);
  };
  const double growth = pairs(cases[1].pattern, 2048) / pairs(cases[1].pattern, 1024);
  std::printf("twice the tokens, %.2f times the pairs (full attention: 4 times)\n", growth);
  return growth < 2.2 ? 0 : 1;
}
