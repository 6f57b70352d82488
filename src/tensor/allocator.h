// Float memory that is kept after use: a training loop asks for the same sizes at every step, and giving
// pages back to the system in between would cost a page fault per 4 KiB.
#pragma once

#include <cstdint>
#include <memory>

namespace fovea {

// Uninitialised, 64-byte aligned memory for `count` floats; returns to the cache when the last handle dies.
// Throws Error when the system has no more.
std::shared_ptr<float[]> allocate_floats(int64_t count);

struct MemoryUse {
  int64_t live_bytes = 0;    // held by tensors now
  int64_t peak_bytes = 0;    // the most that was live since reset_peak_memory()
  int64_t cached_bytes = 0;  // free, kept for the next allocation
};
MemoryUse memory_use();
void reset_peak_memory();

// Gives cached memory back to the system: blocks of less than 64 KiB or more than 16 MiB.
void trim_memory();

}  // namespace fovea
