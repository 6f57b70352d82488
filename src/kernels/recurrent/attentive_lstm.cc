// The attentive LSTM decoder with input feeding over whole sequences: steps forward, steps backward, and the gradients
// of its weights.
#include "kernels/recurrent/attentive_lstm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/parallel.h"
#include "kernels/gemm/packed_gemm.h"
#include "kernels/recurrent/recurrent_schedule.h"
#include "kernels/recurrent/step_gradients.h"
#include "kernels/scratch.h"
#include "kernels/vector/elementwise.h"

namespace fovea::kernels {
namespace {

int64_t padded(int64_t columns) {
  return columns + 16;
}

// A matrix packed into `memory` for products with the rows of a block: y (+)= x W^T forwards, x (+)= y W
// backwards.
struct Packed {
  struct Matrix {
    const float* weight;
    int64_t out, in;
  };
  static int64_t size(const Matrix& w, bool backward, Level level) {
    return backward ? packed_size(w.in, w.out, level) : packed_size(w.out, w.in, level);
  }
  Packed(const Matrix& w, bool backward, Level l, float* memory)
      : n(backward ? w.in : w.out), k(backward ? w.out : w.in), level(l), data(memory) {
    pack_parallel({.transpose = !backward, .n = n, .k = k, .b = w.weight, .ldb = w.in}, memory, level);
  }
  struct Rows {
    const float* a;
    int64_t lda;
    float* c;
    int64_t ldc;
    bool accumulate;
  };
  void multiply(int64_t m, const Rows& rows, const float* bias = nullptr) const {
    packed_gemm_kernels(level).multiply({.m = m,
                                         .n = n,
                                         .k = k,
                                         .column_begin = 0,
                                         .column_end = n,
                                         .a = rows.a,
                                         .lda = rows.lda,
                                         .packed = data,
                                         .bias = bias,
                                         .accumulate = rows.accumulate,
                                         .c = rows.c,
                                         .ldc = rows.ldc});
  }
  int64_t n, k;
  Level level;
  const float* data;
};

// combine, query and position, one below the other: [projected_width, H].
std::vector<float> joint_weight(const StepAttention& attention, int64_t hidden) {
  std::vector<float> joint(attention.combine, attention.combine + hidden * hidden);
  if (attention.query_weight != nullptr)
    joint.insert(joint.end(), attention.query_weight, attention.query_weight + attention.score.d * hidden);
  if (attention.position_weight != nullptr)
    joint.insert(joint.end(), attention.position_weight,
                 attention.position_weight + attention.position_width * hidden);
  return joint;
}

std::vector<float> joint_bias(const StepAttention& attention, int64_t hidden) {
  std::vector<float> joint(static_cast<size_t>(projected_width(attention, hidden)));
  if (attention.query_bias != nullptr && attention.query_weight != nullptr)
    std::copy_n(attention.query_bias, attention.score.d, joint.begin() + hidden);
  return joint;
}

int64_t position_column(const StepAttention& attention, int64_t hidden) {
  return hidden + (attention.query_weight != nullptr ? attention.score.d : 0);
}

// All matrices of a step. Their memory is the calling thread's and stays for the next call: fresh pages cost
// more than the packing.
struct Products {
  Products(const AttentiveLstmForward& f, bool backward, Level level) {
    const std::vector<float> joint = joint_weight(f.attention, f.hidden);
    std::vector<Packed::Matrix> matrices{{joint.data(), projected_width(f.attention, f.hidden), f.hidden}};
    for (const AttentiveLstmLayer& layer : f.layers) {
      matrices.push_back({layer.input, 4 * f.hidden, f.hidden});
      matrices.push_back({layer.state, 4 * f.hidden, f.hidden});
    }
    int64_t total = 0;
    for (const Packed::Matrix& w : matrices) total += Packed::size(w, backward, level);
    float* memory = scratch_floats(3, total);
    for (const Packed::Matrix& w : matrices) {
      all.emplace_back(w, backward, level, memory);
      memory += Packed::size(w, backward, level);
    }
  }
  const Packed& projections() const { return all[0]; }
  const Packed& input(int64_t layer) const { return all[static_cast<size_t>(1 + 2 * layer)]; }
  const Packed& state(int64_t layer) const { return all[static_cast<size_t>(2 + 2 * layer)]; }
  std::vector<Packed> all;
};

AttentionRun run_at(const StepAttention& attention, int64_t hidden, int64_t token) {
  return run_of(attention.runs, token, attention.keys, attention.score.d, attention.values, hidden);
}

struct Forward {
  const AttentiveLstmForward& f;
  const Products& products;
  const float *bias, *zeros;
  Level level;

