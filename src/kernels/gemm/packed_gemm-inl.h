// The inside of packed_gemm, for X.simd.cc files that run it between steps of their own: inlined, with
// internal linkage.
//
// B is packed into panels of two vectors' columns: panel[p][column]. A register tile is up to kTileRows rows
// by one panel; with few rows it spans several panels, so that enough multiply-adds are under way to hide
// their latency (4 cycles, two a cycle).
#pragma once

#include <hwy/highway.h>

#include "kernels/gemm/packed_gemm.h"

namespace fovea::kernels {
namespace {
namespace panels {

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;

constexpr int kVectors = 2;  // of one panel
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Tag()));
constexpr int64_t kColumns = kVectors * kLanes;
#if HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr int kTileRows = 12;  // 24 of 32 registers hold sums
#else
constexpr int kTileRows = 6;  // 12 of 16
#endif
// Rows of B taken in one go: a panel's piece stays near while the rows of A pass by, in L1 (16 KiB at 8
// lanes) or, with AVX-512, in L2 (64 KiB): its tiles are done so soon that beginning and ending them costs
// more than what L2 takes longer (3 to 5 %). The order of summation depends on it, so it is the same for any
// number of rows.
#if HWY_TARGET <= HWY_AVX3
constexpr int64_t kDepth = 512;
#else
constexpr int64_t kDepth = 256;
#endif
static_assert(kDepth <= kMostDepth);
// Places for the rows of a tile laid side by side: a whole vector, or two, so that stores cross no line.
constexpr int64_t kGroupWidth = kTileRows > 8 ? 16 : 8;

// How a tile finds its elements of A: those of one row side by side and rows `lda` apart, or those of one
// column side by side and columns `lda` apart.
enum class Rows { apart, together };

// Memory that will be read soon, one matrix and then another. Tiles ask for it line by line while they
// multiply, so that it comes without anybody waiting. At the end it stays at the last line.
class Ahead {
 public:
  explicit Ahead(const float* nearby) : at_(reinterpret_cast<uintptr_t>(nearby)), row_end_(at_) {}
  Ahead(const FloatRows& first, const FloatRows& second) : Ahead(first.first) {
    begin(first);
    then_ = second;
  }

  HWY_INLINE void ask() {
    constexpr uintptr_t kLine = 64;
    __builtin_prefetch(reinterpret_cast<const void*>(at_), 0, 2);
    at_ += kLine;
    if (HWY_LIKELY(at_ < row_end_)) return;
    if (--rows_ > 0) {
      row_end_ += stride_;
      at_ = row_end_ - bytes_;
    } else if (then_.rows > 0) {
      begin(then_);
      then_.rows = 0;
    } else {
      at_ -= kLine;
    }
  }

 private:
  void begin(const FloatRows& f) {
    at_ = reinterpret_cast<uintptr_t>(f.first);
    bytes_ = static_cast<uintptr_t>(f.columns) * sizeof(float);
    stride_ = static_cast<uintptr_t>(f.stride) * sizeof(float);
    row_end_ = at_ + bytes_;
    rows_ = f.rows;
  }

  uintptr_t at_, row_end_, bytes_ = 0, stride_ = 0;
  int64_t rows_ = 0;
  FloatRows then_;
};
constexpr int kAskedEvery = kLanes >= 16 ? 2 : 4;  // rows of B

// c[i][j] = start[i][j] + sum_p a[i][p] b[p][j]; start may be c itself, a row repeated by stride 0, or zeros.
// The start is added last: sums of kDepth products meet as partial sums, which keeps rounding errors small.
struct Tile {
  int64_t depth;
  const float* a;
  int64_t lda;
  const float* b;
  int64_t ldb;
  int64_t panel_stride;
  const float* start;
  int64_t start_stride;
  float* c;
  int64_t ldc;
  uintptr_t ahead;       // what memory is requested at row p of B: ahead + p * ahead_step
  uintptr_t ahead_step;  // bytes
  Ahead* rows_ahead;     // what is requested besides, at every fourth row
};

template <int kRows, int kPanels, Rows kWhere>
HWY_INLINE void run_tile(const Tile& t) {
  const Tag d;
  constexpr int kWide = kVectors * kPanels;
  Vector sum[kRows][kWide];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kWide; ++j) sum[i][j] = hn::Zero(d);
  }
  const float* HWY_RESTRICT b = t.b;
  const float* HWY_RESTRICT a = t.a;
  const int64_t lda = t.lda, ldb = t.ldb;
  uintptr_t ahead = t.ahead;
  // C is often cold. Where a row is one line and a tile soon done, the tile above asks as well; else a row is
  // two lines.
  constexpr int kAsked = kLanes < 16 ? 2 * kRows : kRows;
