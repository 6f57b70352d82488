#include "nn/upsample.h"

#include <cmath>

#include "nn/init.h"

namespace fovea::nn {

ConvTranspose2d::ConvTranspose2d(int64_t channels, int64_t filters, Size2d kernel, Rng& rng,
                                 const ConvTranspose2dOptions& wanted, bool with_bias)
    : options(wanted) {
  require(wanted.groups > 0 && channels > 0 && filters > 0 && channels % wanted.groups == 0 &&
              filters % wanted.groups == 0,
          "conv_transpose2d: ", wanted.groups, " groups, wanted a divisor of ", channels, " channels and ",
          filters, " filters");
  const int64_t out = filters / wanted.groups;
  const float bound = 1 / std::sqrt(static_cast<float>(out * kernel.h * kernel.w));
  weight = add_parameter("weight", uniform({channels, out, kernel.h, kernel.w}, -bound, bound, rng));
  if (with_bias) bias = add_parameter("bias", uniform({filters}, -bound, bound, rng));
}

}  // namespace fovea::nn
