// The options of Transformer layers, made from the config of a model that has such layers.
#pragma once

#include "nn/transformer.h"

namespace fovea::models {

// Config: has width, heads, hidden, dropout, attention_dropout, activation and norm_first. spec: of self-attention.
template <class Config>
nn::TransformerOptions encoder_options(const Config& c, const AttentionSpec& spec) {
  return {.width = c.width,
          .heads = c.heads,
          .hidden = c.hidden,
          .dropout = c.dropout,
          .attention_dropout = c.attention_dropout,
          .activation = nn::activation_named(c.activation),
          .norm_first = c.norm_first,
          .spec = spec};
}

// The same for packed sequences: positions of the pattern count within each of them, so that a call gives it, not the
// layer.
template <class Config>
nn::TransformerOptions packed_encoder_options(const Config& c, AttentionSpec spec) {
  spec.pattern = full();
  return encoder_options(c, spec);
}

}  // namespace fovea::models
