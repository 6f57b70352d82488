#include "nn/layers.h"

#include <cmath>

#include "nn/init.h"

namespace fovea::nn {

Activation activation_named(const std::string& name) {
  if (name == "relu") return Activation::relu;
  if (name == "gelu") return Activation::gelu;
  if (name == "swish" || name == "silu") return Activation::silu;
  fail("transformer: activation '", name, "', wanted relu, gelu or swish");
}

Linear::Linear(int64_t in, int64_t out, Rng& rng, bool with_bias)
    : projection_([this] {
        return std::vector<Projection::Part>{{weight, bias}};
      }) {
  const float bound = in > 0 ? 1 / std::sqrt(static_cast<float>(in)) : 0;
  weight = add_parameter("weight", uniform({out, in}, -bound, bound, rng));
  if (with_bias) bias = add_parameter("bias", uniform({out}, -bound, bound, rng));
  add_projection(projection_);
}

LayerNorm::LayerNorm(int64_t d, float small)
    : weight(add_parameter("weight", constant({d}, 1))),
      bias(add_parameter("bias", constant({d}, 0))),
      epsilon(small) {}

}  // namespace fovea::nn
