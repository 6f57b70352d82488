// A program outside Fovea: it multiplies two matrices, asks for a gradient, and meets an error.
#include <fovea/fovea.h>
#include <fovea/kernels/gemm.h>

#include <cstdio>

int main() {
  float a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8}, c[4];
  fovea::kernels::gemm({.m = 2, .n = 2, .k = 2, .a = a, .lda = 2, .b = b, .ldb = 2, .c = c, .ldc = 2});
  if (c[0] != 19 || c[3] != 50) return 1;
  try {
    fovea::set_num_threads(-1);
    return 1;
  } catch (const fovea::Error& error) {
    std::printf("outside: %s\n", error.what());
  }
  return 0;
}