#pragma GCC unroll 32
  for (int i = 0; i < kAsked; ++i) {
    __builtin_prefetch(t.c + i * t.ldc, 1, 3);
    if (kLanes >= 16) __builtin_prefetch(t.c + i * t.ldc + kLanes, 1, 3);
  }
  const auto step = [&]() HWY_ATTR {
    Vector right[kWide];
#pragma GCC unroll 16
    for (int j = 0; j < kWide; ++j)
      right[j] = hn::LoadU(d, b + j / kVectors * t.panel_stride + j % kVectors * kLanes);
    __builtin_prefetch(reinterpret_cast<const void*>(ahead), 0, 2);
    ahead += t.ahead_step;
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const Vector left = hn::Set(d, kWhere == Rows::apart ? a[i * lda] : a[i]);
#pragma GCC unroll 16
      for (int j = 0; j < kWide; ++j) sum[i][j] = hn::MulAdd(left, right[j], sum[i][j]);
    }
    a += kWhere == Rows::apart ? 1 : lda;
    b += ldb;
  };
  Ahead rows_ahead = *t.rows_ahead;
  int64_t p = 0;
  for (; p + kAskedEvery <= t.depth; p += kAskedEvery) {
    rows_ahead.ask();
#pragma GCC unroll 4
    for (int q = 0; q < kAskedEvery; ++q) step();
  }
  for (; p < t.depth; ++p) step();
  *t.rows_ahead = rows_ahead;
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kWide; ++j) {
      const Vector start = hn::LoadU(d, t.start + i * t.start_stride + j * kLanes);
      hn::StoreU(hn::Add(start, sum[i][j]), d, t.c + i * t.ldc + j * kLanes);
    }
  }
}

// The tile of `rows` rows, at most kMost.
template <int kMost, int kPanels, Rows kWhere>
HWY_INLINE void choose_tile(int64_t rows, const Tile& t) {
  if (rows == kMost) return run_tile<kMost, kPanels, kWhere>(t);
  if constexpr (kMost > 1) choose_tile<kMost - 1, kPanels, kWhere>(rows, t);
}
template <int kPanels, Rows kWhere>
HWY_NOINLINE void run_rows(int64_t rows, const Tile& t) {
  choose_tile<kPanels == 1 ? kTileRows : 4 / kPanels, kPanels, kWhere>(rows, t);
}

// The panel that reaches past column n: computed in a full-width buffer, the columns there are copied out.
template <Rows kWhere>
HWY_NOINLINE void run_last_panel(int64_t rows, int64_t columns, const Tile& t) {
  HWY_ALIGN float buffer[kTileRows * kColumns];
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < kColumns; ++j)
      buffer[i * kColumns + j] = j < columns ? t.start[i * t.start_stride + j] : 0;
  Tile whole = t;
  whole.start = whole.c = buffer;
  whole.start_stride = whole.ldc = kColumns;
  run_rows<1, kWhere>(rows, whole);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) t.c[i * t.ldc + j] = buffer[i * kColumns + j];
}

HWY_INLINE int64_t smaller(int64_t x, int64_t y) {
  return x < y ? x : y;
}

