// Cuts matrix products into blocks for the register tiles of packed_gemm, and runs them in parallel.
#include "kernels/gemm/gemm.h"

#include <algorithm>

#include "base/error.h"
#include "base/parallel.h"
#include "kernels/gemm/packed_gemm.h"
#include "kernels/scratch.h"

namespace fovea::kernels {
namespace {

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}
int64_t round_up(int64_t a, int64_t unit) {
  return ceil_div(a, unit) * unit;
}

// C = beta C, and the bias.
void scale_rows(const Gemm& g) {
  for (int64_t i = 0; i < g.m; ++i)
    for (int64_t j = 0; j < g.n; ++j) {
      float& c = g.c[i * g.ldc + j];
      c = g.beta != 0 ? c * g.beta : g.bias != nullptr ? g.bias[j] : 0;
    }
}

// The block [i0, i1) x [j0, j1) of the product.
Gemm block_of(const Gemm& g, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
  Gemm block = g;
  block.m = i1 - i0;
  block.n = j1 - j0;
  block.a += g.transpose_a ? i0 : i0 * g.lda;
  block.b += g.transpose_b ? j0 * g.ldb : j0;
  if (g.bias != nullptr) block.bias += j0;
  block.c += i0 * g.ldc + j0;
  return block;
}

Gemm item_of(const Gemm& first, int64_t a, int64_t b, int64_t c) {
  Gemm g = first;
  g.a += a;
  g.b += b;
  g.c += c;
  return g;
}

struct Cut {
  int64_t rows, columns;
};

// Rows and columns of a block: enough blocks for several cores, each large enough to repay the reading of
// packed columns.
Cut choose_cut(const Gemm& g, int64_t panel) {
  const int64_t row_blocks = std::max(ceil_div(g.m, 192), std::clamp<int64_t>(g.m / 96, 2, 8));
  const int64_t column_blocks = std::clamp<int64_t>(8 / row_blocks, 1, std::max<int64_t>(1, g.n / 128));
  return {round_up(ceil_div(g.m, row_blocks), 12), round_up(ceil_div(g.n, column_blocks), panel)};
}

// With op(B) packed.
void gemm_packed(const Gemm& g) {
  const PackedGemmKernels& kernels = packed_gemm_kernels();
  const Cut cut = choose_cut(g, kernels.panel_columns);
  const int64_t column_blocks = ceil_div(g.n, cut.columns), blocks = ceil_div(g.m, cut.rows) * column_blocks;
  const int64_t row_step = g.transpose_a ? 1 : g.lda;
  const int64_t threads = num_threads();  // for what is requested ahead, never for results
  parallel_chunks(blocks, [&](int64_t chunk) {
    const int64_t i0 = chunk / column_blocks * cut.rows, j0 = chunk % column_blocks * cut.columns;
    const int64_t j1 = std::min(g.n, j0 + cut.columns);
    const int64_t next = (chunk + threads) / column_blocks * cut.rows;
    const Gemm block = block_of(g, i0, std::min(g.m, i0 + cut.rows), j0, j1);
    if (g.beta != 0 && g.beta != 1) scale_rows(block);
    thread_local ScratchBuffer<float> memory;
    kernels.multiply_block({.product = {.m = block.m,
                                        .n = g.n,
                                        .k = g.k,
                                        .column_begin = j0,
                                        .column_end = j1,
                                        .a = block.a,
                                        .lda = g.lda,
                                        .packed = g.packed,
                                        .bias = g.bias,
                                        .accumulate = g.beta != 0,
                                        .c = block.c - j0,
                                        .ldc = g.ldc},
                            .transpose_a = g.transpose_a,
                            .alpha = g.alpha,
                            .scratch = memory.reserve(block_scratch(block.m, g.k)),
                            .next_a = next + block.m <= g.m ? g.a + next * row_step : nullptr,
                            .next = {}});
  });
}

// Many rows: B is packed a slab of columns at a time.
void gemm_many_rows(const Gemm& g) {
  constexpr int64_t kSlab = int64_t{1} << 22;  // floats: 16 MiB
  const int64_t panel = packed_gemm_kernels().panel_columns;
  const int64_t slab = std::max(panel, kSlab / g.k / panel * panel);
  thread_local ScratchBuffer<float> memory;
  float* const packed = memory.reserve(packed_size(std::min(slab, g.n), g.k));
  for (int64_t first = 0; first < g.n; first += slab) {
    Gemm part = block_of(g, 0, g.m, first, std::min(g.n, first + slab));
    pack_parallel({.transpose = g.transpose_b, .n = part.n, .k = g.k, .b = part.b, .ldb = g.ldb}, packed);
    part.packed = packed;
    gemm_packed(part);
  }
}

// The whole product on this thread, a piece of k at a time: that piece of B is packed, or read in place where
// its rows do not share cache sets, and while it is used the next pieces of A and B are requested.
void multiply_in_pieces(const Gemm& g) {
  const PackedGemmKernels& kernels = packed_gemm_kernels();
  if (g.k == 0 || (g.beta != 0 && g.beta != 1)) scale_rows(g);
  const int64_t most = g.n <= 256 ? 256 : 128;  // so that two pieces of B lie in L2
  const bool in_place =
      !g.transpose_b && g.n % kernels.panel_columns == 0 && g.ldb % (g.m <= 256 ? 1024 : 512) != 0;
  const int64_t a_step = g.transpose_a ? g.lda : 1, b_step = g.transpose_b ? 1 : g.ldb;
  const int64_t packed = in_place ? 0 : packed_size(g.n, std::min(g.k, most));
  thread_local ScratchBuffer<float> memory;
  float* const scratch = memory.reserve(packed + block_scratch(g.m, std::min(g.k, most)));
  for (int64_t p = 0; p < g.k; p += most) {
    const int64_t depth = std::min(most, g.k - p), next = std::min(most, g.k - p - depth);
    const float* const a = g.a + p * a_step;
    const float* const b = g.b + p * b_step;
    if (!in_place)
      kernels.pack({.transpose = g.transpose_b, .n = g.n, .k = depth, .b = b, .ldb = g.ldb}, scratch);
    const float* const next_b = b + depth * b_step;
    kernels.multiply_block({.product = {.m = g.m,
                                        .n = g.n,
                                        .k = depth,
                                        .column_begin = 0,
                                        .column_end = g.n,
                                        .a = a,
                                        .lda = g.lda,
                                        .packed = in_place ? b : scratch,
                                        .ldb = in_place ? g.ldb : 0,
                                        .bias = g.bias,
                                        .accumulate = p > 0 || g.beta != 0,
                                        .c = g.c,
                                        .ldc = g.ldc},
                            .transpose_a = g.transpose_a,
                            .alpha = g.alpha,
                            .scratch = scratch + packed,
                            .next_a = next == depth ? a + depth * a_step : nullptr,
                            .next = next <= 0       ? FloatRows{}
                                    : g.transpose_b ? FloatRows{next_b, g.n, next, g.ldb}
                                                    : FloatRows{next_b, next, g.n, g.ldb}});
  }
}

// A small C and a large k (the gradient of a narrow layer's weight): k is cut, so that A and B are read once.
// The parts' sums are added in order. At most sixteen parts, as each has a C of its own.
constexpr int64_t kPart = 1024;
int64_t part_length(const Gemm& g) {
  return std::max(kPart, round_up(ceil_div(g.k, 16), 256));
}
bool is_narrow(const Gemm& g) {
  return g.m * g.n <= int64_t{1} << 18 && g.k >= 2 * kPart;
}

void gemm_narrow(const Gemm& g) {
  const int64_t count = g.m * g.n, length = part_length(g), parts = ceil_div(g.k, length);
  thread_local ScratchBuffer<float> memory;
  float* const sums = memory.reserve((parts - 1) * count);
  parallel_chunks(parts, [&](int64_t chunk) {
    const int64_t begin = chunk * length;
    Gemm part = g;
    part.k = std::min(length, g.k - begin);
    part.a += g.transpose_a ? begin * g.lda : begin;
    part.b += g.transpose_b ? begin : begin * g.ldb;
    if (chunk > 0) {
      part.beta = 0;
      part.bias = nullptr;
      part.c = sums + (chunk - 1) * count;
      part.ldc = g.n;
    }
    multiply_in_pieces(part);
  });
  parallel_for(g.m, ceil_div(int64_t{1} << 14, g.n), [&](int64_t begin, int64_t end) {
    for (const float* part = sums; part != sums + (parts - 1) * count; part += count)
      for (int64_t i = begin; i < end; ++i)
        for (int64_t j = 0; j < g.n; ++j) g.c[i * g.ldc + j] += part[i * g.n + j];
  });
}

// Rows from which on packing B once for all threads pays.
constexpr int64_t kManyRows = 256;

// Columns of a part of a product of few rows: of one that is worth it, enough parts for several cores.
int64_t choose_columns(const Gemm& g) {
  constexpr int64_t kSmall = int64_t{1} << 18;  // multiply-adds
  if (g.m * g.n * g.k <= kSmall) return g.n;
  return std::min(g.n, std::clamp<int64_t>(round_up(ceil_div(g.n, 8), 32), 64, 256));
}

}  // namespace

