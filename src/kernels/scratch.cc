#include "kernels/scratch.h"

namespace fovea::kernels {

float* scratch_floats(int slot, int64_t count) {
  // On pages: a fresh page costs more than the sums that go through it.
  thread_local ScratchBuffer<float, 4096> slots[6];
  return slots[slot].reserve(count);
}

}  // namespace fovea::kernels
