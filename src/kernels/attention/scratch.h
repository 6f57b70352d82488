// Memory for the attention kernels, behind plain functions so that per-level objects hold no template of it.
#pragma once

#include <cstdint>

namespace fovea::kernels {

// The calling thread's own scratch, at least `count` floats on a page boundary, uninitialised; valid until
// the next call on that thread. It only grows: a fresh page costs more than the sums that go through it.
float* attention_scratch(int64_t count);

// The same, for what a whole call shares between threads; the thread that makes the call asks for it.
float* attention_workspace(int64_t count);

}  // namespace fovea::kernels
