// Packed tokens as models take them, and how they become vectors.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "autograd/var.h"
#include "nn/module.h"

namespace fovea::models {

// Sentences (or texts) one after the other, without padding; the ids stay the caller's.
struct Sentences {
  std::span<const int32_t> ids;
  std::vector<int64_t> lengths;  // of each sentence

  Sentences(std::span<const int32_t> tokens, std::span<const int32_t> sizes)
      : ids(tokens), lengths(sizes.begin(), sizes.end()) {}
  int64_t count() const { return static_cast<int64_t>(lengths.size()); }
  int64_t total() const { return static_cast<int64_t>(ids.size()); }
  int64_t longest() const;
};

// What a Transformer reads: sqrt(d) times the token's row of the table [vocabulary, d], plus where it stands:
// the row of `positions` [most, d], or a sinusoid where that is undefined; dropped out -> [total, d]. Throws
// Error when a sentence is longer than the learned positions.
Var embed_at_positions(const Var& table, const Var& positions, const Sentences& tokens, float dropout,
                       nn::Context& context);

// A layer's dropout in this pass.
Var dropped(const Var& x, float dropout, nn::Context& context);

}  // namespace fovea::models
