#include "kernels/conv.h"

#include "base/parallel.h"
#include "kernels/conv_primitive.h"
#include "kernels/kernel_check.h"

namespace fovea::kernels {
namespace {

using testing::Guarded;

std::string text_of(const ConvShape& s) {
  std::ostringstream out;
  out << s.images << " images " << s.height << "x" << s.width << "x" << s.channels << " -> " << s.filters
      << ", kernel " << s.kernel_h << "x" << s.kernel_w << " stride " << s.stride_h << "x" << s.stride_w
      << " dilation " << s.dilation_h << "x" << s.dilation_w << " padding " << s.top << s.bottom << s.left
      << s.right << " groups " << s.groups;
  return out.str();
}

int64_t inputs(const ConvShape& s) {
  return s.images * s.height * s.width * s.channels;
}
int64_t outputs(const ConvShape& s) {
  return s.images * s.out_height() * s.out_width() * s.filters;
}

struct Conv {
  explicit Conv(const ConvShape& s, bool with_bias = true)
      : shape(s),
        has_bias(with_bias),
        x(Guarded::random(inputs(s), 1)),
        weight(Guarded::random(s.weights(), 2)),
        bias(Guarded::random(s.filters, 3)),
        dy(Guarded::random(outputs(s), 4)),
        y(outputs(s)),
        dx(inputs(s)),
        d_weight(s.weights()),
        d_bias(s.filters) {}

  void run() {
    conv_forward(forward_args());
    conv_backward_data(data_args());
    conv_backward_weights(weights_args());
  }
  void run_reference() {
    scalar::conv_forward(forward_args());
    scalar::conv_backward_data(data_args());
    scalar::conv_backward_weights(weights_args());
  }

  ConvShape shape;
  bool has_bias;
  Guarded x, weight, bias, dy, y, dx, d_weight, d_bias;

