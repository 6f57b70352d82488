// Rotary positions (Su et al. 2021): pairs of features turned by an angle that grows with the position.
#pragma once

#include <span>

#include "autograd/var.h"

namespace fovea {

struct RotaryOptions {
  float base = 10000;        // pair p of d/2 turns by position * base^(-2p/d)
  bool interleaved = false;  // pairs are (2p, 2p+1); otherwise (p, p + d/2), as LLaMA and GPT-NeoX have it
};

// x: [..., N, D] with D even; positions: one for each of the N rows. The result has x's shape.
Var rotary(const Var& x, std::span<const int32_t> positions, const RotaryOptions& options = {});

}  // namespace fovea
