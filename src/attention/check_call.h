// What a call of attention may get wrong: shapes that do not fit each other, and parameters that the spec does
// not name or that are missing.
#pragma once

#include <cstdint>
#include <optional>

#include "attention/spec.h"
#include "base/shape.h"

namespace fovea {

struct AttentionSizes {
  int64_t batch = 0, heads = 0, kv_heads = 0, queries = 0, keys = 0;
  int64_t d = 0, dk = 0, dv = 0;  // features of q, k and v
  friend bool operator==(const AttentionSizes&, const AttentionSizes&) = default;
};
// Throws Error unless the shapes are [B, H, Nq, D], [B, Hk, Nk, Dk] and [B, Hk, Nk, Dv], and Hk divides H.
AttentionSizes attention_sizes(const Shape& q, const Shape& k, const Shape& v);

// Shapes of the parameters that are given; see AttentionParameters.
struct ParameterShapes {
  std::optional<Shape> W = {}, U = {}, b = {}, v = {}, bias = {}, slopes = {}, relative = {}, position = {},
                       sink = {};
};
// Throws Error naming the parameter that is missing, not wanted or of another shape. projected: as in
// AttentionRequest.
void check_parameters(const AttentionSpec& spec, const ParameterShapes& given, const AttentionSizes& sizes,
                      bool projected);

}  // namespace fovea
