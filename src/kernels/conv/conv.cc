#include "kernels/conv/conv.h"

#include <algorithm>

#include "kernels/conv/conv_dense.h"
#include "kernels/conv/conv_depthwise.h"
#include "kernels/conv/conv_planes.h"
#include "kernels/gemm/gemm.h"
#include "kernels/level_table.h"
#include "kernels/vector/elementwise.h"
#include "kernels/vector/reduce.h"

FOVEA_LEVEL_TABLES(ConvKernels, conv_table, conv_kernels)

namespace fovea::kernels {
namespace {

int64_t out_places(const ConvShape& s) {
  return s.images * s.out_height() * s.out_width();
}

// 1 x 1 over every place: rows of features times a matrix.
bool is_product(const ConvShape& s) {
  return s.kernel_h == 1 && s.kernel_w == 1 && s.stride_h == 1 && s.stride_w == 1 && s.groups == 1 &&
         s.top == 0 && s.bottom == 0 && s.left == 0 && s.right == 0;
}

// Every channel for itself, or with filters of its own.
bool is_depthwise(const ConvShape& s) {
  return s.groups == s.channels && s.groups > 1;
}

void product_forward(const ConvForward& args) {
  const ConvShape& s = args.shape;
  const int64_t rows = out_places(s);
  gemm({.transpose_b = true,
        .m = rows,
        .n = s.filters,
        .k = s.channels,
        .a = args.x,
        .lda = s.channels,
        .b = args.weight,
        .ldb = s.channels,
        .c = args.y,
        .ldc = s.filters});
  if (args.bias == nullptr) return;
  bias_activation({.rows = rows, .columns = s.filters, .x = args.y, .bias = args.bias, .y = args.y});
}

void product_backward_data(const ConvBackwardData& args) {
  const ConvShape& s = args.shape;
  gemm({.m = out_places(s),
        .n = s.channels,
        .k = s.filters,
        .a = args.dy,
        .lda = s.filters,
        .b = args.weight,
        .ldb = s.channels,
        .c = args.dx,
        .ldc = s.channels});
}

void product_backward_weights(const ConvBackwardWeights& args) {
  const ConvShape& s = args.shape;
  gemm({.transpose_a = true,
        .m = s.filters,
        .n = s.channels,
        .k = out_places(s),
        .a = args.dy,
        .lda = s.filters,
        .b = args.x,
        .ldb = s.channels,
        .c = args.d_weight,
        .ldc = s.channels});
}

}  // namespace

void conv_forward(const ConvForward& args, const ConvKernels& kernels) {
  if (out_places(args.shape) == 0) return;
  if (is_product(args.shape)) return product_forward(args);
  if (is_depthwise(args.shape)) return depthwise_conv_forward(args, kernels);
  if (planes_conv_forward_fits(args.shape)) return planes_conv_forward(args, kernels);
  dense_conv_forward(args, kernels);
}

void conv_backward_data(const ConvBackwardData& args, const ConvKernels& kernels) {
  const ConvShape& s = args.shape;
  if (s.images == 0) return;
  if (is_product(s)) return product_backward_data(args);
  if (is_depthwise(s)) return depthwise_conv_backward_data(args, kernels);
  if (planes_conv_backward_data_fits(s)) return planes_conv_backward_data(args, kernels);
  dense_conv_backward_data(args, kernels);
}

void conv_backward_weights(const ConvBackwardWeights& args, const ConvKernels& kernels) {
  const ConvShape& s = args.shape;
  if (args.d_bias != nullptr) sum_axis(args.dy, {1, out_places(s), s.filters}, args.d_bias);
  if (out_places(s) == 0) {
    std::fill_n(args.d_weight, s.weights(), 0.0f);
    return;
  }
  if (is_product(s)) return product_backward_weights(args);
  if (is_depthwise(s)) return depthwise_conv_backward_weights(args, kernels);
  dense_conv_backward_weights(args, kernels);
}

}  // namespace fovea::kernels
