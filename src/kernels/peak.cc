#include "kernels/peak.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "base/parallel.h"
#include "kernels/level_table.h"

FOVEA_LEVEL_TABLES(PeakKernels, peak_table, peak_kernels)

namespace fovea::kernels {
namespace {

using Clock = std::chrono::steady_clock;

template <class F>
double seconds_of(F&& run) {
  const auto start = Clock::now();
  run();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Best of `tries` runs.
template <class F>
double best_seconds(int tries, F&& run) {
  double best = seconds_of(run);
  for (int i = 1; i < tries; ++i) best = std::min(best, seconds_of(run));
  return best;
}

// On huge pages, as tensors are: with small ones the address translation is measured instead of the memory.
float* allocate_huge(int64_t count) {
  constexpr size_t kHugePage = size_t{2} << 20;
  const size_t bytes = (static_cast<size_t>(count) * sizeof(float) + kHugePage - 1) / kHugePage * kHugePage;
  void* memory = std::aligned_alloc(kHugePage, bytes);
  if (memory == nullptr) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  madvise(memory, bytes, MADV_HUGEPAGE);
#endif
  return static_cast<float*>(memory);
}

}  // namespace

double measure_fma_gflops() {
  const PeakKernels& kernels = peak_kernels();
  const int threads = num_threads();
  // One cache line a thread, so that sinks do not meet; the second number keeps the chains at a steady value.
  struct alignas(64) Sink {
    float values[16];
  };
  std::vector<Sink> sinks(threads);
  std::vector<int64_t> flops(threads);
  const auto run = [&](int64_t rounds) {
    parallel_chunks(threads, [&](int64_t i) {
      float seeds[kPeakSeeds];
      for (int seed = 0; seed < kPeakSeeds; ++seed)
        seeds[seed] = 0.5f + 0.01f * static_cast<float>(seed) / kPeakSeeds;
      flops[i] = kernels.multiply_add(rounds, seeds);
      sinks[i].values[0] = seeds[0];
    });
  };
  int64_t rounds = 1 << 14;
  while (seconds_of([&] { run(rounds); }) < 0.01) rounds *= 2;
  const double seconds = best_seconds(20, [&] { run(rounds); });
  int64_t total = 0;
  for (const int64_t count : flops) total += count;
  return static_cast<double>(total) / seconds * 1e-9;
}

Bandwidth measure_bandwidth() {
  const PeakKernels& kernels = peak_kernels();
  constexpr int64_t kCount = int64_t{24} << 20;  // 96 MiB an array
  constexpr int64_t kGrain = int64_t{1} << 18;
  const auto array = [&](float value) {
    std::unique_ptr<float[], void (*)(float*)> x(allocate_huge(kCount), [](float* p) { std::free(p); });
    parallel_for(kCount, kGrain,
                 [&](int64_t begin, int64_t end) { std::fill(&x[begin], &x[begin] + (end - begin), value); });
    return x;
  };
  const auto a = array(1), b = array(2), out = array(0);
  std::vector<float> sums((kCount + kGrain - 1) / kGrain);
  constexpr int kTries = 7;
  const auto passes = [&](auto&& body) {
    return best_seconds(kTries, [&] { parallel_for(kCount, kGrain, body); });
  };
  const double read =
      passes([&](int64_t begin, int64_t end) { sums[begin / kGrain] = kernels.sum(&a[begin], end - begin); });
  const double copy = passes([&](int64_t begin, int64_t end) {
    std::memcpy(&out[begin], &a[begin], static_cast<size_t>(end - begin) * sizeof(float));
  });
  const double triad = passes(
      [&](int64_t begin, int64_t end) { kernels.triad(&out[begin], &a[begin], &b[begin], 3, end - begin); });
  const double gigabytes = static_cast<double>(kCount) * sizeof(float) * 1e-9;
  return {.read = gigabytes / read, .copy = 2 * gigabytes / copy, .triad = 3 * gigabytes / triad};
}

}  // namespace fovea::kernels
