// A panel holds two vectors' columns; for each group of rows of W^T it holds every column's few bytes side by
// side, which one instruction multiplies and sums into the column's int32. On Zen 3 the two multiply ports
// take 32 products of int16 a cycle, twice the floats'; with VNNI and AVX-512 it is 128 of bytes, four times.
//
// Measured on one Zen 3 core, thousand million operations a second, matrices coming from memory; ours with
// the quantising of x, oneDNN 2.6 without, its u8s8 sums saturating:
//   k x n                512 x 512     512 x 2048    2048 x 512   512 x 10000
//   rows               1   32  128    1   32  128    1   32  128    1   32  128
//   ours              27  135  143   35  139  143   35  139  142   40  140  139
//   oneDNN, u8s8      14  133  170   11  116  155   13  127  160   13  122  149
//   oneDNN, s8s8       1   33   76    1   33   78    1   27   71    2   49  111
// From the second-level cache ours makes 147 with 32 rows.
// On one core of an Emerald Rapids Xeon (AVX-512 and VNNI, 784 such operations at the peak), by bytes and by
// words:
//   bytes             50  578  605   52  655  648   50  557  569   53  657  656
//   words             49  168  170   53  174  172   50  165  165   53  174  170
//   oneDNN, u8s8      49  440  596   51  444  596   50  444  603   52  418  573
// One row reads 25 GB/s, as fast as memory is.
#include "kernels/gemm/int8_gemm.h"

#include "kernels/vector/vector_row-inl.h"

namespace fovea::kernels {
namespace {

using D32 = hn::RebindToSigned<D>;
using D16 = hn::Repartition<int16_t, D32>;
using D8 = hn::Rebind<int8_t, D16>;
using V32 = hn::Vec<D32>;
using V16 = hn::Vec<D16>;
constexpr D32 d32;
constexpr D16 d16;
constexpr int64_t kColumns = 2 * kLanes;
#if HWY_TARGET <= HWY_AVX3
constexpr int kTileRows = 12;  // 24 of 32 registers hold sums
#else
constexpr int kTileRows = 6;  // 12 of 16
#endif

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
#define FOVEA_IN_PLACE 1
#if HWY_TARGET <= HWY_AVX3
#define FOVEA_ANY_VECTOR "v"
#define FOVEA_DOT "vpdpbusd"
#else
#define FOVEA_ANY_VECTOR "x"
#define FOVEA_DOT "%{vex%} vpdpbusd"
#endif
#else
#define FOVEA_IN_PLACE 0
#endif

// Pairs of int16. Left to itself, GCC 12 brings all rows' factors first and spills the sums, or copies each
// sum: so the instructions of both ways are here, in the order of the rows.
struct Words {
  static constexpr int64_t kTogether = 2;
  static constexpr bool kZeros = false;

  static V32 HWY_INLINE right(const int8_t* b) {
    return hn::BitCast(d32, hn::PromoteTo(d16, hn::LoadU(D8(), b)));
  }
  // sum + a[2i] b[2i] + a[2i + 1] b[2i + 1], where the level keeps pairs together; `other` is used elsewhere.
  static V32 HWY_INLINE add(V32 a, V32 b, V32 sum, V32& other) {
#if FOVEA_IN_PLACE
    (void)other;
    auto total = sum.raw, pairs = total;
    asm volatile("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0"
                 : "+" FOVEA_ANY_VECTOR(total), "=&" FOVEA_ANY_VECTOR(pairs)
                 : FOVEA_ANY_VECTOR(a.raw), FOVEA_ANY_VECTOR(b.raw));
    return V32{total};
#else
    return hn::ReorderWidenMulAccumulate(d32, hn::BitCast(d16, a), hn::BitCast(d16, b), sum, other);
#endif
  }
  static V32 HWY_INLINE joined(V32 sum, V32 other) {
#if FOVEA_IN_PLACE
    (void)other;
    return sum;
#else
    return hn::RearrangeToOddPlusEven(sum, other);
#endif
  }
  static V32 HWY_INLINE nearest(V x) {
    return hn::NearestInt(x);
  }
  static void HWY_INLINE store(V32 values, int64_t count, int32_t* to) {
    const hn::Rebind<int16_t, D32> narrow;
    if (count == kLanes)
      return hn::StoreU(hn::DemoteTo(narrow, values), narrow, reinterpret_cast<int16_t*>(to));
    HWY_ALIGN int16_t some[kLanes];
    hn::Store(hn::DemoteTo(narrow, values), narrow, some);
    __builtin_memcpy(to, some, static_cast<size_t>((count + 1) / 2) * sizeof(int32_t));
  }
};

#if FOVEA_IN_PLACE
// Fours of bytes, those of x unsigned: for CPUs with VNNI. Sums wrap on their way, and are right at the end.
struct Bytes {
  static constexpr int64_t kTogether = 4;
  static constexpr bool kZeros = true;

