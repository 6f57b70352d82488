// Register-tiled products for attention, base-2 exponentials, and packing between rows and lanes, for
// X.simd.cc files. Lanes are queries where nothing else is said.
#pragma once

#include <hwy/highway.h>

#include <cstdint>

#include "kernels/attention/block_attention.h"
#include "kernels/vector/vector_math-inl.h"

namespace fovea::kernels {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::ScalableTag<float>;
using Vec = hn::Vec<Tag>;
constexpr Tag kTag;
constexpr int kLanes = HWY_LANES(float);
constexpr float kLog2e = 1.44269504088896341f, kLn2 = 0.693147180559945309f;
constexpr float kLowest =
    -3.4028234663852886e38f;  // a running maximum starts here: -inf would give inf - inf

#define FOVEA_INLINE __attribute__((always_inline))

constexpr int64_t round_up(int64_t x, int64_t unit) {
  return (x + unit - 1) / unit * unit;
}
constexpr int64_t smaller(int64_t x, int64_t y) {
  return x < y ? x : y;
}
constexpr int64_t larger(int64_t x, int64_t y) {
  return x > y ? x : y;
}

// A register tile is kTileVectors vectors wide; its height fills the register file: with 16 registers 4 x 3
// accumulators, 3 operands and 1 broadcast, with 32 registers 8 x 3.
constexpr int kTileVectors = 3;
constexpr bool kManyRegisters = HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64;
template <int NV>
constexpr int kTileRows = kManyRegisters ? 8
                          : NV == 3      ? 4
                          : NV == 2      ? 6
                                         : 8;

// Calls body<count>(first) for 1 to 3 vectors at a time, in even shares.
template <class Body>
FOVEA_INLINE inline void for_vector_chunks(int vectors, Body body) {
  for (int first = 0; first < vectors;) {
    const int rest = vectors - first, chunks = (rest + kTileVectors - 1) / kTileVectors;
    const int count = (rest + chunks - 1) / chunks;
    switch (count) {
      case 1:
        body.template operator()<1>(first);
        break;
      case 2:
        body.template operator()<2>(first);
        break;
      default:
        body.template operator()<3>(first);
        break;
    }
    first += count;
  }
}

// Calls block<R>(i) so that rows [0, rows) are covered by register tiles of R rows.
template <int NV, class Block>
FOVEA_INLINE inline void for_row_blocks(int rows, Block block) {
  constexpr int kRows = kTileRows<NV>;
  int i = 0;
  // Eight rows are 4 + 4 rather than 6 + 2: two rows alone leave the multipliers waiting for sums.
  for (; i + kRows <= rows && (kRows != 6 || rows - i != 8); i += kRows) block.template operator()<kRows>(i);
  if constexpr (kRows > 4)
    for (; i + 4 <= rows; i += 4) block.template operator()<4>(i);
  if (i + 2 <= rows) {
    block.template operator()<2>(i);
    i += 2;
  }
  if (i < rows) block.template operator()<1>(i);
}

// acc[r][v] = sum over t < depth of a[r][t] * b[t * ldb + v]: the rows of a run along the sum.
template <int R, int NV>
FOVEA_INLINE inline void multiply_rows(const float* const* rows, int64_t depth, const float* HWY_RESTRICT b,
                                       int64_t ldb, Vec (&acc)[R][NV]) {
  const float* a[R];
  for (int r = 0; r < R; ++r) a[r] = rows[r];
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < NV; ++v) acc[r][v] = hn::Zero(kTag);
  for (int64_t t = 0; t < depth; ++t, b += ldb) {
    Vec x[NV];
    for (int v = 0; v < NV; ++v) x[v] = hn::LoadU(kTag, b + v * kLanes);
    for (int r = 0; r < R; ++r) {
      const Vec scalar = hn::Set(kTag, a[r][t]);
      for (int v = 0; v < NV; ++v) acc[r][v] = hn::MulAdd(scalar, x[v], acc[r][v]);
    }
  }
}

