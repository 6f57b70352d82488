// A panel holds two vectors' columns; for each pair of rows of W^T it holds every column's two bytes side by
// side, which a multiply-add of int16 pairs sums into the column's int32. On Zen 3 the two multiply ports
// take 32 products a cycle, twice the floats'; CPUs with VNNI multiply and add in one instruction.
//
// Measured on one Zen 3 core, thousand million operations a second, matrices coming from memory; ours with
// the quantising of x, oneDNN 2.6 without, its u8s8 sums saturating:
//   k x n                512 x 512     512 x 2048    2048 x 512   512 x 10000
//   rows               1   32  128    1   32  128    1   32  128    1   32  128
//   ours              27  135  143   35  139  143   35  139  142   40  140  139
//   oneDNN, u8s8      14  133  170   11  116  155   13  127  160   13  122  149
//   oneDNN, s8s8       1   33   76    1   33   78    1   27   71    2   49  111
// From the second-level cache ours makes 147 with 32 rows.
#include "kernels/int8_gemm.h"

#include "kernels/vector_row-inl.h"

namespace fovea::kernels {
namespace {

using D32 = hn::RebindToSigned<D>;
using D16 = hn::Repartition<int16_t, D32>;
using D8 = hn::Rebind<int8_t, D16>;
using V32 = hn::Vec<D32>;
using V16 = hn::Vec<D16>;
constexpr D32 d32;
constexpr D16 d16;
constexpr D8 d8;
constexpr int64_t kColumns = 2 * kLanes;
constexpr int kTileRows = 6;  // 12 of 16 registers hold sums

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
#define FOVEA_PAIRS_IN_PLACE 1
#if HWY_TARGET <= HWY_AVX3
#define FOVEA_ANY_VECTOR "v"
#define FOVEA_DOT "vpdpwssd"
#else
#define FOVEA_ANY_VECTOR "x"
#define FOVEA_DOT "%{vex%} vpdpwssd"
#endif
#else
#define FOVEA_PAIRS_IN_PLACE 0
#endif

// sum + a[2i] b[2i] + a[2i + 1] b[2i + 1], where the level keeps pairs together; `other` is used elsewhere.
// kDot: in one instruction, where the CPU has it (VNNI). Left to itself, GCC 12 brings all rows' factors
// first and spills the sums, or copies each sum: so the instructions stand here, in the order of the rows.
template <bool kDot>
HWY_INLINE V32 add_pairs(V16 a, V16 b, V32 sum, V32& other) {
#if FOVEA_PAIRS_IN_PLACE
  (void)other;
  auto total = sum.raw;
  if constexpr (kDot) {
    asm volatile(FOVEA_DOT " %2, %1, %0"
                 : "+" FOVEA_ANY_VECTOR(total)
                 : FOVEA_ANY_VECTOR(a.raw), FOVEA_ANY_VECTOR(b.raw));
  } else {
    auto pairs = total;
    asm volatile("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0"
                 : "+" FOVEA_ANY_VECTOR(total), "=&" FOVEA_ANY_VECTOR(pairs)
                 : FOVEA_ANY_VECTOR(a.raw), FOVEA_ANY_VECTOR(b.raw));
  }
  return V32{total};
#else
  return hn::ReorderWidenMulAccumulate(d32, a, b, sum, other);
#endif
}

HWY_INLINE V32 joined(V32 sum, V32 other) {
#if FOVEA_PAIRS_IN_PLACE
  (void)other;
  return sum;
#else
  return hn::RearrangeToOddPlusEven(sum, other);
#endif
}

void pack(int64_t n, int64_t k, const int8_t* q, int8_t* packed) {
  const int64_t depth = int8_depth(k);
  for (int64_t first = 0; first < n; first += kColumns) {
    int8_t* panel = packed + first * depth;
    for (int64_t p = 0; p < depth; ++p)
      for (int64_t j = 0; j < kColumns; ++j)
        panel[(p / 2 * kColumns + j) * 2 + p % 2] =
            first + j < n && p < k ? q[(first + j) * k + p] : static_cast<int8_t>(0);
  }
}

void quantize_rows(int64_t rows, int64_t k, const float* x, int16_t* q, float* scales) {
  const hn::Rebind<int16_t, D> narrow;
  const auto limit = static_cast<float>(int8_activation_limit(k));
  for (int64_t i = 0; i < rows; ++i) {
    const float* row = x + i * k;
    int16_t* to = q + i * int8_depth(k);
    const float largest = max_of(k, [&](int64_t p, int64_t lanes) HWY_ATTR {
      return keep_first(hn::Abs(load(row + p, lanes)), lanes, -__builtin_inff());
    });
    // A NaN, or an infinity against itself, leaves its mark on the sum.
    const float mark = sum_of(
        k, [&](int64_t p, int64_t lanes) HWY_ATTR { return hn::Mul(load(row + p, lanes), hn::Zero(d)); });
    const bool finite = mark == 0, counts = finite && largest >= 1e-30f;
    scales[i] = finite ? (counts ? largest / limit : 0) : __builtin_nanf("");
    const V factor = hn::Set(d, counts ? limit / largest : 0);
    int64_t p = 0;
    if (!counts) {
      for (; p < int8_depth(k); ++p) to[p] = 0;
      continue;
    }
    for (; p + kLanes <= k; p += kLanes)
      hn::StoreU(hn::DemoteTo(narrow, hn::NearestInt(hn::Mul(hn::LoadU(d, row + p), factor))), narrow,
                 to + p);
    if (p < k) {
      HWY_ALIGN int16_t last[kLanes];
      hn::Store(hn::DemoteTo(narrow, hn::NearestInt(hn::Mul(load(row + p, k - p), factor))), narrow, last);
      for (int64_t j = 0; p < k; ++p, ++j) to[p] = last[j];
    }
    if (k % 2 != 0) to[k] = 0;
  }
}

struct Tile {
  int64_t depth;
  const int16_t* a;
  const float* a_scales;
  const int8_t* b;
  const float* scales;
  const float* bias;
  float* c;
  int64_t ldc;
  const int8_t* ahead;  // what is asked for at rows 2 i and 2 i + 1 of W^T: ahead + i * ahead_step
  int64_t ahead_step;
};

template <int kRows, bool kDot>
HWY_INLINE void run_tile(const Tile& t) {
  V32 sum[kRows][2], other[kRows][2];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) sum[i][0] = sum[i][1] = other[i][0] = other[i][1] = hn::Zero(d32);
  const int16_t* HWY_RESTRICT a = t.a;
  const int8_t* HWY_RESTRICT b = t.b;
  const int8_t* ahead = t.ahead;
  const int64_t depth = t.depth, ahead_step = t.ahead_step;
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) __builtin_prefetch(t.c + i * t.ldc, 1, 3);
  for (int64_t p = 0; p < depth; p += 2) {
    __builtin_prefetch(ahead, 0, 2);
    ahead += ahead_step;
    const V16 right0 = hn::PromoteTo(d16, hn::LoadU(d8, b));
    const V16 right1 = hn::PromoteTo(d16, hn::LoadU(d8, b + 2 * kLanes));
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      int32_t pair;
      __builtin_memcpy(&pair, a + i * depth + p, sizeof pair);
      const V16 left = hn::BitCast(d16, hn::Set(d32, pair));
      sum[i][0] = add_pairs<kDot>(left, right0, sum[i][0], other[i][0]);
      sum[i][1] = add_pairs<kDot>(left, right1, sum[i][1], other[i][1]);
    }
    b += 2 * kColumns;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    const V row_scale = hn::Set(d, t.a_scales[i]);
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) {
      const V value = hn::ConvertTo(d, joined(sum[i][j], other[i][j]));
      const V scale = hn::Mul(row_scale, hn::LoadU(d, t.scales + j * kLanes));
      hn::StoreU(hn::MulAdd(value, scale, hn::LoadU(d, t.bias + j * kLanes)), d,
                 t.c + i * t.ldc + j * kLanes);
    }
  }
}

