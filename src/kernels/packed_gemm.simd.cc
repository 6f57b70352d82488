#include "kernels/packed_gemm.h"

#include "kernels/packed_gemm-inl.h"

namespace fovea::kernels {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using panels::kColumns;
using panels::kDepth;
using panels::smaller;

// to[c][r] = scale * from[r][c] for r < rows, c < columns, through 4 x 4 blocks in registers.
void transpose(int64_t rows, int64_t columns, const float* HWY_RESTRICT from, int64_t from_stride,
               float* HWY_RESTRICT to, int64_t to_stride, float scale) {
  const hn::FixedTag<float, 4> d;
  const hn::RepartitionToWide<decltype(d)> wide;
  const auto pair_lower = [&](auto x, auto y) HWY_ATTR {
    return hn::BitCast(d, hn::InterleaveLower(wide, hn::BitCast(wide, x), hn::BitCast(wide, y)));
  };
  const auto pair_upper = [&](auto x, auto y) HWY_ATTR {
    return hn::BitCast(d, hn::InterleaveUpper(wide, hn::BitCast(wide, x), hn::BitCast(wide, y)));
  };
  const auto factor = hn::Set(d, scale);
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
        hn::StoreU(hn::Mul(factor, pair_lower(low01, low23)), d, t);
        hn::StoreU(hn::Mul(factor, pair_upper(low01, low23)), d, t + to_stride);
        hn::StoreU(hn::Mul(factor, pair_lower(high01, high23)), d, t + 2 * to_stride);
        hn::StoreU(hn::Mul(factor, pair_upper(high01, high23)), d, t + 3 * to_stride);
      }
    }
  }
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = r < even_rows ? even_columns : 0; c < columns; ++c)
      to[c * to_stride + r] = scale * from[r * from_stride + c];
}

// The panels of the columns [begin, end) of op(B); begin is a multiple of kColumns. `packed` is the whole.
void pack_columns(const PackSource& source, int64_t begin, int64_t end, float* HWY_RESTRICT packed) {
  for (int64_t first = begin; first < end; first += kColumns) {
    float* HWY_RESTRICT panel = packed + first * source.k;
    const int64_t columns = smaller(kColumns, end - first);
    if (columns < kColumns)
      for (int64_t i = 0; i < kColumns * source.k; ++i) panel[i] = 0;
    if (source.transpose) {
      transpose(columns, source.k, source.b + first * source.ldb, source.ldb, panel, kColumns, 1);
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

void multiply_block(const BlockProduct& block) {
  const PackedProduct& g = block.product;
  if (g.m == 0 || g.column_begin >= g.column_end) return;
  constexpr int64_t kStride = kBlockDepth + 16;  // rows that far apart do not share cache sets
  for (int64_t p = 0; p < g.k; p += kDepth) {
    const int64_t depth = smaller(kDepth, g.k - p);
    if (block.transpose_a) {
      transpose(depth, g.m, g.a + p * g.lda, g.lda, block.scratch, kStride, block.alpha);
    } else {
      for (int64_t i = 0; i < g.m; ++i)
        for (int64_t q = 0; q < depth; ++q)
          block.scratch[i * kStride + q] = block.alpha * g.a[i * g.lda + p + q];
    }
    panels::multiply_piece(g, p, block.scratch, kStride);
  }
}

}  // namespace

namespace FOVEA_LEVEL {
extern const PackedGemmKernels packed_gemm_table;
const PackedGemmKernels packed_gemm_table{
    .panel_columns = kColumns,
    .pack = pack,
    .pack_columns = pack_columns,
    .multiply = panels::multiply,
    .multiply_block = multiply_block,
};
}  // namespace FOVEA_LEVEL
}  // namespace fovea::kernels
