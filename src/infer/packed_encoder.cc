#include "infer/packed_encoder.h"

#include "attention/attention.h"
#include "kernels/norm.h"

namespace fovea {

Tensor PackedNorm::add(const Tensor& branch, Tensor& sum) const {
  const Tensor total(sum.shape());
  Tensor normed = run(branch, sum, total);
  sum = total;
  return normed;
}

Tensor PackedNorm::run(const Tensor& x, const Tensor& residual, const Tensor& sum) const {
  Tensor y(x.shape());
  kernels::norm_forward({.rows = x.size(0),
                         .columns = x.size(1),
                         .x = x.data(),
                         .residual = residual.defined() ? residual.data() : nullptr,
                         .weight = weight_.data(),
                         .bias = bias_.data(),
                         .epsilon = epsilon_,
                         .sum = sum.defined() ? sum.data() : nullptr,
                         .y = y.data()});
  return y;
}

PackedLinear pack_projection(const nn::MultiHeadAttention& layer, int64_t begin, int64_t count,
                             Compute compute) {
  const Var& bias = layer.in_proj_bias();
  return {layer.in_proj_weight().value().narrow(0, begin, count),
          bias.defined() ? bias.value().narrow(0, begin, count) : Tensor(), compute};
}

PackedLinear pack_output(const nn::MultiHeadAttention& layer, Compute compute) {
  return {layer.out_proj().weight.value(), value_of(layer.out_proj().bias), compute};
}

PackedEncoder::Layer::Layer(const nn::TransformerEncoderLayer& layer, kernels::Epilogue activation,
                            Compute compute)
    : qkv(pack_projection(layer.self_attn, 0, 3 * layer.self_attn.options().width, compute)),
      out(pack_output(layer.self_attn, compute)),
      feed_forward(layer.feed_forward, activation, compute),
      norm1(layer.norm1),
      norm2(layer.norm2),
      spec(layer.self_attn.options().spec),
      heads(layer.self_attn.options().heads) {}

PackedEncoder::PackedEncoder(const nn::TransformerEncoder& encoder, bool norm_first,
                             kernels::Epilogue activation, Compute compute)
    : norm_first_(norm_first) {
  for (const auto& layer : encoder.layers) layers_.emplace_back(*layer, activation, compute);
  if (encoder.norm) norm_.emplace_back(*encoder.norm);
  FOVEA_ASSERT(layers_.empty() || norm_first == !norm_.empty());
}

Tensor PackedEncoder::operator()(const Tensor& x, std::span<const int64_t> lengths) const {
  const NoGrad no_grad;
  if (layers_.empty()) return norm_.empty() ? x : norm_[0](x);
  const int64_t n = x.size(0), width = x.size(1);
  const Pattern same_text = documents({lengths.begin(), lengths.end()});
  Tensor sum = x;
  Tensor input = norm_first_ ? layers_[0].norm1(sum) : sum;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    const int64_t heads = layer.heads;
    const Tensor qkv = layer.qkv(input).reshape({1, n, 3 * heads, width / heads}).transpose(1, 2);
    AttentionSpec spec = layer.spec;
    spec.pattern = spec.pattern == full() ? same_text : spec.pattern & same_text;
    const Var seen = attention(Var(qkv.narrow(1, 0, heads)), Var(qkv.narrow(1, heads, heads)),
                               Var(qkv.narrow(1, 2 * heads, heads)), spec);
    const auto add = [&](const PackedNorm& norm, const Tensor& branch) {
      input = norm.add(branch, sum);
      if (!norm_first_) sum = input;
    };
    add(norm_first_ ? layer.norm2 : layer.norm1, layer.out(seen.value().transpose(1, 2).reshape({n, width})));
    const PackedNorm& after = !norm_first_             ? layer.norm2
                              : i + 1 < layers_.size() ? layers_[i + 1].norm1
                                                       : norm_[0];
    add(after, layer.feed_forward(input));
  }
  return input;
}

}  // namespace fovea
