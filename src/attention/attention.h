// Any attention in one call: score x pattern x selection x heads, with gradients, nothing of size Nq x Nk
// stored unless weights are requested.
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
  // bilinear: [D, Dk], q^T W k. additive: [A, Dk]. concat: [A, Dk + D], key first. location: [places, D]
  Var W = {};
  Var U = {};         // additive: [A, D]
  Var b = {};         // additive, concat: [A]
  Var v = {};         // additive, concat: [A]
  Var bias = {};      // broadcastable to [B, H, Nq, Nk]
  Var slopes = {};    // alibi: [H]; 2^(-8 (h + 1) / H) when undefined
  Var relative = {};  // [buckets, H]
  Var position = {};  // gaussian: [B, H, Nq]
  Var sink = {};      // [H]
};

// Which part of a model a call belongs to, for observers.
struct AttentionSite {
  enum class Kind { other, self, cross, pooling, alignment, gate };
  Kind kind = Kind::other;
  bool decoder = false;  // self: of the decoder, not of the encoder
  int64_t layer = 0;     // counted from 0; pooling: 0 over tokens, 1 over sentences; gate: the stage
  int64_t block = 0;     // gate: within its stage
  int64_t grid_height = 0, grid_width = 0;  // keys that are the places of a picture, row after row; or 0
  friend bool operator==(const AttentionSite&, const AttentionSite&) = default;
};

// What a call returns besides its output, and how it runs.
struct AttentionRequest {
  AttentionParameters parameters = {};
  // Whether the call trains or uses a model. At use nothing is drawn: dropout does not act, and hard and gumbel
  // take the key of the largest score (of equals the lowest), whatever the seed and the rest of the batch.
  bool training = false;
  uint64_t seed = 0;  // training: the draws are a function of (seed; b, h, query, key)
  bool lse = false;
  // bilinear, additive, concat: the caller has multiplied by the score's matrices, and W, U and b are not given.
  // k is W k; of additive and concat q is U q + b. A layer does so with prepared weights, a decoder once a sentence.
  bool projected = false;
  // Return the weights by which v is multiplied: of all rows (`weights`), or of the heads and query rows listed, in
  // ascending order; an empty list means all. They are computed by a second pass over these rows, with the kernel
  // for single rows; the output still comes from the fused pass.
  bool weights = false;
  std::vector<int32_t> weight_heads = {}, weight_rows = {};
  std::string_view name = {};  // for people who read what an observer saw
  AttentionSite site = {};     // for observers
};

struct AttentionResult {
  Var output;           // [B, H, Nq, Dv]: a view whose memory is [B, Nq, H, Dv], so that heads join for free
  Tensor lse;           // [B, H, Nq]
  Tensor weights;       // [B, heads, rows, Nk] as requested
  Var log_probability;  // hard, training: [B, H, Nq], of the chosen key; REINFORCE is its gradient
  Var entropy;          // hard, training: [B, H, Nq], of the distribution drawn from, in nats
  // hard, argmax, and gumbel at use: [B, H, Nq], the key; -1 where none is visible
  std::vector<int32_t> chosen;
};

// q: [B, H, Nq, D], k: [B, Hk, Nk, Dk], v: [B, Hk, Nk, Dv]; Hk divides H, and query head h reads key head h /
// (H / Hk). Strided views are read in place where their last dimension is dense. Throws Error naming the
// shapes that do not fit, and on an undefined q, k or v.
AttentionResult attend(const Var& q, const Var& k, const Var& v, const AttentionSpec& spec,
                       const AttentionRequest& request = {});

// The output alone, at use.
Var attention(const Var& q, const Var& k, const Var& v, const AttentionSpec& spec = {},
              const AttentionParameters& parameters = {});

// A loss whose gradient is REINFORCE's estimate: -mean((reward - baseline) log p). reward and baseline: one
// number a row of log_probability [B, H, Nq], or one for all (shape []).
Var reinforce_loss(const Var& log_probability, const Tensor& reward, const Tensor& baseline);

// Receives the attention of every call on its thread while an ObserveAttention for it exists. Without one, a call
// costs one test of a pointer.
class AttentionObserver {
 public:
  virtual ~AttentionObserver() = default;
  // The heads and query rows whose weights the observer needs.
  struct Capture {
    std::vector<int32_t> heads, rows;  // empty: nothing of this call
  };
  struct Call {
    std::string_view name;
    const AttentionSpec& spec;
    int64_t batch, heads, queries, keys;
    AttentionSite site = {};
  };
  struct Captured {
    Tensor weights;  // [B, heads, rows, Nk]
    Tensor lse;      // [B, H, Nq]; undefined where the weights were not made by attend()
  };
  // capture() is called once for each call, and observe() after it with the weights that capture() chose.
  virtual Capture capture(const Call& call) = 0;
  virtual void observe(const Call& call, const Capture& capture, const Captured& captured) = 0;
};

// The observer of this thread, or null: for ops that attend without attend() and report their weights to it.
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
