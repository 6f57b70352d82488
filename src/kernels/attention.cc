#include "kernels/attention.h"

#include <cstdlib>
#include <new>

#include "base/rng.h"
#include "kernels/attention_dropout.h"
#include "kernels/attention_scratch.h"
#include "kernels/level_table.h"

FOVEA_LEVEL_TABLES(AttentionKernels, attention_table, attention_kernels)

namespace fovea::kernels {

DropoutRow dropout_row(uint64_t seed, int64_t b, int64_t h, int64_t i) {
  const auto bits =
      philox(seed, static_cast<uint64_t>(i), static_cast<uint64_t>(b) << 32 | static_cast<uint32_t>(h));
  return {bits[0], bits[1]};
}

float* allocate_floats(int64_t count) {
  const size_t bytes = (static_cast<size_t>(count) * sizeof(float) + 4095) / 4096 * 4096;
  void* memory = std::aligned_alloc(4096, bytes);
  if (!memory && bytes > 0) throw std::bad_alloc();
  return static_cast<float*>(memory);
}

void free_floats(float* floats) {
  std::free(floats);
}

float* attention_scratch(int64_t count) {
  struct Scratch {
    float* data = nullptr;
    int64_t capacity = 0;
    ~Scratch() { free_floats(data); }
  };
  thread_local Scratch scratch;
  if (count > scratch.capacity) {
    free_floats(scratch.data);
    scratch.data = nullptr;
    scratch.capacity = 0;
    scratch.data = allocate_floats(count);
    scratch.capacity = count;
  }
  return scratch.data;
}

}  // namespace fovea::kernels
