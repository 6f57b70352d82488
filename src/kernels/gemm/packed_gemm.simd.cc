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

// The panels of the columns [begin, end) of op(B); begin is a multiple of kColumns. `packed` is the whole.
void pack_columns(const PackSource& source, int64_t begin, int64_t end, float* HWY_RESTRICT packed) {
  for (int64_t first = begin; first < end; first += kColumns) {
    float* HWY_RESTRICT panel = packed + first * source.k;
    const int64_t columns = smaller(kColumns, end - first);
    if (columns < kColumns)
      for (int64_t i = 0; i < kColumns * source.k; ++i) panel[i] = 0;
    if (source.transpose) {
      transpose(columns, source.k, source.b + first * source.ldb, source.ldb, panel, kColumns);
    } else if (columns == kColumns) {
      for (int64_t p = 0; p < source.k; ++p)
        for (int64_t j = 0; j < kColumns; ++j) panel[p * kColumns + j] = source.b[p * source.ldb + first + j];
    } else {
      for (int64_t p = 0; p < source.k; ++p)
        for (int64_t j = 0; j < columns; ++j) panel[p * kColumns + j] = source.b[p * source.ldb + first + j];
    }
  }
}

void pack(const PackSource& source, float* packed) {
  pack_columns(source, 0, source.n, packed);
}

// The rows [p, p + depth) of a stored A [k, m], side by side for each group of the product's rows. A whole
// vector moves at a time: what it holds beyond the group is overwritten by the next, or read by nobody.
void gather_groups(const BlockProduct& block, int64_t p, int64_t depth) {
  constexpr int64_t kWidth = panels::kTileRows > 8 ? 16 : 8;
  const hn::CappedTag<float, kWidth> d;
  constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(d));
  const auto factor = hn::Set(d, block.alpha);
  const PackedProduct& g = block.product;
  const panels::RowGroups groups(g.m);
  for (int64_t q = 0; q < depth; ++q) {
    const float* HWY_RESTRICT from = g.a + (p + q) * g.lda;
    float* HWY_RESTRICT to = block.scratch + q * panels::kTileRows;
    const float* const end = from + g.m;
    for (int64_t group = 0; group < groups.count; ++group) {
      const int64_t rows = groups.rows(group);
      if (end - from >= kWidth) {
        for (int64_t i = 0; i < kWidth; i += kLanes)
          hn::StoreU(hn::Mul(factor, hn::LoadU(d, from + i)), d, to + i);
      } else {
        for (int64_t i = 0; i < rows; ++i) to[i] = block.alpha * from[i];
      }
      from += rows;
      to += panels::kGroupStride;
    }
  }
}

void multiply_block(const BlockProduct& block) {
  const PackedProduct& g = block.product;
  if (g.m == 0 || g.column_begin >= g.column_end) return;
  // Rows that lie so share cache sets, and are copied to where they do not.
  const bool copied = block.alpha != 1 || g.lda % 512 == 0;
  constexpr int64_t kStride = kDepth + 16;
  for (int64_t p = 0; p < g.k; p += kDepth) {
    const int64_t depth = smaller(kDepth, g.k - p);
    if (block.transpose_a) {
      gather_groups(block, p, depth);
      panels::multiply_piece<panels::Rows::together>(g, p, block.scratch, 0);
    } else if (copied) {
      for (int64_t i = 0; i < g.m; ++i)
        for (int64_t q = 0; q < depth; ++q)
          block.scratch[i * kStride + q] = block.alpha * g.a[i * g.lda + p + q];
      panels::multiply_piece<panels::Rows::apart>(g, p, block.scratch, kStride);
    } else {
      panels::multiply_piece<panels::Rows::apart>(g, p, g.a + p, g.lda);
    }
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