  void block(const RecurrentBlock& b) const {
    const int64_t hidden = f.hidden, stride = padded(hidden), wide = padded(4 * hidden);
    const int64_t projected = projected_width(f.attention, hidden), projected_stride = padded(projected);
    const auto layers = static_cast<int64_t>(f.layers.size());
    float* const h = scratch_floats(
        0, b.rows * (stride * (2 * layers + 2) + wide + projected_stride) + 4 * hidden + f.attention.score.d);
    float* const c = h + layers * b.rows * stride;
    float* const fed = c + layers * b.rows * stride;  // s~ of the step before; above layer 0, its input
    float* const x = fed + b.rows * stride;
    float* const product = x + b.rows * stride;
    float* const seen = product + b.rows * wide;  // [rows, projected]
    float* const scratch = seen + b.rows * projected_stride;
    std::fill_n(fed, b.rows * stride, 0.0f);
    for (int64_t l = 0; l < layers; ++l) {
      for (int64_t r = 0; r < b.rows; ++r) {
        const int64_t row = (l * b.rows + r) * stride;
        std::copy_n(f.layers[l].h_first + b.sequence[r] * hidden, hidden, h + row);
        std::copy_n(f.layers[l].c_first + b.sequence[r] * hidden, hidden, c + row);
      }
    }
    int64_t active = b.rows;
    for (int64_t t = 0;; ++t) {
      while (active > 0 && b.length[active - 1] <= t) --active;
      if (active == 0) return;
      for (int64_t l = 0; l < layers; ++l) {
        float* const states = h + l * b.rows * stride;
        const AttentiveLstmLayer& layer = f.layers[l];
        if (l > 0) drop_rows(layer.dropout, b, t, active, states - b.rows * stride, x, stride);
        products.input(l).multiply(active, {l > 0 ? x : fed, stride, product, wide, false});
        products.state(l).multiply(active, {states, stride, product, wide, true});
        for (int64_t r = 0; r < active; ++r) {
          const int64_t token = b.first[r] + t;
          float* const state = states + r * stride;
          recurrent_kernels(level).forward_row(
              RecurrentCell::lstm,
              {.before = l == 0 ? f.products + token * 4 * hidden : zeros,
               .product = product + r * wide,
               .product_stride = hidden,
               .h = state,
               .h_next = state,
               .c = c + (l * b.rows + r) * stride,
               .out = layer.states + token * hidden,
               .gates = layer.gates == nullptr ? nullptr : layer.gates + token * 4 * hidden,
               .cells = layer.cells == nullptr ? nullptr : layer.cells + token * hidden},
              layer.bias != nullptr ? layer.bias : zeros, hidden);
        }
      }
      float* const top = h + (layers - 1) * b.rows * stride;
      products.projections().multiply(active, {top, stride, seen, projected_stride, false}, bias);
      for (int64_t r = 0; r < active; ++r)
        row(b.first[r] + t, b.sequence[r], top + r * stride, seen + r * projected_stride, fed + r * stride,
            scratch);
    }
  }

  // x = dropout(states), whose elements are those of [steps, H].
  void drop_rows(const Dropout& dropout, const RecurrentBlock& b, int64_t t, int64_t active,
                 const float* states, float* x, int64_t stride) const {
    for (int64_t r = 0; r < active; ++r) {
      if (dropout.active()) {
        elementwise_kernels(level).dropout(dropout, (b.first[r] + t) * f.hidden, states + r * stride,
                                           x + r * stride, f.hidden);
      } else {
        std::copy_n(states + r * stride, f.hidden, x + r * stride);
      }
    }
  }

