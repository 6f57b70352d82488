// The attentive GRU decoder over whole sequences: steps forward, steps backward, and the gradients of its weights.
#include "kernels/recurrent/attentive_gru.h"

#include <algorithm>
#include <vector>

#include "base/parallel.h"
#include "kernels/gemm/packed_gemm.h"
#include "kernels/recurrent/recurrent_schedule.h"
#include "kernels/recurrent/step_gradients.h"
#include "kernels/scratch.h"

namespace fovea::kernels {
namespace {

int64_t padded(int64_t columns) {
  return columns + 16;
}

// Columns of the product with the state: the gates, and the query where it has a matrix.
int64_t product_columns(const AttentiveGruForward& f) {
  return 3 * f.hidden + (f.query_weight != nullptr ? f.score.d : 0);
}

std::vector<float> joint_bias(const AttentiveGruForward& f) {
  std::vector<float> joint(static_cast<size_t>(product_columns(f)));
  if (f.bias != nullptr) std::copy_n(f.bias, 3 * f.hidden, joint.begin());
  if (f.query_bias != nullptr && f.query_weight != nullptr)
    std::copy_n(f.query_bias, f.score.d, joint.begin() + 3 * f.hidden);
  return joint;
}

// The state's matrices, packed: forwards for y = x W^T, backwards for x += y W. The memory is the calling
// thread's and stays for the next call: fresh pages cost more than the packing.
struct PackedState {
  PackedState(const AttentiveGruForward& f, bool backward, Level l)
      : hidden(f.hidden), queries(product_columns(f) - 3 * f.hidden), backwards(backward), level(l) {
    const int64_t outs[] = {3 * hidden, queries};
    int64_t sizes[2];
    for (int i = 0; i < 2; ++i)
      sizes[i] = backward ? packed_size(hidden, outs[i], level) : packed_size(outs[i], hidden, level);
    float* const memory = scratch_floats(3, sizes[0] + sizes[1]);
    gates = memory;
    query = memory + sizes[0];
    const float* const weights[] = {f.weight, f.query_weight};
    for (int i = 0; i < 2; ++i) {
      if (outs[i] == 0) continue;
      pack_parallel({.transpose = !backward,
                     .n = backward ? hidden : outs[i],
                     .k = backward ? outs[i] : hidden,
                     .b = weights[i],
                     .ldb = hidden},
                    memory + i * sizes[0], level);
    }
  }

  // Forwards: product = h W^T + bias. Backwards: h += product W. Rows are `h_row` and `product_row` apart.
  void multiply(int64_t rows, float* h, int64_t h_row, float* product, int64_t product_row,
                const float* bias = nullptr) const {
    const int64_t outs[] = {3 * hidden, queries};
    for (int i = 0; i < 2; ++i) {
      if (outs[i] == 0) continue;
      float* const part = product + i * 3 * hidden;
      const int64_t n = backwards ? hidden : outs[i];
      packed_gemm_kernels(level).multiply({.m = rows,
                                           .n = n,
                                           .k = backwards ? outs[i] : hidden,
                                           .column_begin = 0,
                                           .column_end = n,
                                           .a = backwards ? part : h,
                                           .lda = backwards ? product_row : h_row,
                                           .packed = i == 0 ? gates : query,
                                           .bias = bias == nullptr ? nullptr : bias + i * 3 * hidden,
                                           .accumulate = backwards,
                                           .c = backwards ? h : part,
                                           .ldc = backwards ? h_row : product_row});
    }
  }

  int64_t hidden, queries;
  bool backwards;
  Level level;
  const float *gates, *query;
};

AttentionRun run_at(const AttentiveGruForward& f, int64_t token) {
  return run_of(f.runs, token, f.keys, f.score.d, f.values, 3 * f.hidden + f.extra);
}

struct Forward {
  const AttentiveGruForward& f;
  const PackedState& packed;
  const float *bias, *zeros;
  Level level;

