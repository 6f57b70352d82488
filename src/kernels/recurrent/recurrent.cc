// LSTM and GRU over batches of sequences: packs weights, steps through time in both directions, and sums gradients.
#include "kernels/recurrent/recurrent.h"

#include <algorithm>
#include <vector>

#include "base/parallel.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/packed_gemm.h"
#include "kernels/level_table.h"
#include "kernels/recurrent/recurrent_schedule.h"
#include "kernels/scratch.h"
#include "kernels/vector/reduce.h"

FOVEA_LEVEL_TABLES(RecurrentKernels, recurrent_table, recurrent_kernels)

namespace fovea::kernels {
namespace {

// The gates' biases [4 H]; the GRU's last H are b_hn, which stands inside r * (...).
std::vector<float> joint_bias(const RecurrentForward& f) {
  const int64_t hidden = f.size.hidden;
  const bool lstm = f.size.cell == RecurrentCell::lstm;
  std::vector<float> bias(static_cast<size_t>(4 * hidden));
  for (int64_t i = 0; i < recurrent_gates(f.size.cell) * hidden; ++i) {
    const bool apart = !lstm && i >= 2 * hidden;
    if (f.weights.input_bias != nullptr) bias[i] += f.weights.input_bias[i];
    if (f.weights.hidden_bias != nullptr) bias[apart ? i + hidden : i] += f.weights.hidden_bias[i];
  }
  return bias;
}

// Runs body(direction, block) for all blocks of all directions.
void over_blocks(std::span<const RecurrentSchedule> schedules, FunctionRef<void(int64_t, int64_t)> body) {
  int64_t total = 0;
  for (const RecurrentSchedule& schedule : schedules) total += schedule.block_count();
  parallel_chunks(total, [&](int64_t chunk) {
    int64_t direction = 0;
    while (chunk >= schedules[direction].block_count()) chunk -= schedules[direction++].block_count();
    body(direction, chunk);
  });
}

// Floats that outlive the parallel loops of one call; kept for the next one.
struct Workspace {
  std::vector<float> packed, product;
};
Workspace& workspace(size_t direction) {
  thread_local Workspace spaces[2];
  return spaces[direction];
}
float* at_least(std::vector<float>& memory, int64_t count) {
  if (static_cast<int64_t>(memory.size()) < count) memory.resize(static_cast<size_t>(count));
  return memory.data();
}

// y = x W^T, x: [rows, in], W: [out, in], y: [rows, y_stride].
void project(const float* x, const float* w, const Gemm& size, float* y, int64_t y_stride) {
  gemm({.transpose_b = true,
        .m = size.m,
        .n = size.n,
        .k = size.k,
        .a = x,
        .lda = size.k,
        .b = w,
        .ldb = size.k,
        .c = y,
        .ldc = y_stride});
}

// The input's products stand where the activations will be kept, and in `work` where nothing is kept.
float* products_of(const RecurrentForward& f) {
  return f.gates != nullptr ? f.gates : f.work;
}
int64_t products_stride(const RecurrentForward& f) {
  return (f.gates != nullptr ? 4 : recurrent_gates(f.size.cell)) * f.size.hidden;
}

// The state before each token: [tokens, H].
void gather_states(const RecurrentForward& f, const RecurrentSchedule& s, float* states) {
  const int64_t hidden = f.size.hidden;
  parallel_for(static_cast<int64_t>(s.sequence.size()), 4, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t t = 0; t < s.length[row]; ++t) {
        const int64_t token = s.first[row] + t * s.step;
        float* const to = states + token * hidden;
        if (t > 0) {
          std::copy_n(f.out + (token - s.step) * f.out_stride, hidden, to);
        } else if (f.h_first != nullptr) {
          std::copy_n(f.h_first + s.sequence[row] * hidden, hidden, to);
        } else {
          std::fill_n(to, hidden, 0.0f);
        }
      }
    }
  });
}

// Columns [first, first + count) of the gates' gradients, as an operand.
struct GateColumns {
  int64_t first, count;
};

// d_weight rows [row, row + count) = gradients^T inputs, and the sums of the gradients' columns to d_bias.
void weight_gradients(const RecurrentForward& f, int64_t tokens, GateColumns columns, const float* inputs,
                      int64_t in, float* d_weight, float* d_bias) {
  const int64_t stride = 4 * f.size.hidden;
  const float* const gradients = f.gates + columns.first;
  if (d_weight != nullptr)
    gemm({.transpose_a = true,
          .m = columns.count,
          .n = in,
          .k = tokens,
          .a = gradients,
          .lda = stride,
          .b = inputs,
          .ldb = in,
          .c = d_weight,
          .ldc = in});
  if (d_bias == nullptr) return;
  parallel_for(columns.count, 64, [&](int64_t begin, int64_t end) {
    reduce_kernels().sum_rows(gradients + begin, tokens, end - begin, stride, d_bias + begin);
  });
}

// y (+)= gradients W for these columns: [tokens, out].
void gradient_product(const RecurrentForward& f, int64_t tokens, GateColumns columns, const float* w,
                      int64_t out, bool add, float* y) {
  gemm({.m = tokens,
        .n = out,
        .k = columns.count,
        .a = f.gates + columns.first,
        .lda = 4 * f.size.hidden,
        .b = w,
        .ldb = out,
        .beta = add ? 1.0f : 0.0f,
        .c = y,
        .ldc = out});
}