 private:
  ConvForward forward_args() {
    return {shape, x.data(), weight.data(), has_bias ? bias.data() : nullptr, y.data()};
  }
  ConvBackwardData data_args() { return {shape, dy.data(), weight.data(), dx.data()}; }
  ConvBackwardWeights weights_args() {
    return {shape, x.data(), dy.data(), d_weight.data(), has_bias ? d_bias.data() : nullptr};
  }
};

// Sums of many products: what is small beside the largest of them may be off by more than its own size.
void expect_near(const Guarded& got, const Guarded& wanted, const std::string& what) {
  float largest = 1;
  for (int64_t i = 0; i < wanted.size(); ++i) largest = std::max(largest, std::fabs(wanted[i]));
  testing::expect_close(got, wanted, 4e-6f * largest, what);
}

void expect_equals_reference(const ConvShape& shape, bool with_bias) {
  SCOPED_TRACE(text_of(shape));
  Conv got(shape, with_bias), wanted(shape, with_bias);
  got.run();
  wanted.run_reference();
  expect_near(got.y, wanted.y, "y");
  expect_near(got.dx, wanted.dx, "dx");
  expect_near(got.d_weight, wanted.d_weight, "d_weight");
  if (with_bias) expect_near(got.d_bias, wanted.d_bias, "d_bias");
}

// Every kernel size with every stride, padded as its size asks for.
TEST(Conv, EqualsTheReferenceForOddSizes) {
  struct Channels {
    int64_t in, out, groups;
  };
  for (const int64_t kernel : {1, 3, 5, 7})
    for (const int64_t stride : {1, 2})
      for (const Channels channels : {Channels{1, 1, 1}, Channels{3, 8, 1}, Channels{16, 17, 1},
                                      Channels{6, 4, 2}, Channels{5, 5, 5}, Channels{32, 64, 32}})
        for (const auto& [height, width] :
             {std::pair<int64_t, int64_t>{1, 1}, std::pair<int64_t, int64_t>{7, 13}})
          for (const int64_t images : {1, 3})
            expect_equals_reference({.images = images,
                                     .height = height,
                                     .width = width,
                                     .channels = channels.in,
                                     .filters = channels.out,
                                     .kernel_h = kernel,
                                     .kernel_w = kernel,
                                     .stride_h = stride,
                                     .stride_w = stride,
                                     .top = kernel / 2,
                                     .bottom = kernel / 2,
                                     .left = kernel / 2,
                                     .right = kernel / 2,
                                     .groups = channels.groups},
                                    images == 1);
}

TEST(Conv, EverySideOfEveryOptionIsItsOwn) {
  expect_equals_reference({.images = 2,
                           .height = 11,
                           .width = 8,
                           .channels = 4,
                           .filters = 6,
                           .kernel_h = 3,
                           .kernel_w = 2,
                           .stride_h = 2,
                           .stride_w = 1,
                           .dilation_h = 2,
                           .dilation_w = 3,
                           .top = 0,
                           .bottom = 3,
                           .left = 2,
                           .right = 1,
                           .groups = 2},
                          true);
  // TensorFlow's SAME for a stride of 2: one row and column more behind than before.
  expect_equals_reference({.images = 2,
                           .height = 8,
                           .width = 8,
                           .channels = 3,
                           .filters = 8,
                           .kernel_h = 3,
                           .kernel_w = 3,
                           .stride_h = 2,
                           .stride_w = 2,
                           .bottom = 1,
                           .right = 1},
                          false);
  // Dilated as one branch of a selective kernel is.
  expect_equals_reference({.images = 3,
                           .height = 9,
                           .width = 9,
                           .channels = 16,
                           .filters = 16,
                           .kernel_h = 3,
                           .kernel_w = 3,
                           .dilation_h = 2,
                           .dilation_w = 2,
                           .top = 2,
                           .bottom = 2,
                           .left = 2,
                           .right = 2},
                          false);
}

// Few large images are cut into stripes of rows: the last row, and rows that no stripe needs, included.
TEST(Conv, StripesOfALargeImageEqualTheReference) {
  for (const int64_t height : {61, 62, 63, 64})
    for (const int64_t stride : {1, 2})
      expect_equals_reference({.images = 1,
                               .height = height,
                               .width = 67,
                               .channels = 32,
                               .filters = 64,
                               .kernel_h = 5,
                               .kernel_w = 3,
                               .stride_h = stride,
                               .stride_w = stride,
                               .top = 2,
                               .bottom = 1,
                               .left = 1,
                               .right = 1},
                              true);
}

TEST(Conv, ABatchOfManyChunksEqualsTheReference) {
  expect_equals_reference({.images = 67,
                           .height = 9,
                           .width = 10,
                           .channels = 16,
                           .filters = 16,
                           .kernel_h = 3,
                           .kernel_w = 3,
                           .top = 1,
                           .bottom = 1,
                           .left = 1,
                           .right = 1},
                          true);
}

TEST(Conv, NoImagesGiveNoOutputAndZeroGradients) {
  for (const int64_t kernel : {1, 3}) {
    Conv none({.images = 0,
               .height = 5,
               .width = 5,
               .channels = 2,
               .filters = 3,
               .kernel_h = kernel,
               .kernel_w = kernel});
    std::fill(none.d_weight.begin(), none.d_weight.end(), 7.0f);
    std::fill(none.d_bias.begin(), none.d_bias.end(), 7.0f);
    none.run();
    for (const float value : none.d_weight) EXPECT_EQ(value, 0);
    for (const float value : none.d_bias) EXPECT_EQ(value, 0);
  }
}

TEST(Conv, ResultsDoNotDependOnThreads) {
  const ConvShape three_by_three{.images = 37,
                                 .height = 17,
                                 .width = 19,
                                 .channels = 16,
                                 .filters = 32,
                                 .kernel_h = 3,
                                 .kernel_w = 3,
                                 .top = 1,
                                 .bottom = 1,
                                 .left = 1,
                                 .right = 1};
  ConvShape depthwise = three_by_three, point = three_by_three, picture = three_by_three;
  depthwise.filters = depthwise.groups = 16;
  point.kernel_h = point.kernel_w = 1;
  point.top = point.bottom = point.left = point.right = 0;
  picture.images = 1;
  picture.height = picture.width = 96;
  for (const ConvShape& shape : {three_by_three, depthwise, point, picture}) {
    SCOPED_TRACE(text_of(shape));
    Conv one(shape);
    set_num_threads(1);
    one.run();
    for (const int threads : {2, 3}) {
      Conv several(shape);
      set_num_threads(threads);
      several.run();
      testing::expect_same_bits(several.y, one.y, "y");
      testing::expect_same_bits(several.dx, one.dx, "dx");
      testing::expect_same_bits(several.d_weight, one.d_weight, "d_weight");
      testing::expect_same_bits(several.d_bias, one.d_bias, "d_bias");
    }
    set_num_threads(0);
  }
}

TEST(ConvPrimitive, AShapeOfOnesOwnIsMadeOnceAndManyShapesDoNotFillTheMemory) {
  ConvShape shape{.images = 1, .height = 8, .width = 8, .channels = 4, .filters = 4, .kernel_h = 3};
  ConvPrimitive& first = conv_primitive(ConvPass::forward, shape, false);
  EXPECT_EQ(&first, &conv_primitive(ConvPass::forward, shape, false));
  EXPECT_NE(&first, &conv_primitive(ConvPass::forward, shape, true));
  Conv before(shape), after(shape);
  before.run();
  for (int64_t width = 9; width < 700; ++width) {
    ConvShape other = shape;
    other.width = width;
    other.height = 3;
    conv_primitive(ConvPass::forward, other, false);
  }
  after.run();
  testing::expect_same_bits(after.y, before.y, "y");
}

}  // namespace
}  // namespace fovea::kernels
