// Any attention in one call: score x pattern x selection x heads, with gradients, nothing of size Nq x Nk
// stored.
//
//   Var out = attention(q, k, v, {.pattern = causal() & window(256, 0)});
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "attention/spec.h"
#include "autograd/var.h"

namespace fovea {

// The trained parts that a spec may name. One that the spec needs must be defined, one that it does not need
// must not; b and slopes are optional.
struct AttentionParameters {
  Var W = {};         // bilinear: [D, Dk], q^T W k. additive: [A, Dk]. concat: [A, Dk + D], key first
  Var U = {};         // additive: [A, D]
  Var b = {};         // additive, concat: [A]
  Var v = {};         // additive, concat: [A]
  Var bias = {};      // broadcastable to [B, H, Nq, Nk]
  Var slopes = {};    // alibi: [H]; 2^(-8 (h + 1) / H) when undefined
  Var relative = {};  // [buckets, H]
  Var position = {};  // gaussian: [B, H, Nq]
  Var sink = {};      // [H]
};

// What a call is asked for besides its output.
struct AttentionRequest {
  AttentionParameters parameters = {};
  uint64_t seed = 0;  // of dropout, hard and gumbel: the draws are a function of (seed; b, h, query, key)
  bool lse = false;
  // additive: k is W k already, [B, Hk, Nk, A], and W is not given: a decoder projects its keys once a
  // sentence.
  bool projected_keys = false;
  // Weights, as they met v, of these heads and query rows; ascending. Both empty: none.
  std::vector<int32_t> weight_heads = {}, weight_rows = {};
  std::string_view name = {};  // the layer, for observers
};

struct AttentionResult {
  Var output;           // [B, H, Nq, Dv]: a view whose memory is [B, Nq, H, Dv], so that heads join for free
  Tensor lse;           // [B, H, Nq]
  Tensor weights;       // [B, weight_heads, weight_rows, Nk]
  Var log_probability;  // hard: [B, H, Nq], of the chosen key; REINFORCE is its gradient
  Var entropy;          // hard: [B, H, Nq], of the distribution drawn from, in nats
  std::vector<int32_t> chosen;  // hard, argmax: [B, H, Nq], the key; -1 where none is visible
};

// q: [B, H, Nq, D], k: [B, Hk, Nk, Dk], v: [B, Hk, Nk, Dv]; Hk divides H, and query head h reads key head h /
// (H / Hk). Strided views are read in place where their last dimension is dense. Throws Error naming the
// shapes that do not fit.
AttentionResult attend(const Var& q, const Var& k, const Var& v, const AttentionSpec& spec,
                       const AttentionRequest& request = {});

// The output alone.
Var attention(const Var& q, const Var& k, const Var& v, const AttentionSpec& spec = {},
              const AttentionParameters& parameters = {});

// A loss whose gradient is REINFORCE's estimate: -mean((reward - baseline) log p). reward and baseline: one
// number a row of log_probability [B, H, Nq], or one for all (shape []).
Var reinforce_loss(const Var& log_probability, const Tensor& reward, const Tensor& baseline);

// Sees the attention of every call on its thread while an ObserveAttention holds it. Without one, calls pay
// one test of a pointer.
class AttentionObserver {
 public:
  virtual ~AttentionObserver() = default;
  struct Wish {
    std::vector<int32_t> heads, rows;  // empty: nothing of this call
  };
  struct Call {
    std::string_view name;
    const AttentionSpec& spec;
    int64_t batch, heads, queries, keys;
  };
  struct Sight {
    Tensor weights;  // [B, heads, rows, Nk]
    Tensor lse;      // [B, H, Nq]; undefined where the weights were not made by attend()
  };
  // Asked before a call is made.
  virtual Wish wish(const Call& call) = 0;
  virtual void see(const Call& call, const Wish& wish, const Sight& sight) = 0;
};

// The observer of this thread, or null: for ops that look without attend() and show it what they saw.
AttentionObserver* attention_observer();

class ObserveAttention {
 public:
  explicit ObserveAttention(AttentionObserver& observer);
  ~ObserveAttention();
  ObserveAttention(const ObserveAttention&) = delete;
  ObserveAttention& operator=(const ObserveAttention&) = delete;

 private:
  AttentionObserver* before_;
};

}  // namespace fovea