// acc[r][v] = sum over t < depth of rows[t][column + r] * b[t * ldb + v]: the rows of a run across the sum.
// Careful: where b is 0 nothing is added, whatever a holds (0 * NaN is NaN).
template <bool kCareful, int R, int NV>
FOVEA_INLINE inline void multiply_columns(const float* const* rows, int64_t depth, int64_t column,
                                          const float* HWY_RESTRICT b, int64_t ldb, Vec (&acc)[R][NV]) {
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < NV; ++v) acc[r][v] = hn::Zero(kTag);
  for (int64_t t = 0; t < depth; ++t, b += ldb) {
    const float* a = rows[t] + column;
    Vec x[NV];
    for (int v = 0; v < NV; ++v) x[v] = hn::LoadU(kTag, b + v * kLanes);
    for (int r = 0; r < R; ++r) {
      const Vec scalar = hn::Set(kTag, a[r]);
      for (int v = 0; v < NV; ++v) {
        const Vec sum = hn::MulAdd(scalar, x[v], acc[r][v]);
        acc[r][v] = kCareful ? hn::IfThenElse(hn::Eq(x[v], hn::Zero(kTag)), acc[r][v], sum) : sum;
      }
    }
  }
}

struct DoNothing {
  void operator()() const {}
};

// s[r * lds + lane] = rows[r] . b[:, lane] for r < count; with a maximum, also max[lane] = max over r of it.
// `between` is called before every register tile.
template <bool kTrackMax, class Between = DoNothing>
void scores_product(const float* const* rows, int count, int64_t depth, const float* b, int64_t ld, float* s,
                    float* max, Between between = {}) {
  for_vector_chunks(static_cast<int>(ld / kLanes), [&]<int NV>(int first) FOVEA_INLINE {
    const int64_t offset = first * kLanes;
    for_row_blocks<NV>(count, [&]<int R>(int i) FOVEA_INLINE {
      between();
      Vec acc[R][NV];
      multiply_rows<R, NV>(rows + i, depth, b + offset, ld, acc);
      for (int r = 0; r < R; ++r)
        for (int v = 0; v < NV; ++v) hn::StoreU(acc[r][v], kTag, s + (i + r) * ld + offset + v * kLanes);
      if constexpr (kTrackMax) {
        for (int v = 0; v < NV; ++v) {
          Vec top = hn::LoadU(kTag, max + offset + v * kLanes);
          for (int r = 0; r < R; ++r) top = hn::Max(top, acc[r][v]);
          hn::StoreU(top, kTag, max + offset + v * kLanes);
        }
      }
    });
  });
}

enum class Update { store, add, rescale };

// o[c][lane] (=, +=, or = o * factor +) sum over t < count of rows[t][c] * p[t][lane], for c < columns.
template <bool kCareful, class Between = DoNothing>
void columns_product(const float* const* rows, int count, int64_t columns, const float* p, int64_t ld,
                     Update update, const float* factor, float* o, Between between = {}) {
  for_vector_chunks(static_cast<int>(ld / kLanes), [&]<int NV>(int first) FOVEA_INLINE {
    const int64_t offset = first * kLanes;
    for_row_blocks<NV>(static_cast<int>(columns), [&]<int R>(int c) FOVEA_INLINE {
      between();
      Vec acc[R][NV];
      multiply_columns<kCareful, R, NV>(rows, count, c, p + offset, ld, acc);
      float* HWY_RESTRICT to = o + c * ld + offset;
      if (update == Update::rescale) {
        for (int v = 0; v < NV; ++v) {
          const Vec f = hn::LoadU(kTag, factor + offset + v * kLanes);
          for (int r = 0; r < R; ++r) {
            float* at = to + r * ld + v * kLanes;
            hn::StoreU(hn::MulAdd(hn::LoadU(kTag, at), f, acc[r][v]), kTag, at);
          }
        }
      } else if (update == Update::add) {
        for (int r = 0; r < R; ++r)
          for (int v = 0; v < NV; ++v) {
            float* at = to + r * ld + v * kLanes;
            hn::StoreU(hn::Add(hn::LoadU(kTag, at), acc[r][v]), kTag, at);
          }
      } else {
        for (int r = 0; r < R; ++r)
          for (int v = 0; v < NV; ++v) hn::StoreU(acc[r][v], kTag, to + r * ld + v * kLanes);
      }
    });
  });
}

