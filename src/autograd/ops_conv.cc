// Convolution, pooling and batch norm of images, each with its gradient.
#include "autograd/ops_conv.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "autograd/in_place.h"
#include "autograd/ops_reduce.h"
#include "autograd/ops_shape.h"
#include "autograd/optional.h"
#include "kernels/conv/conv.h"
#include "kernels/conv/pool.h"

namespace fovea {
namespace {

void check_image(const char* op, const Var& x) {
  require(x.rank() == 4, op, ": got input of shape ", x.shape(),
          ", wanted [images, height, width, channels]");
}

kernels::ConvShape conv_shape(const Var& x, const Var& weight, const Var& bias, const Conv2dOptions& o) {
  check_image("conv2d", x);
  const int64_t channels = x.size(3);
  require(weight.rank() == 4, "conv2d: got a weight of shape ", weight.shape(),
          ", wanted [filters, channels / groups, kernel rows, kernel columns]");
  require(o.groups > 0 && channels % o.groups == 0 && weight.size(0) % o.groups == 0, "conv2d: ", o.groups,
          " groups, wanted a divisor of ", channels, " channels and ", weight.size(0), " filters");
  require(channels > 0 && weight.count() > 0 && weight.size(1) * o.groups == channels,
          "conv2d: got input of ", x.shape(), " and a weight of ", weight.shape(), " in ", o.groups,
          " groups, wanted a weight of [filters, ", channels / o.groups, ", rows, columns]");
  require(!bias.defined() || bias.shape() == Shape{weight.size(0)}, "conv2d: got a bias of shape ",
          bias.defined() ? bias.shape() : Shape{}, ", wanted [", weight.size(0), "]");
  require(o.stride.h > 0 && o.stride.w > 0 && o.dilation.h > 0 && o.dilation.w > 0, "conv2d: got stride ",
          o.stride.h, " x ", o.stride.w, " and dilation ", o.dilation.h, " x ", o.dilation.w,
          ", wanted 1 or more");
  const auto& [top, bottom, left, right] = o.padding;
  require(std::min({top, bottom, left, right}) >= 0, "conv2d: negative padding");
  // So that no product of them and a kernel's size overflows.
  constexpr int64_t kMost = int64_t{1} << 30;
  require(std::max({top, bottom, left, right, o.stride.h, o.stride.w, o.dilation.h, o.dilation.w}) <= kMost,
          "conv2d: got a stride, dilation or padding above ", kMost);
  const kernels::ConvShape shape{.images = x.size(0),
                                 .height = x.size(1),
                                 .width = x.size(2),
                                 .channels = channels,
                                 .filters = weight.size(0),
                                 .kernel_h = weight.size(2),
                                 .kernel_w = weight.size(3),
                                 .stride_h = o.stride.h,
                                 .stride_w = o.stride.w,
                                 .dilation_h = o.dilation.h,
                                 .dilation_w = o.dilation.w,
                                 .top = top,
                                 .bottom = bottom,
                                 .left = left,
                                 .right = right,
                                 .groups = o.groups};
  require(shape.out_height() > 0 && shape.out_width() > 0, "conv2d: a kernel of ", shape.kernel_h, " x ",
          shape.kernel_w, " does not fit into images of ", shape.height, " x ", shape.width,
          "; pad them or take a smaller one");
  return shape;
}

kernels::PoolShape pool_shape(const char* op, const Var& x, const Pool2dOptions& o) {
  check_image(op, x);
  const auto& [top, bottom, left, right] = o.padding;
  require(o.kernel.h > 0 && o.kernel.w > 0 && o.stride.h >= 0 && o.stride.w >= 0, op, ": got kernel ",
          o.kernel.h, " x ", o.kernel.w, " and stride ", o.stride.h, " x ", o.stride.w);
  require(std::min({top, bottom, left, right}) >= 0 && std::max(top, bottom) < o.kernel.h &&
              std::max(left, right) < o.kernel.w,
          op, ": padding must be less than the kernel, ", o.kernel.h, " x ", o.kernel.w);
  const kernels::PoolShape shape{.images = x.size(0),
                                 .height = x.size(1),
                                 .width = x.size(2),
                                 .channels = x.size(3),
                                 .kernel_h = o.kernel.h,
                                 .kernel_w = o.kernel.w,
                                 .stride_h = o.stride.h > 0 ? o.stride.h : o.kernel.h,
                                 .stride_w = o.stride.w > 0 ? o.stride.w : o.kernel.w,
                                 .top = top,
                                 .bottom = bottom,
                                 .left = left,
                                 .right = right};
  require(shape.out_height() > 0 && shape.out_width() > 0, op, ": a window of ", o.kernel.h, " x ",
          o.kernel.w, " does not fit into images of ", shape.height, " x ", shape.width);
  require(shape.height * shape.width <= std::numeric_limits<int32_t>::max(), op, ": images of ", shape.height,
          " x ", shape.width, " are too large");
  return shape;
}

Shape pooled_shape(const kernels::PoolShape& s) {
  return {s.images, s.out_height(), s.out_width(), s.channels};
}

int64_t same_total(int64_t size, int64_t kernel, int64_t stride, int64_t dilation) {
  const int64_t places = (size + stride - 1) / stride;
  return std::max<int64_t>(0, (places - 1) * stride + (kernel - 1) * dilation + 1 - size);
}

}  // namespace

Padding2d same_padding(Size2d image, Size2d kernel, Size2d stride, Size2d dilation) {
  const int64_t rows = same_total(image.h, kernel.h, stride.h, dilation.h);
  const int64_t columns = same_total(image.w, kernel.w, stride.w, dilation.w);
  return {rows / 2, rows - rows / 2, columns / 2, columns - columns / 2};
}

Var conv2d(const Var& x, const Var& weight, const Var& bias, const Conv2dOptions& options) {
  const kernels::ConvShape shape = conv_shape(x, weight, bias, options);
  const Tensor from = x.value().contiguous(), w = weight.value().contiguous();
  Tensor y(Shape{shape.images, shape.out_height(), shape.out_width(), shape.filters});
  kernels::conv_forward({shape, from.data(), w.data(), data_or_null(bias), y.data()});
  // The images are kept only for the gradient of the weight.
  const bool wants_weight = weight.requires_grad() || bias.requires_grad();
  const Tensor kept = wants_weight && recording({x, weight, bias}) ? from : Tensor();
  return record(std::move(y), {x, weight, bias}, [=](const Tensor& grad) {
    if (x.requires_grad()) {
      const Tensor dx(x.shape());
      kernels::conv_backward_data({shape, grad.data(), w.data(), dx.data()});
      x.add_grad(dx);
    }
    if (!wants_weight) return;
    const Tensor d_weight(weight.shape());
    const Tensor d_bias = bias.requires_grad() ? Tensor(bias.shape()) : Tensor();
    kernels::conv_backward_weights(
        {shape, kept.data(), grad.data(), d_weight.data(), d_bias.defined() ? d_bias.data() : nullptr});
    weight.add_grad(d_weight);
    if (d_bias.defined()) bias.add_grad(d_bias);
  });
}

Var max_pool2d(const Var& x, const Pool2dOptions& options) {
  const kernels::PoolShape shape = pool_shape("max_pool2d", x, options);
  Tensor y(pooled_shape(shape));
  const auto place = std::make_shared<std::vector<int32_t>>(static_cast<size_t>(y.count()));
  kernels::max_pool_forward(shape, x.value().contiguous().data(), y.data(), place->data());
  return record(std::move(y), {x}, [x, shape, place](const Tensor& grad) {
    const Tensor dx(x.shape());
    kernels::max_pool_backward(shape, grad.data(), place->data(), dx.data());
    x.add_grad(dx);
  });
}

Var avg_pool2d(const Var& x, const Pool2dOptions& options) {
  const kernels::PoolShape shape = pool_shape("avg_pool2d", x, options);
  const bool count_padding = options.count_padding;
  Tensor y(pooled_shape(shape));
  kernels::avg_pool_forward(shape, count_padding, x.value().contiguous().data(), y.data());
  return record(std::move(y), {x}, [x, shape, count_padding](const Tensor& grad) {
    const Tensor dx(x.shape());
    kernels::avg_pool_backward(shape, count_padding, grad.data(), dx.data());
    x.add_grad(dx);
  });
}

Var global_max_pool2d(const Var& x) {
  check_image("global_max_pool2d", x);
  return reshape(max_pool2d(x, {.kernel = {x.size(1), x.size(2)}}), {x.size(0), x.size(3)});
}

Var global_avg_pool2d(const Var& x) {
  check_image("global_avg_pool2d", x);
  return mean(reshape(x, {x.size(0), x.size(1) * x.size(2), x.size(3)}), 1);
}

namespace {

// The moments that a batch is normalised by.
struct Moments {
  Tensor mean, rstd;
};

Moments batch_moments_of(const Tensor& x, const Tensor& running_mean, const Tensor& running_var,
                         const BatchNormOptions& options) {
  const int64_t channels = x.size(-1), rows = x.count() / channels;
  require(rows > 1, "batch_norm: got ", rows, " value of each channel (shape ", x.shape(),
          "), wanted more than one to train; take a larger batch");
  const Moments moments{Tensor(Shape{channels}), Tensor(Shape{channels})};
  kernels::batch_moments({rows, channels, x.data(), moments.mean.data(), moments.rstd.data()});
  const float unbiased = static_cast<float>(rows) / static_cast<float>(rows - 1);
  for (int64_t c = 0; c < channels; ++c) {
    float &mean = moments.mean.data()[c], &variance = moments.rstd.data()[c];
    float &kept_mean = running_mean.data()[c], &kept_variance = running_var.data()[c];
    kept_mean = (1 - options.momentum) * kept_mean + options.momentum * mean;
    kept_variance = (1 - options.momentum) * kept_variance + options.momentum * variance * unbiased;
    variance = 1 / std::sqrt(variance + options.epsilon);
  }
  return moments;
}

Moments running_moments(const Tensor& running_mean, const Tensor& running_var, float epsilon) {
  const Moments moments{running_mean.clone(), Tensor(running_var.shape())};
  for (int64_t c = 0; c < running_var.count(); ++c)
    moments.rstd.data()[c] = 1 / std::sqrt(running_var.data()[c] + epsilon);
  return moments;
}

void check_batch_norm(const Var& x, const Var& weight, const Var& bias, const Tensor& running_mean,
                      const Tensor& running_var) {
  require(x.rank() >= 2 && x.size(-1) > 0, "batch_norm: got input of shape ", x.shape(),
          ", wanted [..., channels]");
  const int64_t channels = x.size(-1);
  for (const Var* parameter : {&weight, &bias})
    require(!parameter->defined() || parameter->shape() == Shape{channels},
            "batch_norm: got a weight or bias of shape ", parameter->defined() ? parameter->shape() : Shape{},
            " for input ", x.shape(), ", wanted [", channels, "]");
  require(running_mean.shape() == Shape{channels} && running_var.shape() == Shape{channels},
          "batch_norm: got running moments of shapes ", running_mean.shape(), " and ", running_var.shape(),
          " for input ", x.shape(), ", wanted [", channels, "]");
}

void normalise(const Tensor& x, const Moments& moments, const Var& weight, const Var& bias,
               NormActivation activation, const Tensor& y) {
  kernels::batch_norm_forward({.rows = x.count() / x.size(-1),
                               .channels = x.size(-1),
                               .x = x.data(),
                               .mean = moments.mean.data(),
                               .rstd = moments.rstd.data(),
                               .weight = data_or_null(weight),
                               .bias = data_or_null(bias),
                               .activation = activation,
                               .y = y.data()});
}

}  // namespace

Var batch_norm(const Var& x, const Var& weight, const Var& bias, const Tensor& running_mean,
               const Tensor& running_var, const BatchNormOptions& options) {
  check_batch_norm(x, weight, bias, running_mean, running_var);
  const int64_t channels = x.size(-1), rows = x.count() / channels;
  const Tensor from = x.value().contiguous();
  const Moments moments = options.training ? batch_moments_of(from, running_mean, running_var, options)
                                           : running_moments(running_mean, running_var, options.epsilon);
  const Tensor y(x.shape());
  normalise(from, moments, weight, bias, options.activation, y);
  const bool keep_y = options.activation != NormActivation::none;
  return record(y, {x, weight, bias},
                [=, kept = keep_y ? y : Tensor(), activation = options.activation,
                 constant = !options.training](const Tensor& grad) {
                  const Tensor dx = x.requires_grad() ? Tensor(x.shape()) : Tensor();
                  const Tensor d_weight(Shape{channels}), d_bias(Shape{channels});
                  kernels::batch_norm_backward({.rows = rows,
                                                .channels = channels,
                                                .x = from.data(),
                                                .y = kept.defined() ? kept.data() : nullptr,
                                                .dy = grad.data(),
                                                .mean = moments.mean.data(),
                                                .rstd = moments.rstd.data(),
                                                .weight = data_or_null(weight),
                                                .activation = activation,
                                                .constant_moments = constant,
                                                .dx = dx.defined() ? dx.data() : nullptr,
                                                .d_weight = d_weight.data(),
                                                .d_bias = d_bias.data()});
                  if (dx.defined()) x.add_grad(dx);
                  if (weight.requires_grad()) weight.add_grad(d_weight);
                  if (bias.requires_grad()) bias.add_grad(d_bias);
                });
}

Var batch_norm_in_place(const Var& x, const Var& weight, const Var& bias, const Tensor& running_mean,
                        const Tensor& running_var, const BatchNormOptions& options) {
  if (options.training || !x.value().is_contiguous() || recording({x, weight, bias}))
    return batch_norm(x, weight, bias, running_mean, running_var, options);
  check_batch_norm(x, weight, bias, running_mean, running_var);
  const Moments moments = running_moments(running_mean, running_var, options.epsilon);
  normalise(x.value(), moments, weight, bias, options.activation, x.value());
  return x;
}

}  // namespace fovea
