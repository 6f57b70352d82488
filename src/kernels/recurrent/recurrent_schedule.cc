#include "kernels/recurrent/recurrent_schedule.h"

#include <algorithm>
#include <numeric>

namespace fovea::kernels {
namespace {

// Rows that share a pass over the weights. Enough of them to keep the FMA units busy, few enough that a batch
// makes several blocks.
int64_t rows_of_block(int64_t sequences) {
  return std::clamp<int64_t>((sequences + 3) / 4, 8, 32);
}

}  // namespace

RecurrentSchedule::RecurrentSchedule(std::span<const int64_t> lengths, bool reverse)
    : step(reverse ? -1 : 1) {
  const int64_t count = static_cast<int64_t>(lengths.size());
  std::vector<int64_t> starts(static_cast<size_t>(count)), order(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    starts[i] = reverse ? tokens + lengths[i] - 1 : tokens;
    tokens += lengths[i];
    single_steps = single_steps && lengths[i] == 1;
  }
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return lengths[a] > lengths[b]; });
  const int64_t rows = rows_of_block(count);
  const int64_t blocks = (count + rows - 1) / rows;
  begin.push_back(0);
  for (int64_t block = 0; block < blocks; ++block) {
    for (int64_t i = block; i < count; i += blocks) {
      sequence.push_back(order[i]);
      first.push_back(starts[order[i]]);
      length.push_back(lengths[order[i]]);
    }
    begin.push_back(static_cast<int64_t>(sequence.size()));
  }
}

RecurrentBlock RecurrentSchedule::block(int64_t index) const {
  const int64_t at = begin[index];
  return {.rows = begin[index + 1] - at,
          .sequence = sequence.data() + at,
          .first = first.data() + at,
          .length = length.data() + at,
          .step = step};
}

}  // namespace fovea::kernels
