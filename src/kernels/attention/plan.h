// The block plan: which keys each query visits, compiled from a pattern, independent of the numbers.
//
// A plan is lists of tiles. A tile is a set of query rows that share one list of key segments. Rows and keys
// are arithmetic progressions, so a dilated window is a plain window inside its residue class; keys may also
// be gathered through an index list, so global tokens and random blocks cost one segment. A segment is FULL
// (every row sees every key), INTERVAL (each row sees one run of the segment's keys: causal edges, windows,
// lengths) or BITS (any set). Padding, packed documents and differences per head are groups with tiles of
// their own: a kernel knows nothing of patterns.
//
// Invariants: within a group every query row is in exactly one tile (one that sees
// nothing is in a tile without segments), and no segment of a tile repeats a key of another.
#pragma once

#include <cstdint>
#include <vector>

namespace fovea::kernels {

enum class SegmentMask : int32_t { full, interval, bits };

// Keys k(j) for j in [0, key_count): gather[j] where gathered, else key_first + j * key_step.
struct PlanSegment {
  int32_t key_first = 0;
  int32_t key_step = 1;
  int32_t key_count = 0;
  int32_t gather = -1;  // offset into indices, or -1
  SegmentMask mask = SegmentMask::full;
  // interval: rows' (begin, end) pairs in segment-local j are at intervals[mask_offset + 2 * row].
  // bits: row r of key j is bit r % 32 of bits[mask_offset + j * words + r / 32],
  // words = ceil(row_count / 32).
  int32_t mask_offset = 0;
};

// Query rows row_first + r * row_step for r in [0, row_count); row_count <= kMaxTileRows.
struct PlanTile {
  int32_t row_first = 0;
  int32_t row_step = 1;
  int32_t row_count = 0;
  int32_t segment_begin = 0;
  int32_t segment_end = 0;
};

inline constexpr int32_t kMaxTileRows = 192;  // a multiple of 48: three vectors of 16 floats, six of 8

// Group of (batch b, head h): (batch_groups > 1 ? b : 0) * head_groups + (head_groups > 1 ? h : 0).
struct AttentionPlan {
  int64_t query_count = 0, key_count = 0;
  int32_t batch_groups = 1, head_groups = 1;
  std::vector<int32_t> group_tiles;  // [groups + 1]: tiles of group g: [group_tiles[g], group_tiles[g + 1])
  std::vector<PlanTile> tiles;
  std::vector<PlanSegment> segments;
  std::vector<int32_t> indices;
  std::vector<int32_t> intervals;
  std::vector<uint32_t> bits;
};

}  // namespace fovea::kernels
