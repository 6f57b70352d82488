// Where a token stands, as numbers to add to it.
#pragma once

#include <span>
#include <vector>

#include "tensor/tensor.h"

namespace fovea::nn {

// Vaswani et al.: row for position p holds sin(p / 10000^(2i/d)) at 2i and the cosine at 2i + 1. ->
// [positions, d]
Tensor sinusoid(std::span<const int32_t> positions, int64_t d);

// 0, 1, 2, ... begun anew for every sequence: the positions of packed tokens.
std::vector<int32_t> packed_positions(std::span<const int64_t> lengths);

}  // namespace fovea::nn
