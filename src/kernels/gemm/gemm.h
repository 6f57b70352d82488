// Single-precision matrix products, cut into blocks whose shape depends on the problem alone, so that the
// result is the same for any number of threads.
//
// All products run on the register tiles of packed_gemm. op(B) of many rows is packed once for all threads; a product of few
// rows packs pieces of it, or reads them in place; where C is small and k large, k is cut into parts. Steps of training take
// 0.96 to 1.01 of the time that they took with oneDNN 2.6.3 (Zen 4, AVX-512; docs/benchmarks-zen4.md).
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
