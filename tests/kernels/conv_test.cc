#include "kernels/conv/conv.h"

#include "base/parallel.h"
#include "kernels/guarded_pages.h"
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

// Floats is how the arrays lie: Guarded, or GuardedPages.
template <class Floats>
struct ConvOn {
  template <class... Where>
  explicit ConvOn(const ConvShape& s, bool with_bias, Where... where)
      : shape(s),
        has_bias(with_bias),
        x(Floats::random(inputs(s), 1, where...)),
        weight(Floats::random(s.weights(), 2, where...)),
        bias(Floats::random(s.filters, 3, where...)),
        dy(Floats::random(outputs(s), 4, where...)),
        y(outputs(s), where...),
        dx(inputs(s), where...),
        d_weight(s.weights(), where...),
        d_bias(s.filters, where...) {}

  void run(const ConvKernels& kernels = conv_kernels()) {
    conv_forward(forward_args(), kernels);
    conv_backward_data(data_args(), kernels);
    conv_backward_weights(weights_args(), kernels);
  }
  void run_reference() {
    scalar::conv_forward(forward_args());
    scalar::conv_backward_data(data_args());
    scalar::conv_backward_weights(weights_args());
  }

  ConvShape shape;
  bool has_bias;
  Floats x, weight, bias, dy, y, dx, d_weight, d_bias;

 private:
  ConvForward forward_args() {
    return {shape, x.data(), weight.data(), has_bias ? bias.data() : nullptr, y.data()};
  }
  ConvBackwardData data_args() { return {shape, dy.data(), weight.data(), dx.data()}; }
  ConvBackwardWeights weights_args() {
    return {shape, x.data(), dy.data(), d_weight.data(), has_bias ? d_bias.data() : nullptr};
  }
};
using Conv = ConvOn<Guarded>;

// Sums of many products: what is small beside the largest of them may be off by more than its own size.
void expect_near(const Guarded& got, const Guarded& wanted, const std::string& what) {
  float largest = 1;
  for (int64_t i = 0; i < wanted.size(); ++i) largest = std::max(largest, std::fabs(wanted[i]));
  testing::expect_close(got, wanted, 4e-6f * largest, what);
}

// Every pass on every level, the plain one included.
void expect_equals_reference(const ConvShape& shape, bool with_bias) {
  SCOPED_TRACE(text_of(shape));
  Conv wanted(shape, with_bias);
  wanted.run_reference();
  for (const Level level : available_levels()) {
    SCOPED_TRACE(level_name(level));
    Conv got(shape, with_bias);
    // What is not written shows.
    for (Guarded* result : {&got.y, &got.dx, &got.d_weight})
      std::fill(result->begin(), result->end(), std::nanf(""));
    got.run(conv_kernels(level));
    expect_near(got.y, wanted.y, "y");
    expect_near(got.dx, wanted.dx, "dx");
    expect_near(got.d_weight, wanted.d_weight, "d_weight");
    if (with_bias) expect_near(got.d_bias, wanted.d_bias, "d_bias");
    if (::testing::Test::HasFailure()) return;
  }
}

struct Channels {
  int64_t in, out, groups;
};

// Around every width of vectors and of panels; three ways to group, and several filters to a channel.
const Channels kChannels[] = {{1, 1, 1},   {2, 1, 1},    {1, 2, 1},    {3, 8, 1},  {7, 5, 1},  {8, 9, 1},
                              {16, 17, 1}, {15, 24, 1},  {33, 31, 1},  {4, 33, 1}, {6, 4, 2},  {12, 18, 3},
                              {5, 5, 5},   {17, 17, 17}, {33, 33, 33}, {6, 12, 6}, {5, 15, 5}, {2, 34, 2}};

TEST(Conv, EveryKernelStrideAndWidthEqualsTheReference) {
  for (const int64_t kernel : {1, 2, 3, 4, 5, 6, 7})
    for (const int64_t stride : {1, 2, 3})
      for (const Channels channels : kChannels)
        expect_equals_reference({.images = 2,
                                 .height = 8,
                                 .width = 11,
                                 .channels = channels.in,
                                 .filters = channels.out,
                                 .kernel_h = kernel,
                                 .kernel_w = kernel,
                                 .stride_h = stride,
                                 .stride_w = stride,
                                 .top = kernel / 2,
                                 .bottom = (kernel - 1) / 2,
                                 .left = (kernel - 1) / 2,
                                 .right = kernel / 2,
                                 .groups = channels.groups},
                                kernel % 2 == 1);
}