void finish_backward(const RecurrentBackward& back, const RecurrentSchedule& s) {
  const RecurrentForward& f = back.forward;
  const int64_t hidden = f.size.hidden, input = f.size.input, outputs = recurrent_gates(f.size.cell) * hidden;
  const bool lstm = f.size.cell == RecurrentCell::lstm;
  if (back.d_x != nullptr)
    gradient_product(f, s.tokens, {0, outputs}, f.weights.input, input, back.add_x, back.d_x);
  weight_gradients(f, s.tokens, {0, outputs}, f.x, input, back.d_input, back.d_input_bias);
  // The GRU's third gate meets weight_hh through r: its gradient there is in a column block of its own.
  const int64_t together = lstm ? outputs : 2 * hidden;
  if (back.d_hidden != nullptr || back.d_hidden_bias != nullptr) {
    if (back.d_hidden != nullptr) gather_states(f, s, back.work);
    weight_gradients(f, s.tokens, {0, together}, back.work, hidden, back.d_hidden, back.d_hidden_bias);
    if (!lstm)
      weight_gradients(f, s.tokens, {3 * hidden, hidden}, back.work, hidden,
                       back.d_hidden == nullptr ? nullptr : back.d_hidden + 2 * hidden * hidden,
                       back.d_hidden_bias == nullptr ? nullptr : back.d_hidden_bias + 2 * hidden);
  }
  if (s.single_steps && back.d_h_first != nullptr) {
    gradient_product(f, s.tokens, {0, together}, f.weights.hidden, hidden, !lstm, back.d_h_first);
    if (!lstm)
      gradient_product(f, s.tokens, {3 * hidden, hidden}, f.weights.hidden + 2 * hidden * hidden, hidden,
                       true, back.d_h_first);
  }
}

}  // namespace

void recurrent_forward(std::span<const RecurrentForward> directions, Level level) {
  FOVEA_ASSERT(directions.size() <= 2);
  const RecurrentKernels& kernels = recurrent_kernels(level);
  std::vector<RecurrentSchedule> schedules;
  std::vector<std::vector<float>> biases;
  for (size_t i = 0; i < directions.size(); ++i) {
    const RecurrentForward& f = directions[i];
    const int64_t hidden = f.size.hidden, gates = recurrent_gates(f.size.cell);
    const RecurrentSchedule& s = schedules.emplace_back(f.size.lengths, f.reverse);
    biases.push_back(joint_bias(f));
    Workspace& space = workspace(i);
    if (f.x != nullptr)
      project(f.x, f.weights.input, {.m = s.tokens, .n = gates * hidden, .k = f.size.input}, products_of(f),
              products_stride(f));
    if (s.single_steps) {
      const int64_t sequences = static_cast<int64_t>(f.size.lengths.size());
      float* const product = at_least(space.product, sequences * gates * hidden);
      if (f.h_first != nullptr) {
        project(f.h_first, f.weights.hidden, {.m = sequences, .n = gates * hidden, .k = hidden}, product,
                gates * hidden);
      } else {
        std::fill_n(product, sequences * gates * hidden, 0.0f);
      }
      continue;
    }
    const int64_t size = packed_size(hidden, hidden, level);
    float* const packed = at_least(space.packed, gates * size);
    for (int64_t g = 0; g < gates; ++g)
      pack_parallel({.transpose = true,
                     .n = hidden,
                     .k = hidden,
                     .b = f.weights.hidden + g * hidden * hidden,
                     .ldb = hidden},
                    packed + g * size, level);
  }
  Workspace* const spaces = &workspace(0);
  over_blocks(schedules, [&](int64_t direction, int64_t index) {
    const RecurrentForward& f = directions[direction];
    RecurrentBlock block = schedules[direction].block(index);
    block.cell = f.size.cell;
    block.hidden = f.size.hidden;
    block.packed = spaces[direction].packed.data();
    if (schedules[direction].single_steps) block.product = spaces[direction].product.data();
    block.bias = biases[direction].data();
    block.before = products_of(f);
    block.before_stride = products_stride(f);
    block.forward = &f;
    block.scratch = scratch_floats(0, kernels.scratch_size(block.cell, block.rows, block.hidden));
    kernels.forward(block);
  });
}

void recurrent_backward(std::span<const RecurrentBackward> directions, Level level) {
  FOVEA_ASSERT(directions.size() <= 2);
  const RecurrentKernels& kernels = recurrent_kernels(level);
  std::vector<RecurrentSchedule> schedules;
  for (size_t i = 0; i < directions.size(); ++i) {
    const RecurrentForward& f = directions[i].forward;
    const int64_t hidden = f.size.hidden, outputs = recurrent_gates(f.size.cell) * hidden;
    const RecurrentSchedule& s = schedules.emplace_back(f.size.lengths, f.reverse);
    if (s.single_steps) continue;
    pack_parallel({.n = hidden, .k = outputs, .b = f.weights.hidden, .ldb = hidden},
                  at_least(workspace(i).packed, packed_size(hidden, outputs, level)), level);
  }
  Workspace* const spaces = &workspace(0);
  over_blocks(schedules, [&](int64_t direction, int64_t index) {
    const RecurrentBackward& back = directions[direction];
    RecurrentBlock block = schedules[direction].block(index);
    block.cell = back.forward.size.cell;
    block.hidden = back.forward.size.hidden;
    if (!schedules[direction].single_steps) block.packed = spaces[direction].packed.data();
    block.want_first = back.d_h_first != nullptr;
    block.forward = &back.forward;
    block.backward = &back;
    block.scratch = scratch_floats(0, kernels.scratch_size(block.cell, block.rows, block.hidden));
    kernels.backward(block);
  });
  for (size_t i = 0; i < directions.size(); ++i) finish_backward(directions[i], schedules[i]);
}

}  // namespace fovea::kernels
