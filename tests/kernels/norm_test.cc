#include "kernels/norm/norm.h"

#include <cmath>
#include <limits>

#include "base/parallel.h"
#include "kernels/kernel_check.h"

namespace fovea::kernels {
namespace {

using testing::Guarded;

// All inputs and results of one case.
struct Norm {
  Norm(int64_t rows_, int64_t columns_, int variant_)
      : rows(rows_),
        columns(columns_),
        variant(variant_),
        x(Guarded::random(rows * columns, 1)),
        residual(Guarded::random(rows * columns, 2)),
        weight(Guarded::random(columns, 3)),
        bias(Guarded::random(columns, 4)),
        dy(Guarded::random(rows * columns, 5)),
        d_extra(Guarded::random(rows * columns, 6)),
        sum(rows * columns),
        y(rows * columns),
        mean(rows),
        rstd(rows),
        d_residual(rows * columns),
        d_x(rows * columns),
        d_weight(columns),
        d_bias(columns) {}

  bool affine() const { return variant & 1; }
  bool fused() const { return variant & 2; }
  bool keeps_sum() const { return variant & 4; }

  void run(Level level) {
    const Dropout dropout = fused() ? Dropout{0.2f, 99} : Dropout{};
    const bool needs_sum = fused() || keeps_sum();
    norm_forward({.rows = rows,
                  .columns = columns,
                  .x = x.data(),
                  .residual = fused() ? residual.data() : nullptr,
                  .dropout = dropout,
                  .weight = affine() ? weight.data() : nullptr,
                  .bias = affine() ? bias.data() : nullptr,
                  .sum = needs_sum ? sum.data() : nullptr,
                  .y = y.data(),
                  .mean = mean.data(),
                  .rstd = rstd.data()},
                 norm_kernels(level));
    norm_backward({.rows = rows,
                   .columns = columns,
                   .dy = dy.data(),
                   .d_sum = keeps_sum() ? d_extra.data() : nullptr,
                   .sum = needs_sum ? sum.data() : x.data(),
                   .mean = mean.data(),
                   .rstd = rstd.data(),
                   .weight = affine() ? weight.data() : nullptr,
                   .dropout = dropout,
                   .d_residual = d_residual.data(),
                   .d_x = fused() ? d_x.data() : nullptr,
                   .d_weight = affine() ? d_weight.data() : nullptr,
                   .d_bias = affine() ? d_bias.data() : nullptr},
                  norm_kernels(level));
  }

  int64_t rows, columns;
  int variant;
  Guarded x, residual, weight, bias, dy, d_extra;
  Guarded sum, y, mean, rstd, d_residual, d_x, d_weight, d_bias;
};

TEST(Norm, EveryLevelEqualsTheReference) {
  for (const Level level : testing::vector_levels())
    for (int variant = 0; variant < 8; ++variant)
      for (const int64_t rows : {int64_t{0}, int64_t{1}, int64_t{5}})
        for (const int64_t columns : testing::odd_sizes()) {
          if (columns == 1) continue;  // variance 0: only epsilon, see below
          Norm got(rows, columns, variant), wanted(rows, columns, variant);
          got.run(level);
          wanted.run(Level::scalar);
          const std::string what = std::string(level_name(level)) + " variant " + std::to_string(variant) +
                                   " " + std::to_string(rows) + "x" + std::to_string(columns);
          testing::expect_close(got.sum, wanted.sum, 1e-6f, what + " sum");
          testing::expect_close(got.y, wanted.y, 1e-5f, what + " y");
          testing::expect_close(got.d_residual, wanted.d_residual, 2e-5f, what + " d_residual");
          testing::expect_close(got.d_x, wanted.d_x, 2e-5f, what + " d_x");
          testing::expect_close(got.d_weight, wanted.d_weight, 2e-5f, what + " d_weight");
          testing::expect_close(got.d_bias, wanted.d_bias, 2e-5f, what + " d_bias");
        }
}

TEST(Norm, ConstantRowsGiveTheBias) {
  for (const Level level : available_levels())
    for (const int64_t columns : {int64_t{1}, int64_t{13}, int64_t{64}}) {
      const Guarded x(columns, 3), weight(columns, 2), bias = Guarded::random(columns, 1);
      Guarded y(columns);
      norm_forward({.rows = 1,
                    .columns = columns,
                    .x = x.data(),
                    .weight = weight.data(),
                    .bias = bias.data(),
                    .y = y.data()},
                   norm_kernels(level));
      testing::expect_close(y, bias, 1e-4f, std::string(level_name(level)));
    }
}

TEST(Norm, LargeOffsetKeepsItsDigits) {
  Guarded x = Guarded::random(1024, 1), y(1024), wanted(1024);
  for (float& v : x) v = v + 4096;
  norm_forward({.rows = 1, .columns = 1024, .x = x.data(), .y = wanted.data()}, norm_kernels(Level::scalar));
  for (const Level level : testing::vector_levels()) {
    norm_forward({.rows = 1, .columns = 1024, .x = x.data(), .y = y.data()}, norm_kernels(level));
    // The mean is kept as a float: half a unit in the last place of 4096 is 2.4e-4.
    testing::expect_close(y, wanted, 3e-4f, std::string(level_name(level)));
  }
}

TEST(Norm, ResultsDoNotDependOnThreads) {
  Norm one(1000, 65, 7), three(1000, 65, 7);
  set_num_threads(1);
  one.run(current_level());
  set_num_threads(3);
  three.run(current_level());
  set_num_threads(0);
  testing::expect_same_bits(three.y, one.y, "y");
  testing::expect_same_bits(three.d_x, one.d_x, "d_x");
  testing::expect_same_bits(three.d_weight, one.d_weight, "d_weight");
  testing::expect_same_bits(three.d_bias, one.d_bias, "d_bias");
}

}  // namespace
}  // namespace fovea::kernels