  void block(const RecurrentBlock& b) const {
    const int64_t hidden = f.hidden, columns = product_columns(f), width = 3 * hidden + f.extra;
    const int64_t stride = padded(hidden), product_stride = padded(columns);
    float* h = scratch_floats(0, b.rows * (2 * stride + product_stride) + width + f.score.d);
    float* h_next = h + b.rows * stride;
    float* const product = h_next + b.rows * stride;
    float* const seen = product + b.rows * product_stride;
    for (int64_t r = 0; r < b.rows; ++r)
      std::copy_n(f.h_first + b.sequence[r] * hidden, hidden, h + r * stride);
    int64_t active = b.rows;
    for (int64_t t = 0;; ++t) {
      while (active > 0 && b.length[active - 1] <= t) --active;
      if (active == 0) return;
      packed.multiply(active, h, stride, product, product_stride, bias);
      for (int64_t r = 0; r < active; ++r)
        row(b.first[r] + t, product + r * product_stride, h + r * stride, h_next + r * stride, seen);
      std::swap(h, h_next);
    }
  }

  void row(int64_t token, const float* product, const float* h, float* h_next, float* seen) const {
    const int64_t hidden = f.hidden, width = 3 * hidden + f.extra;
    AttentionRun run = run_at(f, token);
    run.q = f.query_weight != nullptr ? product + 3 * hidden : h;
    run.out = seen;
    if (f.queries != nullptr && f.query_weight != nullptr)
      std::copy_n(run.q, f.score.d, f.queries + token * f.score.d);
    attention_runs_kernels(level).forward(f.score, run, seen + width);
    std::copy_n(seen + 3 * hidden, f.extra, f.context + token * f.extra);
    const float* const products = f.products + token * 3 * hidden;
    for (int64_t i = 0; i < 3 * hidden; ++i) seen[i] += products[i];
    recurrent_kernels(level).forward_row(
        RecurrentCell::gru,
        {.before = seen,
         .product = product,
         .product_stride = hidden,
         .h = h,
         .h_next = h_next,
         .out = f.out + token * hidden,
         .gates = f.gates == nullptr ? nullptr : f.gates + token * 4 * hidden},
        zeros, hidden);
  }
};

struct Backward {
  const AttentiveGruBackward& back;
  const AttentiveGruForward& f;
  const PackedState& packed;
  int64_t longest;
  Level level;

  void block(const RecurrentBlock& b, float* d_vector) const {
    const int64_t hidden = f.hidden;
    const int64_t stride = padded(hidden), rows_stride = padded(3 * hidden + f.score.d);
    float* const d_h = scratch_floats(0, b.rows * (stride + rows_stride) + longest + f.score.d);
    float* const rows = d_h + b.rows * stride;
    float* const scratch = rows + b.rows * rows_stride;
    int64_t active = 0;
    for (int64_t t = b.rows == 0 ? 0 : b.length[0]; t-- > 0;) {
      for (; active < b.rows && b.length[active] > t; ++active)
        std::fill_n(d_h + active * stride, hidden, 0.0f);
      for (int64_t r = 0; r < active; ++r) {
        const int64_t token = b.first[r] + t;
        const float* const before = t > 0 ? f.out + (token - 1) * hidden : f.h_first + b.sequence[r] * hidden;
        row(token, before, d_h + r * stride, rows + r * rows_stride, d_vector, scratch);
      }
      packed.multiply(active, d_h, stride, rows, rows_stride);
      if (f.query_weight != nullptr) continue;
      for (int64_t r = 0; r < active; ++r)
        for (int64_t i = 0; i < hidden; ++i) d_h[r * stride + i] += rows[r * rows_stride + 3 * hidden + i];
    }
    for (int64_t r = 0; r < b.rows; ++r) {
      if (b.length[r] == 0) std::fill_n(d_h + r * stride, hidden, 0.0f);
      std::copy_n(d_h + r * stride, hidden, back.d_h_first + b.sequence[r] * hidden);
    }
  }

