#include "kernels/vector/loss.h"

#include <cmath>
#include <vector>

#include "base/parallel.h"
#include "kernels/kernel_check.h"

namespace fovea::kernels {
namespace {

using testing::Guarded;

std::vector<int32_t> some_targets(int64_t rows, int64_t classes) {
  std::vector<int32_t> targets(rows);
  for (int64_t r = 0; r < rows; ++r)
    targets[r] = r % 4 == 3 ? -100 : static_cast<int32_t>((r * 7 + 3) % classes);
  return targets;
}

TEST(CrossEntropy, EveryLevelEqualsTheReference) {
  for (const Level level : testing::vector_levels())
    for (const float smoothing : {0.0f, 0.1f})
      for (const int64_t rows : {int64_t{0}, int64_t{1}, int64_t{9}})
        for (const int64_t classes : testing::odd_sizes()) {
          if (classes == 0) continue;
          const Guarded logits = Guarded::random(rows * classes, 1, 4), d_losses = Guarded::random(rows, 2);
          const std::vector<int32_t> targets = some_targets(rows, classes);
          const auto run = [&](Level at, Guarded& losses, Guarded& lse, Guarded& gradient,
                               Guarded& separate) {
            cross_entropy({.rows = rows,
                           .classes = classes,
                           .logits = logits.data(),
                           .targets = targets.data(),
                           .smoothing = smoothing,
                           .losses = losses.data(),
                           .lse = lse.data(),
                           .gradient = gradient.data(),
                           .gradient_scale = 0.3f},
                          loss_kernels(at));
            cross_entropy_backward({.rows = rows,
                                    .classes = classes,
                                    .logits = logits.data(),
                                    .targets = targets.data(),
                                    .smoothing = smoothing,
                                    .lse = lse.data(),
                                    .d_losses = d_losses.data(),
                                    .d_logits = separate.data()},
                                   loss_kernels(at));
          };
          Guarded losses(rows), lse(rows), gradient(rows * classes), separate(rows * classes);
          Guarded losses0(rows), lse0(rows), gradient0(rows * classes), separate0(rows * classes);
          run(level, losses, lse, gradient, separate);
          run(Level::scalar, losses0, lse0, gradient0, separate0);
          const std::string what = std::string(level_name(level)) + " " + std::to_string(rows) + "x" +
                                   std::to_string(classes) + " smoothing " + std::to_string(smoothing);
          testing::expect_close(losses, losses0, 2e-6f, what + " losses");
          testing::expect_close(lse, lse0, 2e-6f, what + " lse");
          testing::expect_close(gradient, gradient0, 2e-6f, what + " gradient");
          testing::expect_close(separate, separate0, 4e-6f, what + " backward");
        }
}

TEST(CrossEntropy, GradientInPlaceOfTheLogitsIsTheSame) {
  const std::vector<int32_t> targets = some_targets(9, 130);
  Guarded logits = Guarded::random(9 * 130, 1), gradient(9 * 130), losses(9);
  CrossEntropy args{.rows = 9,
                    .classes = 130,
                    .logits = logits.data(),
                    .targets = targets.data(),
                    .smoothing = 0.1f,
                    .losses = losses.data(),
                    .gradient = gradient.data()};
  cross_entropy(args);
  args.gradient = logits.data();
  cross_entropy(args);
  testing::expect_same_bits(logits, gradient, "in place");
}

TEST(CrossEntropy, HugeLogitsStayFinite) {
  for (const Level level : available_levels()) {
    Guarded logits(33, -1e30f), losses(1), gradient(33);
    logits[4] = 1e30f;
    const int32_t target = 4;
    cross_entropy({.rows = 1,
                   .classes = 33,
                   .logits = logits.data(),
                   .targets = &target,
                   .losses = losses.data(),
                   .gradient = gradient.data()},
                  loss_kernels(level));
    EXPECT_EQ(losses[0], 0);
    for (const float g : gradient) EXPECT_NEAR(g, 0, 1e-6);
  }
}

}  // namespace
}  // namespace fovea::kernels
