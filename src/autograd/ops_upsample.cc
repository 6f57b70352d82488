#include "autograd/ops_upsample.h"

#include <algorithm>
#include <limits>

#include "autograd/ops_math.h"
#include "base/error.h"
#include "kernels/conv/conv.h"
#include "kernels/conv/resize.h"

namespace fovea {
namespace {

constexpr int64_t kMostSide = 1 << 20;

void check_image(const char* op, const Var& x) {
  require(x.rank() == 4 && x.size(1) > 0 && x.size(2) > 0 && x.size(3) > 0, op, ": got images of shape ",
          x.shape(), ", wanted [images, height, width, channels]");
}

// The convolution from the result to x whose gradient this is.
kernels::ConvShape transposed_shape(const Var& x, const Var& weight, const Var& bias,
                                    const ConvTranspose2dOptions& o) {
  check_image("conv_transpose2d", x);
  require(weight.rank() == 4 && weight.size(0) == x.size(3) && weight.count() > 0 && o.groups > 0 &&
              x.size(3) % o.groups == 0,
          "conv_transpose2d: got images of shape ", x.shape(), " and a weight of shape ", weight.shape(),
          " in ", o.groups, " groups, wanted [channels, filters / groups, height, width]");
  const int64_t filters = weight.size(1) * o.groups;
  require(!bias.defined() || bias.shape() == Shape{filters}, "conv_transpose2d: got a bias of shape ",
          bias.defined() ? bias.shape() : Shape{}, ", wanted [", filters, "]");
  require(std::min({o.stride.h, o.stride.w, o.dilation.h, o.dilation.w}) > 0 &&
              std::min({o.padding.top, o.padding.bottom, o.padding.left, o.padding.right}) >= 0,
          "conv_transpose2d: strides and dilations must be above 0, padding not below");
  require(o.output_padding.h >= 0 && o.output_padding.h < o.stride.h && o.output_padding.w >= 0 &&
              o.output_padding.w < o.stride.w,
          "conv_transpose2d: got an output_padding of ", o.output_padding.h, " x ", o.output_padding.w,
          ", wanted at least 0 and less than the stride");
  const auto side = [](int64_t size, int64_t stride, int64_t padding, int64_t reach, int64_t more) {
    return (size - 1) * stride - padding + reach + more + 1;
  };
  const kernels::ConvShape shape{.images = x.size(0),
                                 .height = side(x.size(1), o.stride.h, o.padding.top + o.padding.bottom,
                                                o.dilation.h * (weight.size(2) - 1), o.output_padding.h),
                                 .width = side(x.size(2), o.stride.w, o.padding.left + o.padding.right,
                                               o.dilation.w * (weight.size(3) - 1), o.output_padding.w),
                                 .channels = filters,
                                 .filters = x.size(3),
                                 .kernel_h = weight.size(2),
                                 .kernel_w = weight.size(3),
                                 .stride_h = o.stride.h,
                                 .stride_w = o.stride.w,
                                 .dilation_h = o.dilation.h,
                                 .dilation_w = o.dilation.w,
                                 .top = o.padding.top,
                                 .bottom = o.padding.bottom,
                                 .left = o.padding.left,
                                 .right = o.padding.right,
                                 .groups = o.groups};
  require(shape.height > 0 && shape.width > 0 && shape.height <= kMostSide && shape.width <= kMostSide,
          "conv_transpose2d: images of ", x.size(1), " x ", x.size(2), " would become ", shape.height, " x ",
          shape.width, "; pad less");
  return shape;
}

}  // namespace

Var resize2d(const Var& x, Size2d size) {
  check_image("resize2d", x);
  require(size.h > 0 && size.w > 0 && size.h <= kMostSide && size.w <= kMostSide, "resize2d: got a size of ",
          size.h, " x ", size.w, ", wanted 1 to ", kMostSide);
  const kernels::ResizeShape shape{x.size(0), x.size(1), x.size(2), x.size(3), size.h, size.w};
  Tensor y(Shape{shape.images, size.h, size.w, shape.channels});
  kernels::resize_forward(shape, x.value().contiguous().data(), y.data());
  return record(std::move(y), {x}, [x, shape](const Tensor& grad) {
    const Tensor dx(x.shape());
    kernels::resize_backward(shape, grad.data(), dx.data());
    x.add_grad(dx);
  });
}

Var conv_transpose2d(const Var& x, const Var& weight, const Var& bias,
                     const ConvTranspose2dOptions& options) {
  const kernels::ConvShape shape = transposed_shape(x, weight, bias, options);
  const Tensor from = x.value().contiguous(), w = weight.value().contiguous();
  Tensor y(Shape{shape.images, shape.height, shape.width, shape.channels});
  kernels::conv_backward_data({shape, from.data(), w.data(), y.data()});
  const Tensor kept = weight.requires_grad() && recording({x, weight}) ? from : Tensor();
  const Var result = record(std::move(y), {x, weight}, [=](const Tensor& grad) {
    if (x.requires_grad()) {
      const Tensor dx(x.shape());
      kernels::conv_forward({shape, grad.data(), w.data(), nullptr, dx.data()});
      x.add_grad(dx);
    }
    if (!weight.requires_grad()) return;
    const Tensor d_weight(weight.shape());
    kernels::conv_backward_weights({shape, grad.data(), kept.data(), d_weight.data(), nullptr});
    weight.add_grad(d_weight);
  });
  return bias.defined() ? result + bias : result;
}

}  // namespace fovea
