// Divides elementwise work into pieces, joins dimensions of broadcasts, and calls the kernels of the instruction set.
#include "kernels/vector/elementwise.h"

#include <algorithm>
#include <array>

#include "base/parallel.h"
#include "base/shape.h"
#include "kernels/level_table.h"
#include "kernels/scratch.h"

FOVEA_LEVEL_TABLES(ElementwiseKernels, elementwise_table, elementwise_kernels)

namespace fovea::kernels {
namespace {

constexpr int64_t kGrain = 16384;  // elements per piece: 64 KiB in and out stay in the second-level cache

int64_t rows_per_piece(int64_t columns) {
  return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, columns));
}

// The loops of a broadcast after joining dimensions that advance as one; innermost last.
struct Loops {
  int rank = 0;
  std::array<int64_t, Shape::kMaxRank> sizes{}, a{}, b{};
};

Loops join(std::span<const int64_t> sizes, const int64_t* a, const int64_t* b) {
  Loops loops;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 1) continue;
    const int last = loops.rank - 1;
    if (last >= 0 && loops.a[last] == a[i] * sizes[i] && loops.b[last] == b[i] * sizes[i]) {
      loops.sizes[last] *= sizes[i];
      loops.a[last] = a[i];
      loops.b[last] = b[i];
    } else {
      loops.sizes[loops.rank] = sizes[i];
      loops.a[loops.rank] = a[i];
      loops.b[loops.rank] = b[i];
      ++loops.rank;
    }
  }
  return loops;
}

float apply(Binary op, float a, float b) {
  switch (op) {
    case Binary::add:
      return a + b;
    case Binary::sub:
      return a - b;
    case Binary::mul:
      return a * b;
    case Binary::div:
      return a / b;
  }
  return 0;
}

// One innermost run. Strides other than 0 and 1 (transposed views) go element by element.
void binary_run(Binary op, const ElementwiseKernels& kernels, Strided a, Strided b, float* y, int64_t count) {
  const int64_t sa = *a.strides, sb = *b.strides;
  const auto& bodies = kernels.binary[static_cast<int>(op)];
  if (sa == 1 && sb == 1) {
    bodies[0](a.data, b.data, y, count);
  } else if (sa == 1 && sb == 0) {
    bodies[1](a.data, b.data, y, count);
  } else if (sa == 0 && sb == 1) {
    bodies[2](a.data, b.data, y, count);
  } else {
    for (int64_t i = 0; i < count; ++i) y[i] = apply(op, a.data[i * sa], b.data[i * sb]);
  }
}

}  // namespace

void unary(Unary op, const float* x, float* y, int64_t count, const ElementwiseKernels& kernels) {
  const auto body = kernels.unary[static_cast<int>(op)];
  parallel_for(count, kGrain, [=](int64_t begin, int64_t end) { body(x + begin, y + begin, end - begin); });
}

void unary_backward(Unary op, const float* saved, const float* dy, float* dx, int64_t count,
                    const ElementwiseKernels& kernels) {
  const auto body = kernels.unary_backward[static_cast<int>(op)];
  parallel_for(count, kGrain,
               [=](int64_t begin, int64_t end) { body(saved + begin, dy + begin, dx + begin, end - begin); });
}

void binary(Binary op, std::span<const int64_t> sizes, Strided a, Strided b, float* y,
            const ElementwiseKernels& kernels) {
  for (const int64_t size : sizes)
    if (size == 0) return;
  const Loops loops = join(sizes, a.strides, b.strides);
  if (loops.rank == 0) {
    *y = apply(op, *a.data, *b.data);
    return;
  }
  const int inner = loops.rank - 1;
  const int64_t run = loops.sizes[inner], sa = loops.a[inner], sb = loops.b[inner];
  if (inner == 0) {
    parallel_for(run, kGrain, [&](int64_t begin, int64_t end) {
      binary_run(op, kernels, {a.data + begin * sa, &sa}, {b.data + begin * sb, &sb}, y + begin, end - begin);
    });
    return;
  }
  int64_t outer = 1;
  for (int i = 0; i < inner; ++i) outer *= loops.sizes[i];
  parallel_for(outer, rows_per_piece(run), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      int64_t rest = row, at_a = 0, at_b = 0;
      for (int i = inner - 1; i >= 0; --i) {
        const int64_t place = rest % loops.sizes[i];
        rest /= loops.sizes[i];
        at_a += place * loops.a[i];
        at_b += place * loops.b[i];
      }
      binary_run(op, kernels, {a.data + at_a, &sa}, {b.data + at_b, &sb}, y + row * run, run);
    }
  });
}

void scale(float alpha, const float* x, float* y, int64_t count, const ElementwiseKernels& kernels) {
  parallel_for(count, kGrain,
               [&](int64_t begin, int64_t end) { kernels.scale(alpha, x + begin, y + begin, end - begin); });
}

void axpy(float alpha, const float* x, float* y, int64_t count, const ElementwiseKernels& kernels) {
  parallel_for(count, kGrain,
               [&](int64_t begin, int64_t end) { kernels.axpy(alpha, x + begin, y + begin, end - begin); });
}

void dropout(const Dropout& dropout, const float* x, float* y, int64_t count,
             const ElementwiseKernels& kernels) {
  parallel_for(count, kGrain, [&](int64_t begin, int64_t end) {
    kernels.dropout(dropout, begin, x + begin, y + begin, end - begin);
  });
}

void bias_activation(const BiasActivation& args, const ElementwiseKernels& kernels) {
  parallel_for(args.rows, rows_per_piece(args.columns),
               [&](int64_t begin, int64_t end) { kernels.bias_activation(args, begin, end); });
}

void bias_activation_backward(const BiasActivationBackward& args, const ElementwiseKernels& kernels) {
  const int64_t columns = args.columns;
  if (args.d_bias == nullptr) {
    parallel_for(args.rows, rows_per_piece(columns), [&](int64_t begin, int64_t end) {
      kernels.bias_activation_backward(args, begin, end, nullptr);
    });
    return;
  }
  // At most 32 pieces, each with its own sums, added in order.
  const int64_t rows = std::max(rows_per_piece(columns), (args.rows + 31) / 32);
  const int64_t pieces = (args.rows + rows - 1) / rows;
  float* sums = scratch_floats(0, pieces * columns);
  parallel_for(args.rows, rows, [&](int64_t begin, int64_t end) {
    float* own = sums + begin / rows * columns;
    std::fill(own, own + columns, 0.0f);
    kernels.bias_activation_backward(args, begin, end, own);
  });
  std::fill(args.d_bias, args.d_bias + columns, 0.0f);
  for (int64_t piece = 0; piece < pieces; ++piece)
    kernels.axpy(1, sums + piece * columns, args.d_bias, columns);
}

}  // namespace fovea::kernels
