// Builds masks from arrays of bools and from lists of blocks, as runs of visible keys for each row.
#include "attention/key_mask.h"

#include <algorithm>

#include "base/error.h"

namespace fovea {

KeyMask::KeyMask(const Sizes& sizes) : sizes_(sizes) {
  constexpr int64_t kMostRows = int64_t{1} << 31;
  int64_t rows = 1;
  for (const int64_t count : {sizes.batches, sizes.heads, sizes.queries}) {
    require(count >= 0 && count < kMostRows && (count == 0 || rows < kMostRows / count), "mask: got ",
            sizes.batches, " x ", sizes.heads, " x ", sizes.queries, " rows, wanted at most ", kMostRows);
    rows *= count;
  }
  require(sizes.keys >= 0 && sizes.keys < kMostRows, "mask: got ", sizes.keys, " keys, wanted at most ",
          kMostRows);
  begins_.reserve(static_cast<size_t>(rows) + 1);
  begins_.push_back(0);
}

void KeyMask::end_row() {
  begins_.push_back(static_cast<int64_t>(intervals_.size()));
}

KeyMask KeyMask::from_bools(const Bools& bools, const Sizes& sizes) {
  KeyMask mask(sizes);
  for (int64_t b = 0; b < sizes.batches; ++b)
    for (int64_t h = 0; h < sizes.heads; ++h)
      for (int64_t i = 0; i < sizes.queries; ++i) {
        const uint8_t* row = bools.data + b * bools.strides[0] + h * bools.strides[1] + i * bools.strides[2];
        for (int64_t j = 0; j < sizes.keys;) {
          while (j < sizes.keys && row[j * bools.strides[3]] == 0) ++j;
          const int64_t begin = j;
          while (j < sizes.keys && row[j * bools.strides[3]] != 0) ++j;
          if (begin < j) mask.intervals_.push_back({begin, j});
        }
        mask.end_row();
      }
  return mask;
}

namespace {

// One block of keys of a row of blocks; bits: null where it is seen whole.
struct SeenBlock {
  int64_t number = 0;
  const uint8_t* bits = nullptr;
};

void check_list(const KeyMask::BlockList& list, int64_t row_blocks, int64_t key_blocks, const char* name) {
  require(static_cast<int64_t>(list.counts.size()) == row_blocks &&
              static_cast<int64_t>(list.indices.size()) == row_blocks * list.slots,
          "block mask: got ", list.counts.size(), " counts and ", list.indices.size(), " indices of ", name,
          " blocks, wanted ", row_blocks, " and ", row_blocks * list.slots);
  for (int64_t row = 0; row < row_blocks; ++row) {
    require(list.counts[row] >= 0 && list.counts[row] <= list.slots, "block mask: got a count of ",
            list.counts[row], " ", name, " blocks, wanted 0 to ", list.slots);
    for (int64_t slot = 0; slot < list.counts[row]; ++slot) {
      const int32_t number = list.indices[row * list.slots + slot];
      require(number >= 0 && number < key_blocks, "block mask: got the ", name, " block ", number,
              ", wanted 0 to ", key_blocks - 1);
    }
  }
}

}  // namespace

KeyMask KeyMask::from_blocks(const Blocks& blocks, const Sizes& sizes) {
  require(blocks.query_block > 0 && blocks.key_block > 0, "block mask: got blocks of ", blocks.query_block,
          " x ", blocks.key_block, ", wanted at least 1 x 1");
  KeyMask mask(sizes);
  mask.row_block_ = blocks.query_block;
  const int64_t rows_of_blocks = (sizes.queries + blocks.query_block - 1) / blocks.query_block;
  const int64_t key_blocks = (sizes.keys + blocks.key_block - 1) / blocks.key_block;
  const int64_t row_blocks = sizes.batches * sizes.heads * rows_of_blocks;
  check_list(blocks.full, row_blocks, key_blocks, "full");
  check_list(blocks.partial, row_blocks, key_blocks, "partial");
  int64_t partial = 0;
  for (const int32_t count : blocks.partial.counts) partial += count;
  const int64_t block_bytes = blocks.query_block * blocks.key_block;
  require(static_cast<int64_t>(blocks.bits.size()) / block_bytes >= partial, "block mask: got ",
          blocks.bits.size(), " bytes for ", partial, " partial blocks of ", block_bytes);
  const uint8_t* bits = blocks.bits.data();
  std::vector<SeenBlock> seen;
  for (int64_t row_block = 0; row_block < row_blocks; ++row_block) {
    seen.clear();
    for (int64_t slot = 0; slot < blocks.full.counts[row_block]; ++slot)
      seen.push_back({blocks.full.indices[row_block * blocks.full.slots + slot]});
    for (int64_t slot = 0; slot < blocks.partial.counts[row_block]; ++slot, bits += block_bytes)
      seen.push_back({blocks.partial.indices[row_block * blocks.partial.slots + slot], bits});
    std::sort(seen.begin(), seen.end(),
              [](const SeenBlock& a, const SeenBlock& b) { return a.number < b.number; });
    require(std::adjacent_find(seen.begin(), seen.end(),
                               [](const SeenBlock& a, const SeenBlock& b) { return a.number == b.number; }) ==
                seen.end(),
            "block mask: a block of keys is listed twice for one block of queries");
    const int64_t first = row_block % rows_of_blocks * blocks.query_block;
    const int64_t rows = std::min(blocks.query_block, sizes.queries - first);
    for (int64_t r = 0; r < rows; ++r) {
      IntervalSet keys;
      for (const SeenBlock& block : seen) {
        const int64_t begin = block.number * blocks.key_block;
        const int64_t count = std::min(blocks.key_block, sizes.keys - begin);
        if (block.bits == nullptr) {
          append(keys, begin, begin + count);
          continue;
        }
        const uint8_t* row = block.bits + r * blocks.key_block;
        for (int64_t j = 0; j < count; ++j)
          if (row[j] != 0) append(keys, begin + j, begin + j + 1);
      }
      mask.intervals_.insert(mask.intervals_.end(), keys.begin(), keys.end());
      mask.end_row();
    }
  }
  return mask;
}

KeyMask KeyMask::join_rows(std::span<const KeyMask* const> parts) {
  require(!parts.empty(), "mask: got no rows to join");
  Sizes sizes = parts[0]->sizes_;
  sizes.queries = 0;
  for (const KeyMask* part : parts) {
    require(part->sizes_.batches == sizes.batches && part->sizes_.heads == sizes.heads &&
                part->sizes_.keys == sizes.keys,
            "mask: got rows of different batches, heads or keys");
    sizes.queries += part->sizes_.queries;
  }
  KeyMask joined(sizes);
  for (int64_t b = 0; b < sizes.batches; ++b)
    for (int64_t h = 0; h < sizes.heads; ++h)
      for (const KeyMask* part : parts)
        for (int64_t i = 0; i < part->sizes_.queries; ++i) {
          const std::span<const Interval> row = part->row(b, h, i);
          joined.intervals_.insert(joined.intervals_.end(), row.begin(), row.end());
          joined.end_row();
        }
  return joined;
}

void KeyMask::fit(const Sizes& call) const {
  const auto fits = [](int64_t own, int64_t of_call) { return own == 1 || own == of_call; };
  require(fits(sizes_.batches, call.batches) && fits(sizes_.heads, call.heads) &&
              fits(sizes_.queries, call.queries) && sizes_.keys == call.keys,
          "mask: got one of [", sizes_.batches, ", ", sizes_.heads, ", ", sizes_.queries, ", ", sizes_.keys,
          "] for a call of [", call.batches, ", ", call.heads, ", ", call.queries, ", ", call.keys,
          "], wanted the same, or 1 where it is the same for all");
}

std::span<const Interval> KeyMask::row(int64_t batch, int64_t head, int64_t query) const {
  const int64_t b = sizes_.batches == 1 ? 0 : batch, h = sizes_.heads == 1 ? 0 : head,
                i = sizes_.queries == 1 ? 0 : query;
  const int64_t row = (b * sizes_.heads + h) * sizes_.queries + i;
  if (row + 1 >= static_cast<int64_t>(begins_.size()))
    return {};  // of a batch without entries, a plan has one group
  return {intervals_.data() + begins_[row], intervals_.data() + begins_[row + 1]};
}

}  // namespace fovea
