#include "kernels/conv/glimpse.h"

#include <limits>

#include "base/parallel.h"
#include "kernels/kernel_check.h"

namespace fovea::kernels {
namespace {

using testing::Guarded;

TEST(Glimpses, EqualTheReferenceAtEverySizeAndPlaceAndThreadCount) {
  for (const GlimpseShape& shape :
       {GlimpseShape{
            .pictures = 3, .height = 7, .width = 5, .channels = 1, .copies = 1, .patch = 3, .scales = 1},
        GlimpseShape{
            .pictures = 2, .height = 9, .width = 12, .channels = 3, .copies = 17, .patch = 4, .scales = 3},
        GlimpseShape{
            .pictures = 1, .height = 1, .width = 1, .channels = 2, .copies = 9, .patch = 1, .scales = 2},
        GlimpseShape{
            .pictures = 5, .height = 28, .width = 28, .channels = 1, .copies = 4, .patch = 8, .scales = 4},
        GlimpseShape{.pictures = 0, .height = 4, .width = 4}}) {
    const Guarded x = Guarded::random(shape.pictures * shape.height * shape.width * shape.channels, 1);
    Guarded locations = Guarded::random(2 * shape.rows(), 2);
    Guarded y(shape.rows() * shape.features()), wanted(shape.rows() * shape.features());
    scalar::glimpses(shape, x.data(), locations.data(), wanted.data());
    for (const int threads : {1, 3}) {
      set_num_threads(threads);
      glimpses(shape, x.data(), locations.data(), y.data());
      for (int64_t i = 0; i < shape.rows() * shape.features(); ++i)
        ASSERT_NEAR(y.data()[i], wanted.data()[i], 1e-6) << "element " << i << " of patch " << shape.patch;
    }
    set_num_threads(0);
  }
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
