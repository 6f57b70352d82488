// One call of the attention kernels on raw memory: a spec whose score is a dot product or additive already (its
// matrices are multiplied in), the arrays that it reads, and the plan. Chooses between the fused kernel and the
// row-wise one. Owns no array of the caller's.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "attention/spec.h"
#include "kernels/attention/block_attention.h"
#include "kernels/attention/row_attention.h"

namespace fovea {

// What the kernels read. The spec decides which of the optional ones are needed.
struct KernelArrays {
  kernels::AttentionShape shape;
  kernels::HeadView<const float> q, k, v;
  kernels::BiasView<const float> bias = {};  // broadcast strides are 0
  const float* slopes = nullptr;             // alibi: [H]; null: default_slopes
  const float* relative = nullptr;           // [buckets, H]
  const float* position = nullptr;           // gaussian: [B, H, Nq]
  const float* sink = nullptr;               // [H]
  const float* score_vector = nullptr;       // additive: [d]
};

struct KernelScore {
  kernels::ScoreFamily family = kernels::ScoreFamily::dot;
  float scale = 1;
};

// The factor of a dot or scaled_dot score of d features.
float score_scale(const Score& score, int64_t d);
// 2^(-8 (h + 1) / H)
std::vector<float> default_slopes(int64_t heads);

// The kernels of recurrent decoders (attend_runs, attentive_gru, attentive_lstm) are another lowering of a spec: a softmax
// over one run of neighbouring keys for each query, around a predicted place where the spec has a gaussian.
//
// The window by which a pattern gives each query such a run; null: it is full, or allows other sets of keys.
const patterns::Window* run_window(const Pattern& pattern);
// Whether runs of keys say all of the spec's pattern, and its terms besides gaussian are absent.
bool is_runs(const AttentionSpec& spec);
// Whether these kernels compute the spec. Everything else takes attend(), which is slower: a step at a time.
bool computed_by_runs(const AttentionSpec& spec, bool training);

class KernelCall {
 public:
  // spec: as it acts (nothing is drawn at use). The arrays must outlive this object.
  KernelCall(const AttentionSpec& spec, const KernelScore& score, const KernelArrays& arrays,
             std::shared_ptr<const kernels::AttentionPlan> plan, uint64_t seed);
  KernelCall(const KernelCall&) = delete;
  KernelCall& operator=(const KernelCall&) = delete;

  const kernels::AttentionShape& shape() const { return call_.shape; }
  // Whether the fused kernel does it: then backward() needs the output and lse of forward().
  bool fused() const { return fused_; }

  // Those that are not null are written. log_probability, entropy and chosen: where the selection has them.
  struct Results {
    kernels::HeadView<float> out = {};
    float* lse = nullptr;
    int32_t* chosen = nullptr;
    float *log_probability = nullptr, *entropy = nullptr;
  };
  void forward(const Results& results) const;
  // results: out and lse as forward() left them, where the call is fused; the rest is not read. gradients: what
  // is written and from what; its `forward` is filled in here.
  void backward(kernels::AttentionRowsBackward gradients, const Results& results) const;
  // Whether backward() overwrites a d_bias with these strides, so that it need not be zero before.
  bool overwrites_bias(const kernels::BiasView<float>& d_bias) const;
  // weights.data is zero.
  void weights(const kernels::ChosenWeights& weights) const;

 private:
  kernels::AttentionForward fused_call(const Results& results) const;
  void add_relative_gradient(const std::vector<float>& d_diagonals, float* d_relative) const;

  kernels::AttentionRowsForward call_;
  std::shared_ptr<const kernels::AttentionPlan> plan_;
  std::vector<float> slopes_;
  std::vector<int32_t> buckets_;  // of key - query + queries - 1
  std::vector<float>
      diagonals_;  // fused relative positions: [H, Nq + Nk - 1], a bias constant along diagonals
  bool fused_ = false;
};

}  // namespace fovea