  void row(int64_t token, int64_t sentence, const float* h, const float* projected, float* fed,
           float* scratch) const {
    const StepAttention& attention = f.attention;
    const int64_t hidden = f.hidden, width = projected_width(attention, hidden);
    if (attention.projected != nullptr) std::copy_n(projected, width, attention.projected + token * width);
    if (attention.position_weight != nullptr)
      predict(token, sentence, projected + position_column(attention, hidden));
    AttentionRun run = run_at(attention, hidden, token);
    run.q = attention.query_weight != nullptr ? projected + hidden : h;
    run.out = scratch;
    attention_runs_kernels(level).forward(attention.score, run, scratch + hidden);
    for (int64_t i = 0; i < hidden; ++i) scratch[i] += projected[i];
    elementwise_kernels(level).unary[static_cast<int>(Unary::tanh)](scratch, fed, hidden);
    std::copy_n(fed, hidden, f.out + token * hidden);
  }

  void predict(int64_t token, int64_t sentence, const float* before) const {
    const StepAttention& attention = f.attention;
    const int64_t begin = attention.runs.key_begin[sentence],
                  keys = attention.runs.key_begin[sentence + 1] - begin;
    const float place = static_cast<float>(keys) *
                        predicted_share(attention.position_vector, before, attention.position_width);
    const PredictedRun run = predicted_run(place, attention.window, attention.count[token]);
    attention.first[token] = static_cast<int32_t>(begin) + run.first;
    attention.count[token] = run.count;
    attention.centre[token] = place + static_cast<float>(begin);
  }
};

struct Backward {
  const AttentiveLstmBackward& back;
  const AttentiveLstmForward& f;
  const Products& products;
  int64_t longest;
  Level level;

  // d_vector: [d], d_position: [P], sums of this block.
  void block(const RecurrentBlock& b, float* d_vector, float* d_position) const {
    const int64_t hidden = f.hidden, stride = padded(hidden), wide = padded(4 * hidden);
    const int64_t projected_stride = padded(projected_width(f.attention, hidden) + f.attention.score.d);
    const auto layers = static_cast<int64_t>(f.layers.size());
    float* const d_h = scratch_floats(0, b.rows * (stride * (2 * layers + 2) + wide + projected_stride) +
                                             longest + 2 * f.attention.score.d);
    float* const d_c = d_h + layers * b.rows * stride;
    float* const d_fed = d_c + layers * b.rows * stride;
    float* const d_x = d_fed + b.rows * stride;
    float* const rows = d_x + b.rows * stride;
    float* const projected = rows + b.rows * wide;
    float* const scratch = projected + b.rows * projected_stride;
    int64_t active = 0;
    for (int64_t t = b.rows == 0 ? 0 : b.length[0]; t-- > 0;) {
      for (; active < b.rows && b.length[active] > t; ++active) {
        std::fill_n(d_fed + active * stride, hidden, 0.0f);
        for (int64_t l = 0; l < layers; ++l) {
          std::fill_n(d_h + (l * b.rows + active) * stride, hidden, 0.0f);
          std::fill_n(d_c + (l * b.rows + active) * stride, hidden, 0.0f);
        }
      }
      float* const d_top = d_h + (layers - 1) * b.rows * stride;
      for (int64_t r = 0; r < active; ++r)
        row(b.first[r] + t, d_fed + r * stride, projected + r * projected_stride, d_top + r * stride,
            {d_vector, d_position, scratch}, b.sequence[r]);
      products.projections().multiply(active, {projected, projected_stride, d_top, stride, true});
      for (int64_t l = layers; l-- > 0;) {
        float* const d_states = d_h + l * b.rows * stride;
        for (int64_t r = 0; r < active; ++r) layer_row(b, l, t, r, d_states, d_c, rows);
        products.state(l).multiply(active, {rows, wide, d_states, stride, false});
        products.input(l).multiply(active, {rows, wide, l > 0 ? d_x : d_fed, stride, false});
        if (l > 0) add_dropped(f.layers[l].dropout, b, t, active, d_x, d_states - b.rows * stride, stride);
      }
    }
    for (int64_t l = 0; l < layers; ++l) {
      for (int64_t r = 0; r < b.rows; ++r) {
        const int64_t from = (l * b.rows + r) * stride, to = b.sequence[r] * hidden;
        if (b.length[r] == 0) {
          std::fill_n(back.layers[l].d_h_first + to, hidden, 0.0f);
          std::fill_n(back.layers[l].d_c_first + to, hidden, 0.0f);
          continue;
        }
        std::copy_n(d_h + from, hidden, back.layers[l].d_h_first + to);
        std::copy_n(d_c + from, hidden, back.layers[l].d_c_first + to);
      }
    }
  }