  static V32 HWY_INLINE right(const int8_t* b) { return hn::LoadU(d32, reinterpret_cast<const int32_t*>(b)); }
  static V32 HWY_INLINE add(V32 a, V32 b, V32 sum, V32&) {
    auto total = sum.raw;
    asm volatile(FOVEA_DOT " %2, %1, %0"
                 : "+" FOVEA_ANY_VECTOR(total)
                 : FOVEA_ANY_VECTOR(a.raw), FOVEA_ANY_VECTOR(b.raw));
    return V32{total};
  }
  static V32 HWY_INLINE joined(V32 sum, V32) { return sum; }
  // Values of a row are within its steps: what NearestInt() does for numbers past 2^31 is left out.
  static V32 HWY_INLINE nearest(V x) {
#if HWY_TARGET <= HWY_AVX3
    return V32{_mm512_cvtps_epi32(x.raw)};
#else
    return V32{_mm256_cvtps_epi32(x.raw)};
#endif
  }
  // Four vectors at once take a quarter of the instructions that put the parts of 128 bits in order.
  static void HWY_INLINE store_four(V32 a, V32 b, V32 c, V32 e, int32_t* to) {
#if HWY_TARGET <= HWY_AVX3
    const __m512i bytes =
        _mm512_packus_epi16(_mm512_packs_epi32(a.raw, b.raw), _mm512_packs_epi32(c.raw, e.raw));
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    _mm512_storeu_si512(to, _mm512_permutexvar_epi32(order, bytes));
#else
    const __m256i bytes =
        _mm256_packus_epi16(_mm256_packs_epi32(a.raw, b.raw), _mm256_packs_epi32(c.raw, e.raw));
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_permutevar8x32_epi32(bytes, order));
#endif
  }
  static void HWY_INLINE store(V32 values, int64_t count, int32_t* to) {
    const hn::Rebind<uint8_t, D32> narrow;
    const auto bytes = hn::DemoteTo(narrow, values);
    if (count == kLanes) return hn::StoreU(bytes, narrow, reinterpret_cast<uint8_t*>(to));
    HWY_ALIGN uint8_t some[kLanes];
    hn::Store(bytes, narrow, some);
    __builtin_memcpy(to, some, static_cast<size_t>((count + 3) / 4) * sizeof(int32_t));
  }
};
#endif

// Bytes of a panel of W^T: the columns' sums, then for each group of rows every column's few side by side.
template <class Way>
constexpr int64_t panel_bytes(int64_t groups) {
  return packed_int8_columns(kColumns, groups, Way::kTogether);
}
template <class Way>
constexpr int64_t groups_of(int64_t k) {
  return (k + Way::kTogether - 1) / Way::kTogether;
}

template <class Way>
void pack(int64_t n, int64_t k, const int8_t* q, int8_t* packed) {
  const int64_t groups = groups_of<Way>(k);
  for (int64_t first = 0; first < n; first += kColumns) {
    int8_t* panel = packed + first / kColumns * panel_bytes<Way>(groups);
    if (Way::kZeros) {
      for (int64_t j = 0; j < kColumns; ++j) {
        int32_t sum = 0;
        for (int64_t p = 0; p < k && first + j < n; ++p) sum += q[(first + j) * k + p];
        __builtin_memcpy(panel, &sum, sizeof sum);
        panel += sizeof sum;
      }
    }
    for (int64_t p = 0; p < groups * Way::kTogether; ++p)
      for (int64_t j = 0; j < kColumns; ++j)
        panel[(p / Way::kTogether * kColumns + j) * Way::kTogether + p % Way::kTogether] =
            first + j < n && p < k ? q[(first + j) * k + p] : static_cast<int8_t>(0);
  }
}

// What the steps of a row reach over, and whether all of it is finite.
struct Reach {
  float least, largest;
  bool finite;
};

// One pass. A NaN or an infinity leaves its mark on the sum, while least and largest may lose a NaN; where the sum is
// not finite for the size of its terms, products with 0 tell.
HWY_INLINE Reach reach_of(int64_t k, const float* row) {
  V low[4], high[4], sums[4];
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) low[c] = high[c] = sums[c] = hn::Zero(d);
  const auto look = [&](int c, V x) HWY_ATTR {
    low[c] = hn::Min(low[c], x);
    high[c] = hn::Max(high[c], x);
    sums[c] = hn::Add(sums[c], x);
  };
  int64_t p = 0;
  for (; p + 4 * kLanes <= k; p += 4 * kLanes) {
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) look(c, hn::LoadU(d, row + p + c * kLanes));
  }
  for (; p < k; p += kLanes) look(0, load(row + p, k - p < kLanes ? k - p : kLanes));
  const V least = hn::Min(hn::Min(low[0], low[1]), hn::Min(low[2], low[3]));
  const V largest = hn::Max(hn::Max(high[0], high[1]), hn::Max(high[2], high[3]));
  const V sum = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
  Reach reach{hn::GetLane(hn::MinOfLanes(d, least)), hn::GetLane(hn::MaxOfLanes(d, largest)),
              hn::AllTrue(d, hn::Eq(hn::Mul(sum, hn::Zero(d)), hn::Zero(d)))};
  if (!reach.finite)
    reach.finite = sum_of(k, [&](int64_t at, int64_t lanes)
                                 HWY_ATTR { return hn::Mul(load(row + at, lanes), hn::Zero(d)); }) == 0;
  return reach;
}

