// Packed tokens as models take them, and how they become vectors.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "attention/spec.h"
#include "autograd/var.h"
#include "nn/module.h"
#include "nn/positions.h"

namespace fovea::models {

// Sentences (or texts) one after the other, without padding; the ids stay the caller's.
struct Sentences {
  std::span<const int32_t> ids;
  std::vector<int64_t> lengths;  // of each sentence, or of each pair of them
  std::vector<int64_t> firsts;   // of pairs: tokens of the first sentence; else empty

  Sentences(std::span<const int32_t> tokens, std::span<const int32_t> sizes,
            std::span<const int32_t> first_sizes = {})
      : ids(tokens), lengths(sizes.begin(), sizes.end()), firsts(first_sizes.begin(), first_sizes.end()) {}
  bool pairs() const { return !firsts.empty(); }
  // Of pairs, the lengths of the first, second, first, second... sentence: as many texts as models read that
  // encode the two apart. Of sentences, their lengths.
  std::vector<int64_t> single_lengths() const;
  // Of each token, 0 or 1: to which sentence of its pair it belongs. Empty without pairs.
  std::vector<int32_t> types() const;
  int64_t count() const { return static_cast<int64_t>(lengths.size()); }
  int64_t total() const { return static_cast<int64_t>(ids.size()); }
  int64_t longest() const;
};

// How tokens become vectors.
struct EmbeddingForm {
  bool scaled = true;  // rows of the table times sqrt(d)
  nn::SinusoidOrder sinusoid = nn::SinusoidOrder::interleaved;
  // A token whose row is not learned by being read (PyTorch's padding_idx); -1: none.
  int32_t constant_token = -1;
};

// What a Transformer reads: sqrt(d) times the token's row of the table [vocabulary, d], plus where it stands:
// the row of `positions` [most, d], or a sinusoid where that is undefined -> [ids, d]. Throws Error when a
// place is beyond the learned positions.
Var embed_at(const Var& table, const Var& positions, std::span<const int32_t> ids,
             std::span<const int32_t> places, const EmbeddingForm& form = {});
// The same of whole sentences, whose places begin at 0, dropped out -> [total, d].
Var embed_at_positions(const Var& table, const Var& positions, const Sentences& tokens, float dropout,
                       nn::Context& context, const EmbeddingForm& form = {});

// The self-attention that a model of whole texts can have: any score, terms and selection that
// nn::MultiHeadAttention takes, and a pattern of positions, which count from a text's first token. Throws
// Error on anything else: so what is made can be trained, used and shown. heads: of the layer; 0: unknown yet.
AttentionSpec self_attention_spec(const std::string& text, int64_t heads = 0);

// A layer's dropout in this pass.
Var dropped(const Var& x, float dropout, nn::Context& context);

}  // namespace fovea::models
