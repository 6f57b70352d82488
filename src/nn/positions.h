// Position encodings: vectors that are added to tokens.
#pragma once

#include <span>
#include <vector>

#include "tensor/tensor.h"

namespace fovea::nn {

// The order of sines and cosines in a row: interleaved, or all sines before all cosines (Marian).
enum class SinusoidOrder { interleaved, halves };

// Vaswani et al.: the row of position p holds sin(p / 10000^(2i/d)) and its cosine for each i. -> [positions, d]
Tensor sinusoid(std::span<const int32_t> positions, int64_t d,
                SinusoidOrder order = SinusoidOrder::interleaved);

// 0, 1, 2, ... from 0 again for every sequence: the positions of packed tokens.
std::vector<int32_t> packed_positions(std::span<const int64_t> lengths);

}  // namespace fovea::nn
