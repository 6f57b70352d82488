// Cuts matrix products into blocks, chooses between oneDNN and packed register tiles for them, and runs them in
// parallel.
#include "kernels/gemm/gemm.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "base/blocked_signals.h"
#include "base/error.h"
#include "base/parallel.h"
#include "kernels/gemm/packed_gemm.h"

namespace fovea::kernels {
namespace {

// One product on the calling thread. Outside a parallel region oneDNN would start threads of its own. Asked
// at every call: what is set inside a parallel region is forgotten at its end.
void gemm_serial(const Gemm& g) {
  omp_set_num_threads(1);
  const dnnl_status_t status =
      dnnl_sgemm(g.transpose_a ? 'T' : 'N', g.transpose_b ? 'T' : 'N', g.m, g.n, g.k, g.alpha, g.a,
                 std::max<int64_t>(g.lda, 1), g.b, std::max<int64_t>(g.ldb, 1), g.beta, g.c,
                 std::max<int64_t>(g.ldc, 1));
  FOVEA_ASSERT(status == dnnl_success);
}

void scale_rows(const Gemm& g) {
  for (int64_t i = 0; i < g.m; ++i)
    for (int64_t j = 0; j < g.n; ++j) {
      float& c = g.c[i * g.ldc + j];
      c = g.beta == 0 ? 0 : c * g.beta;
    }
}

// The block [i0, i1) x [j0, j1) of the product.
Gemm block_of(const Gemm& g, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
  Gemm block = g;
  block.m = i1 - i0;
  block.n = j1 - j0;
  block.a += g.transpose_a ? i0 : i0 * g.lda;
  block.b += g.transpose_b ? j0 * g.ldb : j0;
  block.c += i0 * g.ldc + j0;
  return block;
}

struct Cut {
  int64_t rows, columns;
};

// Block shape by problem shape. Large blocks keep oneDNN's packing cheap; at least a few of them keep cores
// busy.
Cut choose_cut(const Gemm& g) {
  constexpr int64_t kSmall = int64_t{1}
                             << 18;  // multiply-adds below which a second thread costs more than it gives
  if (g.m * g.n * g.k <= kSmall) return {g.m, g.n};
  const auto halves = [](int64_t size, int64_t unit, int64_t most) {
    const int64_t pieces = std::max<int64_t>(2, (size + most - 1) / most);
    const int64_t piece = (size + pieces - 1) / pieces;
    return std::min(size, (piece + unit - 1) / unit * unit);
  };
  if (g.m >= g.n) return {halves(g.m, 24, 1024), std::min<int64_t>(g.n, 2048)};
  return {std::min<int64_t>(g.m, 2048), halves(g.n, 48, 1024)};
}

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// Where the register tiles are ahead of oneDNN: with AVX2 for A transposed, and for A B unless A has so many
// rows that oneDNN is given blocks of a thousand; with AVX-512 only where the rows of a transposed A share
// cache sets.
bool prefers_panels(const Gemm& g) {
  if (g.m < 96 || g.n < 32 || g.k < 32 || current_level() < Level::avx2) return false;
  if (current_level() == Level::avx512) return g.transpose_a && g.lda % 1024 == 0;
  return g.transpose_a || (!g.transpose_b && g.m < 2000);
}

float* scratch_floats(std::vector<float>& scratch, int64_t count) {
  if (static_cast<int64_t>(scratch.size()) < count) scratch.resize(static_cast<size_t>(count));
  return scratch.data();
}

// Rows and columns of a block: enough blocks for several cores, each large enough to repay the reading of
// packed columns and the copying of rows.
Cut choose_panel_cut(const Gemm& g, int64_t panel) {
  const int64_t row_blocks = std::max(ceil_div(g.m, 192), std::clamp<int64_t>(g.m / 96, 2, 8));
  const int64_t column_blocks = std::clamp<int64_t>(8 / row_blocks, 1, std::max<int64_t>(1, g.n / 128));
  return {ceil_div(ceil_div(g.m, row_blocks), 12) * 12,
          ceil_div(ceil_div(g.n, column_blocks), panel) * panel};
}

void gemm_packed(const Gemm& g) {
  const PackedGemmKernels& kernels = packed_gemm_kernels();
  const Cut cut = choose_panel_cut(g, kernels.panel_columns);
  const int64_t column_blocks = ceil_div(g.n, cut.columns);
  parallel_chunks(ceil_div(g.m, cut.rows) * column_blocks, [&](int64_t chunk) {
    const int64_t i0 = chunk / column_blocks * cut.rows, j0 = chunk % column_blocks * cut.columns;
    const int64_t j1 = std::min(g.n, j0 + cut.columns);
    const Gemm block = block_of(g, i0, std::min(g.m, i0 + cut.rows), j0, j1);
    if (g.beta != 0 && g.beta != 1) scale_rows(block);
    thread_local std::vector<float> rows_memory;
    kernels.multiply_block({.product = {.m = block.m,
                                        .n = g.n,
                                        .k = g.k,
                                        .column_begin = j0,
                                        .column_end = j1,
                                        .a = block.a,
                                        .lda = g.lda,
                                        .packed = g.packed,
                                        .accumulate = g.beta != 0,
                                        .c = block.c - j0,
                                        .ldc = g.ldc},
                            .transpose_a = g.transpose_a,
                            .alpha = g.alpha,
                            .scratch = scratch_floats(rows_memory, block_scratch(block.m))});
  });
}

// A small C and a large k (the gradient of a narrow layer's weight): k is cut, so that A and B are read once,
// a piece at a time, and still near when they are used. The parts' sums are added in order.
constexpr int64_t kPart = 1024;
bool is_narrow(const Gemm& g) {
  return g.m * g.n <= int64_t{1} << 17 && g.k >= 2 * kPart;
}

void gemm_narrow(const Gemm& g) {
  const PackedGemmKernels& kernels = packed_gemm_kernels();
  constexpr int64_t kRows = 192;
  const int64_t count = g.m * g.n, packed = packed_size(g.n, kernels.depth);
  thread_local std::vector<float> sums_memory;
  float* const sums = scratch_floats(sums_memory, (ceil_div(g.k, kPart) - 1) * count);
  if (g.beta != 0 && g.beta != 1) scale_rows(g);
  parallel_for(g.k, kPart, [&](int64_t begin, int64_t end) {
    thread_local std::vector<float> memory;
    float* const scratch = scratch_floats(memory, packed + block_scratch(kRows));
    float* const c = begin == 0 ? g.c : sums + (begin / kPart - 1) * count;
    const int64_t ldc = begin == 0 ? g.ldc : g.n;
    for (int64_t p = begin; p < end; p += kernels.depth) {
      const int64_t depth = std::min(kernels.depth, end - p);
      kernels.pack({.transpose = g.transpose_b,
                    .n = g.n,
                    .k = depth,
                    .b = g.b + (g.transpose_b ? p : p * g.ldb),
                    .ldb = g.ldb},
                   scratch);
      for (int64_t i = 0; i < g.m; i += kRows) {
        kernels.multiply_block({.product = {.m = std::min(kRows, g.m - i),
                                            .n = g.n,
                                            .k = depth,
                                            .column_begin = 0,
                                            .column_end = g.n,
                                            .a = g.a + (g.transpose_a ? p * g.lda + i : i * g.lda + p),
                                            .lda = g.lda,
                                            .packed = scratch,
                                            .accumulate = p > begin || (begin == 0 && g.beta != 0),
                                            .c = c + i * ldc,
                                            .ldc = ldc},
                                .transpose_a = g.transpose_a,
                                .alpha = g.alpha,
                                .scratch = scratch + packed});
      }
    }
  });
  parallel_for(g.m, ceil_div(int64_t{1} << 14, g.n), [&](int64_t begin, int64_t end) {
    for (const float* part = sums; part != sums + (ceil_div(g.k, kPart) - 1) * count; part += count)
      for (int64_t i = begin; i < end; ++i)
        for (int64_t j = 0; j < g.n; ++j) g.c[i * g.ldc + j] += part[i * g.n + j];
  });
}

// Packs B a slab of columns at a time.
void gemm_panels(const Gemm& g) {
  if (is_narrow(g)) return gemm_narrow(g);
  constexpr int64_t kSlab = int64_t{1} << 22;  // floats: 16 MiB
  const int64_t panel = packed_gemm_kernels().panel_columns;
  const int64_t slab = std::max(panel, kSlab / g.k / panel * panel);
  thread_local std::vector<float> packed_memory;
  float* packed = scratch_floats(packed_memory, packed_size(std::min(slab, g.n), g.k));
  for (int64_t first = 0; first < g.n; first += slab) {
    Gemm part = block_of(g, 0, g.m, first, std::min(g.n, first + slab));
    pack_parallel({.transpose = g.transpose_b, .n = part.n, .k = g.k, .b = part.b, .ldb = g.ldb}, packed);
    part.packed = packed;
    gemm_packed(part);
  }
}

}  // namespace

void gemm(const Gemm& g) {
  gemm_batched(g, 1, 0, 0, 0);
}

void gemm_batched(const Gemm& first, int64_t count, int64_t stride_a, int64_t stride_b, int64_t stride_c) {
  if (first.m == 0 || first.n == 0 || count == 0) return;
  if (first.packed != nullptr) {
    FOVEA_ASSERT(count == 1);
    gemm_packed(first);
    return;
  }
  if (prefers_panels(first)) {
    for (int64_t item = 0; item < count; ++item) {
      Gemm g = first;
      g.a += item * stride_a;
      g.b += item * stride_b;
      g.c += item * stride_c;
      gemm_panels(g);
    }
    return;
  }
  const Cut cut = choose_cut(first);
  const int64_t row_blocks = (first.m + cut.rows - 1) / cut.rows;
  const int64_t column_blocks = (first.n + cut.columns - 1) / cut.columns;
  const int64_t blocks = row_blocks * column_blocks;
  const auto run = [&](int64_t job) {
    const int64_t item = job / blocks, block = job % blocks;
    const int64_t i0 = block / column_blocks * cut.rows, j0 = block % column_blocks * cut.columns;
    Gemm g = first;
    g.a += item * stride_a;
    g.b += item * stride_b;
    g.c += item * stride_c;
    g = block_of(g, i0, std::min(first.m, i0 + cut.rows), j0, std::min(first.n, j0 + cut.columns));
    if (g.k == 0) {
      scale_rows(g);
    } else {
      gemm_serial(g);
    }
  };
  // Small products of a large batch share a chunk: about 2^18 multiply-adds make one worth handing out.
  const int64_t work =
      std::max<int64_t>(1, std::min(first.m, cut.rows) * std::min(first.n, cut.columns) * first.k);
  const int64_t grain = std::max<int64_t>(1, (int64_t{1} << 18) / work);
  parallel_for(count * blocks, grain, [&](int64_t begin, int64_t end) {
    // oneDNN's AVX-512 code (seen in 2.6.3) keeps the address of a workspace on the heap in the stack register: the
    // frame of a signal handler would be written there. A host's signals wait until the chunk is done.
    const BlockedSignals blocked;
    for (int64_t job = begin; job < end; ++job) run(job);
  });
}

const char* gemm_library_version() {
  static char text[32];
  static const int written = [] {
    const dnnl_version_t* v = dnnl_version();
    return std::snprintf(text, sizeof text, "%d.%d.%d", v->major, v->minor, v->patch);
  }();
  (void)written;
  return text;
}

}  // namespace fovea::kernels
