// One convolution as oneDNN prepares it for one shape and one thread. This file and its source are the only
// ones that know how the library's versions 2 and 3 differ.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/conv.h"

namespace fovea::kernels {

enum class ConvPass { forward, backward_data, backward_weights };

class ConvPrimitive {
 public:
  // Throws Error when oneDNN has no such convolution.
  ConvPrimitive(ConvPass pass, const ConvShape& shape, bool with_bias);
  ~ConvPrimitive();
  ConvPrimitive(ConvPrimitive&&) noexcept;

  // The weights, or their gradient, lie in an order of the primitive's own.
  int64_t packed_floats() const;
  bool packs_like(const ConvPrimitive& other) const;
  void pack(const float* weight, float* packed);
  void unpack(const float* packed, float* weight);

  // On the calling thread. forward: x, packed, bias -> y. backward_data: dy, packed -> dx. backward_weights:
  // x and dy -> packed, bias (both written).
  struct Call {
    const float* x = nullptr;
    const float* y = nullptr;
    const float* packed = nullptr;
    const float* bias = nullptr;
  };
  void run(const Call& call);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// The calling thread's own, made at the first use of a shape and kept.
ConvPrimitive& conv_primitive(ConvPass pass, const ConvShape& shape, bool with_bias);

}  // namespace fovea::kernels
