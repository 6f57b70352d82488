// How recurrent ops cut a batch: the sequences, longest first, dealt into blocks in turn, so that each
// gets long and short ones. A block runs its whole time loop on one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/recurrent/recurrent.h"

namespace fovea::kernels {

struct RecurrentSchedule {
  explicit RecurrentSchedule(std::span<const int64_t> lengths, bool reverse = false);
  int64_t block_count() const { return static_cast<int64_t>(begin.size()) - 1; }
  // Rows, sequence, first, length and step of a block.
  RecurrentBlock block(int64_t index) const;

  int64_t tokens = 0;
  bool single_steps = true;  // every length is 1
  int64_t step = 1;
  std::vector<int64_t> begin;  // rows of block i: [begin[i], begin[i + 1])
  std::vector<int64_t> sequence, first, length;
};

}  // namespace fovea::kernels
