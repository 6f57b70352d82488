// Learned tokens in front of every text of a packed batch, such as global tokens that stand for no word.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "autograd/var.h"

namespace fovea::models {

// Where the tokens of texts stand once `added` tokens are in front of each text.
class AddedTokens {
 public:
  AddedTokens(std::span<const int64_t> lengths, int64_t added);

  // added: [added, d]; tokens: [tokens of all texts, d] -> [tokens with the added ones, d].
  Var put_in_front(const Var& added, const Var& tokens) const;
  // The rows of the texts' own tokens again: [tokens with the added ones, d] -> [tokens of all texts, d].
  Var own(const Var& extended) const;
  // Of each text, with the added tokens.
  const std::vector<int64_t>& lengths() const { return lengths_; }

 private:
  std::vector<int64_t> lengths_;
  std::vector<int32_t> rows_;  // of the extended texts, as rows of [added; tokens]
  std::vector<int32_t> own_;   // places of the texts' own tokens among them
};

}  // namespace fovea::models
