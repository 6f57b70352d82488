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
  bool qkv_bias = true;             // false: a bias on the output alone
  bool global_projections = false;  // Longformer: global rows have projections of their own
  Var relative =
      {};  // the table of relative positions where another owns it; undefined: a parameter of this layer
};

// Rows of a packed batch that see every token of their text, whatever the pattern says of the other rows:
// Longformer's global tokens, BigBird's first and last block.
struct GlobalRows {
  std::vector<int32_t> rows;     // places among all tokens, ascending
  std::vector<int64_t> counts;   // how many of them each text has
  std::vector<int64_t> lengths;  // tokens of each text
};

// Several heads of attention, each on its own slice of the width.
// Parameters: in_proj_weight [(H + 2 Hk) D, E], in_proj_bias, out_proj.weight [E, E], out_proj.bias; and of
// the spec's trained terms: slopes, relative, sink; of its score, one for all heads of width D: score.W [D, D] for
// bilinear, score.W, score.U [D, D], score.b, score.v [D] for additive, score.W [D, 2 D], score.b, score.v for concat;
// with global projections, global_in_proj_weight [3 E, E] and global_in_proj_bias.
class MultiHeadAttention : public Module {
 public:
  MultiHeadAttention(const MultiHeadOptions& options, Rng& rng);

  // What one call adds to the layer's own spec.
  struct Call {
    Pattern pattern = full();                 // which keys exist: lengths, documents, causal; joined by &
    std::span<const int32_t> positions = {};  // rotary: of x's tokens
    std::string_view name = {};               // for people who read what an observer saw
    AttentionSite site = {};                  // for observers
    // Self-attention of a packed batch: rows that see all of their text. The pattern is of the other rows, and
    // should let them see the global ones (global_keys).
    const GlobalRows* global = nullptr;
    Var key_bias = {};  // [N]: added to the scores of a key, but for the global rows; or undefined
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
  void add_score_parameters(Rng& rng);
  Projection::Part score_query_part() const;
  Projection::Part score_keys_part() const;
  Var project(const Var& x, int64_t first_head, int64_t count) const;
  std::vector<Projection::Part> rows_of(int64_t first_head, int64_t count) const;
  void check_input(const Var& x) const;
  Var attend_cached(const Var& x, const Call& call) const;
  Var attended(const Var& q, const KeysValues& source, Context& context, const Call& call) const;
  Var attend_with_global(const Var& x, const Var& q, const KeysValues& source, Context& context,
                         const Call& call) const;
  std::vector<Projection::Part> global_rows_of(int64_t first_head, int64_t count) const;

  MultiHeadOptions options_;
  int64_t head_width_;
  Var in_proj_weight_, in_proj_bias_, global_weight_, global_bias_;
  AttentionParameters parameters_;  // of the spec's score and terms
  Linear out_proj_;
  Projection query_, keys_values_;                // rows of in_proj
  Projection score_query_, score_keys_;           // what the score multiplies queries and keys by
  Projection global_query_, global_keys_values_;  // rows of global_in_proj
};

}  // namespace fovea::nn