void gemm(const Gemm& g) {
  gemm_batched(g, 1, 0, 0, 0);
}

void gemm_batched(const Gemm& first, int64_t count, int64_t stride_a, int64_t stride_b, int64_t stride_c) {
  if (first.m == 0 || first.n == 0 || count == 0) return;
  FOVEA_ASSERT(first.bias == nullptr || first.beta == 0);
  if (first.packed != nullptr && first.k > 0) {
    FOVEA_ASSERT(count == 1);
    gemm_packed(first);
    return;
  }
  if (is_narrow(first) || (first.m > kManyRows && first.n > 8 && first.k > 0)) {
    for (int64_t i = 0; i < count; ++i) {
      const Gemm g = item_of(first, i * stride_a, i * stride_b, i * stride_c);
      is_narrow(g) ? gemm_narrow(g) : gemm_many_rows(g);
    }
    return;
  }
  const int64_t columns = choose_columns(first), parts = ceil_div(first.n, columns);
  // Small products of a large batch share a chunk: about 2^18 multiply-adds make one worth handing out.
  const int64_t work = std::max<int64_t>(1, first.m * columns * first.k);
  const int64_t grain = std::max<int64_t>(1, (int64_t{1} << 18) / work);
  parallel_for(count * parts, grain, [&](int64_t begin, int64_t end) {
    for (int64_t job = begin; job < end; ++job) {
      const int64_t i = job / parts, j = job % parts * columns;
      const Gemm g = item_of(first, i * stride_a, i * stride_b, i * stride_c);
      multiply_in_pieces(block_of(g, 0, g.m, j, std::min(g.n, j + columns)));
    }
  });
}

}  // namespace fovea::kernels
