// The Transformer's layers and stacks, with PyTorch's parameter names.
//
// Inputs are [B, N, E]. A ragged batch is packed into B = 1 and separated by documents(): no layer then does
// work on padding, since there is none.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "nn/attention.h"

namespace fovea::nn {

struct TransformerOptions {
  int64_t width = 512, heads = 8, kv_heads = 0, hidden = 2048;
  float dropout = 0.1f;          // after each sub-layer
  float attention_dropout = -1;  // of attention weights; negative: as dropout
  float hidden_dropout = -1;     // inside the feed-forward net; negative: as dropout
  Activation activation = Activation::relu;
  bool norm_first = false;  // pre-norm
  bool bias = true;
  float epsilon = 1e-5f;
  AttentionSpec spec = {};  // of self-attention
  std::optional<RotaryOptions> rotary = {};
  bool qkv_bias = true, global_projections = false;  // of self-attention; see MultiHeadOptions
  // Where spec has relative positions: one table [buckets, heads] for all layers, owned elsewhere. Undefined: each
  // layer has its own.
  Var relative = {};
};

// linear2(dropout(activation(linear1(x))))
class FeedForward {
 public:
  FeedForward(const TransformerOptions& options, Rng& rng);
  Var operator()(const Var& x, Context& context) const;
  Linear linear1, linear2;

 private:
  Activation activation_;
  float dropout_;
};

// A residual stream between layers: the sum, and its norm where the next layer wants it normalised first.
struct Stream {
  Var sum;
  Var normed;  // pre-norm only
};

// What attention sees in one pass through a stack.
struct Visibility {
  Pattern self = full();                    // of self-attention
  Pattern cross = full();                   // of a decoder's attention to the source
  std::span<const int32_t> positions = {};  // rotary
  // Of an encoder's self-attention: patterns of single layers instead of `self`, or none; see
  // MultiHeadAttention::Call for the others.
  std::span<const Pattern> self_of_layers = {};
  const GlobalRows* global = nullptr;
  Var key_bias = {};
  // A step of a decoder: its input holds one token of each row, and patterns and the source are the cache's.
  DecoderCache* cache = nullptr;
};

// A layer's place in a stack.
struct LayerPlace {
  std::string_view name = {};   // for people who read what an observer saw
  LayerCache* cache = nullptr;  // where the pass has one
  int64_t layer = 0;            // for observers
};

class TransformerEncoderLayer : public Module {
 public:
  TransformerEncoderLayer(const TransformerOptions& options, Rng& rng);
  Var operator()(const Var& x, Context& context, const Visibility& visible = {},
                 std::string_view name = {}) const;
  // One step of a stack. `next` is the norm that comes after this layer in a pre-norm stack (null: none).
  Stream step(const Stream& stream, const LayerNorm* next, Context& context, const Visibility& visible,
              const LayerPlace& place) const;
  MultiHeadAttention self_attn;
  FeedForward feed_forward;
  LayerNorm norm1, norm2;

 private:
  float dropout_;
  bool norm_first_;
};

class TransformerDecoderLayer : public Module {
 public:
  TransformerDecoderLayer(const TransformerOptions& options, Rng& rng);
  Var operator()(const Var& x, const Var& memory, Context& context, const Visibility& visible = {},
                 std::string_view name = {}) const;
  Stream step(const Stream& stream, const Var& memory, const LayerNorm* next, Context& context,
              const Visibility& visible, const LayerPlace& place) const;
  MultiHeadAttention self_attn, multihead_attn;
  FeedForward feed_forward;
  LayerNorm norm1, norm2, norm3;

 private:
  float dropout_;
  bool norm_first_;
};

// Layers one after the other, and a last norm where wanted (pre-norm stacks need one; PyTorch's
// nn.Transformer always has one). Parameters: layers.<i>..., norm...
class TransformerEncoder : public Module {
 public:
  TransformerEncoder(const TransformerOptions& options, int64_t layers, bool last_norm, Rng& rng);
  Var operator()(const Var& x, Context& context, const Visibility& visible = {}) const;
  std::vector<std::unique_ptr<TransformerEncoderLayer>> layers;
  std::unique_ptr<LayerNorm> norm;

 private:
  bool norm_first_;
};

class TransformerDecoder : public Module {
 public:
  TransformerDecoder(const TransformerOptions& options, int64_t layers, bool last_norm, Rng& rng);
  // memory: [B, Nk, E]; undefined with a cache.
  Var operator()(const Var& x, const Var& memory, Context& context, const Visibility& visible = {}) const;
  // The cache of a decoder that has written nothing: a row for each sentence of memory [1, N, E].
  DecoderCache start(const Var& memory, std::span<const int64_t> lengths) const;
  std::vector<std::unique_ptr<TransformerDecoderLayer>> layers;
  std::unique_ptr<LayerNorm> norm;

 private:
  bool norm_first_;
};

}  // namespace fovea::nn
