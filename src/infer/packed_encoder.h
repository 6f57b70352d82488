// A Transformer's encoder made ready for many calls: weights packed once. A text's result does not depend on
// the texts beside it, nor on the number of threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attention/spec.h"
#include "infer/packed_linear.h"
#include "nn/transformer.h"
#include "tensor/tensor.h"

namespace fovea {

// The value, or an undefined tensor.
inline Tensor value_of(const Var& v) {
  return v.defined() ? v.value() : Tensor();
}

// A layer norm, alone or with the sum before it.
class PackedNorm {
 public:
  explicit PackedNorm(const nn::LayerNorm& layer)
      : weight_(layer.weight.value()), bias_(layer.bias.value()), epsilon_(layer.epsilon) {}

  // x: [rows, d] -> [rows, d].
  Tensor operator()(const Tensor& x) const { return run(x, {}, {}); }
  // sum += branch; returns the norm of the sum.
  Tensor add(const Tensor& branch, Tensor& sum) const;

 private:
  Tensor run(const Tensor& x, const Tensor& residual, const Tensor& sum) const;

  Tensor weight_, bias_;
  float epsilon_;
};

class PackedFeedForward {
 public:
  PackedFeedForward(const nn::FeedForward& layer, kernels::Epilogue activation, Compute compute)
      : first_(layer.linear1.weight.value(), value_of(layer.linear1.bias), compute),
        second_(layer.linear2.weight.value(), value_of(layer.linear2.bias), compute),
        activation_(activation) {}
  Tensor operator()(const Tensor& x) const { return second_(first_(x, activation_)); }

 private:
  PackedLinear first_, second_;
  kernels::Epilogue activation_;
};

// Rows [begin, begin + count) of an attention layer's joint projection.
PackedLinear pack_projection(const nn::MultiHeadAttention& layer, int64_t begin, int64_t count,
                             Compute compute);
PackedLinear pack_output(const nn::MultiHeadAttention& layer, Compute compute);

class PackedEncoder {
 public:
  // A pre-norm encoder wants its last norm. Later changes to the weights are not seen.
  PackedEncoder(const nn::TransformerEncoder& encoder, bool norm_first, kernels::Epilogue activation,
                Compute compute);

  // x: [tokens, width], texts one after the other -> [tokens, width].
  Tensor operator()(const Tensor& x, std::span<const int64_t> lengths) const;

 private:
  struct Layer {
    Layer(const nn::TransformerEncoderLayer& layer, kernels::Epilogue activation, Compute compute);
    PackedLinear qkv, out;
    PackedFeedForward feed_forward;
    PackedNorm norm1, norm2;
    AttentionSpec spec;
    int64_t heads;
  };
  std::vector<Layer> layers_;
  std::vector<PackedNorm> norm_;  // one or none
  bool norm_first_;
};

}  // namespace fovea
