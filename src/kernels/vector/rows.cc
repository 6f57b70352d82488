// Gathers rows, sums rows of equal ids by a stable sort, and copies between strided layouts.
#include "kernels/vector/rows.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/parallel.h"
#include "base/shape.h"

namespace fovea::kernels {
namespace {

constexpr int64_t kPiece = 16384;  // elements

int64_t rows_per_piece(int64_t row_size) {
  return std::max<int64_t>(1, kPiece / std::max<int64_t>(1, row_size));
}

void copy_run(const float* from, float* to, int64_t count) {
  std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
}

// Chosen rows lie anywhere: asking for the next ones early hides the way to memory.
constexpr int64_t kAhead = 4;
void prefetch_run(const float* from, int64_t count) {
  for (int64_t i = 0; i < std::min<int64_t>(count, 512); i += 16) __builtin_prefetch(from + i);
}

void add_run(const float* from, float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] += from[i];
}

// Positions in ascending order of id, equal ids in their own order: a radix sort, byte by byte.
std::vector<int32_t> sort_positions(std::span<const int32_t> ids, std::vector<int32_t> positions) {
  int32_t largest = 0;
  for (const int32_t p : positions) largest = std::max(largest, ids[static_cast<size_t>(p)]);
  std::vector<int32_t> sorted(positions.size());
  for (int shift = 0; shift < 32 && largest >> shift > 0; shift += 8) {
    std::array<int32_t, 257> starts{};
    for (const int32_t p : positions) ++starts[(ids[static_cast<size_t>(p)] >> shift & 255) + 1];
    for (int digit = 0; digit < 256; ++digit) starts[digit + 1] += starts[digit];
    for (const int32_t p : positions)
      sorted[static_cast<size_t>(starts[ids[static_cast<size_t>(p)] >> shift & 255]++)] = p;
    positions.swap(sorted);
  }
  return positions;
}

// The loops of a copy after joining dimensions that advance as one; innermost last.
struct Loops {
  int rank = 0;
  std::array<int64_t, Shape::kMaxRank> sizes{}, from{}, to{};

  void remove(int i) {
    for (int k = i; k + 1 < rank; ++k) sizes[k] = sizes[k + 1], from[k] = from[k + 1], to[k] = to[k + 1];
    --rank;
  }
  int64_t count() const {
    int64_t product = 1;
    for (int i = 0; i < rank; ++i) product *= sizes[i];
    return product;
  }
  // Where the index-th step of all loops is in both arrays.
  std::pair<int64_t, int64_t> place(int64_t index) const {
    int64_t at_from = 0, at_to = 0;
    for (int i = rank - 1; i >= 0; --i) {
      const int64_t step = index % sizes[i];
      index /= sizes[i];
      at_from += step * from[i];
      at_to += step * to[i];
    }
    return {at_from, at_to};
  }
};

Loops join(const StridedCopy& copy) {
  Loops loops;
  for (size_t i = 0; i < copy.sizes.size(); ++i) {
    const int64_t size = copy.sizes[i], from = copy.from_strides[i], to = copy.to_strides[i];
    if (size == 1) continue;
    int k = loops.rank - 1;
    if (k < 0 || loops.from[k] != from * size || loops.to[k] != to * size) {
      k = loops.rank++;
      loops.sizes[k] = 1;
    }
    loops.sizes[k] *= size;
    loops.from[k] = from;
    loops.to[k] = to;
  }
  return loops;
}

constexpr int64_t kTile = 16;  // floats of a cache line: each line is read and written whole

// to[i, j] = from[j, i] over [rows, columns], both contiguous along their own last axis.
void transpose_tiles(const float* from, int64_t from_stride, float* to, int64_t to_stride, int64_t rows,
                     int64_t columns) {
  for (int64_t i0 = 0; i0 < rows; i0 += kTile)
    for (int64_t j0 = 0; j0 < columns; j0 += kTile)
      for (int64_t i = i0; i < std::min(rows, i0 + kTile); ++i)
        for (int64_t j = j0; j < std::min(columns, j0 + kTile); ++j)
          to[i * to_stride + j] = from[j * from_stride + i];
}

}  // namespace

void gather_rows(const float* table, int64_t row_size, std::span<const int32_t> ids, float* y) {
  parallel_for(static_cast<int64_t>(ids.size()), rows_per_piece(row_size), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (i + kAhead < end) prefetch_run(table + ids[static_cast<size_t>(i + kAhead)] * row_size, row_size);
      copy_run(table + ids[static_cast<size_t>(i)] * row_size, y + i * row_size, row_size);
    }
  });
}