// to[i][c] = factor[i] * sum over t < count of p[t * ld + i] * rows[t][c], for i < queries and c < columns, a
// multiple of kLanes: lanes are columns here. False where a result is not finite. Careful: where p is 0
// nothing is added.
template <bool kCareful, class Between = DoNothing>
bool weigh_rows(const float* p, int64_t ld, int queries, const float* const* rows, int count, int64_t columns,
                const float* factor, float* const* to, Between between = {}) {
  Vec strange = hn::Zero(kTag);
  for_vector_chunks(static_cast<int>(columns / kLanes), [&]<int NV>(int first) FOVEA_INLINE {
    const int64_t offset = first * kLanes;
    for_row_blocks<NV>(queries, [&]<int R>(int i) FOVEA_INLINE {
      between();
      Vec acc[R][NV];
      for (int r = 0; r < R; ++r)
        for (int v = 0; v < NV; ++v) acc[r][v] = hn::Zero(kTag);
      const float* HWY_RESTRICT at = p + i;
      for (int t = 0; t < count; ++t, at += ld) {
        const float* row = rows[t] + offset;
        Vec x[NV];
        for (int v = 0; v < NV; ++v) x[v] = hn::LoadU(kTag, row + v * kLanes);
        for (int r = 0; r < R; ++r) {
          if (kCareful && at[r] == 0) continue;
          const Vec scalar = hn::Set(kTag, at[r]);
          for (int v = 0; v < NV; ++v) acc[r][v] = hn::MulAdd(scalar, x[v], acc[r][v]);
        }
      }
      for (int r = 0; r < R; ++r) {
        const Vec f = hn::Set(kTag, factor[i + r]);
        for (int v = 0; v < NV; ++v) {
          strange = hn::MulAdd(acc[r][v], hn::Zero(kTag), strange);
          hn::StoreU(hn::Mul(acc[r][v], f), kTag, to[i + r] + offset + v * kLanes);
        }
      }
    });
  });
  return hn::AllTrue(kTag, hn::Eq(strange, hn::Zero(kTag)));
}

// to[i][c] += sum over r < depth of p[i * ldp + r] * b[r * ldb + c], for i < count and c < columns, a
// multiple of kLanes: lanes are columns here. Careful: where p is 0 nothing is added.
template <bool kCareful, class Between = DoNothing>
void outer_product(const float* p, int64_t ldp, int count, int64_t depth, const float* b, int64_t ldb,
                   float* const* to, int64_t columns, Between between = {}) {
  for_vector_chunks(static_cast<int>(columns / kLanes), [&]<int NV>(int first) FOVEA_INLINE {
    const int64_t offset = first * kLanes;
    for_row_blocks<NV>(count, [&]<int R>(int i) FOVEA_INLINE {
      between();
      const float* rows[R];
      for (int r = 0; r < R; ++r) rows[r] = p + (i + r) * ldp;
      Vec acc[R][NV];
      if constexpr (kCareful) {
        for (int r = 0; r < R; ++r)
          for (int v = 0; v < NV; ++v) acc[r][v] = hn::Zero(kTag);
        for (int64_t t = 0; t < depth; ++t)
          for (int r = 0; r < R; ++r) {
            if (rows[r][t] == 0) continue;
            const Vec scalar = hn::Set(kTag, rows[r][t]);
            for (int v = 0; v < NV; ++v)
              acc[r][v] = hn::MulAdd(scalar, hn::LoadU(kTag, b + t * ldb + offset + v * kLanes), acc[r][v]);
          }
      } else {
        multiply_rows<R, NV>(rows, depth, b + offset, ldb, acc);
      }
      for (int r = 0; r < R; ++r)
        for (int v = 0; v < NV; ++v) {
          float* at = to[i + r] + offset + v * kLanes;
          hn::StoreU(hn::Add(hn::LoadU(kTag, at), acc[r][v]), kTag, at);
        }
    });
  });
}

