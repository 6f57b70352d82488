// Attention layers: projections around attention(), with PyTorch's parameter names.
#pragma once

#include <optional>
#include <string>

#include "attention/attention.h"
#include "nn/key_value_cache.h"
#include "nn/layers.h"
#include "nn/module.h"

namespace fovea::nn {

struct MultiHeadOptions {
  int64_t width = 0;  // of queries and of the output; heads divide it
  int64_t heads = 1;
  int64_t kv_heads = 0;  // grouped queries: fewer heads for keys and values; 0: as many as heads
  float dropout = 0;     // of weights, in training
  bool bias = true;
  AttentionSpec spec = {};  // score, terms, pattern and selection that hold at every call
  std::optional<RotaryOptions> rotary = {};
  Var relative = {};  // the table of relative positions where another owns it; undefined: a parameter of this layer
};

// Several heads of attention, each on its own slice of the width.
// Parameters: in_proj_weight [(H + 2 Hk) D, E], in_proj_bias, out_proj.weight [E, E], out_proj.bias; and of
// the spec's trained terms: slopes, relative, sink.
class MultiHeadAttention : public Module {
 public:
  MultiHeadAttention(const MultiHeadOptions& options, Rng& rng);

  // What one call adds to the layer's own spec.
  struct Call {
    Pattern pattern = full();                 // which keys exist: lengths, documents, causal; joined by &
    std::span<const int32_t> positions = {};  // rotary: of x's tokens
    std::string_view name = {};               // for people who read what an observer saw
    AttentionSite site = {};                  // for observers
    // A step of a decoder: x holds one token of each row of `rows`, which sees what the cache has for it.
    KeyValueCache* cache = nullptr;
    const CacheRows* rows = nullptr;
  };
  // Keys and values of one source, projected once and used at many calls: what a cache keeps.
  struct KeysValues {
    Var k, v;  // [B, Hk, N, D]
  };

  // Self-attention. x: [B, N, E] -> [B, N, E]; a packed ragged batch is B = 1 with documents(). With a cache,
  // the tokens' keys and values are added to it first.
  Var operator()(const Var& x, Context& context, const Call& call) const;
  Var operator()(const Var& x, Context& context) const { return (*this)(x, context, Call{}); }
  // Cross attention. x: [B, Nq, E], source: [B, Nk, E]; with a cache, the source is what fill() put there.
  Var cross(const Var& x, const Var& source, Context& context, const Call& call) const;
  Var cross(const Var& query, const Var& key, const Var& value, Context& context, const Call& call) const;

  // Puts the keys and values of a packed source [1, N, E] into a cache. Throws Error unless the layer's spec
  // is scaled_dot or dot, with softmax over all keys: what a step can do.
  void fill(KeyValueCache& cache, const Var& source) const;

  // The parts. project(): [B, N, E] -> heads; attend() joins the heads and projects out.
  Var project_query(const Var& x) const;
  KeysValues project_keys_values(const Var& key, const Var& value) const;
  Var attend_to(const Var& q, const KeysValues& source, Context& context, const Call& call) const;

  const MultiHeadOptions& options() const { return options_; }

 private:
  Var project(const Var& x, int64_t first_head, int64_t count) const;
  std::vector<Projection::Part> rows_of(int64_t first_head, int64_t count) const;
  void check_input(const Var& x) const;
  Var attend_cached(const Var& x, const Call& call) const;

  MultiHeadOptions options_;
  int64_t head_width_;
  Var in_proj_weight_, in_proj_bias_;
  AttentionParameters terms_;
  Linear out_proj_;
  Projection query_, keys_values_;  // rows of in_proj
};

// Longformer's self-attention: a window for all, and tokens that see and are seen by all through projections
// of their own. Parameters: query, key, value, query_global, key_global, value_global (each .weight, .bias),
// as published.
struct LongformerOptions {
  int64_t width = 0, heads = 1;
  int64_t one_side = 256;  // tokens seen on each side
  int64_t dilation = 1;
  float dropout = 0;
};
class LongformerSelfAttention : public Module {
 public:
  LongformerSelfAttention(const LongformerOptions& options, Rng& rng);
  // x: [B, N, E]; global_tokens: places that are global in every sequence, ascending; lengths: tokens of each
  // sequence, or empty when all are full. -> [B, N, E], heads joined, not projected.
  Var operator()(const Var& x, std::span<const int64_t> global_tokens, std::span<const int64_t> lengths,
                 Context& context) const;

 private:
  LongformerOptions options_;
  Linear query_, key_, value_, query_global_, key_global_, value_global_;
};

}  // namespace fovea::nn
