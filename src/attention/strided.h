// Attention on memory that somebody else owns: raw pointers, sizes and strides, with forward and backward as two
// calls and no tape between them. For bindings to other array libraries; C++ programs use attention.h.
//
//   const auto prepared = cache.prepare({.spec = "scaled_dot / causal"}, sizes);   // kept for the next call
//   prepared->forward(arrays, {.out = out, .lse = lse});
//   prepared->backward(arrays, {.out = out, .lse = lse}, d_out, gradients);
//
// q, k, v and the bias are read in place whatever their strides, as long as features are neighbours in memory
// (stride 1); others are copied. Scores with matrices of their own (cosine, bilinear, additive, concat, location)
// are computed on copies, and their forward pass is repeated by backward().
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "attention/check_call.h"
#include "attention/key_mask.h"
#include "attention/spec.h"
#include "kernels/attention/plan.h"

namespace fovea {

// An array of up to four dimensions; strides count elements and may be 0. data null: there is none.
template <class T>
struct StridedArray {
  T* data = nullptr;
  int rank = 0;
  std::array<int64_t, 4> sizes = {}, strides = {};
  bool present = false;  // an array without elements may have no memory
};
using StridedInput = StridedArray<const float>;
using StridedOutput = StridedArray<float>;

// What a call reads. The parameters are those of AttentionParameters.
struct StridedInputs {
  StridedInput q, k, v;
  StridedInput bias = {}, slopes = {}, relative = {}, position = {}, sink = {};
  StridedInput W = {}, U = {}, b = {}, score_v = {};
};
// Where the gradients of the inputs go, each of its input's sizes; absent: not wanted. All are overwritten. Those of
// the parameters, and of W, U, b and score_v, are dense.
struct StridedGradients {
  StridedOutput q, k, v;
  StridedOutput bias = {}, slopes = {}, relative = {}, position = {}, sink = {};
  StridedOutput W = {}, U = {}, b = {}, score_v = {};
};

struct StridedResults {
  StridedOutput out;     // [B, H, Nq, Dv]; features are neighbours
  float* lse = nullptr;  // [B, H, Nq] or null
};

// Throws Error unless the arrays are [B, H, Nq, D], [B, Hk, Nk, Dk] and [B, Hk, Nk, Dv].
AttentionSizes attention_sizes(const StridedInput& q, const StridedInput& k, const StridedInput& v);

// A spec as people write it, with what goes beside a text.
struct AttentionText {
  std::string spec;
  bool bias = false, alibi = false, sink = false;  // terms that hold even where the text does not name them
  float dropout = 0;                               // replaces the spec's; of a soft selection
  std::vector<int64_t> lengths = {};               // joined with the pattern: as lengths(...)
  std::vector<int64_t> query_lengths = {};         // as query_lengths(...)
  std::vector<int64_t> documents = {};  // as within(tokens, pattern): positions begin again in each document
  std::shared_ptr<const KeyMask> mask = {};  // joined with the pattern; equal only to itself
  bool training = false;                     // as in AttentionRequest
  friend bool operator==(const AttentionText&, const AttentionText&) = default;
};

// A spec checked and compiled for calls of one size.
class PreparedAttention {
 public:
  PreparedAttention(const AttentionText& text, const AttentionSizes& sizes);

  const AttentionSpec& spec() const { return spec_; }
  const AttentionSizes& sizes() const { return sizes_; }

  // Throws Error when an array does not fit. seed: of what is drawn in training.
  void forward(const StridedInputs& inputs, const StridedResults& results, uint64_t seed = 0) const;
  // results: as forward() left them; lse is needed. d_out: [B, H, Nq, Dv].
  void backward(const StridedInputs& inputs, const StridedResults& results, const StridedInput& d_out,
                const StridedGradients& gradients, uint64_t seed = 0) const;
  // weights: dense [B, heads, rows, Nk]; heads and rows ascend.
  void weights(const StridedInputs& inputs, const std::vector<int32_t>& heads,
               const std::vector<int32_t>& rows, float* weights, uint64_t seed = 0) const;

 private:
  void check(const StridedInputs& inputs) const;
  void check_weights(const std::vector<int32_t>& heads, const std::vector<int32_t>& rows) const;

  AttentionText text_;
  AttentionSizes sizes_;
  AttentionSpec spec_;    // as it was given
  AttentionSpec acting_;  // as it acts: at use, nothing is drawn
  std::shared_ptr<const kernels::AttentionPlan> plan_;
};

// Keeps what was prepared last, and gives the same object for equal texts and sizes. May be shared by threads.
class PreparedCache {
 public:
  explicit PreparedCache(size_t kept) : kept_(kept) {}
  std::shared_ptr<const PreparedAttention> prepare(const AttentionText& text, const AttentionSizes& sizes);

 private:
  struct Entry {
    AttentionText text;
    AttentionSizes sizes;
    std::shared_ptr<const PreparedAttention> prepared;
  };
  const size_t kept_;
  std::mutex mutex_;
  std::list<Entry> entries_;  // the most recently used first
};

}  // namespace fovea