// Weights below this power of 2 are 0: a product with a smaller one could be a denormal number, which costs Intel's CPUs more
// than a hundred cycles each. ALiBi makes many such weights.
constexpr float kLeastPower = -100;

// 2^x for x <= 0 (a little above is fine): relative error 1e-7, exactly 1 at 0, exactly 0 below kLeastPower and at
// -inf, NaN for NaN.
FOVEA_INLINE inline Vec exp2_nonpositive(Vec x) {
  const hn::RebindToSigned<Tag> di;
  const Vec magic =
      hn::Set(kTag, 0x1.8p23f);  // adding it rounds to an integer and leaves that in the mantissa
  const Vec shifted = hn::Add(x, magic);
  const Vec f = hn::Sub(x, hn::Sub(shifted, magic));
  const Vec p = vmath::polynomial(kTag, f, 1.0f, 0.6931470036506653f, 0.24022242426872253f,
                                  0.05550733581185341f, 0.009671512991189957f, 0.001326472731307149f);
  const Vec scaled =
      hn::BitCast(kTag, hn::Add(hn::BitCast(di, p), hn::ShiftLeft<23>(hn::BitCast(di, shifted))));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(kTag, kLeastPower)), scaled);
}

// A vector whose 128-bit block n holds rows[4 * n + k][offset ... offset + 3].
template <class D = Tag>
FOVEA_INLINE inline hn::Vec<D> load_blocks(const float* const* rows, int k, int64_t offset, D d = D()) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    return hn::LoadU(d, rows[k] + offset);
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, load_blocks(rows + hn::MaxLanes(half), k, offset, half),
                       load_blocks(rows, k, offset, half));
  }
}

// The inverse; with `add`, added to what the rows hold.
template <class D = Tag>
FOVEA_INLINE inline void store_blocks(hn::Vec<D> x, float* const* rows, int k, int64_t offset, bool add,
                                      D d = D()) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    float* to = rows[k] + offset;
    hn::StoreU(add ? hn::Add(x, hn::LoadU(d, to)) : x, d, to);
  } else {
    const hn::Half<D> half;
    store_blocks(hn::LowerHalf(half, x), rows, k, offset, add, half);
    store_blocks(hn::UpperHalf(half, x), rows + hn::MaxLanes(half), k, offset, add, half);
  }
}

// Transposes each 4 x 4 made of the same 128-bit block of four vectors; its own inverse.
FOVEA_INLINE inline void transpose_blocks(Vec& x0, Vec& x1, Vec& x2, Vec& x3) {
  const hn::Repartition<double, Tag> dd;
  const auto a = hn::BitCast(dd, hn::InterleaveLower(kTag, x0, x1));
  const auto b = hn::BitCast(dd, hn::InterleaveUpper(kTag, x0, x1));
  const auto c = hn::BitCast(dd, hn::InterleaveLower(kTag, x2, x3));
  const auto d = hn::BitCast(dd, hn::InterleaveUpper(kTag, x2, x3));
  x0 = hn::BitCast(kTag, hn::InterleaveLower(dd, a, c));
  x1 = hn::BitCast(kTag, hn::InterleaveUpper(dd, a, c));
  x2 = hn::BitCast(kTag, hn::InterleaveLower(dd, b, d));
  x3 = hn::BitCast(kTag, hn::InterleaveUpper(dd, b, d));
}

// x[t] = rows[lane][offset + t], t < C, for one vector of lanes. Each row's columns are read at once: rows often lie a power of
// 2 apart, and then only a few of them stay in the first cache together.
template <int C>
FOVEA_INLINE inline void load_columns(const float* const* rows, int64_t offset, Vec (&x)[C]) {
  for (int k = 0; k < 4; ++k)
    for (int t = 0; t < C; t += 4) x[t + k] = load_blocks(rows, k, offset + t);
  for (int t = 0; t < C; t += 4) transpose_blocks(x[t], x[t + 1], x[t + 2], x[t + 3]);
}