template <bool kDot>
HWY_NOINLINE void run_rows(int64_t rows, const Tile& t) {
  switch (rows) {
    case 1:
      return run_tile<1, kDot>(t);
    case 2:
      return run_tile<2, kDot>(t);
    case 3:
      return run_tile<3, kDot>(t);
    case 4:
      return run_tile<4, kDot>(t);
    case 5:
      return run_tile<5, kDot>(t);
    default:
      return run_tile<6, kDot>(t);
  }
}

template <bool kDot>
void multiply(const Int8Product& g) {
  HWY_ALIGN static const float zeros[kColumns] = {};
  if (g.m == 0) return;
  const int64_t depth = int8_depth(g.k);
  const int64_t groups = (g.m + kTileRows - 1) / kTileRows;
  const int64_t group_rows = g.m / groups, longer = g.m % groups;
  HWY_ALIGN float buffer[kTileRows * kColumns], scales[kColumns] = {}, bias[kColumns] = {};
  for (int64_t j = g.column_begin; j < g.column_end; j += kColumns) {
    const int64_t columns = g.column_end - j < kColumns ? g.column_end - j : kColumns;
    const bool whole = columns == kColumns;
    for (int64_t i = 0; i < columns && !whole; ++i) {
      scales[i] = g.scales[j + i];
      bias[i] = g.bias != nullptr ? g.bias[j + i] : 0;
    }
    Tile t{.depth = depth,
           .a = g.a,
           .a_scales = g.a_scales,
           .b = g.packed + j * depth,
           .scales = whole ? g.scales + j : scales,
           .bias = whole ? (g.bias != nullptr ? g.bias + j : zeros) : bias,
           .c = whole ? g.c + j : buffer,
           .ldc = whole ? g.ldc : kColumns,
           // The next panel comes while this one is used; each group of rows asks for its share.
           .ahead = g.packed + (j + kColumns < g.column_end ? j + kColumns : g.column_begin) * depth,
           .ahead_step = (2 * kColumns + groups - 1) / groups};
    int64_t done = 0;
    for (int64_t group = 0; group < groups; ++group) {
      const int64_t rows = group_rows + (group < longer ? 1 : 0);
      run_rows<kDot>(rows, t);
      t.ahead += depth / 2 * t.ahead_step;
      if (whole) {
        t.c += rows * g.ldc;
      } else {
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t c = 0; c < columns; ++c) g.c[(done + i) * g.ldc + j + c] = buffer[i * kColumns + c];
      }
      t.a += rows * depth;
      t.a_scales += rows;
      done += rows;
    }
  }
}

}  // namespace

namespace FOVEA_LEVEL {
extern const Int8Kernels int8_table;
const Int8Kernels int8_table{.panel_columns = kColumns,
                             .pack = pack,
                             .quantize_rows = quantize_rows,
                             .multiply = multiply<false>,
                             .multiply_dot = FOVEA_PAIRS_IN_PLACE ? multiply<FOVEA_PAIRS_IN_PLACE> : nullptr};
}  // namespace FOVEA_LEVEL
}  // namespace fovea::kernels