  void layer_row(const RecurrentBlock& b, int64_t l, int64_t t, int64_t r, float* d_states, float* d_c,
                 float* rows) const {
    const AttentiveLstmLayer& layer = f.layers[l];
    const int64_t hidden = f.hidden, stride = padded(hidden), token = b.first[r] + t;
    recurrent_kernels(level).backward_row(
        RecurrentCell::lstm,
        {.d_h = d_states + r * stride,
         .d_c = d_c + (l * b.rows + r) * stride,
         .cells = layer.cells + token * hidden,
         .c_before = t > 0 ? layer.cells + (token - 1) * hidden : layer.c_first + b.sequence[r] * hidden,
         .gates = layer.gates + token * 4 * hidden,
         .rows = rows + r * padded(4 * hidden)},
        hidden);
  }

  void add_dropped(const Dropout& dropout, const RecurrentBlock& b, int64_t t, int64_t active, float* d_x,
                   float* d_below, int64_t stride) const {
    for (int64_t r = 0; r < active; ++r) {
      float* const from = d_x + r * stride;
      if (dropout.active())
        elementwise_kernels(level).dropout(dropout, (b.first[r] + t) * f.hidden, from, from, f.hidden);
      elementwise_kernels(level).axpy(1, from, d_below + r * stride, f.hidden);
    }
  }

