#include "kernels/gemm.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "base/error.h"
#include "base/parallel.h"
#include "kernels/packed_gemm.h"

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

// Where the register tiles are ahead of oneDNN, whose kernels for these layouts lose up to half of their
// speed on blocks of fewer than a thousand rows. For x W^T it is oneDNN that is ahead.
bool prefers_panels(const Gemm& g) {
  return (g.transpose_a || !g.transpose_b) && current_level() >= Level::avx2 && g.m >= 96 && g.n >= 32 &&
         g.k >= 32;
}

float* scratch_floats(std::vector<float>& scratch, int64_t count) {
  if (static_cast<int64_t>(scratch.size()) < count) scratch.resize(static_cast<size_t>(count));
  return scratch.data();
}

// Packs B a slab of columns at a time, then runs blocks of rows and columns over it.
void gemm_panels(const Gemm& g) {
  constexpr int64_t kSlab = int64_t{1} << 22;  // floats: 16 MiB
  const PackedGemmKernels& kernels = packed_gemm_kernels();
  const int64_t panel = kernels.panel_columns;
  const auto whole_panels = [panel](int64_t columns) { return ceil_div(columns, panel) * panel; };
  const int64_t slab = std::max(panel, kSlab / g.k / panel * panel);
  // Enough blocks for many cores, each large enough to repay the copying of its rows of A.
  const int64_t rows = std::clamp<int64_t>(ceil_div(ceil_div(g.m, 16), 12) * 12, 48, 192);
  const int64_t row_blocks = ceil_div(g.m, rows);

  thread_local std::vector<float> packed_memory;
  float* packed = scratch_floats(packed_memory, whole_panels(std::min(slab, g.n)) * g.k);
  for (int64_t first = 0; first < g.n; first += slab) {
    const int64_t n = std::min(slab, g.n - first);
    const PackSource source{.transpose = g.transpose_b,
                            .n = n,
                            .k = g.k,
                            .b = g.b + (g.transpose_b ? first * g.ldb : first),
                            .ldb = g.ldb};
    parallel_for(n, whole_panels(std::max<int64_t>(1, 65536 / g.k)),
                 [&](int64_t begin, int64_t end) { kernels.pack_columns(source, begin, end, packed); });

    const int64_t columns = whole_panels(row_blocks >= 8 ? n : std::max<int64_t>(128, ceil_div(n, 8)));
    const int64_t column_blocks = ceil_div(n, columns);
    parallel_chunks(row_blocks * column_blocks, [&](int64_t chunk) {
      const int64_t i0 = chunk / column_blocks * rows, j0 = chunk % column_blocks * columns;
      Gemm block = block_of(g, i0, std::min(g.m, i0 + rows), first + j0, first + std::min(n, j0 + columns));
      if (g.beta != 0 && g.beta != 1) scale_rows(block);
      thread_local std::vector<float> rows_memory;
      kernels.multiply_block({.product = {.m = block.m,
                                          .n = n,
                                          .k = g.k,
                                          .column_begin = j0,
                                          .column_end = std::min(n, j0 + columns),
                                          .a = block.a,
                                          .lda = g.lda,
                                          .packed = packed,
                                          .accumulate = g.beta != 0,
                                          .c = block.c - j0,
                                          .ldc = g.ldc},
                              .transpose_a = g.transpose_a,
                              .alpha = g.alpha,
                              .scratch = scratch_floats(rows_memory, block_scratch(block.m))});
    });
  }
}

}  // namespace

void gemm(const Gemm& g) {
  gemm_batched(g, 1, 0, 0, 0);
}

void gemm_batched(const Gemm& first, int64_t count, int64_t stride_a, int64_t stride_b, int64_t stride_c) {
  if (first.m == 0 || first.n == 0 || count == 0) return;
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
