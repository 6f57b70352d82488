// Keys and values that a decoder keeps between steps, so that a step computes those of its newest tokens alone.
//
// A step has one row for each hypothesis. What a row sees is a list of slots, the same for all layers:
// hypotheses that share a beginning share its slots, and reordering a beam moves numbers instead of keys.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/tensor.h"

namespace fovea::nn {

// Throws Error unless every parent is one of that many rows.
void check_parents(std::span<const int32_t> parents, int64_t rows);

// The slots that each row sees.
class CacheRows {
 public:
  // Rows that have seen nothing yet; every step gives each its next slot.
  static CacheRows growing(int64_t rows);
  // Row i sees the whole of sentence i, whose tokens are in consecutive slots.
  static CacheRows of_sentences(std::span<const int64_t> lengths);

  // Gives every row one slot more, the next free ones in the order of the rows.
  void add_slots();
  // Row i becomes a copy of what row parents[i] was.
  void reorder(std::span<const int32_t> parents);

  int64_t rows() const { return static_cast<int64_t>(first_.size()); }
  // Slots given so far, to rows that are gone as well.
  int64_t slot_count() const { return next_; }
  // Row r sees slots()[first()[r]] and the count()[r] - 1 after it; where slots() is null, first()[r] itself is
  // the first slot.
  const int32_t* slots() const { return growing_ ? slots_.data() : nullptr; }
  const int32_t* first() const { return first_.data(); }
  const int32_t* count() const { return count_.data(); }

 private:
  bool growing_ = false;
  std::vector<std::vector<int32_t>> histories_;  // growing: the slots of each row
  std::vector<int32_t> slots_, first_, count_;
  int32_t next_ = 0;
};

// The keys and values of one attention layer, a row [keys, values] for each slot.
class KeyValueCache {
 public:
  // Memory for the next `slots` slots, of `width` floats each.
  float* append(int64_t slots, int64_t width);
  const float* data() const { return memory_.data(); }
  int64_t slot_count() const { return used_; }

 private:
  Tensor memory_;
  int64_t used_ = 0;
};

// Of a decoder layer, and of a whole decoder.
struct LayerCache {
  KeyValueCache self, cross;
};
struct DecoderCache {
  std::vector<LayerCache> layers;
  CacheRows self, cross;
  void reorder(std::span<const int32_t> parents);
};

}  // namespace fovea::nn