template <class Way>
void quantize_rows(int64_t rows, int64_t k, const float* x, int32_t* q, float* scales, int32_t* zeros) {
  const int32_t limit = int8_activation_limit(Way::kTogether, k);
  const float half_limit = (Way::kZeros ? 0.5f : 1.0f) * static_cast<float>(limit);
  const int64_t groups = groups_of<Way>(k);
  for (int64_t i = 0; i < rows; ++i) {
    const float* row = x + i * k;
    int32_t* to = q + i * groups;
    const Reach reach = reach_of(k, row);
    // Half of what the steps reach over: from -largest to largest, or from the least value to the largest.
    const float low = Way::kZeros ? reach.least : 0;
    const float half = Way::kZeros                    ? 0.5f * reach.largest - 0.5f * low
                       : -reach.least > reach.largest ? -reach.least
                                                      : reach.largest;
    const bool counts = reach.finite && half >= 1e-30f;
    scales[i] = reach.finite ? (counts ? half / half_limit : 0) : __builtin_nanf("");
    const float inverse = counts ? half_limit / half : 0;
    const V factor = hn::Set(d, inverse);
    const V32 zero = counts ? hn::NearestInt(hn::Set(d, -low * inverse)) : hn::Zero(d32);
    zeros[i] = hn::GetLane(zero);
    if (!counts) {  // what is not finite is not converted: its row is marked already
      for (int64_t g = 0; g < groups; ++g) to[g] = 0;
      continue;
    }
    const auto values_at = [&](int64_t p, int64_t lanes) HWY_ATTR {
      const V32 values = Way::nearest(hn::Mul(load(row + p, lanes), factor));
      if constexpr (!Way::kZeros) return values;
      // Where the limit is 255, storing bytes keeps to it.
      const V32 above = hn::Add(values, zero);
      return limit < 255 ? hn::Min(above, hn::Set(d32, limit)) : above;
    };
    int64_t p = 0;
    if constexpr (Way::kZeros)
      for (; p + 4 * kLanes <= k; p += 4 * kLanes)
        Way::store_four(values_at(p, kLanes), values_at(p + kLanes, kLanes),
                        values_at(p + 2 * kLanes, kLanes), values_at(p + 3 * kLanes, kLanes),
                        to + p / Way::kTogether);
    for (; p < k; p += kLanes) {
      const int64_t lanes = k - p < kLanes ? k - p : kLanes;
      Way::store(values_at(p, lanes), lanes, to + p / Way::kTogether);
    }
  }
}

struct Tile {
  int64_t groups;
  const int32_t* a;
  const float* a_scales;
  const int32_t* a_zeros;
  const int8_t* b;  // a panel
  const float* scales;
  const float* bias;
  float* c;
  int64_t ldc;
  uintptr_t ahead;  // what is requested at group p of W^T: ahead + p * ahead_step
  uintptr_t ahead_step;
};

