// Sums, maxima and their places along an axis or several: how the work is divided, and the shapes that need no kernel.
#include "kernels/vector/reduce.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/parallel.h"
#include "base/shape.h"
#include "kernels/level_table.h"
#include "kernels/scratch.h"

FOVEA_LEVEL_TABLES(ReduceKernels, reduce_table, reduce_kernels)

namespace fovea::kernels {
namespace {

constexpr int64_t kPiece = 32768;       // elements
constexpr int64_t kColumnPiece = 4096;  // columns summed together: their sums stay in the first-level cache
constexpr int64_t kEnoughOuter = 32;    // with that many independent sums, none needs to be cut

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}
int64_t rows_per_piece(int64_t columns) {
  return std::max<int64_t>(1, kPiece / std::max<int64_t>(1, columns));
}

// Inner size 1: each result is the sum of a contiguous run.
void sum_runs(const float* x, int64_t outer, int64_t axis, float* y, const ReduceKernels& kernels) {
  if (outer >= kEnoughOuter || axis <= kPiece) {
    parallel_for(outer, rows_per_piece(axis), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = static_cast<float>(kernels.sum(x + i * axis, axis));
    });
    return;
  }
  for (int64_t i = 0; i < outer; ++i) y[i] = static_cast<float>(sum(x + i * axis, axis, kernels));
}

// Inner size above 1: rows are added to each other. Long axes are cut, the parts' sums added in order.
void sum_columns(const float* x, const AxisShape& s, float* y, const ReduceKernels& kernels) {
  const int64_t rows = s.outer >= kEnoughOuter
                           ? s.axis
                           : std::max(rows_per_piece(std::min(s.inner, kColumnPiece)), ceil_div(s.axis, 32));
  const int64_t parts = ceil_div(s.axis, rows), strips = ceil_div(s.inner, kColumnPiece);
  float* sums = parts == 1 ? y : scratch_floats(2, s.outer * parts * s.inner);
  const int64_t chunks = s.outer * parts * strips;
  const int64_t work = std::min(rows, s.axis) * std::min(s.inner, kColumnPiece);
  parallel_for(
      chunks, std::max<int64_t>(1, kPiece / std::max<int64_t>(1, work)), [&](int64_t begin, int64_t end) {
        for (int64_t chunk = begin; chunk < end; ++chunk) {
          const int64_t strip = chunk % strips, part = chunk / strips % parts, o = chunk / strips / parts;
          const int64_t row = part * rows, column = strip * kColumnPiece;
          kernels.sum_rows(x + (o * s.axis + row) * s.inner + column, std::min(rows, s.axis - row),
                           std::min(kColumnPiece, s.inner - column), s.inner,
                           sums + (o * parts + part) * s.inner + column);
        }
      });
  if (parts == 1) return;
  for (int64_t o = 0; o < s.outer; ++o)
    kernels.sum_rows(sums + o * parts * s.inner, parts, s.inner, s.inner, y + o * s.inner);
}

}  // namespace

double sum(const float* x, int64_t count, const ReduceKernels& kernels) {
  if (count <= kPiece) return kernels.sum(x, count);
  std::vector<double> parts(static_cast<size_t>(ceil_div(count, kPiece)));
  parallel_for(count, kPiece, [&](int64_t begin, int64_t end) {
    parts[begin / kPiece] = kernels.sum(x + begin, end - begin);
  });
  double total = 0;
  for (const double part : parts) total += part;
  return total;
}

void sum_axis(const float* x, const AxisShape& shape, float* y, const ReduceKernels& kernels) {
  if (shape.outer * shape.inner == 0) return;
  if (shape.axis == 0)
    std::fill(y, y + shape.outer * shape.inner, 0.0f);
  else if (shape.inner == 1)
    sum_runs(x, shape.outer, shape.axis, y, kernels);
  else
    sum_columns(x, shape, y, kernels);
}

void max_axis(const float* x, const AxisShape& s, float* y, int32_t* index, const ReduceKernels& kernels) {
  // Maxout: a kernel call for each pair was 1.6 % of a recurrent translation.
  if (s.inner == 1 && s.axis == 2) {
    parallel_for(s.outer, rows_per_piece(2), [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        const float first = x[2 * o], second = x[2 * o + 1];
        const bool takes_second = second > first || (second != second && first == first);
        index[o] = takes_second;
        y[o] = takes_second ? second : first;
      }
    });
    return;
  }
  parallel_for(s.outer, rows_per_piece(s.axis * s.inner), [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      const float* run = x + o * s.axis * s.inner;
      if (s.inner == 1) {
        index[o] = static_cast<int32_t>(kernels.argmax(run, s.axis));
        y[o] = run[index[o]];
        continue;
      }
      float* best = y + o * s.inner;
      int32_t* place = index + o * s.inner;
      for (int64_t j = 0; j < s.inner; ++j) best[j] = run[j], place[j] = 0;
      for (int64_t i = 1; i < s.axis; ++i)
        for (int64_t j = 0; j < s.inner; ++j) {
          const float value = run[i * s.inner + j];
          if (!(value > best[j]) && !(std::isnan(value) && !std::isnan(best[j]))) continue;
          best[j] = value;
          place[j] = static_cast<int32_t>(i);
        }
    }
  });
}

void sum_dimensions(const float* x, std::span<const int64_t> sizes, const bool* summed, float* y,
                    const ReduceKernels& kernels) {
  // Neighbours of one kind are one dimension; those of size 1 are none.
  std::vector<std::pair<int64_t, bool>> dimensions;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 1) continue;
    if (!dimensions.empty() && dimensions.back().second == summed[i])
      dimensions.back().first *= sizes[i];
    else
      dimensions.emplace_back(sizes[i], summed[i]);
  }
  int64_t left = 0;
  for (const auto& dimension : dimensions) left += dimension.second;
  std::vector<float> between[2];
  int turn = 0;
  const float* from = x;
  // The last summed dimension goes first: it shrinks what the others have to read.
  for (size_t i = dimensions.size(); i-- > 0;) {
    if (!dimensions[i].second) continue;
    AxisShape shape{1, dimensions[i].first, 1};
    for (size_t k = 0; k < dimensions.size(); ++k)
      (k < i ? shape.outer : shape.inner) *= k == i ? 1 : dimensions[k].first;
    float* to = y;
    if (--left > 0) {
      between[turn].resize(static_cast<size_t>(shape.outer * shape.inner));
      to = between[turn].data();
      turn = 1 - turn;
    }
    sum_axis(from, shape, to, kernels);
    from = to;
    dimensions.erase(dimensions.begin() + static_cast<int64_t>(i));
  }
  if (from != x) return;
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  std::copy(x, x + count, y);
}

}  // namespace fovea::kernels
