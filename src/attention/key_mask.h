// A mask given as data: for each row the keys that it may attend to, from an array of the caller. The plan compiler
// joins it with a pattern (&), so a mask costs no more than the keys that it leaves.
//
//   KeyMask mask = KeyMask::from_bools(bools, {.batches = 8, .keys = 512});         // padding: one row a batch entry
//   AttentionPlan plan = compile(causal(), sizes, &mask);
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "attention/row_set.h"

namespace fovea {

class KeyMask {
 public:
  // A count of 1 holds for every batch entry, head or query of a call.
  struct Sizes {
    int64_t batches = 1, heads = 1, queries = 1, keys = 0;
  };

  // Element (b, h, i, j) is at data[b * strides[0] + ... + j * strides[3]]; not 0: the row may see the key.
  struct Bools {
    const uint8_t* data = nullptr;
    std::array<int64_t, 4> strides = {};
  };
  static KeyMask from_bools(const Bools& bools, const Sizes& sizes);

  // Blocks of rows and keys, as PyTorch's BlockMask lists them: for each batch entry, head and block of rows a
  // count and the numbers of the blocks of keys that count. `full` blocks are seen whole, `partial` ones as
  // `bits` says, which holds query_block x key_block bytes for each partial block in the order of the lists.
  struct BlockList {
    std::span<const int32_t> counts;   // [batches, heads, row blocks]
    std::span<const int32_t> indices;  // [batches, heads, row blocks, slots]
    int64_t slots = 0;
  };
  struct Blocks {
    int64_t query_block = 0, key_block = 0;
    BlockList full, partial;
    std::span<const uint8_t> bits;
  };
  // Throws Error on counts and numbers that are out of range, and on too few bits.
  static KeyMask from_blocks(const Blocks& blocks, const Sizes& sizes);

  // Masks of consecutive rows of the same batches, heads and keys, as one. Throws Error when these differ.
  static KeyMask join_rows(std::span<const KeyMask* const> parts);

  const Sizes& sizes() const { return sizes_; }
  // Throws Error unless the mask fits a call of these sizes.
  void fit(const Sizes& call) const;
  // The keys that a row may see.
  std::span<const Interval> row(int64_t batch, int64_t head, int64_t query) const;
  // Rows after which it changes on purpose: those of a block mask; 0: any.
  int64_t row_block() const { return row_block_; }
  int64_t interval_count() const { return static_cast<int64_t>(intervals_.size()); }

 private:
  explicit KeyMask(const Sizes& sizes);
  void end_row();

  Sizes sizes_;
  int64_t row_block_ = 0;
  std::vector<Interval> intervals_;
  std::vector<int64_t> begins_;  // [rows + 1]
};

}  // namespace fovea
