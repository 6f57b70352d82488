// Scratch memory of a thread that grows and stays: kernels allocate nothing once warm.
#pragma once

#include <cstdint>
#include <vector>

namespace fovea::kernels {

// Floats for the calling thread, uninitialised; valid until its next call with the same slot. A kernel that
// holds two at once, or calls another that uses scratch, takes different slots.
inline float* scratch_floats(int slot, int64_t count) {
  thread_local std::vector<float> slots[4];
  std::vector<float>& memory = slots[slot];
  if (static_cast<int64_t>(memory.size()) < count) memory.resize(static_cast<size_t>(count));
  return memory.data();
}

}  // namespace fovea::kernels
