#include "kernels/norm/softmax.h"

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/kernel_check.h"

namespace fovea::kernels {
namespace {

using testing::Guarded;

constexpr int64_t kRows = 6;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Masks of every kind for kRows rows; `seen` is 2 rows, the second of which hides everything.
struct Masks {
  explicit Masks(int64_t columns) : lengths{static_cast<int32_t>(columns / 2), 0}, seen(2 * columns) {
    for (int64_t j = 0; j < columns; ++j) seen[j] = j % 3 != 1 ? 1.0f : 0.0f;
  }
  std::vector<RowMask> all() const {
    std::vector<RowMask> masks(5);
    masks[1] = {.lengths = lengths.data(), .rows_per_length = 3};
    masks[2] = {.causal_rows = 3, .causal_offset = 1};
    masks[3] = {.seen = seen.data(), .seen_rows = 2, .seen_repeat = 2};
    masks[4] = {.lengths = lengths.data(), .rows_per_length = 3, .causal_rows = 6, .seen = seen.data()};
    return masks;
  }
  std::vector<int32_t> lengths;
  Guarded seen;
};

TEST(Softmax, EveryLevelAndMaskEqualsTheReference) {
  for (const Level level : testing::vector_levels())
    for (const int64_t columns : testing::odd_sizes()) {
      const int64_t count = kRows * columns;
      const Masks masks(columns);
      const Guarded x = Guarded::random(count, 1, 3), dy = Guarded::random(count, 2);
      for (const RowMask& mask : masks.all())
        for (const bool logarithm : {false, true}) {
          const auto run = [&](Level at, Guarded& y, Guarded& dx) {
            const SoftmaxKernels& kernels = softmax_kernels(at);
            const Softmax args{kRows, columns, x.data(), y.data(), mask};
            logarithm ? log_softmax(args, kernels) : softmax(args, kernels);
            const SoftmaxBackward back{kRows, columns, y.data(), dy.data(), dx.data()};
            logarithm ? log_softmax_backward(back, kernels) : softmax_backward(back, kernels);
          };
          Guarded y(count), dx(count), wanted_y(count), wanted_dx(count);
          run(level, y, dx);
          run(Level::scalar, wanted_y, wanted_dx);
          const std::string what =
              std::string(level_name(level)) + (logarithm ? " log " : " ") + std::to_string(columns);
          testing::expect_close(y, wanted_y, 2e-6f, what);
          testing::expect_close(dx, wanted_dx, 1e-5f, what + " backward");
        }
    }
}

TEST(Softmax, FullyMaskedRowGivesZeroAndZeroGradient) {
  const int32_t none = 0;
  for (const Level level : available_levels()) {
    const Guarded x(13, kNan), dy(13, kNan);
    Guarded y(13, 5), dx(13, 5);
    softmax({1, 13, x.data(), y.data(), {.lengths = &none}}, softmax_kernels(level));
    softmax_backward({1, 13, y.data(), dy.data(), dx.data()}, softmax_kernels(level));
    testing::expect_same_bits(y, Guarded(13), "y");
    testing::expect_same_bits(dx, Guarded(13), "dx");
    log_softmax({1, 13, x.data(), y.data(), {.lengths = &none}}, softmax_kernels(level));
    log_softmax_backward({1, 13, y.data(), dy.data(), dx.data()}, softmax_kernels(level));
    for (const float v : y) EXPECT_EQ(v, -std::numeric_limits<float>::infinity());
    testing::expect_same_bits(dx, Guarded(13), "dx");
  }
}

TEST(Softmax, NanInAHiddenColumnReachesNothing) {
  for (const Level level : available_levels()) {
    Guarded x(20, 1), seen(20, 1), y(20);
    x[3] = x[17] = kNan;
    seen[3] = seen[17] = 0;
    softmax({1, 20, x.data(), y.data(), {.seen = seen.data()}}, softmax_kernels(level));
    for (int64_t j = 0; j < 20; ++j) EXPECT_NEAR(y[j], seen[j] / 18, 1e-7);
  }
}

TEST(Softmax, HugeScoresStayRight) {
  for (const Level level : available_levels())
    for (const float size : {1e4f, 1e30f}) {
      Guarded x(17, -size), y(17);
      x[5] = x[11] = size;
      softmax({1, 17, x.data(), y.data()}, softmax_kernels(level));
      for (int64_t j = 0; j < 17; ++j) EXPECT_FLOAT_EQ(y[j], j == 5 || j == 11 ? 0.5f : 0.0f);
    }
}

}  // namespace
}  // namespace fovea::kernels
