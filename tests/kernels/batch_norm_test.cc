#include "kernels/norm/batch_norm.h"

#include <cmath>

#include "base/parallel.h"
#include "kernels/kernel_check.h"

namespace fovea::kernels {
namespace {

using testing::Guarded;

struct BatchNorm {
  BatchNorm(int64_t rows_, int64_t channels_, int variant_)
      : rows(rows_),
        channels(channels_),
        variant(variant_),
        x(Guarded::random(rows * channels, 1)),
        weight(Guarded::random(channels, 2)),
        bias(Guarded::random(channels, 3)),
        dy(Guarded::random(rows * channels, 4)),
        mean(channels),
        variance(channels),
        rstd(channels),
        y(rows * channels),
        dx(rows * channels),
        d_weight(channels),
        d_bias(channels) {}

  NormActivation activation() const { return static_cast<NormActivation>(variant % 3); }
  bool affine() const { return variant / 3 % 2; }
  bool constant() const { return variant / 6 % 2; }

  void run(Level level) {
    const BatchNormKernels& kernels = batch_norm_kernels(level);
    batch_moments({rows, channels, x.data(), mean.data(), variance.data()}, kernels);
    for (int64_t c = 0; c < channels; ++c) rstd[c] = 1 / std::sqrt(variance[c] + 0.1f);
    batch_norm_forward({.rows = rows,
                        .channels = channels,
                        .x = x.data(),
                        .mean = mean.data(),
                        .rstd = rstd.data(),
                        .weight = affine() ? weight.data() : nullptr,
                        .bias = affine() ? bias.data() : nullptr,
                        .activation = activation(),
                        .y = y.data()},
                       kernels);
    batch_norm_backward({.rows = rows,
                         .channels = channels,
                         .x = x.data(),
                         .y = y.data(),
                         .dy = dy.data(),
                         .mean = mean.data(),
                         .rstd = rstd.data(),
                         .weight = affine() ? weight.data() : nullptr,
                         .activation = activation(),
                         .constant_moments = constant(),
                         .dx = dx.data(),
                         .d_weight = d_weight.data(),
                         .d_bias = d_bias.data()},
                        kernels);
  }

  int64_t rows, channels;
  int variant;
  Guarded x, weight, bias, dy;
  Guarded mean, variance, rstd, y, dx, d_weight, d_bias;
};

TEST(BatchNorm, EveryLevelEqualsTheReference) {
  for (const Level level : testing::vector_levels())
    for (int variant = 0; variant < 12; ++variant)
      for (const int64_t rows : {1, 2, 7, 300})
        for (const int64_t channels : {1, 3, 8, 16, 31, 130}) {
          BatchNorm got(rows, channels, variant), wanted(rows, channels, variant);
          got.run(level);
          wanted.run(Level::scalar);
          const std::string what = std::string(level_name(level)) + " variant " + std::to_string(variant) +
                                   " " + std::to_string(rows) + "x" + std::to_string(channels);
          testing::expect_close(got.mean, wanted.mean, 1e-6f, what + " mean");
          testing::expect_close(got.variance, wanted.variance, 1e-6f, what + " variance");
          testing::expect_close(got.y, wanted.y, 1e-5f, what + " y");
          testing::expect_close(got.d_weight, wanted.d_weight, 3e-5f, what + " d_weight");
          testing::expect_close(got.d_bias, wanted.d_bias, 1e-5f, what + " d_bias");
          testing::expect_close(got.dx, wanted.dx, 3e-5f, what + " dx");
        }
}

TEST(BatchNorm, ManyRowsFarFromZeroKeepTheirDigits) {
  constexpr int64_t kRows = 20000, kChannels = 3;
  Guarded x = Guarded::random(kRows * kChannels, 1), mean(kChannels), variance(kChannels);
  for (float& value : x) value += 1000;
  double wanted_mean[kChannels] = {}, wanted_variance[kChannels] = {};
  for (int64_t i = 0; i < x.size(); ++i) wanted_mean[i % kChannels] += double{x[i]} / kRows;
  for (int64_t i = 0; i < x.size(); ++i)
    wanted_variance[i % kChannels] += std::pow(x[i] - wanted_mean[i % kChannels], 2) / kRows;
  for (const Level level : available_levels()) {
    batch_moments({kRows, kChannels, x.data(), mean.data(), variance.data()}, batch_norm_kernels(level));
    for (int64_t c = 0; c < kChannels; ++c) {
      EXPECT_NEAR(mean[c], wanted_mean[c], 2e-4) << level_name(level);
      EXPECT_NEAR(variance[c], wanted_variance[c], 1e-5) << level_name(level);
    }
  }
}

TEST(BatchNorm, ActivationStopsTheGradientWhereItIsFlat) {
  const float x[] = {-2, 3, 9}, dy[] = {1, 1, 1}, mean = 0, one = 1;
  float y[3], dx[3], d_weight, d_bias;
  for (const Level level : available_levels()) {
    batch_norm_forward({.rows = 3,
                        .channels = 1,
                        .x = x,
                        .mean = &mean,
                        .rstd = &one,
                        .activation = NormActivation::relu6,
                        .y = y},
                       batch_norm_kernels(level));
    EXPECT_EQ(std::vector<float>(y, y + 3), (std::vector<float>{0, 3, 6}));
    batch_norm_backward({.rows = 3,
                         .channels = 1,
                         .x = x,
                         .y = y,
                         .dy = dy,
                         .mean = &mean,
                         .rstd = &one,
                         .activation = NormActivation::relu6,
                         .constant_moments = true,
                         .dx = dx,
                         .d_weight = &d_weight,
                         .d_bias = &d_bias},
                        batch_norm_kernels(level));
    EXPECT_EQ(std::vector<float>(dx, dx + 3), (std::vector<float>{0, 1, 0}));
    EXPECT_EQ(d_weight, 3);
    EXPECT_EQ(d_bias, 1);
  }
}

TEST(BatchNorm, ResultsDoNotDependOnThreads) {
  BatchNorm one(5003, 33, 4);
  set_num_threads(1);
  one.run(current_level());
  for (const int threads : {2, 3}) {
    BatchNorm several(5003, 33, 4);
    set_num_threads(threads);
    several.run(current_level());
    testing::expect_same_bits(several.mean, one.mean, "mean");
    testing::expect_same_bits(several.variance, one.variance, "variance");
    testing::expect_same_bits(several.y, one.y, "y");
    testing::expect_same_bits(several.dx, one.dx, "dx");
    testing::expect_same_bits(several.d_weight, one.d_weight, "d_weight");
    testing::expect_same_bits(several.d_bias, one.d_bias, "d_bias");
  }
  set_num_threads(0);
}

}  // namespace
}  // namespace fovea::kernels
