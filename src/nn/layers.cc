#include "nn/layers.h"

#include <cmath>

#include "nn/init.h"

namespace fovea::nn {

Linear::Linear(int64_t in, int64_t out, Rng& rng, bool with_bias) {
  const float bound = in > 0 ? 1 / std::sqrt(static_cast<float>(in)) : 0;
  weight = add_parameter("weight", uniform({out, in}, -bound, bound, rng));
  if (with_bias) bias = add_parameter("bias", uniform({out}, -bound, bound, rng));
}

}  // namespace fovea::nn