// Transposes a square of 128-bit blocks: block m of x[n] and block n of x[m] change places.
FOVEA_INLINE inline void exchange_blocks(Vec (&x)[kLanes / 4]) {
  if constexpr (kLanes == 8) {
    const Vec x0 = x[0];
    x[0] = hn::ConcatLowerLower(kTag, x[1], x0);
    x[1] = hn::ConcatUpperUpper(kTag, x[1], x0);
  } else if constexpr (kLanes == 16) {
    const Vec a0 = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(x[1]), x[0]);
    const Vec a1 = hn::OddEvenBlocks(x[1], hn::SwapAdjacentBlocks(x[0]));
    const Vec a2 = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(x[3]), x[2]);
    const Vec a3 = hn::OddEvenBlocks(x[3], hn::SwapAdjacentBlocks(x[2]));
    x[0] = hn::ConcatLowerLower(kTag, a2, a0);
    x[1] = hn::ConcatLowerLower(kTag, a3, a1);
    x[2] = hn::ConcatUpperUpper(kTag, a2, a0);
    x[3] = hn::ConcatUpperUpper(kTag, a3, a1);
  }
}

// rows[lane][offset + t] (= or +=) x[t], t < kLanes, for one vector of lanes; x is lost.
FOVEA_INLINE inline void store_columns(Vec (&x)[kLanes], float* const* rows, int64_t offset, bool add) {
  for (int t = 0; t < kLanes; t += 4) transpose_blocks(x[t], x[t + 1], x[t + 2], x[t + 3]);
  for (int k = 0; k < 4; ++k) {
    Vec row[kLanes / 4];
    for (int n = 0; n < kLanes / 4; ++n) row[n] = x[4 * n + k];
    exchange_blocks(row);
    for (int n = 0; n < kLanes / 4; ++n) {
      float* to = rows[4 * n + k] + offset;
      hn::StoreU(add ? hn::Add(hn::LoadU(kTag, to), row[n]) : row[n], kTag, to);
    }
  }
}

// to[c * ld + lane] = rows[lane][c] * scale for one vector of lanes.
inline void pack_lanes(const float* const* rows, int64_t columns, float scale, float* to, int64_t ld) {
  const Vec factor = hn::Set(kTag, scale);
  int64_t c = 0;
  for (; c + 4 <= columns; c += 4) {
    Vec x0 = load_blocks(rows, 0, c), x1 = load_blocks(rows, 1, c);
    Vec x2 = load_blocks(rows, 2, c), x3 = load_blocks(rows, 3, c);
    transpose_blocks(x0, x1, x2, x3);
    hn::StoreU(hn::Mul(x0, factor), kTag, to + c * ld);
    hn::StoreU(hn::Mul(x1, factor), kTag, to + (c + 1) * ld);
    hn::StoreU(hn::Mul(x2, factor), kTag, to + (c + 2) * ld);
    hn::StoreU(hn::Mul(x3, factor), kTag, to + (c + 3) * ld);
  }
  for (; c < columns; ++c)
    for (int lane = 0; lane < kLanes; ++lane) to[c * ld + lane] = rows[lane][c] * scale;
}