  struct Sums {
    float *vector, *position, *scratch;
  };
  // Fills `rows` (and the kept projections) with the gradients of what combine, query and position made.
  void row(int64_t token, const float* d_fed, float* rows, float* d_top, const Sums& sums,
           int64_t sentence) const {
    const StepAttention& attention = f.attention;
    const int64_t hidden = f.hidden, d = attention.score.d, width = projected_width(attention, hidden);
    float* const projected = attention.projected + token * width;
    const float* const s = f.out + token * hidden;
    const float* const d_out = back.d_out + token * hidden;
    for (int64_t i = 0; i < hidden; ++i) rows[i] = (d_out[i] + d_fed[i]) * (1 - s[i] * s[i]);
    AttentionRun run = run_at(attention, hidden, token);
    const AttentiveLstmLayer& top = f.layers.back();
    run.q = attention.query_weight != nullptr ? projected + hidden : top.states + token * hidden;
    float d_centre = 0;
    float* const dq = attention.query_weight != nullptr ? rows + hidden : sums.scratch;
    float* const scratch = sums.scratch + d;
    attention_runs_kernels(level).backward(
        attention.score, {.run = run,
                          .d_out = rows,
                          .dq = dq,
                          .dk = back.d_keys + attention.runs.first[token] * d,
                          .d_vector = sums.vector,
                          .d_centre = attention.position_weight != nullptr ? &d_centre : nullptr,
                          .scratch = scratch});
    if (attention.query_weight == nullptr)
      for (int64_t i = 0; i < hidden; ++i) d_top[i] += dq[i];
    if (attention.position_weight != nullptr) {
      const int64_t at = position_column(attention, hidden), p = attention.position_width;
      const auto keys =
          static_cast<float>(attention.runs.key_begin[sentence + 1] - attention.runs.key_begin[sentence]);
      const float share = predicted_share(attention.position_vector, projected + at, p);
      const float d_sum = d_centre * keys * share * (1 - share);
      for (int64_t i = 0; i < p; ++i) {
        const float tanh = std::tanh(projected[at + i]);
        sums.position[i] += d_sum * tanh;
        rows[at + i] = d_sum * attention.position_vector[i] * (1 - tanh * tanh);
      }
    }
    std::copy_n(rows, width, projected);
  }
};

void weight_gradients(const AttentiveLstmBackward& back, int64_t steps, Level level) {
  const AttentiveLstmForward& f = back.forward;
  const int64_t hidden = f.hidden;
  for (size_t l = 0; l < f.layers.size(); ++l) {
    const AttentiveLstmLayer& layer = f.layers[l];
    const AttentiveLstmLayerGradients& d = back.layers[l];
    const StepGradients gates{steps, 4 * hidden, layer.gates, 4 * hidden};
    bias_gradient(gates, d.d_bias);
    previous_states(f.attention.runs, layer.h_first, layer.states, hidden, back.work);
    weight_gradient(gates, back.work, hidden, d.d_state);
    if (l == 0) {
      previous_states(f.attention.runs, nullptr, f.out, hidden, back.work);
    } else if (layer.dropout.active()) {
      dropout(layer.dropout, f.layers[l - 1].states, back.work, steps * hidden, elementwise_kernels(level));
    }
    weight_gradient(gates, l == 0 || layer.dropout.active() ? back.work : f.layers[l - 1].states, hidden,
                    d.d_input);
  }
  const StepAttention& attention = f.attention;
  const int64_t width = projected_width(attention, hidden), d = attention.score.d;
  const float* const top = f.layers.back().states;
  weight_gradient({steps, hidden, attention.projected, width}, top, hidden, back.d_combine);
  if (attention.query_weight != nullptr) {
    weight_gradient({steps, d, attention.projected + hidden, width}, top, hidden, back.d_query_weight);
    bias_gradient({steps, d, attention.projected + hidden, width}, back.d_query_bias);
  }
  if (attention.position_weight != nullptr)
    weight_gradient(
        {steps, attention.position_width, attention.projected + position_column(attention, hidden), width},
        top, hidden, back.d_position_weight);
}

}  // namespace

int64_t projected_width(const StepAttention& attention, int64_t hidden) {
  return position_column(attention, hidden) +
         (attention.position_weight != nullptr ? attention.position_width : 0);
}

void attentive_lstm_forward(const AttentiveLstmForward& call, Level level) {
  const RecurrentSchedule schedule(call.lengths);
  const Products products(call, false, level);
  const std::vector<float> bias = joint_bias(call.attention, call.hidden),
                           zeros(static_cast<size_t>(4 * call.hidden));
  const Forward pass{call, products, bias.data(), zeros.data(), level};
  parallel_chunks(schedule.block_count(), [&](int64_t chunk) { pass.block(schedule.block(chunk)); });
}

void attentive_lstm_backward(const AttentiveLstmBackward& call, Level level) {
  const AttentiveLstmForward& f = call.forward;
  const Runs& runs = f.attention.runs;
  const int64_t steps = runs.query_begin[runs.sentences], d = f.attention.score.d;
  const RecurrentSchedule schedule(f.lengths);
  const Products products(f, true, level);
  const int64_t longest = steps == 0 ? 0 : *std::max_element(runs.count, runs.count + steps);
  const int64_t blocks = schedule.block_count(), places = f.attention.position_width;
  std::vector<float> vectors(static_cast<size_t>(blocks * d)),
      positions(static_cast<size_t>(blocks * places));
  std::fill_n(call.d_keys, runs.key_begin[runs.sentences] * d, 0.0f);
  const Backward pass{call, f, products, longest, level};
  parallel_chunks(blocks, [&](int64_t chunk) {
    pass.block(schedule.block(chunk), vectors.data() + chunk * d, positions.data() + chunk * places);
  });
  // The gradient of what was seen is in the first H columns of `projected`.
  const int64_t width = projected_width(f.attention, f.hidden);
  for (int64_t i = 0; i < steps; ++i)
    std::copy_n(f.attention.projected + i * width, f.hidden, call.work + i * f.hidden);
  run_values_gradient(runs, call.work, f.hidden, call.d_values);
  weight_gradients(call, steps, level);
  sum_blocks(vectors, d, call.d_vector);
  sum_blocks(positions, places, call.d_position_vector);
}

}  // namespace fovea::kernels
