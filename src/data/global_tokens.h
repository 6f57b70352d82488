// Global tokens chosen by what they are: the tokens of a text that attend to all of it and that all of it
// attends to (Longformer, ETC, BigBird), such as punctuation, separators or a list of words.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/tokenizer.h"

namespace fovea::data {

class GlobalTokens {
 public:
  GlobalTokens() = default;  // none
  // rule: words between spaces, each of them one of
  //   first        the first token of a text
  //   punctuation  every token that consists of punctuation
  //   [SEP] [CLS]  the marks that end and begin a text, whatever the tokenizer calls them; its own names, such as
  //                </s> and <s>, mean the same
  //   anything else: every token that is written so, with or without the tokenizer's mark of a word's beginning
  // Throws Error for a rule without a word, and for a token that the vocabulary lacks.
  GlobalTokens(const std::string& rule, const Tokenizer& tokenizer);

  // The first token alone: what classifiers of whole texts use.
  static GlobalTokens first();

  bool empty() const { return !first_ && by_id_.empty(); }
  // The places of one text's global tokens, ascending, counted from its first token.
  std::vector<int64_t> places(std::span<const int32_t> ids) const;

 private:
  bool first_ = false;
  std::vector<bool> by_id_;  // empty: no token is global by its id
};

// Throws Error unless `rule` has a word: what can be said of it without a vocabulary.
void check_global_rule(const std::string& rule);

}  // namespace fovea::data
