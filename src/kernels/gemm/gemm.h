// Single-precision matrix products, cut into blocks whose shape depends on the problem alone, so that the
// result is the same for any number of threads.
//
// x W^T is oneDNN's, and A B of many rows. The gradient of a weight (A^T B), products of fewer rows, and
// those with a matrix packed before run on the register tiles of packed_gemm where they are large enough.
// Measured on one Zen 3 core (FMA peak 103 GFLOP/s), operands and result not in the cache:
//   m x n, k   A^T B: 384 x 128, 4050   128 x 256, 4050   512 x 512, 2048   10000 x 128, 209
//   oneDNN                         73                71                56                 77   GFLOP/s
//   here                           76                81                75                 84   GFLOP/s
// On one core of an Emerald Rapids Xeon (AVX-512, peak 190) oneDNN is ahead of that, but where the rows of A
// share cache sets:
//   m x n, k    384 x 128, 4050   128 x 256, 4050   512 x 512, 2050   10000 x 128, 209   2048 x 512, 4096
//   oneDNN                  134               161               160                168                120
//   here                    125               131               136                138                145
#pragma once

#include <cstdint>

namespace fovea::kernels {

// One product C = alpha * op(A) * op(B) + beta * C, all row-major.
// op(A): [m, k], op(B): [k, n], C: [m, n]; lda, ldb, ldc are the row strides as stored.
struct Gemm {
  bool transpose_a = false;  // A is stored [k, m]
  bool transpose_b = false;  // B is stored [n, k]
  int64_t m = 0, n = 0, k = 0;
  float alpha = 1;
  const float* a = nullptr;
  int64_t lda = 0;
  const float* b = nullptr;
  int64_t ldb = 0;
  const float* packed = nullptr;  // op(B) as pack_parallel() leaves it, or null; b and ldb are then not read
  float beta = 0;                 // with 0, C is not read
  const float* bias = nullptr;    // [n], added to every row where beta is 0; or null
  float* c = nullptr;
  int64_t ldc = 0;
};

void gemm(const Gemm& g);

// `count` products of one shape; A, B and C advance by these strides (0 repeats the matrix).
void gemm_batched(const Gemm& first, int64_t count, int64_t stride_a, int64_t stride_b, int64_t stride_c);

}  // namespace fovea::kernels