// rows[lane][c] (= or +=) from[c * ld + lane] * factor[lane] for one vector of lanes.
inline void unpack_lanes(const float* from, int64_t ld, int64_t columns, Vec factor, bool add,
                         float* const* rows) {
  int64_t c = 0;
  for (; c + 4 <= columns; c += 4) {
    Vec x0 = hn::Mul(hn::LoadU(kTag, from + c * ld), factor);
    Vec x1 = hn::Mul(hn::LoadU(kTag, from + (c + 1) * ld), factor);
    Vec x2 = hn::Mul(hn::LoadU(kTag, from + (c + 2) * ld), factor);
    Vec x3 = hn::Mul(hn::LoadU(kTag, from + (c + 3) * ld), factor);
    transpose_blocks(x0, x1, x2, x3);
    store_blocks(x0, rows, 0, c, add);
    store_blocks(x1, rows, 1, c, add);
    store_blocks(x2, rows, 2, c, add);
    store_blocks(x3, rows, 3, c, add);
  }
  HWY_ALIGN float lanes[kLanes];
  for (; c < columns; ++c) {
    hn::Store(hn::Mul(hn::LoadU(kTag, from + c * ld), factor), kTag, lanes);
    for (int lane = 0; lane < kLanes; ++lane) rows[lane][c] = add ? rows[lane][c] + lanes[lane] : lanes[lane];
  }
}

// Whether all of x[i * stride + c], i < rows, c < columns, are finite. Four sums: one would wait for itself.
inline bool all_finite(const float* x, int64_t stride, int64_t rows, int64_t columns) {
  const Vec zero = hn::Zero(kTag);
  Vec s0 = zero, s1 = zero, s2 = zero, s3 = zero;
  float tail = 0;
  for (int64_t i = 0; i < rows; ++i, x += stride) {
    int64_t c = 0;
    for (; c + 4 * kLanes <= columns; c += 4 * kLanes) {
      s0 = hn::MulAdd(hn::LoadU(kTag, x + c), zero, s0);
      s1 = hn::MulAdd(hn::LoadU(kTag, x + c + kLanes), zero, s1);
      s2 = hn::MulAdd(hn::LoadU(kTag, x + c + 2 * kLanes), zero, s2);
      s3 = hn::MulAdd(hn::LoadU(kTag, x + c + 3 * kLanes), zero, s3);
    }
    for (; c + kLanes <= columns; c += kLanes) s0 = hn::MulAdd(hn::LoadU(kTag, x + c), zero, s0);
    for (; c < columns; ++c) tail += x[c] * 0.0f;
  }
  return tail == 0 && hn::AllTrue(kTag, hn::Eq(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)), zero));
}

// Asks for memory that is needed soon, a few lines at a time between register tiles.
class LinesAhead {
 public:
  enum Part { kOut, kNextQueries, kKeys, kValues, kKeySums, kValueSums, kBias, kBiasSums, kParts };

  // Replaces what the part still has to ask for. lines: at every call of ask().
  void set(Part part, const float* rows, int64_t stride, int64_t count, int64_t columns, int lines = 4) {
    wanted_[part] = {rows, stride, columns > 0 ? count : 0, columns, 0, lines};
    const uint32_t bit = 1u << part;
    open_ = count > 0 && columns > 0 ? open_ | bit : open_ & ~bit;
  }
  FOVEA_INLINE void ask() {
    if (open_ != 0) ask_lines();
  }

 private:
  static constexpr int64_t kLine = 16;
  static constexpr uint32_t kWritten = 1u << kOut | 1u << kKeySums | 1u << kValueSums | 1u << kBiasSums;
  struct Rows {
    const float* row;
    int64_t stride, rows, columns, column;
    int lines;
  };
  // Parts side by side are streams that the machine can follow at once.
  void ask_lines() {
    for (uint32_t open = open_; open != 0; open &= open - 1) {
      const int n = __builtin_ctz(open);
      Rows& part = wanted_[n];
      for (int line = 0; line < part.lines; ++line) {
        if (kWritten >> n & 1)
          __builtin_prefetch(part.row + part.column, 1, 3);
        else
          __builtin_prefetch(part.row + part.column, 0, 2);
        part.column += kLine;
        if (part.column < part.columns) continue;
        part.column = 0;
        part.row += part.stride;
        if (--part.rows > 0) continue;
        open_ &= ~(1u << n);
        break;
      }
    }
  }
  Rows wanted_[kParts];
  uint32_t open_ = 0;
};

}  // namespace
}  // namespace fovea::kernels
