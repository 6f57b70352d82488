#include "kernels/attention/block_attention.h"

#include <cstdlib>
#include <new>

#include "base/rng.h"
#include "kernels/attention/dropout.h"
#include "kernels/attention/scratch.h"
#include "kernels/level_table.h"

FOVEA_LEVEL_TABLES(AttentionKernels, attention_table, attention_kernels)

namespace fovea::kernels {

DropoutRow dropout_row(uint64_t seed, int64_t b, int64_t h, int64_t i) {
  const auto bits =
      philox(seed, static_cast<uint64_t>(i), static_cast<uint64_t>(b) << 32 | static_cast<uint32_t>(h));
  return {bits[0], bits[1]};
}

namespace {

class GrowingFloats {
 public:
  GrowingFloats() = default;
  GrowingFloats(const GrowingFloats&) = delete;
  GrowingFloats& operator=(const GrowingFloats&) = delete;
  ~GrowingFloats() { std::free(data_); }
  float* reserve(int64_t count) {
    if (count <= capacity_) return data_;
    std::free(data_);
    capacity_ = 0;
    const size_t bytes = (static_cast<size_t>(count) * sizeof(float) + 4095) / 4096 * 4096;
    data_ = static_cast<float*>(std::aligned_alloc(4096, bytes));
    if (!data_) throw std::bad_alloc();
    capacity_ = static_cast<int64_t>(bytes / sizeof(float));
    return data_;
  }

 private:
  float* data_ = nullptr;
  int64_t capacity_ = 0;
};

}  // namespace

float* attention_scratch(int64_t count) {
  thread_local GrowingFloats scratch;
  return scratch.reserve(count);
}

float* attention_workspace(int64_t count) {
  thread_local GrowingFloats workspace;
  return workspace.reserve(count);
}

}  // namespace fovea::kernels
