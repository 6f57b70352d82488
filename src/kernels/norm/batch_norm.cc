#include "kernels/norm/batch_norm.h"

#include <algorithm>

#include "base/parallel.h"
#include "kernels/level_table.h"
#include "kernels/scratch.h"

FOVEA_LEVEL_TABLES(BatchNormKernels, batch_norm_table, batch_norm_kernels)

namespace fovea::kernels {
namespace {

// Rows summed in float: about 4 K elements, which stay near.
int64_t rows_per_block(int64_t channels) {
  return std::max<int64_t>(1, 4096 / std::max<int64_t>(1, channels));
}
// Rows of one piece of work.
int64_t rows_per_piece(int64_t channels) {
  return 8 * rows_per_block(channels);
}

// totals[i] = the sum over all rows that add(begin, end, sums) makes block by block, for i in [0, count).
template <class Add>
void sum_over_rows(int64_t rows, int64_t channels, int64_t count, Add add, float* totals) {
  const int64_t block = rows_per_block(channels);
  // At most 32 pieces, of whole blocks.
  const int64_t piece = std::max(rows_per_piece(channels), ((rows + 31) / 32 + block - 1) / block * block);
  const int64_t pieces = (rows + piece - 1) / piece;
  thread_local ScratchBuffer<double> memory;
  double* const partials = memory.reserve(pieces * count);
  parallel_for(rows, piece, [&](int64_t begin, int64_t end) {
    double* const own = partials + begin / piece * count;
    std::fill(own, own + count, 0.0);
    float* const sums = scratch_floats(0, count);
    for (int64_t first = begin; first < end; first += block) {
      std::fill(sums, sums + count, 0.0f);
      add(first, std::min(end, first + block), sums);
      for (int64_t i = 0; i < count; ++i) own[i] += sums[i];
    }
  });
  for (int64_t i = 0; i < count; ++i) {
    double total = 0;
    for (int64_t p = 0; p < pieces; ++p) total += partials[p * count + i];
    totals[i] = static_cast<float>(total);
  }
}

}  // namespace

void batch_moments(const BatchMoments& args, const BatchNormKernels& kernels) {
  const float share = 1 / static_cast<float>(args.rows);
  const int64_t n = args.channels;
  sum_over_rows(
      args.rows, n, n, [&](int64_t begin, int64_t end, float* sums) { kernels.sum(args, begin, end, sums); },
      args.mean);
  for (int64_t c = 0; c < n; ++c) args.mean[c] *= share;
  // A second pass around the mean: the one-pass formula loses digits.
  sum_over_rows(
      args.rows, n, n,
      [&](int64_t begin, int64_t end, float* sums) { kernels.squares(args, begin, end, sums); },
      args.variance);
  for (int64_t c = 0; c < n; ++c) args.variance[c] *= share;
}

void batch_norm_forward(const BatchNormForward& args, const BatchNormKernels& kernels) {
  parallel_for(args.rows, rows_per_piece(args.channels),
               [&](int64_t begin, int64_t end) { kernels.forward(args, begin, end); });
}

void batch_norm_backward(const BatchNormBackward& args, const BatchNormKernels& kernels) {
  const int64_t n = args.channels;
  float* const totals = scratch_floats(2, 4 * n);  // dots, sums, and zeros for constant moments
  sum_over_rows(
      args.rows, n, 2 * n,
      [&](int64_t begin, int64_t end, float* sums) {
        kernels.backward_sums(args, begin, end, sums, sums + n);
      },
      totals);
  std::copy_n(totals, n, args.d_weight);
  std::copy_n(totals + n, n, args.d_bias);
  if (args.dx == nullptr) return;
  std::fill_n(totals + 2 * n, 2 * n, 0.0f);
  const float* const used = args.constant_moments ? totals + 2 * n : totals;
  parallel_for(args.rows, rows_per_piece(n),
               [&](int64_t begin, int64_t end) { kernels.backward(args, begin, end, used, used + n); });
}

}  // namespace fovea::kernels
