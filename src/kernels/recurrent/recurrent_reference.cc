// LSTM and GRU steps by definition, for comparison with the fast kernels.
#include <cmath>
#include <vector>

#include "kernels/gemm/packed_gemm.h"
#include "kernels/recurrent/recurrent.h"

namespace fovea::kernels {
namespace {

int64_t scratch_size(RecurrentCell, int64_t, int64_t) {
  return 0;
}

float sigmoid(float x) {
  return 1 / (1 + std::exp(-x));
}

std::vector<float> state_of(const float* states, int64_t sequence, int64_t hidden) {
  if (states == nullptr) return std::vector<float>(static_cast<size_t>(hidden));
  return {states + sequence * hidden, states + (sequence + 1) * hidden};
}

// W_hh h for all gates: [G H]. The scalar pack of a matrix is its columns, one after the other.
std::vector<float> product_of(const RecurrentBlock& b, int64_t row, const std::vector<float>& h) {
  const int64_t outputs = recurrent_gates(b.cell) * b.hidden;
  std::vector<float> product(static_cast<size_t>(outputs));
  for (int64_t j = 0; j < outputs; ++j) {
    if (b.product != nullptr) {
      product[j] = b.product[b.sequence[row] * outputs + j];
    } else {
      for (int64_t p = 0; p < b.hidden; ++p) product[j] += b.packed[j * b.hidden + p] * h[p];
    }
  }
  return product;
}

void forward_row(RecurrentCell cell, const RecurrentForwardRow& row, const float* bias, int64_t H) {
  for (int64_t u = 0; u < H; ++u) {
    const auto input = [&](int64_t g) { return row.before[g * H + u] + bias[g * H + u]; };
    const auto product = [&](int64_t g) { return row.product[g * row.product_stride + u]; };
    const auto gate = [&](int64_t g) { return input(g) + product(g); };
    float kept[4];
    if (cell == RecurrentCell::lstm) {
      kept[0] = sigmoid(gate(0));
      kept[1] = sigmoid(gate(1));
      kept[2] = std::tanh(gate(2));
      kept[3] = sigmoid(gate(3));
      row.c[u] = kept[1] * row.c[u] + kept[0] * kept[2];
      row.h_next[u] = kept[3] * std::tanh(row.c[u]);
      if (row.cells != nullptr) row.cells[u] = row.c[u];
    } else {
      kept[0] = sigmoid(gate(0));
      kept[1] = sigmoid(gate(1));
      kept[3] = product(2) + bias[3 * H + u];
      kept[2] = std::tanh(input(2) + kept[0] * kept[3]);
      row.h_next[u] = (1 - kept[1]) * kept[2] + kept[1] * row.h[u];
    }
    row.out[u] = row.h_next[u];
    for (int64_t g = 0; g < 4 && row.gates != nullptr; ++g) row.gates[g * H + u] = kept[g];
  }
}

void forward(const RecurrentBlock& b) {
  const RecurrentForward& f = *b.forward;
  const int64_t H = b.hidden;
  for (int64_t row = 0; row < b.rows; ++row) {
    std::vector<float> h = state_of(f.h_first, b.sequence[row], H),
                       c = state_of(f.c_first, b.sequence[row], H);
    for (int64_t t = 0; t < b.length[row]; ++t) {
      const int64_t token = b.first[row] + t * b.step;
      const std::vector<float> product = product_of(b, row, h);
      forward_row(b.cell,
                  {.before = b.before + token * b.before_stride,
                   .product = product.data(),
                   .product_stride = H,
                   .h = h.data(),
                   .h_next = h.data(),
                   .c = c.data(),
                   .out = f.out + token * f.out_stride,
                   .gates = f.gates == nullptr ? nullptr : f.gates + token * 4 * H,
                   .cells = f.cells == nullptr ? nullptr : f.cells + token * H},
                  b.bias, H);
    }
    for (int64_t u = 0; u < H; ++u) {
      if (f.h_last != nullptr) f.h_last[b.sequence[row] * H + u] = h[u];
      if (f.c_last != nullptr) f.c_last[b.sequence[row] * H + u] = c[u];
    }
  }
}

void backward_row(RecurrentCell cell, const RecurrentBackwardRow& row, int64_t H) {
  for (int64_t u = 0; u < H; ++u) {
    float* const gates = row.gates + u;
    float* const rows = row.rows + u;
    const float x0 = gates[0], x1 = gates[H], x2 = gates[2 * H], x3 = gates[3 * H];
    const float d = row.d_h[u] + (row.d_out != nullptr ? row.d_out[u] : 0);
    if (cell == RecurrentCell::lstm) {  // x: i f g o
      const float c = std::tanh(row.cells[u]);
      const float c_before = row.c_before != nullptr ? row.c_before[u] : 0;
      const float dc = row.d_c[u] + d * x3 * (1 - c * c);
      gates[0] = dc * x2 * x0 * (1 - x0);
      gates[H] = dc * c_before * x1 * (1 - x1);
      gates[2 * H] = dc * x0 * (1 - x2 * x2);
      gates[3 * H] = d * c * x3 * (1 - x3);
      row.d_c[u] = dc * x1;
      for (int64_t g = 0; g < 4; ++g) rows[g * H] = gates[g * H];
    } else {  // x: r z n h_n
      const float h_before = row.h_before != nullptr ? row.h_before[u] : 0;
      const float d_n = d * (1 - x1) * (1 - x2 * x2);
      gates[0] = rows[0] = d_n * x3 * x0 * (1 - x0);
      gates[H] = rows[H] = d * (h_before - x2) * x1 * (1 - x1);
      gates[2 * H] = d_n;
      gates[3 * H] = rows[2 * H] = d_n * x0;
      row.d_h[u] = d * x1;
    }
  }
}

void backward(const RecurrentBlock& b) {
  const RecurrentBackward& back = *b.backward;
  const RecurrentForward& f = *b.forward;
  const int64_t H = b.hidden, outputs = recurrent_gates(b.cell) * H;
  const bool lstm = b.cell == RecurrentCell::lstm;
  for (int64_t row = 0; row < b.rows; ++row) {
    const int64_t sequence = b.sequence[row];
    std::vector<float> d_h = state_of(back.d_h_last, sequence, H), d_c = state_of(back.d_c_last, sequence, H);
    const std::vector<float> h_first = state_of(f.h_first, sequence, H);
    const std::vector<float> c_first = state_of(f.c_first, sequence, H);
    for (int64_t t = b.length[row]; t-- > 0;) {
      const int64_t token = b.first[row] + t * b.step, before = token - b.step;
      std::vector<float> rows(static_cast<size_t>(outputs));  // the gradients that meet weight_hh
      backward_row(b.cell,
                   {.d_out = back.d_out != nullptr ? back.d_out + token * f.out_stride : nullptr,
                    .d_h = d_h.data(),
                    .d_c = d_c.data(),
                    .cells = lstm ? f.cells + token * H : nullptr,
                    .c_before = !lstm   ? nullptr
                                : t > 0 ? f.cells + before * H
                                        : c_first.data(),
                    .h_before = t > 0 ? f.out + before * f.out_stride : h_first.data(),
                    .gates = f.gates + token * 4 * H,
                    .rows = rows.data()},
                   H);
      for (int64_t u = 0; u < H; ++u) {
        if (lstm) d_h[u] = 0;
        for (int64_t j = 0; j < outputs && b.packed != nullptr; ++j)
          d_h[u] += rows[j] * b.packed[u * outputs + j];
      }
    }
    for (int64_t u = 0; u < H; ++u) {
      if (back.d_h_first != nullptr) back.d_h_first[sequence * H + u] = d_h[u];
      if (back.d_c_first != nullptr) back.d_c_first[sequence * H + u] = d_c[u];
    }
  }
}

}  // namespace

namespace scalar {
extern const RecurrentKernels recurrent_table;
const RecurrentKernels recurrent_table{.scratch_size = scratch_size,
                                       .forward = forward,
                                       .backward = backward,
                                       .forward_row = forward_row,
                                       .backward_row = backward_row};
}  // namespace scalar
}  // namespace fovea::kernels
