#include "autograd/ops_output.h"

#include <algorithm>
#include <vector>

#include "kernels/gemm/gemm.h"
#include "kernels/gemm/packed_gemm.h"
#include "kernels/vector/elementwise.h"
#include "kernels/vector/loss.h"

namespace fovea {
namespace {

// Rows whose logits are alive at once: about two million logits, eight megabytes.
int64_t slab_rows(int64_t classes) {
  return std::clamp<int64_t>((int64_t{1} << 21) / std::max<int64_t>(1, classes), 64, 1024);
}

struct Gradients {
  Tensor x, weight, bias;
};

Tensor scaled(const Tensor& gradient, float factor) {
  if (factor == 1) return gradient;
  Tensor result(gradient.shape());
  kernels::scale(factor, gradient.data(), result.data(), gradient.count());
  return result;
}

}  // namespace

OutputLoss linear_cross_entropy(const Var& x, const Var& weight, const Var& bias,
                                std::span<const int32_t> targets, const OutputLossOptions& options) {
  require(x.rank() == 2 && weight.rank() == 2 && x.size(1) == weight.size(1),
          "linear_cross_entropy: got input ", x.shape(), " and weight ", weight.shape(),
          ", wanted [rows, in] and [classes, in]");
  const int64_t rows = x.size(0), in = x.size(1), classes = weight.size(0);
  require(!bias.defined() || bias.shape() == Shape{classes}, "linear_cross_entropy: got a bias of shape ",
          bias.defined() ? bias.shape() : Shape{}, ", wanted [", classes, "]");
  require(static_cast<int64_t>(targets.size()) == rows, "linear_cross_entropy: got ", targets.size(),
          " targets for ", rows, " rows");
  OutputLoss result;
  for (const int32_t target : targets) {
    require(target == options.ignored || (target >= 0 && target < classes), "linear_cross_entropy: target ",
            target, ", wanted 0 to ", classes - 1);
    result.count += target != options.ignored;
  }
  const float share = result.count > 0 ? 1 / static_cast<float>(result.count) : 0;
  const bool keep = recording({x, weight, bias});
  const Tensor input = x.value().contiguous(), w = weight.value().contiguous();
  Gradients gradients;
  if (keep && x.requires_grad()) gradients.x = Tensor(x.shape());
  if (keep && weight.requires_grad()) gradients.weight = Tensor::zeros(weight.shape());
  if (keep && bias.requires_grad()) gradients.bias = Tensor::zeros(bias.shape());

  // Both forms of the weight that the slabs multiply with, packed once.
  const auto packed = [&](bool transpose) {
    const int64_t n = transpose ? classes : in, k = transpose ? in : classes;
    Tensor memory(Shape{kernels::packed_size(n, k)});
    kernels::pack_parallel({.transpose = transpose, .n = n, .k = k, .b = w.data(), .ldb = in}, memory.data());
    return memory;
  };
  const Tensor forwards = packed(true), backwards = gradients.x.defined() ? packed(false) : Tensor();
  const int64_t slab = std::min(rows, slab_rows(classes));
  const Tensor logits({slab, classes}), column_sums(Shape{classes});
  std::vector<float> losses(static_cast<size_t>(rows)), lse(static_cast<size_t>(rows));
  for (int64_t begin = 0; begin < rows; begin += slab) {
    const int64_t n = std::min(slab, rows - begin);
    kernels::gemm({.transpose_b = true,
                   .m = n,
                   .n = classes,
                   .k = in,
                   .a = input.data() + begin * in,
                   .lda = in,
                   .packed = forwards.data(),
                   .bias = bias.defined() ? bias.value().data() : nullptr,
                   .c = logits.data(),
                   .ldc = classes});
    for (int64_t i = 0; i < n; ++i) {
      const int32_t target = targets[static_cast<size_t>(begin + i)];
      if (target != options.ignored) result.negative_log_likelihood -= logits.data()[i * classes + target];
    }
    kernels::cross_entropy({.rows = n,
                            .classes = classes,
                            .logits = logits.data(),
                            .targets = targets.data() + begin,
                            .ignored = options.ignored,
                            .smoothing = options.smoothing,
                            .losses = losses.data() + begin,
                            .lse = lse.data() + begin,
                            .gradient = keep ? logits.data() : nullptr,
                            .gradient_scale = share});
    if (gradients.x.defined()) {
      kernels::gemm({.m = n,
                     .n = in,
                     .k = classes,
                     .a = logits.data(),
                     .lda = classes,
                     .packed = backwards.data(),
                     .c = gradients.x.data() + begin * in,
                     .ldc = in});
    }
    if (gradients.weight.defined()) {
      kernels::gemm({.transpose_a = true,
                     .m = classes,
                     .n = in,
                     .k = n,
                     .a = logits.data(),
                     .lda = classes,
                     .b = input.data() + begin * in,
                     .ldb = in,
                     .beta = begin > 0 ? 1.0f : 0.0f,
                     .c = gradients.weight.data(),
                     .ldc = in});
    }
    if (gradients.bias.defined()) {
      kernels::bias_activation_backward(
          {.rows = n, .columns = classes, .dy = logits.data(), .d_bias = column_sums.data()});
      kernels::axpy(1, column_sums.data(), gradients.bias.data(), classes);
    }
  }
  double sum = 0;
  for (size_t i = 0; i < losses.size(); ++i) {
    if (targets[i] == options.ignored) continue;
    sum += losses[i];
    result.negative_log_likelihood += lse[i];
  }
  result.loss =
      record(Tensor::scalar(static_cast<float>(sum * share)), {x, weight, bias}, [=](const Tensor& grad) {
        const float factor = grad.item();
        if (gradients.x.defined()) x.add_grad(scaled(gradients.x, factor));
        if (gradients.weight.defined()) weight.add_grad(scaled(gradients.weight, factor));
        if (gradients.bias.defined()) bias.add_grad(scaled(gradients.bias, factor));
      });
  return result;
}

}  // namespace fovea
