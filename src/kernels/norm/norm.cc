#include "kernels/norm/norm.h"

#include <algorithm>

#include "base/parallel.h"
#include "kernels/level_table.h"
#include "kernels/scratch.h"

FOVEA_LEVEL_TABLES(NormKernels, norm_table, norm_kernels)

namespace fovea::kernels {
namespace {

// Rows of one piece: about 16 K elements.
int64_t rows_per_piece(int64_t columns) {
  return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, columns));
}

void add_rows(const float* partials, int64_t pieces, int64_t stride, int64_t columns, float* sums) {
  std::fill(sums, sums + columns, 0.0f);
  for (int64_t piece = 0; piece < pieces; ++piece)
    for (int64_t j = 0; j < columns; ++j) sums[j] += partials[piece * stride + j];
}

}  // namespace

void norm_forward(const NormForward& args, const NormKernels& kernels) {
  parallel_for(args.rows, rows_per_piece(args.columns), [&](int64_t begin, int64_t end) {
    kernels.forward(args, begin, end, scratch_floats(0, args.columns));
  });
}

void norm_backward(const NormBackward& args, const NormKernels& kernels) {
  const int64_t columns = args.columns;
  if (args.d_weight == nullptr && args.d_bias == nullptr) {
    parallel_for(args.rows, rows_per_piece(columns),
                 [&](int64_t begin, int64_t end) { kernels.backward(args, begin, end, nullptr, nullptr); });
    return;
  }
  // At most 32 pieces, each with its own sums over its rows; the sums are added in order.
  const int64_t rows = std::max(rows_per_piece(columns), (args.rows + 31) / 32);
  const int64_t pieces = (args.rows + rows - 1) / rows;
  float* partials = scratch_floats(1, pieces * 2 * columns);
  parallel_for(args.rows, rows, [&](int64_t begin, int64_t end) {
    float* own = partials + begin / rows * 2 * columns;
    std::fill(own, own + 2 * columns, 0.0f);
    kernels.backward(args, begin, end, own, own + columns);
  });
  if (args.d_weight) add_rows(partials, pieces, 2 * columns, columns, args.d_weight);
  if (args.d_bias) add_rows(partials + columns, pieces, 2 * columns, columns, args.d_bias);
}

}  // namespace fovea::kernels
