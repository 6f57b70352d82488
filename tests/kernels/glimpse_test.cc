#include "kernels/conv/glimpse.h"

#include <limits>

#include "base/parallel.h"
#include "kernels/kernel_check.h"

namespace fovea::kernels {
namespace {

using testing::Guarded;

TEST(Glimpses, EveryLevelEqualsTheReferenceAtEverySizeAndPlace) {
  for (const GlimpseShape& shape :
       {GlimpseShape{
            .pictures = 3, .height = 7, .width = 5, .channels = 1, .copies = 1, .patch = 3, .scales = 1},
        GlimpseShape{
            .pictures = 2, .height = 9, .width = 12, .channels = 3, .copies = 17, .patch = 4, .scales = 3},
        GlimpseShape{
            .pictures = 1, .height = 1, .width = 1, .channels = 2, .copies = 9, .patch = 1, .scales = 2},
        GlimpseShape{
            .pictures = 5, .height = 28, .width = 28, .channels = 1, .copies = 4, .patch = 8, .scales = 4},
        GlimpseShape{
            .pictures = 3, .height = 60, .width = 61, .channels = 1, .copies = 5, .patch = 13, .scales = 4},
        GlimpseShape{.pictures = 0, .height = 4, .width = 4}}) {
    const Guarded x = Guarded::random(shape.pictures * shape.height * shape.width * shape.channels, 1);
    const Guarded locations = Guarded::random(2 * shape.rows(), 2);
    Guarded y(shape.rows() * shape.features()), wanted(shape.rows() * shape.features());
    scalar::glimpses(shape, x.data(), locations.data(), wanted.data());
    for (const Level level : available_levels()) {
      glimpses(shape, x.data(), locations.data(), y.data(), reduce_kernels(level));
      for (int64_t i = 0; i < shape.rows() * shape.features(); ++i)
        ASSERT_NEAR(y.data()[i], wanted.data()[i], 1e-6)
            << level_name(level) << ", element " << i << " of patch " << shape.patch;
    }
  }
}

TEST(Glimpses, DoNotDependOnThreads) {
  const GlimpseShape shape{
      .pictures = 7, .height = 29, .width = 31, .channels = 3, .copies = 5, .patch = 5, .scales = 3};
  const Guarded x = Guarded::random(shape.pictures * shape.height * shape.width * shape.channels, 1);
  const Guarded locations = Guarded::random(2 * shape.rows(), 2);
  Guarded one(shape.rows() * shape.features()), three(shape.rows() * shape.features());
  set_num_threads(1);
  glimpses(shape, x.data(), locations.data(), one.data());
  set_num_threads(3);
  glimpses(shape, x.data(), locations.data(), three.data());
  set_num_threads(0);
  testing::expect_same_bits(three, one, "glimpses");
}

TEST(Glimpses, TheMiddleIsTheMiddleAndTheEdgesStayNearThePicture) {
  EXPECT_EQ(glimpse_start(0, 28, 8), 10);
  EXPECT_EQ(glimpse_start(0, 28, 28), 0);
  EXPECT_EQ(glimpse_start(-1, 28, 8), -4);
  EXPECT_EQ(glimpse_start(1, 28, 8), 24);
  EXPECT_EQ(glimpse_start(7, 28, 8), 24) << "beyond the picture counts as its edge";
  EXPECT_EQ(glimpse_start(std::numeric_limits<float>::quiet_NaN(), 28, 8), -4);
}

TEST(Glimpses, WhatLiesOutsideIsZeroAndCoarseScalesAreMeans) {
  const std::vector<float> picture(4, 1.0f);  // 2 x 2, all white
  const float corner[] = {-1, -1};
  std::vector<float> y(8);
  glimpses({.pictures = 1, .height = 2, .width = 2, .patch = 2, .scales = 2}, picture.data(), corner,
           y.data());
  EXPECT_EQ(y, (std::vector<float>{0, 0, 0, 1, 0, 0, 0, 1}));
}

}  // namespace
}  // namespace fovea::kernels
