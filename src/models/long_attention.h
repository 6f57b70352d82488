// What the tokens of a text see in Longformer (Beltagy et al. 2020) and BigBird (Zaheer et al. 2020): the
// published layouts as patterns of the attention algebra.
//
// Both have ordinary rows, which see their neighbours and the global tokens, and global rows, which see all
// of their text. Each text of a packed batch is laid out by itself: no padding to whole windows or blocks,
// and no text depends on its neighbours.
#pragma once

#include <vector>

#include "data/global_tokens.h"
#include "models/bert.h"
#include "nn/transformer.h"

namespace fovea::models {

class LongAttention {
 public:
  // config: of a model that reads long texts (BertConfig::is_long()); its added tokens stand in front of each text.
  LongAttention(const BertConfig& config, const Sentences& texts, const data::GlobalTokens& global,
                bool training);

  // Valid while this object lives.
  nn::Visibility visibility() const {
    return {.self_of_layers = layers_, .global = &global_, .key_bias = key_bias_};
  }
  // Of the packed batch, those that see all of their text.
  std::vector<int64_t> global_rows() const { return {global_.rows.begin(), global_.rows.end()}; }

 private:
  void lay_out_longformer(const BertConfig& config);
  void lay_out_big_bird(const BertConfig& config, bool training);
  void add_global(const std::vector<int64_t>& places, int64_t begin, int64_t tokens);

  std::vector<int64_t> lengths_;              // of the texts, with the added tokens
  std::vector<std::vector<int64_t>> chosen_;  // of each text the tokens that were chosen as global, ascending
  std::vector<Pattern> layers_;
  nn::GlobalRows global_;
  Var key_bias_;
};

}  // namespace fovea::models
