// Which keys a query may see: ready-made patterns joined with | and &, another one for each head, and one of
// your own.
#include <fovea/fovea.h>

#include <cstdio>

using namespace fovea;

namespace {

void print(const char* title, const Pattern& pattern, int64_t n, int64_t head = 0) {
  std::printf("%s: %s\n", title, to_string(pattern).c_str());
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const bool sees = allowed(pattern, {.queries = n, .keys = n, .head = head, .query = i, .key = j});
      std::printf(" %c", sees ? '#' : '.');
    }
    std::printf("\n");
  }
}

}  // namespace

int main() {
  constexpr int64_t n = 12;
  print("a window with one global token", window(2, 2) | global({0}), n);

  // Three kinds of attention in one layer: head 0 looks nearby, head 1 at every fourth token, head 2 at
  // everything.
  const Pattern mixed = causal() & heads({window(2, 0), strided(4), full()});
  print("head 1 of a mixture", mixed, n, 1);

  // Your own rule: tokens of the same line, eight tokens a line. It is compiled into blocks as the others
  // are.
  const Pattern same_line =
      predicate("same_line", [](int64_t, int64_t query, int64_t key) { return query / 8 == key / 8; });
  Rng rng(1);
  const Var x(nn::normal({1, 3, 64, 16}, 0, 1, rng), true);
  const Var custom = attention(x, x, x, {.pattern = same_line});
  const Var ready_made = attention(x, x, x, {.pattern = block_window(8, 0, 0)});
  float largest = 0;
  for (int64_t i = 0; i < x.count(); ++i)
    largest = std::max(
        largest, std::abs(custom.value().contiguous().data()[i] - ready_made.value().contiguous().data()[i]));
  std::printf("same_line and block_window(8,0,0) differ by at most %g\n", largest);
  sum(custom).backward();  // gradients work with any pattern
  return largest < 1e-6f && x.grad().defined() ? 0 : 1;
}
