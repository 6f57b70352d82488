// Memory for the attention kernels, behind plain functions so that per-level objects hold no template of it.
#pragma once

#include <cstdint>

namespace fovea::kernels {

// Floats on a page boundary, uninitialised. No class with a destructor: unwinding would put a weak symbol
// into per-level objects.
float* allocate_floats(int64_t count);
void free_floats(float* floats);

// The calling thread's own scratch, at least `count` floats, valid until its next call on that thread.
float* attention_scratch(int64_t count);

}  // namespace fovea::kernels
