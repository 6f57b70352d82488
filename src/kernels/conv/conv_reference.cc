// Convolution and its gradients by definition, for comparison with the fast kernels.
#include <algorithm>
#include <vector>

#include "kernels/conv/conv_levels.h"

namespace fovea::kernels::scalar {
namespace {

// Calls visit(x, weight, y), three places in the arrays, for every product of the convolution.
template <class Visit>
void for_each_product(const ConvShape& s, Visit visit) {
  const int64_t out_h = s.out_height(), out_w = s.out_width();
  const int64_t channels = s.channels / s.groups, filters = s.filters / s.groups;
  for (int64_t n = 0; n < s.images; ++n)
    for (int64_t oh = 0; oh < out_h; ++oh)
      for (int64_t ow = 0; ow < out_w; ++ow)
        for (int64_t f = 0; f < s.filters; ++f)
          for (int64_t kh = 0; kh < s.kernel_h; ++kh)
            for (int64_t kw = 0; kw < s.kernel_w; ++kw) {
              const int64_t h = oh * s.stride_h - s.top + kh * s.dilation_h;
              const int64_t w = ow * s.stride_w - s.left + kw * s.dilation_w;
              if (h < 0 || h >= s.height || w < 0 || w >= s.width) continue;
              for (int64_t c = 0; c < channels; ++c)
                visit(((n * s.height + h) * s.width + w) * s.channels + f / filters * channels + c,
                      ((f * channels + c) * s.kernel_h + kh) * s.kernel_w + kw,
                      ((n * out_h + oh) * out_w + ow) * s.filters + f);
            }
}

std::vector<double> zeros(int64_t count) {
  return std::vector<double>(static_cast<size_t>(count));
}

void write(const std::vector<double>& from, float* to) {
  std::transform(from.begin(), from.end(), to, [](double x) { return static_cast<float>(x); });
}

int64_t outputs(const ConvShape& s) {
  return s.images * s.out_height() * s.out_width() * s.filters;
}

}  // namespace

void conv_forward(const ConvForward& args) {
  const ConvShape& s = args.shape;
  std::vector<double> y = zeros(outputs(s));
  for (size_t i = 0; args.bias != nullptr && i < y.size(); ++i)
    y[i] = args.bias[i % static_cast<size_t>(s.filters)];
  for_each_product(s, [&](int64_t x, int64_t weight, int64_t at) {
    y[static_cast<size_t>(at)] += double{args.x[x]} * args.weight[weight];
  });
  write(y, args.y);
}

void conv_backward_data(const ConvBackwardData& args) {
  const ConvShape& s = args.shape;
  std::vector<double> dx = zeros(s.images * s.height * s.width * s.channels);
  for_each_product(s, [&](int64_t x, int64_t weight, int64_t at) {
    dx[static_cast<size_t>(x)] += double{args.dy[at]} * args.weight[weight];
  });
  write(dx, args.dx);
}

void conv_backward_weights(const ConvBackwardWeights& args) {
  const ConvShape& s = args.shape;
  std::vector<double> d_weight = zeros(s.weights()), d_bias = zeros(s.filters);
  for_each_product(s, [&](int64_t x, int64_t weight, int64_t at) {
    d_weight[static_cast<size_t>(weight)] += double{args.dy[at]} * args.x[x];
  });
  for (int64_t i = 0; i < outputs(s); ++i) d_bias[static_cast<size_t>(i % s.filters)] += args.dy[i];
  write(d_weight, args.d_weight);
  if (args.d_bias != nullptr) write(d_bias, args.d_bias);
}

namespace {

// Bodies of the tiles for a machine without vectors: a panel is one filter wide.
void lines(const ConvLines& all) {
  for (int64_t line = 0; line < all.lines; ++line)
    for (int64_t i = 0; i < all.count; ++i) {
      const float* const x = all.x + line * all.x_line + i * all.x_step;
      float sum = all.bias[0];
      for (int64_t row = 0; row < all.rows; ++row)
        for (int64_t run = 0; run < all.runs; ++run)
          for (int64_t p = 0; p < all.length; ++p)
            sum += x[row * all.x_row + run * all.x_run + p] *
                   all.weight[row * all.weight_row + run * all.weight_run + p];
      all.y[line * all.y_line + i * all.y_step] = sum;
    }
}

void sum(const ConvSum& block) {
  for (int64_t image = 0; image < block.images; ++image)
    for (int64_t row = 0; row < block.rows; ++row)
      for (int64_t column = 0; column < block.columns; ++column)
        for (int64_t t = 0; t < block.taps; ++t)
          block.sum[t * block.stride] +=
              block.x[image * block.x_image + row * block.x_row + column * block.x_column + t] *
              block.dy[image * block.dy_image + row * block.dy_row + column * block.dy_column];
}

void depthwise_lines(const DepthwiseLines& all) {
  for (int64_t line = 0; line < all.lines; ++line)
    for (int64_t i = 0; i < all.count; ++i)
      for (int64_t c = 0; c < all.channels; ++c) {
        const float* const x = all.x + line * all.x_line + i * all.x_step + c;
        float sum = all.bias[c];
        for (int64_t row = 0; row < all.rows; ++row)
          for (int64_t t = 0; t < all.taps; ++t)
            sum += x[row * all.x_row + t * all.x_tap] *
                   all.weight[row * all.weight_row + t * all.weight_tap + c];
        all.y[line * all.y_line + i * all.y_step + c] = sum;
      }
}

void depthwise_sum(const DepthwiseSum& block) {
  for (int64_t line = 0; line < block.lines; ++line)
    for (int64_t i = 0; i < block.count; ++i)
      for (int64_t row = 0; row < block.rows; ++row)
        for (int64_t t = 0; t < block.taps; ++t)
          for (int64_t c = 0; c < block.channels; ++c)
            block.sum[row * block.sum_row + t * block.channels + c] +=
                block.x[line * block.x_line + i * block.x_step + row * block.x_row + t * block.x_tap + c] *
                block.dy[line * block.dy_line + i * block.dy_step + c];
}

void planes(const ConvPlanes& all) {
  for (int64_t i = 0; i < all.rows; ++i)
    for (int64_t j = 0; j < all.columns; ++j)
      for (int64_t f = 0; f < all.filters; ++f) {
        float sum = all.bias[f];
        const float* weight = all.weight + f;
        for (int64_t c = 0; c < all.channels; ++c)
          for (int64_t row = 0; row < all.tap_rows; ++row)
            for (int64_t t = 0; t < all.taps; ++t, weight += all.filters)
              sum +=
                  *weight * all.x[c * all.x_plane + i * all.x_row + row * all.x_tap_row + j + t * all.x_tap];
        all.y[i * all.y_row + j * all.filters + f] = sum;
      }
}

constexpr ConvDense kDense{.lanes = 1, .line_vectors = 1, .sum_vectors = 1, .lines = lines, .sum = sum};

}  // namespace

extern const ConvKernels conv_table;
const ConvKernels conv_table{.wide = kDense,
                             .narrow = kDense,
                             .depthwise_lines = depthwise_lines,
                             .depthwise_sum = depthwise_sum,
                             .planes = planes};

}  // namespace fovea::kernels::scalar