// The piece of B that is used after the one of rows [p, p + kDepth) and columns before `end`. It is requested
// while that one is used, each group of rows for its share: else the first group alone would wait for memory.
HWY_INLINE const float* next_piece(const PackedProduct& g, int64_t p, int64_t end) {
  if (end < g.column_end) return g.packed + end * g.k + p * kColumns;
  if (p + kDepth < g.k) return g.packed + g.column_begin * g.k + (p + kDepth) * kColumns;
  return g.packed + (end < g.n ? end : 0) * g.k;  // whose part of the columns may come next
}

// Rows of A in groups of nearly equal size: 7 are 4 and 3, not 6 and 1.
struct RowGroups {
  explicit RowGroups(int64_t m) : count((m + kTileRows - 1) / kTileRows), least(m / count), more(m % count) {}
  int64_t rows(int64_t group) const { return least + (group < more ? 1 : 0); }
  int64_t count, least, more;
};

struct PieceOfA {
  const float* a;
  int64_t lda;
  int64_t group_stride = 0;  // from one group of rows to the next; 0 where rows follow each other
};

// Rows [p, p + kDepth) of B, for all rows of A and the columns of g.
template <Rows kWhere>
HWY_INLINE void multiply_piece(const PackedProduct& g, int64_t p, const PieceOfA& left, Ahead rows_ahead) {
  HWY_ALIGN static const float zeros[4 * kColumns] = {};
  const RowGroups groups(g.m);
  const int64_t together = kWhere == Rows::together ? 1 : g.m == 1 ? 4 : g.m == 2 ? 2 : 1;
  const bool in_place = g.ldb != 0;
  const int64_t panel_stride = in_place ? kColumns : kColumns * g.k;
  constexpr int64_t kRowBytes = kColumns * static_cast<int64_t>(sizeof(float));
  const auto share = static_cast<uintptr_t>((kRowBytes + groups.count - 1) / groups.count);
  for (int64_t j = g.column_begin; j < g.column_end;) {
    const int64_t wide = g.column_end - j >= together * kColumns ? together : 1;
    const int64_t columns = smaller(wide * kColumns, g.column_end - j);
    Tile t{.depth = smaller(kDepth, g.k - p),
           .a = left.a,
           .lda = left.lda,
           .b = g.packed + j / kColumns * panel_stride + p * (in_place ? g.ldb : kColumns),
           .ldb = in_place ? g.ldb : kColumns,
           .panel_stride = panel_stride,
           .start = g.bias != nullptr ? g.bias + j : zeros,
           .start_stride = 0,
           .c = g.c + j,
           .ldc = g.ldc,
           .ahead = reinterpret_cast<uintptr_t>(in_place ? g.packed : next_piece(g, p, j + columns)),
           .ahead_step = in_place ? 0 : share,
           .rows_ahead = &rows_ahead};
    for (int64_t group = 0; group < groups.count; ++group) {
      const int64_t rows = groups.rows(group);
      if (p > 0 || g.accumulate) {
        t.start = t.c;
        t.start_stride = t.ldc;
      }
      if (columns < kColumns) {
        run_last_panel<kWhere>(rows, columns, t);
      } else if (wide == 4) {
        run_rows<4, Rows::apart>(rows, t);
      } else if (wide == 2) {
        run_rows<2, Rows::apart>(rows, t);
      } else {
        run_rows<1, kWhere>(rows, t);
      }
      t.a += left.group_stride > 0 ? left.group_stride : kWhere == Rows::apart ? rows * left.lda : rows;
      t.c += rows * g.ldc;
      t.ahead += static_cast<uintptr_t>(t.depth) * t.ahead_step;
    }
    j += columns;
  }
}

HWY_NOINLINE void multiply(const PackedProduct& g) {
  if (g.m == 0 || g.column_begin >= g.column_end) return;
  for (int64_t p = 0; p < g.k; p += kDepth) multiply_piece<Rows::apart>(g, p, {g.a + p, g.lda}, Ahead(g.a));
  if (g.k > 0 || g.accumulate) return;
  for (int64_t i = 0; i < g.m; ++i)
    for (int64_t j = g.column_begin; j < g.column_end; ++j)
      g.c[i * g.ldc + j] = g.bias != nullptr ? g.bias[j] : 0;
}

}  // namespace panels
}  // namespace
}  // namespace fovea::kernels