template <class Way, int kRows>
HWY_INLINE void run_tile(const Tile& t) {
  V32 sum[kRows][2], other[kRows][2];
  const int8_t* HWY_RESTRICT b = t.b;
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    other[i][0] = other[i][1] = sum[i][0] = sum[i][1] = hn::Zero(d32);
    if constexpr (Way::kZeros) {
      const V32 zero = hn::Set(d32, -t.a_zeros[i]);
      sum[i][0] = hn::Mul(zero, Way::right(b));
      sum[i][1] = hn::Mul(zero, Way::right(b + 4 * kLanes));
    }
  }
  if (Way::kZeros) b += 4 * kColumns;
  const int32_t* HWY_RESTRICT a = t.a;
  const int64_t groups = t.groups;
  uintptr_t ahead = t.ahead;
  const uintptr_t ahead_step = t.ahead_step;
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) __builtin_prefetch(t.c + i * t.ldc, 1, 3);
  for (int64_t p = 0; p < groups; ++p) {
    __builtin_prefetch(reinterpret_cast<const void*>(ahead), 0, 2);
    ahead += ahead_step;
    const V32 right0 = Way::right(b);
    const V32 right1 = Way::right(b + Way::kTogether * kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const V32 left = hn::Set(d32, a[i * groups + p]);
      sum[i][0] = Way::add(left, right0, sum[i][0], other[i][0]);
      sum[i][1] = Way::add(left, right1, sum[i][1], other[i][1]);
    }
    b += Way::kTogether * kColumns;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    const V row_scale = hn::Set(d, t.a_scales[i]);
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) {
      const V value = hn::ConvertTo(d, Way::joined(sum[i][j], other[i][j]));
      const V scale = hn::Mul(row_scale, hn::LoadU(d, t.scales + j * kLanes));
      hn::StoreU(hn::MulAdd(value, scale, hn::LoadU(d, t.bias + j * kLanes)), d,
                 t.c + i * t.ldc + j * kLanes);
    }
  }
}

// The tile of `rows` rows, at most kMost.
template <class Way, int kMost>
HWY_INLINE void choose_tile(int64_t rows, const Tile& t) {
  if (rows == kMost) return run_tile<Way, kMost>(t);
  if constexpr (kMost > 1) choose_tile<Way, kMost - 1>(rows, t);
}
template <class Way>
HWY_NOINLINE void run_rows(int64_t rows, const Tile& t) {
  choose_tile<Way, kTileRows>(rows, t);
}

template <class Way>
void multiply(const Int8Product& g) {
  HWY_ALIGN static const float zeros[kColumns] = {};
  if (g.m == 0) return;
  const int64_t groups = groups_of<Way>(g.k), panel = panel_bytes<Way>(groups);
  const int64_t parts = (g.m + kTileRows - 1) / kTileRows;
  const int64_t part_rows = g.m / parts, longer = g.m % parts;
  HWY_ALIGN float buffer[kTileRows * kColumns], scales[kColumns] = {}, bias[kColumns] = {};
  for (int64_t j = g.column_begin; j < g.column_end; j += kColumns) {
    const int64_t columns = g.column_end - j < kColumns ? g.column_end - j : kColumns;
    const bool whole = columns == kColumns;
    for (int64_t i = 0; i < columns && !whole; ++i) {
      scales[i] = g.scales[j + i];
      bias[i] = g.bias != nullptr ? g.bias[j + i] : 0;
    }
    const int8_t* b = g.packed + j / kColumns * panel;
    // The next panel comes while this one is used; each part of the rows asks for its share.
    const int8_t* next = j + kColumns < g.n ? b + panel : g.packed;
    Tile t{.groups = groups,
           .a = g.a,
           .a_scales = g.a_scales,
           .a_zeros = g.a_zeros,
           .b = b,
           .scales = whole ? g.scales + j : scales,
           .bias = whole ? (g.bias != nullptr ? g.bias + j : zeros) : bias,
           .c = whole ? g.c + j : buffer,
           .ldc = whole ? g.ldc : kColumns,
           .ahead = reinterpret_cast<uintptr_t>(next),
           .ahead_step = static_cast<uintptr_t>((Way::kTogether * kColumns + parts - 1) / parts)};
    int64_t done = 0;
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t rows = part_rows + (part < longer ? 1 : 0);
      run_rows<Way>(rows, t);
      t.ahead += static_cast<uintptr_t>(groups) * t.ahead_step;
      if (whole) {
        t.c += rows * g.ldc;
      } else {
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t c = 0; c < columns; ++c) g.c[(done + i) * g.ldc + j + c] = buffer[i * kColumns + c];
      }
      t.a += rows * groups;
      t.a_scales += rows;
      if (Way::kZeros) t.a_zeros += rows;
      done += rows;
    }
  }
}

template <class Way>
constexpr Int8Kernels way() {
  return {.panel_columns = kColumns,
          .together = Way::kTogether,
          .pack = pack<Way>,
          .quantize_rows = quantize_rows<Way>,
          .multiply = multiply<Way>};
}

}  // namespace

namespace FOVEA_LEVEL {
extern const Int8Ways int8_table;
#if FOVEA_IN_PLACE
const Int8Ways int8_table{.words = way<Words>(), .bytes = way<Bytes>()};
#else
const Int8Ways int8_table{.words = way<Words>(), .bytes = {}};
#endif
}  // namespace FOVEA_LEVEL

}  // namespace fovea::kernels
