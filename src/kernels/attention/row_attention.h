// Attention one row at a time, for what the fused softmax kernel does not do: additive scores, every
// selection, terms that need a whole row. Runs over the same block plan.
//
// A thread holds the scores of a few query rows against the keys they visit, never Nq x Nk, never [Nq, Nk,
// d]. The backward pass computes scores and weights again: nothing but the inputs is kept between the passes.
//
//   weights  = selection(terms(score(q, k)))    0 for keys that a row does not visit or whose score is -inf
//   weights *= gaussian, then dropout
//   out      = sum_j weights[j] v[j]
//
// Conventions are those of block_attention.h. Results are the same for any number of threads.
#pragma once

#include <cstdint>

#include "base/cpu.h"
#include "kernels/attention/block_attention.h"
#include "kernels/attention/plan.h"

namespace fovea::kernels {

enum class ScoreFamily {
  dot,       // q . k
  additive,  // a . tanh(q + k), q and k being U q + b and W k already
};

enum class SelectionKind {
  soft,       // softmax
  hard,       // one key drawn from the softmax
  gumbel,     // softmax((x + Gumbel noise) / tau); straight through: the largest key forward, soft backward
  argmax,     // the key of the largest score; of equals the lowest key
  top_k,      // softmax over the k largest scores; of equals the lowest keys
  sparsemax,  // the nearest point of the simplex
  sigmoid,    // each key on its own: 1 / (1 + exp(-x))
  identity,   // the score itself, of any sign and size
};

struct SelectionTerms {
  SelectionKind kind = SelectionKind::soft;
  float tau = 1;                  // gumbel
  bool straight_through = false;  // gumbel
  int64_t k = 1;                  // top_k
  uint64_t seed = 0;              // hard and gumbel: the draw is attention_gumbel(seed; b, h, i, j)
};

// Relative positions: x + table[h * head + bucket[j - i + Nq - 1] * step], added after the bias.
struct RelativeTerm {
  const float* table = nullptr;
  int64_t head = 0, step = 1;       // strides of the table and of its gradient
  const int32_t* bucket = nullptr;  // [Nq + Nk - 1]
  int64_t bucket_count = 0;
};

// Luong's local-p: a weight is multiplied by exp(-(j - centre)^2 / (2 sigma^2)) after the softmax, and the
// row is not normalised again.
struct GaussianTerm {
  const float* centre = nullptr;  // [B, H, Nq]: a place among the keys
  float sigma = 1;
};

// Weights of chosen heads and rows, as they met v: data is [B, head_count, row_count, Nk], 0 at keys not
// visited.
struct ChosenWeights {
  float* data = nullptr;
  const int32_t* heads = nullptr;  // ascending
  int64_t head_count = 0;
  const int32_t* rows = nullptr;  // ascending
  int64_t row_count = 0;
};

// The sink of `terms` goes with soft and top_k only. Every result may be left out; when only chosen weights
// are requested, only their rows are computed.
struct AttentionRowsForward {
  AttentionShape shape{};  // d: the width of q and k, whichever the family
  ScoreFamily score = ScoreFamily::dot;
  ScoreTerms terms{};
  RelativeTerm relative{};
  GaussianTerm gaussian{};
  SelectionTerms selection{};
  const AttentionPlan* plan = nullptr;
  HeadView<const float> q{}, k{}, v{};
  // additive: the vector [d] of head h is at score_vector + h * score_vector_head
  const float* score_vector = nullptr;
  int64_t score_vector_head = 0;
  HeadView<float> out{};
  float* lse = nullptr;       // [B, H, Nq]: of all visible scores (and the sink), whatever the selection
  int32_t* chosen = nullptr;  // [B, H, Nq]: the key of hard and argmax; -1 where none is visible
  float* log_probability = nullptr;  // [B, H, Nq]: hard, of the chosen key; 0 where none is visible
  float* entropy = nullptr;          // [B, H, Nq]: hard, of the softmax it was drawn from, in nats
  ChosenWeights weights{};
};

// Gradients. dq, dk, dv and d_centre are overwritten; the others are added to what they hold. Null ones are
// skipped.
//
// Scores learn from d_out through the weights, except under hard, where a draw has no derivative: there they
// learn from d_log_probability and d_entropy alone. REINFORCE is d_log_probability = -(reward - baseline),
// and an entropy bonus is d_entropy = -weight. Under argmax scores learn nothing. v learns from d_out always.
struct AttentionRowsBackward {
  AttentionRowsForward forward{};  // its results are not read
  HeadView<const float> d_out{};
  const float* d_log_probability = nullptr;  // [B, H, Nq]
  const float* d_entropy = nullptr;          // [B, H, Nq]
  HeadView<float> dq{}, dk{}, dv{};
  float* d_score_vector = nullptr;  // strides of score_vector
  BiasView<float> d_bias{};
  float* d_alibi = nullptr;     // [H]
  float* d_sink = nullptr;      // [H]
  float* d_relative = nullptr;  // strides of relative.table
  float* d_centre = nullptr;    // [B, H, Nq]
};

void attention_rows_forward(const AttentionRowsForward& call, Level level = current_level());
void attention_rows_backward(const AttentionRowsBackward& call, Level level = current_level());

}  // namespace fovea::kernels