RowGroups group_rows(std::span<const int32_t> ids, int32_t skipped) {
  RowGroups groups;
  std::vector<int32_t> positions;
  positions.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i)
    if (ids[i] != skipped) positions.push_back(static_cast<int32_t>(i));
  groups.order = sort_positions(ids, std::move(positions));
  for (size_t i = 0; i < groups.order.size(); ++i) {
    const int32_t id = ids[static_cast<size_t>(groups.order[i])];
    if (!groups.rows.empty() && groups.rows.back() == id) continue;
    groups.rows.push_back(id);
    groups.starts.push_back(static_cast<int32_t>(i));
  }
  groups.starts.push_back(static_cast<int32_t>(groups.order.size()));
  return groups;
}

void sum_groups(const RowGroups& groups, const float* values, int64_t row_size, float* sums) {
  parallel_for(
      static_cast<int64_t>(groups.rows.size()), rows_per_piece(row_size), [&](int64_t begin, int64_t end) {
        for (int64_t g = begin; g < end; ++g) {
          const int32_t first = groups.starts[static_cast<size_t>(g)],
                        last = groups.starts[static_cast<size_t>(g) + 1];
          if (g + kAhead < end) {
            const int32_t ahead = groups.starts[static_cast<size_t>(g + kAhead)];
            prefetch_run(values + groups.order[static_cast<size_t>(ahead)] * row_size, row_size);
          }
          copy_run(values + groups.order[static_cast<size_t>(first)] * row_size, sums + g * row_size,
                   row_size);
          for (int32_t i = first + 1; i < last; ++i)
            add_run(values + groups.order[static_cast<size_t>(i)] * row_size, sums + g * row_size, row_size);
        }
      });
}

void scatter_add_rows(const float* values, int64_t row_size, std::span<const int32_t> ids, float* table) {
  const RowGroups groups = group_rows(ids);
  parallel_for(static_cast<int64_t>(groups.rows.size()), rows_per_piece(row_size),
               [&](int64_t begin, int64_t end) {
                 for (int64_t g = begin; g < end; ++g)
                   for (int32_t i = groups.starts[static_cast<size_t>(g)];
                        i < groups.starts[static_cast<size_t>(g) + 1]; ++i)
                     add_run(values + groups.order[static_cast<size_t>(i)] * row_size,
                             table + groups.rows[static_cast<size_t>(g)] * row_size, row_size);
               });
}

void copy_strided(const StridedCopy& copy) {
  for (const int64_t size : copy.sizes)
    if (size == 0) return;
  Loops loops = join(copy);
  if (loops.rank == 0) {
    *copy.to = *copy.from;
    return;
  }
  const int inner = loops.rank - 1;
  const int64_t run = loops.sizes[inner], from_step = loops.from[inner], to_step = loops.to[inner];
  const auto across = std::find(loops.from.begin(), loops.from.begin() + inner, 1) - loops.from.begin();
  if (to_step == 1 && from_step != 1 && across < inner) {
    // The source is contiguous along another dimension: a transpose, by tiles.
    const int k = static_cast<int>(across);
    const int64_t rows = loops.sizes[k], row_step = loops.to[k];
    loops.remove(inner);
    loops.remove(k);
    const int64_t strip = kTile * std::max<int64_t>(1, kPiece / kTile / run),
                  strips = (rows + strip - 1) / strip;
    parallel_for(loops.count() * strips, std::max<int64_t>(1, kPiece / (std::min(strip, rows) * run)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t index = begin; index < end; ++index) {
                     const auto [at_from, at_to] = loops.place(index / strips);
                     const int64_t row = index % strips * strip;
                     transpose_tiles(copy.from + at_from + row, from_step, copy.to + at_to + row * row_step,
                                     row_step, std::min(strip, rows - row), run);
                   }
                 });
    return;
  }
  loops.remove(inner);
  const int64_t outer = loops.count();
  const auto one_run = [&](int64_t index, int64_t begin, int64_t end) {
    const auto [at_from, at_to] = loops.place(index);
    const float* from = copy.from + at_from;
    float* to = copy.to + at_to;
    if (from_step == 1 && to_step == 1) return copy_run(from + begin, to + begin, end - begin);
    for (int64_t i = begin; i < end; ++i) to[i * to_step] = from[i * from_step];
  };
  if (outer == 1) {
    parallel_for(run, kPiece, [&](int64_t begin, int64_t end) { one_run(0, begin, end); });
    return;
  }
  parallel_for(outer, rows_per_piece(run), [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) one_run(index, 0, run);
  });
}

}  // namespace fovea::kernels
