// What the machine can give: multiply-adds and memory traffic a second, the limits every speed is held
// against.
#pragma once

#include <cstdint>

#include "base/cpu.h"

namespace fovea::kernels {

// Numbers that multiply_add begins with: the two constants of its chains, and where each of up to twelve
// chains starts.
inline constexpr int kPeakSeeds = 14;

// Loops that do nothing but what they are named for.
struct PeakKernels {
  // Multiply-adds on registers alone, `rounds` times over all of them; returns the flops done (two each) and
  // leaves a value that depends on every one of them in seeds[0]. seeds: [kPeakSeeds], all different.
  int64_t (*multiply_add)(int64_t rounds, float* seeds);
  // Sum of x[0, count).
  float (*sum)(const float* x, int64_t count);
  // out[i] = a[i] + scale * b[i], past the cache where the level can.
  void (*triad)(float* out, const float* a, const float* b, float scale, int64_t count);
};

const PeakKernels& peak_kernels(Level level = current_level());

// GFLOP/s of num_threads() threads at the level in use, best of several short runs (about a third of a
// second).
double measure_fma_gflops();

// GB/s of num_threads() threads over arrays far larger than the caches, best of several passes. Bytes are
// those the program names: copy counts a read and a write, triad two reads and a write.
struct Bandwidth {
  double read = 0;
  double copy = 0;
  double triad = 0;
};
Bandwidth measure_bandwidth();

}  // namespace fovea::kernels
