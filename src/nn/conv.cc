#include "nn/conv.h"

#include <cmath>

#include "autograd/in_place.h"
#include "nn/init.h"
#include "nn/norm_in_place.h"

namespace fovea::nn {

Conv2d::Conv2d(int64_t channels, int64_t filters, Size2d kernel, Rng& rng, const Conv2dOptions& wanted,
               bool with_bias)
    : options(wanted) {
  require(wanted.groups > 0 && channels > 0 && filters > 0 && channels % wanted.groups == 0 &&
              filters % wanted.groups == 0,
          "conv2d: ", wanted.groups, " groups, wanted a divisor of ", channels, " channels and ", filters,
          " filters");
  const int64_t in = channels / wanted.groups;
  const float bound = 1 / std::sqrt(static_cast<float>(in * kernel.h * kernel.w));
  weight = add_parameter("weight", uniform({filters, in, kernel.h, kernel.w}, -bound, bound, rng));
  if (with_bias) bias = add_parameter("bias", uniform({filters}, -bound, bound, rng));
}

BatchNorm2d::BatchNorm2d(int64_t channels, float small, float share)
    : weight(add_parameter("weight", constant({channels}, 1))),
      bias(add_parameter("bias", constant({channels}, 0))),
      running_mean(add_buffer("running_mean", constant({channels}, 0))),
      running_var(add_buffer("running_var", constant({channels}, 1))),
      epsilon(small),
      momentum(share) {}

namespace {

BatchNormOptions norm_options(const BatchNorm2d& norm, const Context& context, NormActivation activation) {
  return {.training = context.training,
          .momentum = norm.momentum,
          .epsilon = norm.epsilon,
          .activation = activation};
}

}  // namespace

Var BatchNorm2d::operator()(const Var& x, const Context& context, NormActivation activation) const {
  return batch_norm(x, weight, bias, running_mean.value(), running_var.value(),
                    norm_options(*this, context, activation));
}

Var norm_in_place(const BatchNorm2d& norm, const Var& x, const Context& context, NormActivation activation) {
  return batch_norm_in_place(x, norm.weight, norm.bias, norm.running_mean.value(), norm.running_var.value(),
                             norm_options(norm, context, activation));
}

}  // namespace fovea::nn
