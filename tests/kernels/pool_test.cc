#include "kernels/conv/pool.h"

#include <limits>

#include "base/parallel.h"
#include "kernels/kernel_check.h"

namespace fovea::kernels {
namespace {

using testing::Guarded;

int64_t inputs(const PoolShape& s) {
  return s.images * s.height * s.width * s.channels;
}
int64_t outputs(const PoolShape& s) {
  return s.images * s.out_height() * s.out_width() * s.channels;
}

struct Pool {
  explicit Pool(const PoolShape& s)
      : shape(s),
        x(Guarded::random(inputs(s), 1)),
        dy(Guarded::random(outputs(s), 2)),
        largest(outputs(s)),
        mean(outputs(s)),
        d_largest(inputs(s)),
        d_mean(inputs(s)),
        place(static_cast<size_t>(outputs(s))) {
    // Many equal numbers, so that the first of equal maxima is asked for everywhere.
    for (float& value : x) value = std::round(value);
  }
  void run(bool count_padding) {
    max_pool_forward(shape, x.data(), largest.data(), place.data());
    max_pool_backward(shape, dy.data(), place.data(), d_largest.data());
    avg_pool_forward(shape, count_padding, x.data(), mean.data());
    avg_pool_backward(shape, count_padding, dy.data(), d_mean.data());
  }
  void run_reference(bool count_padding) {
    scalar::max_pool_forward(shape, x.data(), largest.data(), place.data());
    scalar::max_pool_backward(shape, dy.data(), place.data(), d_largest.data());
    scalar::avg_pool_forward(shape, count_padding, x.data(), mean.data());
    scalar::avg_pool_backward(shape, count_padding, dy.data(), d_mean.data());
  }
  PoolShape shape;
  Guarded x, dy, largest, mean, d_largest, d_mean;
  std::vector<int32_t> place;
};

TEST(Pool, EqualsTheReferenceForOddSizes) {
  for (const int64_t kernel : {1, 2, 3, 5})
    for (const int64_t stride : {1, 2, 3})
      for (const int64_t channels : {1, 5, 16, 37})
        for (const auto& [height, width] :
             {std::pair<int64_t, int64_t>{1, 1}, std::pair<int64_t, int64_t>{7, 11}})
          for (const int64_t images : {0, 1, 5})
            for (const bool padded : {false, true}) {
              const int64_t pad = padded ? kernel / 2 : 0;
              const PoolShape shape{.images = images,
                                    .height = height,
                                    .width = width,
                                    .channels = channels,
                                    .kernel_h = kernel,
                                    .kernel_w = kernel,
                                    .stride_h = stride,
                                    .stride_w = stride,
                                    .top = pad,
                                    .bottom = padded ? kernel - 1 : 0,  // each side its own
                                    .left = pad,
                                    .right = pad};
              Pool got(shape), wanted(shape);
              got.run(padded);
              wanted.run_reference(padded);
              const std::string what = std::to_string(images) + "x" + std::to_string(height) + "x" +
                                       std::to_string(channels) + " kernel " + std::to_string(kernel) +
                                       " stride " + std::to_string(stride) + (padded ? " padded" : "");
              testing::expect_close(got.largest, wanted.largest, 0, what + " max");
              EXPECT_EQ(got.place, wanted.place) << what;
              testing::expect_close(got.d_largest, wanted.d_largest, 1e-6f, what + " d_max");
              testing::expect_close(got.mean, wanted.mean, 1e-6f, what + " mean");
              testing::expect_close(got.d_mean, wanted.d_mean, 1e-6f, what + " d_mean");
            }
}

TEST(Pool, PaddingIsCountedInTheMeanOnlyWhereAskedFor) {
  const PoolShape shape{.images = 1,
                        .height = 1,
                        .width = 1,
                        .channels = 1,
                        .kernel_h = 3,
                        .kernel_w = 3,
                        .top = 1,
                        .bottom = 1,
                        .left = 1,
                        .right = 1};
  const float x = 9;
  float y = 0;
  avg_pool_forward(shape, true, &x, &y);
  EXPECT_FLOAT_EQ(y, 1);
  avg_pool_forward(shape, false, &x, &y);
  EXPECT_FLOAT_EQ(y, 9);
}

TEST(Pool, NanIsTheLargestAndPaddingNeverIs) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const PoolShape shape{.images = 1,
                        .height = 1,
                        .width = 4,
                        .channels = 1,
                        .kernel_h = 1,
                        .kernel_w = 3,
                        .left = 1,
                        .right = 1};
  const float x[] = {-inf, nan, 5, nan};
  float y[4];
  int32_t place[4];
  max_pool_forward(shape, x, y, place);
  EXPECT_EQ(std::vector<int32_t>(place, place + 4), (std::vector<int32_t>{1, 1, 1, 3}));
  const float low[] = {-inf, -inf, -5, -7};
  max_pool_forward(shape, low, y, place);
  EXPECT_EQ(std::vector<float>(y, y + 4), (std::vector<float>{-inf, -5, -5, -5}));
  EXPECT_EQ(place[0], 0);
}

TEST(Pool, ResultsDoNotDependOnThreads) {
  const PoolShape shape{.images = 13,
                        .height = 20,
                        .width = 21,
                        .channels = 19,
                        .kernel_h = 3,
                        .kernel_w = 3,
                        .stride_h = 2,
                        .stride_w = 1,
                        .top = 1,
                        .bottom = 1,
                        .left = 1,
                        .right = 1};
  Pool one(shape);
  set_num_threads(1);
  one.run(true);
  for (const int threads : {2, 3}) {
    Pool several(shape);
    set_num_threads(threads);
    several.run(true);
    testing::expect_same_bits(several.largest, one.largest, "max");
    testing::expect_same_bits(several.d_largest, one.d_largest, "d_max");
    testing::expect_same_bits(several.mean, one.mean, "mean");
    testing::expect_same_bits(several.d_mean, one.d_mean, "d_mean");
  }
  set_num_threads(0);
}

}  // namespace
}  // namespace fovea::kernels
