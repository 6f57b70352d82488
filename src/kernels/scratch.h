// Scratch memory that grows and stays: kernels allocate nothing once warm.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace fovea::kernels {

// Uninitialised memory for at least the requested count of T; what it held is lost when it grows. `alignment` is a power
// of two, 64 or more.
template <class T, size_t alignment = 64>
class ScratchBuffer {
 public:
  T* reserve(int64_t count) {
    if (count > capacity_) {
      const size_t bytes = (static_cast<size_t>(count) * sizeof(T) + alignment - 1) / alignment * alignment;
      data_.reset();
      capacity_ = 0;
      data_.reset(static_cast<T*>(std::aligned_alloc(alignment, bytes)));
      if (!data_) throw std::bad_alloc();
      capacity_ = static_cast<int64_t>(bytes / sizeof(T));
    }
    return data_.get();
  }
  T* get() const { return data_.get(); }

 private:
  struct Free {
    void operator()(T* memory) const { std::free(memory); }
  };
  std::unique_ptr<T[], Free> data_;
  int64_t capacity_ = 0;
};

// Slots of scratch_floats() that one kernel family has for itself. All others take 0 to 3.
inline constexpr int kAttentionTileSlot = 4;  // block attention: one thread's work
inline constexpr int kAttentionCallSlot =
    5;  // and what a call shares between threads: its calling thread asks for it

// Floats for the calling thread on a page boundary, uninitialised; valid until its next call with the same slot. A kernel
// that holds two at once, or calls another that uses scratch, takes different slots. A plain function, so that objects
// compiled for one instruction set hold no template of it.
float* scratch_floats(int slot, int64_t count);

}  // namespace fovea::kernels
