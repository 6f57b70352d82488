// Attention over a block plan: scores, softmax and weighted sum in one pass, nothing of size Nq x Nk in
// memory.
//
// Conventions: a row that sees no key gives output 0, gradients 0 and lse -inf. lse is the natural logarithm
// of the sum of exp over visible scores (and the sink). A key that is not visited is never read into a
// result.
#pragma once

#include <cstdint>

#include "base/cpu.h"
#include "kernels/attention/plan.h"

namespace fovea::kernels {

// Element (b, h, i, c) of a [B, H, N, D] view is at data[b * batch + h * head + i * row + c].
template <class T>
struct HeadView {
  T* data = nullptr;
  int64_t batch = 0, head = 0, row = 0;
  T* at(int64_t b, int64_t h, int64_t i) const { return data + b * batch + h * head + i * row; }
};

// Additive bias or its gradient: element (b, h, i, j) is at
// data[b * batch + h * head + i * row + j * column]. A stride of 0 broadcasts (and, in a gradient, sums).
// Rows may overlap: row -1, column 1 are diagonals.
template <class T>
struct BiasView {
  T* data = nullptr;
  int64_t batch = 0, head = 0, row = 0, column = 0;
};

struct AttentionShape {
  int64_t batch = 0;
  int64_t heads = 0, kv_heads = 0;  // query head h reads key head h / (heads / kv_heads)
  int64_t queries = 0, keys = 0;
  int64_t d = 0, dv = 0;
};

// What happens to a raw score x = q . k, in this order; every term is optional.
struct ScoreTerms {
  float scale = 1;               // x * scale
  float soft_cap = 0;            // c * tanh(x / c) when > 0
  const float* alibi = nullptr;  // [H] slopes: x - slope * |i + keys - queries - j| (bottom-right aligned)
  BiasView<const float> bias;    // x + bias
  const float* sink = nullptr;   // [H]: one more logit in the softmax's sum, carrying no value
  float dropout = 0;             // probability of dropping a weight after the softmax; kept ones / (1 - p)
  uint64_t seed = 0;             // the draw is a function of (seed; b, h, i, j) alone
};

struct AttentionForward {
  AttentionShape shape;
  ScoreTerms terms;
  const AttentionPlan* plan = nullptr;
  HeadView<const float> q, k, v;
  HeadView<float> out;
  float* lse = nullptr;  // [B, H, Nq] or null
};

// Gradients are added to what d_bias, d_alibi and d_sink hold; dq, dk and dv are overwritten. Null ones are
// skipped. d_bias_once: d_bias is overwritten too. Only where the plan visits every pair and no two pairs share an element.
struct AttentionBackward {
  AttentionForward forward;  // out and lse as the forward pass left them
  HeadView<const float> d_out;
  HeadView<float> dq, dk, dv;
  BiasView<float> d_bias;
  bool d_bias_once = false;
  float* d_alibi = nullptr;  // [H]
  float* d_sink = nullptr;   // [H]
};

struct AttentionKernels {
  void (*forward)(const AttentionForward&);
  void (*backward)(const AttentionBackward&);
};

const AttentionKernels& attention_kernels(Level level = current_level());

}  // namespace fovea::kernels
