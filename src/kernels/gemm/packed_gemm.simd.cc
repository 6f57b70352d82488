// Packs a matrix into panels and multiplies rows with it in register tiles, in SIMD.
#include "kernels/gemm/packed_gemm.h"

#include "kernels/gemm/packed_gemm-inl.h"

namespace fovea::kernels {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using panels::kColumns;
using panels::kDepth;
using panels::smaller;

// to[c][r] = from[r][c] for r < rows, c < columns, through 4 x 4 blocks in registers.
void transpose(int64_t rows, int64_t columns, const float* HWY_RESTRICT from, int64_t from_stride,
               float* HWY_RESTRICT to, int64_t to_stride) {
  const hn::FixedTag<float, 4> d;
  const hn::RepartitionToWide<decltype(d)> wide;
  const auto pair_lower = [&](auto x, auto y) HWY_ATTR {
    return hn::BitCast(d, hn::InterleaveLower(wide, hn::BitCast(wide, x), hn::BitCast(wide, y)));
  };
  const auto pair_upper = [&](auto x, auto y) HWY_ATTR {
    return hn::BitCast(d, hn::InterleaveUpper(wide, hn::BitCast(wide, x), hn::BitCast(wide, y)));
  };
  const int64_t even_rows = rows & ~int64_t{3}, even_columns = columns & ~int64_t{3};
  // Bands of 16 rows: a line of `to` is written at once, and a line of `from` is read once even where its
  // rows are a power of two apart.
  for (int64_t band = 0; band < even_rows; band += 16) {
    for (int64_t c = 0; c < even_columns; c += 4) {
      for (int64_t r = band; r < smaller(band + 16, even_rows); r += 4) {
        const float* f = from + r * from_stride + c;
        const auto r0 = hn::LoadU(d, f), r1 = hn::LoadU(d, f + from_stride);
        const auto r2 = hn::LoadU(d, f + 2 * from_stride), r3 = hn::LoadU(d, f + 3 * from_stride);
        const auto low01 = hn::InterleaveLower(d, r0, r1), high01 = hn::InterleaveUpper(d, r0, r1);
        const auto low23 = hn::InterleaveLower(d, r2, r3), high23 = hn::InterleaveUpper(d, r2, r3);
        float* t = to + c * to_stride + r;
        hn::StoreU(pair_lower(low01, low23), d, t);
        hn::StoreU(pair_upper(low01, low23), d, t + to_stride);
        hn::StoreU(pair_lower(high01, high23), d, t + 2 * to_stride);
        hn::StoreU(pair_upper(high01, high23), d, t + 3 * to_stride);
      }
    }
  }
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = r < even_rows ? even_columns : 0; c < columns; ++c)
      to[c * to_stride + r] = from[r * from_stride + c];
}

// Rows of B as they lie, a line of each panel at a time.
void copy_panels(const PackSource& source, int64_t begin, int64_t count, float* HWY_RESTRICT packed) {
  const panels::Tag d;
  for (int64_t p = 0; p < source.k; ++p) {
    const float* HWY_RESTRICT from = source.b + p * source.ldb + begin;
    float* HWY_RESTRICT to = packed + p * kColumns;
    for (int64_t panel = 0; panel < count; ++panel) {
      for (int64_t j = 0; j < kColumns; j += panels::kLanes) hn::StoreU(hn::LoadU(d, from + j), d, to + j);
      from += kColumns;
      to += kColumns * source.k;
    }
  }
}

// The panels of the columns [begin, end) of op(B); begin is a multiple of kColumns. `packed` is the whole.
void pack_columns(const PackSource& source, int64_t begin, int64_t end, float* HWY_RESTRICT packed) {
  const int64_t whole = source.transpose ? 0 : (end - begin) / kColumns;
  copy_panels(source, begin, whole, packed + begin * source.k);
  for (int64_t first = begin + whole * kColumns; first < end; first += kColumns) {
    float* HWY_RESTRICT panel = packed + first * source.k;
    const int64_t columns = smaller(kColumns, end - first);
    if (columns < kColumns)
      for (int64_t i = 0; i < kColumns * source.k; ++i) panel[i] = 0;
    if (source.transpose) {
      transpose(columns, source.k, source.b + first * source.ldb, source.ldb, panel, kColumns);
    } else {
      for (int64_t p = 0; p < source.k; ++p)
        for (int64_t j = 0; j < columns; ++j) panel[p * kColumns + j] = source.b[p * source.ldb + first + j];
    }
  }
}