  void row(int64_t token, const float* before, float* d_h, float* rows, float* d_vector,
           float* scratch) const {
    const int64_t hidden = f.hidden, width = 3 * hidden + f.extra, d = f.score.d;
    float* const gates = f.gates + token * 4 * hidden;
    recurrent_kernels(level).backward_row(
        RecurrentCell::gru,
        {.d_out = back.d_out == nullptr ? nullptr : back.d_out + token * hidden,
         .d_h = d_h,
         .h_before = before,
         .gates = gates,
         .rows = rows},
        hidden);
    float* const d_seen = back.d_seen + token * width;
    std::copy_n(gates, 3 * hidden, d_seen);
    if (back.d_context != nullptr) {
      std::copy_n(back.d_context + token * f.extra, f.extra, d_seen + 3 * hidden);
    } else {
      std::fill_n(d_seen + 3 * hidden, f.extra, 0.0f);
    }
    AttentionRun run = run_at(f, token);
    run.q = f.query_weight != nullptr ? f.queries + token * d : before;
    float* const dq = rows + 3 * hidden;
    attention_runs_kernels(level).backward(f.score, {.run = run,
                                                     .d_out = d_seen,
                                                     .dq = dq,
                                                     .dk = back.d_keys + f.runs.first[token] * d,
                                                     .d_vector = d_vector,
                                                     .scratch = scratch});
    if (f.query_weight != nullptr) std::copy_n(dq, d, back.d_queries + token * d);
  }
};

}  // namespace

void attentive_gru_forward(const AttentiveGruForward& call, Level level) {
  const RecurrentSchedule schedule(call.lengths);
  const PackedState packed(call, false, level);
  const std::vector<float> bias = joint_bias(call), zeros(static_cast<size_t>(4 * call.hidden));
  const Forward pass{call, packed, bias.data(), zeros.data(), level};
  parallel_chunks(schedule.block_count(), [&](int64_t chunk) { pass.block(schedule.block(chunk)); });
}

void attentive_gru_backward(const AttentiveGruBackward& call, Level level) {
  const AttentiveGruForward& f = call.forward;
  const int64_t hidden = f.hidden, d = f.score.d, steps = f.runs.query_begin[f.runs.sentences];
  const RecurrentSchedule schedule(f.lengths);
  const PackedState packed(f, true, level);
  const int64_t longest = steps == 0 ? 0 : *std::max_element(f.runs.count, f.runs.count + steps);
  const bool additive = f.score.family == ScoreFamily::additive;
  std::vector<float> vectors(additive ? static_cast<size_t>(schedule.block_count() * d) : 0);
  std::fill_n(call.d_keys, f.runs.key_begin[f.runs.sentences] * d, 0.0f);
  const Backward pass{call, f, packed, longest, level};
  parallel_chunks(schedule.block_count(), [&](int64_t chunk) {
    pass.block(schedule.block(chunk), additive ? vectors.data() + chunk * d : nullptr);
  });
  run_values_gradient(f.runs, call.d_seen, 3 * hidden + f.extra, call.d_values);

  previous_states(f.runs, f.h_first, f.out, hidden, call.states);
  const auto linear_gradient = [&](const StepGradients& gradients, float* d_weight, float* d_bias) {
    weight_gradient(gradients, call.states, hidden, d_weight);
    bias_gradient(gradients, d_bias);
  };
  const auto part = [](float* p, int64_t by) { return p == nullptr ? nullptr : p + by; };
  linear_gradient({steps, 2 * hidden, f.gates, 4 * hidden}, call.d_weight, call.d_bias);
  linear_gradient({steps, hidden, f.gates + 3 * hidden, 4 * hidden}, part(call.d_weight, 2 * hidden * hidden),
                  part(call.d_bias, 2 * hidden));
  if (f.query_weight != nullptr)
    linear_gradient({steps, d, call.d_queries, d}, call.d_query_weight, call.d_query_bias);
  sum_blocks(vectors, d, call.d_vector);
}

}  // namespace fovea::kernels