// Draws of all options at once: kernels larger than the image, padding larger than the kernel, dilation and
// stride with and without a common divisor, lines of one place and of many.
TEST(Conv, AnyOptionsTogetherEqualTheReference) {
  Rng rng(7);
  const auto from = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(rng.below(static_cast<uint64_t>(high - low + 1)));
  };
  int run = 0;
  while (run < 250) {
    const int64_t kind = from(0, 3), groups = kind == 1 ? from(2, 4) : kind == 2 ? from(2, 33) : 1;
    const int64_t in = kind == 2 ? 1 : from(1, kind == 1 ? 9 : 33);
    const int64_t out = kind == 2 ? from(1, 3) : from(1, kind == 1 ? 9 : 33);
    const ConvShape shape{.images = from(1, 4),
                          .height = from(1, 14),
                          .width = from(1, 29),
                          .channels = in * groups,
                          .filters = out * groups,
                          .kernel_h = from(1, 7),
                          .kernel_w = from(1, 7),
                          .stride_h = from(1, 4),
                          .stride_w = from(1, 4),
                          .dilation_h = from(1, 4),
                          .dilation_w = from(1, 4),
                          .top = from(0, 5),
                          .bottom = from(0, 5),
                          .left = from(0, 5),
                          .right = from(0, 5),
                          .groups = groups};
    if (shape.out_height() <= 0 || shape.out_width() <= 0) continue;
    expect_equals_reference(shape, run++ % 2 == 0);
    if (HasFailure()) return;
  }
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
  for (const int64_t height : {61, 64})
    for (const int64_t stride : {1, 2})
      expect_equals_reference({.images = 1,
                               .height = height,
                               .width = 67,
                               .channels = 16,
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
               .kernel_w = kernel},
              true);
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
  ConvShape strided = three_by_three, twice = three_by_three, few = three_by_three;
  depthwise.filters = depthwise.groups = 16;
  twice.groups = 16;
  strided.stride_h = strided.stride_w = 2;
  few.channels = 2;
  few.filters = 1;
  point.kernel_h = point.kernel_w = 1;
  point.top = point.bottom = point.left = point.right = 0;
  picture.images = 1;
  picture.height = picture.width = 96;
  for (const ConvShape& shape : {three_by_three, depthwise, twice, strided, few, point, picture}) {
    SCOPED_TRACE(text_of(shape));
    Conv one(shape, true);
    set_num_threads(1);
    one.run();
    for (const int threads : {2, 3}) {
      Conv several(shape, true);
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

// The last byte of every array before a page that nobody may touch, then the first one behind such a page.
TEST(Conv, ReadsAndWritesNothingOutsideItsArraysAtTheShapesOfModels) {
  std::vector<ConvShape> shapes;
  const auto add = [&](int64_t size, int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t groups,
                       int64_t dilation = 1) {
    const int64_t around = kernel / 2 * dilation;
    shapes.push_back({.images = 2,
                      .height = size,
                      .width = size,
                      .channels = in,
                      .filters = out,
                      .kernel_h = kernel,
                      .kernel_w = kernel,
                      .stride_h = stride,
                      .stride_w = stride,
                      .dilation_h = dilation,
                      .dilation_w = dilation,
                      .top = around,
                      .bottom = around,
                      .left = around,
                      .right = around,
                      .groups = groups});
  };
  for (const int64_t width : {4, 8, 12, 16})
    for (const int64_t size : {7, 28, 48, 64}) {
      for (const int64_t colours : {1, 3}) add(size, colours, width, 3, 1, 1);
      add(size, width, width, 3, 1, 1);
      add(size, width, 2 * width, 3, 2, 1);
      add(size, width, 2 * width, 1, 2, 1);  // the shortcut
      add(size, width, width, 3, 1, 1, 2);   // a branch of selective kernels
      add(size, 2, 1, 7, 1, 1);              // the gate over places
      add(size, width, width, 3, 1, width);
      add(size, 2 * width, 2 * width, 3, 2, 2 * width);
    }
  for (const ConvShape& shape : shapes) {
    SCOPED_TRACE(text_of(shape));
    for (const Level level : testing::vector_levels())
      for (const testing::Edge edge : {testing::Edge::behind, testing::Edge::before})
        ConvOn<testing::GuardedPages>(shape, true, edge).run(conv_kernels(level));
  }
}

// Every kernel of a convolution is of the level in use, which FOVEA_ISA caps.
TEST(Conv, RunsOnTheLevelInUse) {
  EXPECT_EQ(&conv_kernels(), &conv_kernels(current_level()));
  for (const Level level : testing::vector_levels())
    EXPECT_NE(&conv_kernels(level), &conv_kernels(Level::scalar)) << level_name(level);
}

}  // namespace
}  // namespace fovea::kernels
