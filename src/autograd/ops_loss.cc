// Losses, each with its gradient.
#include "autograd/ops_loss.h"

#include <algorithm>
#include <cmath>

#include "kernels/vector/elementwise.h"
#include "kernels/vector/loss.h"
#include "kernels/vector/reduce.h"

namespace fovea {
namespace {

// Rows whose target counts; throws on a target that is no class.
int64_t check_targets(const Shape& shape, std::span<const int32_t> targets,
                      const CrossEntropyOptions& options) {
  require(shape.rank() >= 1 && shape[-1] > 0, "cross_entropy: got logits of shape ", shape,
          ", wanted [..., classes]");
  const int64_t classes = shape[-1], rows = shape.count(0, shape.rank() - 1);
  require(static_cast<int64_t>(targets.size()) == rows, "cross_entropy: got ", targets.size(),
          " targets for logits of shape ", shape, ", wanted ", rows);
  require(options.smoothing >= 0 && options.smoothing <= 1, "cross_entropy: got smoothing ",
          options.smoothing, ", wanted 0 to 1");
  int64_t counted = 0;
  for (const int32_t target : targets) {
    if (target == options.ignored) continue;
    require(target >= 0 && target < classes, "cross_entropy: got target ", target, ", wanted 0 to ",
            classes - 1, " or the ignored index ", options.ignored);
    ++counted;
  }
  return counted;
}

// One loss per row. The gradient needs one factor per row, so it is made in its own pass.
Var loss_per_row(const Var& logits, std::span<const int32_t> targets, const CrossEntropyOptions& options) {
  const int64_t classes = logits.size(-1), rows = static_cast<int64_t>(targets.size());
  const Tensor x = logits.value().contiguous();
  const Tensor losses(Shape{rows}), lse(Shape{rows});
  kernels::cross_entropy({.rows = rows,
                          .classes = classes,
                          .logits = x.data(),
                          .targets = targets.data(),
                          .ignored = options.ignored,
                          .smoothing = options.smoothing,
                          .losses = losses.data(),
                          .lse = lse.data()});
  const std::vector<int32_t> kept(targets.begin(), targets.end());
  return record(losses, {logits}, [=](const Tensor& grad) {
    const Tensor dx = options.overwrite_logits ? x : Tensor(x.shape());
    kernels::cross_entropy_backward({.rows = rows,
                                     .classes = classes,
                                     .logits = x.data(),
                                     .targets = kept.data(),
                                     .ignored = options.ignored,
                                     .smoothing = options.smoothing,
                                     .lse = lse.data(),
                                     .d_losses = grad.data(),
                                     .d_logits = dx.data()});
    logits.add_grad(dx);
  });
}

}  // namespace

Var cross_entropy(const Var& logits, std::span<const int32_t> targets, const CrossEntropyOptions& options) {
  const int64_t counted = check_targets(logits.shape(), targets, options);
  if (options.reduction == Reduction::none) return loss_per_row(logits, targets, options);
  const int64_t classes = logits.size(-1), rows = static_cast<int64_t>(targets.size());
  const Tensor x = logits.value().contiguous();
  const Tensor losses(Shape{rows});
  // The gradient is made while each row of logits is in the cache; backward only scales it.
  Tensor gradient;
  if (recording({logits})) gradient = options.overwrite_logits ? x : Tensor(x.shape());
  const double scale =
      options.reduction == Reduction::mean ? 1 / static_cast<double>(std::max<int64_t>(1, counted)) : 1.0;
  kernels::cross_entropy({.rows = rows,
                          .classes = classes,
                          .logits = x.data(),
                          .targets = targets.data(),
                          .ignored = options.ignored,
                          .smoothing = options.smoothing,
                          .losses = losses.data(),
                          .gradient = gradient.defined() ? gradient.data() : nullptr,
                          .gradient_scale = static_cast<float>(scale)});
  const double total = kernels::sum(losses.data(), rows);
  return record(Tensor::scalar(static_cast<float>(scale * total)), {logits}, [=](const Tensor& grad) {
    const float factor = grad.item();
    if (factor != 1) kernels::scale(factor, gradient.data(), gradient.data(), gradient.count());
    logits.add_grad(gradient);
  });
}

namespace {

// The value and the derivative of the loss of one number.
struct ElementLoss {
  double loss;
  float slope;
};

// A loss that is a sum over numbers: the mean of each row's numbers, reduced over rows. element: (number, target)
// -> ElementLoss.
template <class Element>
Var elementwise_loss(const char* name, const Var& x, std::span<const float> targets, Reduction reduction,
                     Element element) {
  require(x.rank() == 2, name, ": got numbers of shape ", x.shape(), ", wanted [rows, width]");
  const int64_t rows = x.size(0), width = x.size(1);
  require(static_cast<int64_t>(targets.size()) == rows * width, name, ": got ", targets.size(),
          " targets for numbers of shape ", x.shape());
  const Tensor values = x.value().contiguous(), slopes(x.shape()), losses(Shape{rows});
  double sum = 0;
  for (int64_t r = 0; r < rows; ++r) {
    double row = 0;
    for (int64_t c = 0; c < width; ++c) {
      const ElementLoss one =
          element(values.data()[r * width + c], targets[static_cast<size_t>(r * width + c)]);
      row += one.loss;
      slopes.data()[r * width + c] = one.slope / static_cast<float>(width);
    }
    row /= static_cast<double>(std::max<int64_t>(width, 1));
    losses.data()[r] = static_cast<float>(row);
    sum += row;
  }
  const double count = reduction == Reduction::mean ? static_cast<double>(std::max<int64_t>(rows, 1)) : 1;
  const bool each = reduction == Reduction::none;
  const Tensor result = each ? losses : Tensor::scalar(static_cast<float>(sum / count));
  return record(result, {x}, [=](const Tensor& grad) {
    const Tensor d(slopes.shape()), g = grad.contiguous();
    for (int64_t r = 0; r < rows; ++r) {
      const float factor = g.data()[each ? r : 0] / static_cast<float>(count);
      for (int64_t c = 0; c < width; ++c) d.data()[r * width + c] = factor * slopes.data()[r * width + c];
    }
    x.add_grad(d);
  });
}

}  // namespace

Var squared_error(const Var& x, std::span<const float> targets, Reduction reduction) {
  return elementwise_loss("squared_error", x, targets, reduction, [](float value, float target) {
    const double difference = double{value} - target;
    return ElementLoss{difference * difference, static_cast<float>(2 * difference)};
  });
}

Var binary_cross_entropy(const Var& logits, std::span<const float> targets, Reduction reduction) {
  for (const float target : targets)
    require(target >= 0 && target <= 1, "binary_cross_entropy: got target ", target, ", wanted 0 to 1");
  return elementwise_loss("binary_cross_entropy", logits, targets, reduction, [](float logit, float target) {
    // log(1 + exp(x)) - t x, without overflow.
    const double x = logit, small = std::exp(-std::abs(x));
    const double p = x >= 0 ? 1 / (1 + small) : small / (1 + small);
    return ElementLoss{std::max(x, 0.0) + std::log1p(small) - target * x, static_cast<float>(p - target)};
  });
}

}  // namespace fovea