void pack(const PackSource& source, float* packed) {
  pack_columns(source, 0, source.n, packed);
}

// The piece of A that multiply_block() works on: `rows` rows from `row`, columns [p, p + depth) of op(A).
struct Piece {
  int64_t row, rows, p, depth;
};

// From one group of rows laid side by side to the next: no multiple of what shares cache sets.
constexpr int64_t group_stride(int64_t depth) {
  return panels::kGroupWidth * (depth + 1);
}

// A stored [k, m]: the rows of op(A) side by side for each group. A whole vector moves at a time: what it
// holds beyond the group is read by nobody.
void gather_groups(const BlockProduct& block, const Piece& piece) {
  constexpr int64_t kWidth = panels::kGroupWidth;
  const hn::CappedTag<float, kWidth> d;
  constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(d));
  const hn::FixedTag<float, 4> d4;
  const float alpha = block.alpha;
  const auto factor = hn::Set(d, alpha);
  const auto factor4 = hn::Set(d4, alpha);
  const PackedProduct& g = block.product;
  const panels::RowGroups groups(piece.rows);
  const bool sets_shared = g.lda % 1024 == 0;
  constexpr int64_t kRowsAhead = 24;
  for (int64_t q = 0; q < piece.depth; ++q) {
    const float* HWY_RESTRICT from = g.a + (piece.p + q) * g.lda + piece.row;
    float* HWY_RESTRICT to = block.scratch + q * kWidth;
    const float* const end = from + piece.rows;
    if (sets_shared)
      for (int64_t i = 0; i < piece.rows; i += 16) __builtin_prefetch(from + kRowsAhead * g.lda + i, 0, 2);
    for (int64_t group = 0; group < groups.count; ++group) {
      const int64_t rows = groups.rows(group);
      if (end - from >= kWidth) {
        for (int64_t i = 0; i < kWidth; i += kLanes)
          hn::StoreU(hn::Mul(factor, hn::LoadU(d, from + i)), d, to + i);
      } else {
        int64_t i = 0;  // the end of the row: not a float is read past it
        for (; i + 4 <= rows; i += 4) hn::StoreU(hn::Mul(factor4, hn::LoadU(d4, from + i)), d4, to + i);
        for (; i < rows; ++i) to[i] = alpha * from[i];
      }
      from += rows;
      to += group_stride(piece.depth);
    }
  }
}

void copy_rows(const BlockProduct& block, const Piece& piece, int64_t stride) {
  const PackedProduct& g = block.product;
  for (int64_t i = 0; i < piece.rows; ++i) {
    const float* HWY_RESTRICT from = g.a + (piece.row + i) * g.lda + piece.p;
    float* HWY_RESTRICT to = block.scratch + i * stride;
    for (int64_t q = 0; q < piece.depth; ++q) to[q] = block.alpha * from[q];
  }
}

FloatRows rows_of(const BlockProduct& block, const float* a, const Piece& piece) {
  const int64_t lda = block.product.lda;
  if (block.transpose_a) return {a + piece.p * lda + piece.row, piece.depth, piece.rows, lda};
  const float* first = a + piece.row * lda + piece.p;
  if (lda - piece.depth < 16) return {first, 1, piece.rows * lda, 0};
  return {first, piece.rows, piece.depth, lda};
}

// Part number `part` of `parts`.
FloatRows part_of(const FloatRows& all, int64_t part, int64_t parts) {
  const int64_t begin = all.rows * part / parts, end = all.rows * (part + 1) / parts;
  return {all.first + begin * all.stride, end - begin, all.columns, all.stride};
}

// The piece that follows, of the next block when this one has no more.
Piece piece_after(const Piece& piece, const PackedProduct& g, int64_t rows_once) {
  Piece next = piece;
  next.p += piece.depth;
  if (next.p == g.k) {
    next.p = 0;
    next.row += piece.rows;
  }
  if (next.row == g.m) next.row = 0;
  next.rows = smaller(rows_once, g.m - next.row);
  next.depth = smaller(kDepth, g.k - next.p);
  return next;
}

