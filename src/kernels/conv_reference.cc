#include <algorithm>
#include <vector>

#include "kernels/conv.h"

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

}  // namespace fovea::kernels::scalar
