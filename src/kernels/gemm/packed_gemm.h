// Products of few rows with a matrix that is packed once and used many times: the recurrent weights at every
// step of a sequence, the weights of a decoder at every token.
//
// Measured on one Zen 3 core (FMA peak 103 GFLOP/s), against dnnl_sgemm on the unpacked matrix:
//   rows          1    2    4    8   16   32   64   of 2048 x 512
//   packed       37   69   87   93   97   97   97   GFLOP/s
//   dnnl_sgemm   33   24   40   56   72   82   90   GFLOP/s
// and 96 against 70 for 32 x 512 x 2048, 96 against 74 for 16 x 512 x 128. Packing costs as much as 7 rows.
// Matrices that come from memory, 96 MiB of them in turn, 32 rows: 86 (k = 512) to 93 (k = 2048) GFLOP/s; 80
// where the next piece of the matrix is not requested ahead. One row then reads 25 GB/s, as fast as memory
// is.
// On one core of an Emerald Rapids Xeon (AVX-512, peak 190), from memory in huge pages:
//   rows               1    8   16   32   48   64  128
//   2048 x 512        12   67  133  164  172  169  175   GFLOP/s
//   512 x 512, in L2  60  179  177  178  176  181  177
//
// Each element of C is a sum in rising k. It depends neither on the other rows of the call nor on how columns
// are cut, so a row gives the same bytes alone, in a batch, and on any number of threads.
#pragma once

#include <cstdint>

#include "base/cpu.h"

namespace fovea::kernels {

// op(B): [k, n].
struct PackSource {
  bool transpose = false;  // B is stored [n, k], as PyTorch stores the weight of y = x W^T
  int64_t n = 0, k = 0;
  const float* b = nullptr;
  int64_t ldb = 0;
};

// Some memory: `rows` rows of `columns` floats, `stride` floats apart.
struct FloatRows {
  const float* first = nullptr;
  int64_t rows = 0, columns = 0, stride = 0;
};

// C = A op(B) + start, for the columns [column_begin, column_end) of C.
struct PackedProduct {
  int64_t m = 0, n = 0, k = 0;
  int64_t column_begin = 0, column_end = 0;  // multiples of panel_columns; the end may also be n
  const float* a = nullptr;                  // [m, k]
  int64_t lda = 0;
  const float* packed = nullptr;
  // Not 0: `packed` is B itself, [k, n], with rows so far apart; n is then a multiple of panel_columns.
  int64_t ldb = 0;
  const float* bias = nullptr;  // [n]: start is bias in every row
  bool accumulate = false;      // start is what C holds (bias is then not read)
  float* c = nullptr;           // [m, n]
  int64_t ldc = 0;
};

// One block of a product of many rows, C = alpha op(A) op(B) + start. Where their stride or order in memory
// would cost something, rows of A are brought together in `scratch` a piece at a time.
struct BlockProduct {
  PackedProduct product;     // m: the rows of this block
  bool transpose_a = false;  // A is stored [k, m]
  float alpha = 1;
  float* scratch = nullptr;  // block_scratch() floats, at a multiple of 64 bytes
  // What the thread probably reads next, or nothing: A of a block of the same shape, and other memory.
  const float* next_a = nullptr;
  FloatRows next;
};
inline constexpr int64_t kMostDepth = 512;  // PackedGemmKernels::depth at any level
inline constexpr int64_t kMostRows = 192;   // of A that multiply_block() takes in one go
constexpr int64_t block_scratch(int64_t m, int64_t k) {
  return ((m < kMostRows ? m : kMostRows) * 3 / 2 + 24) * ((k < kMostDepth ? k : kMostDepth) + 32) + 16;
}

// Some elements of one row of a product, to the bit what PackedProduct gives in those columns.
struct RowElements {
  int64_t k = 0;
  const float* a = nullptr;  // [k]
  const float* b = nullptr;  // [n, k], as before packing with `transpose`
  const float* bias = nullptr;
  int64_t count = 0;
  const int32_t* columns = nullptr;  // [count]
  float* c = nullptr;                // [count]
};

struct PackedGemmKernels {
  int64_t panel_columns;                           // columns that are packed side by side
  int64_t depth;                                   // rows of B whose products are summed in one go
  void (*pack)(const PackSource&, float* packed);  // fills packed_size() floats
  // The part of pack() for the columns [begin, end), begin a multiple of panel_columns.
  void (*pack_columns)(const PackSource&, int64_t begin, int64_t end, float* packed);
  void (*multiply)(const PackedProduct&);  // on the calling thread
  void (*multiply_block)(const BlockProduct&);
  void (*elements)(const RowElements&);
};

const PackedGemmKernels& packed_gemm_kernels(Level level = current_level());

// Floats that the packed form of a [k, n] matrix takes.
int64_t packed_size(int64_t n, int64_t k, Level level = current_level());

// The whole of pack(), on all threads.
void pack_parallel(const PackSource& source, float* packed, Level level = current_level());

}  // namespace fovea::kernels