void multiply_block(const BlockProduct& block) {
  const PackedProduct& whole = block.product;
  if (whole.m == 0 || whole.column_begin >= whole.column_end) return;
  // Where a piece of B fills L2, many rows repay its reading, and there is no place for the next rows of A.
  // Else few rows: C is then written nearly in order.
  const bool wide = (whole.column_end - whole.column_begin) * smaller(kDepth, whole.k) > int64_t{1} << 18;
  const int64_t rows_once = wide || block.transpose_a ? kMostRows : 48;
  // Rows that lie so share cache sets, and are copied to where they do not.
  const bool copied = block.alpha != 1 || whole.lda % (wide ? 512 : 1024) == 0;
  const int64_t pieces = (whole.k + kDepth - 1) / kDepth * ((whole.m + rows_once - 1) / rows_once);
  Piece piece{0, smaller(rows_once, whole.m), 0, smaller(kDepth, whole.k)};
  for (int64_t number = 0; number < pieces && whole.k > 0; ++number) {
    const Piece next = piece_after(piece, whole, rows_once);
    const float* const next_a = wide ? nullptr : number + 1 < pieces ? whole.a : block.next_a;
    const panels::Ahead ahead(next_a != nullptr ? rows_of(block, next_a, next) : FloatRows{whole.a},
                              part_of(block.next, number, pieces));
    const float* const a =
        whole.a + (block.transpose_a ? piece.p * whole.lda + piece.row : piece.row * whole.lda + piece.p);
    PackedProduct g = whole;
    g.m = piece.rows;
    g.c += piece.row * g.ldc;
    if (block.transpose_a) {
      if (copied) gather_groups(block, piece);
      panels::multiply_piece<panels::Rows::together>(
          g, piece.p,
          copied ? panels::PieceOfA{block.scratch, panels::kGroupWidth, group_stride(piece.depth)}
                 : panels::PieceOfA{a, g.lda},
          ahead);
    } else {
      const int64_t stride = piece.depth + 16;
      if (copied) copy_rows(block, piece, stride);
      panels::multiply_piece<panels::Rows::apart>(
          g, piece.p, copied ? panels::PieceOfA{block.scratch, stride} : panels::PieceOfA{a, g.lda}, ahead);
    }
    piece = next;
  }
}

// Several sums at once hide the latency of each, which must be added in the order a tile adds it in.
void elements(const RowElements& e) {
  constexpr int64_t kSums = 8;
  const hn::FixedTag<float, 1> d;
  for (int64_t first = 0; first < e.count; first += kSums) {
    const float* b[kSums];
    float totals[kSums];
    for (int64_t i = 0; i < kSums; ++i) {
      const int64_t j = e.columns[smaller(first + i, e.count - 1)];
      b[i] = e.b + j * e.k;
      totals[i] = e.bias != nullptr ? e.bias[j] : 0;
    }
    for (int64_t p = 0; p < e.k; p += kDepth) {
      hn::Vec<decltype(d)> sums[kSums];
      for (auto& sum : sums) sum = hn::Zero(d);
      for (int64_t q = p; q < smaller(e.k, p + kDepth); ++q) {
        const auto left = hn::Set(d, e.a[q]);
        for (int64_t i = 0; i < kSums; ++i) sums[i] = hn::MulAdd(left, hn::Set(d, b[i][q]), sums[i]);
      }
      for (int64_t i = 0; i < kSums; ++i) totals[i] += hn::GetLane(sums[i]);
    }
    for (int64_t i = first; i < smaller(first + kSums, e.count); ++i) e.c[i] = totals[i - first];
  }
}

}  // namespace

namespace FOVEA_LEVEL {
extern const PackedGemmKernels packed_gemm_table;
const PackedGemmKernels packed_gemm_table{
    .panel_columns = kColumns,
    .depth = kDepth,
    .pack = pack,
    .pack_columns = pack_columns,
    .multiply = panels::multiply,
    .multiply_block = multiply_block,
    .elements = elements,
};
}  // namespace FOVEA_LEVEL
}  // namespace fovea::kernels
