// A WordPiece vocabulary learnt from text: BERT's marks, every character, and the pieces that merging the most
// frequent neighbours makes (byte-pair encoding over words, as Hugging Face's trainer does it).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/wordpiece.h"

namespace fovea::data {

// How often each word of a text occurs, words being cut as the tokenizer cuts them.
class WordCounts {
 public:
  explicit WordCounts(WordPieceOptions options) : options_(std::move(options)) {}
  void add(std::string_view text);
  const std::unordered_map<std::string, int64_t>& counts() const { return counts_; }

 private:
  WordPieceOptions options_;
  std::unordered_map<std::string, int64_t> counts_;
};

struct WordPieceTraining {
  int64_t size = 8000;             // tokens, marks and characters included
  int64_t least = 2;               // pairs that occur less often are not merged
  int64_t most_characters = 1000;  // the rarer ones are unknown
};

// [PAD], [UNK], [CLS], [SEP], [MASK], the characters, the merged pieces, most frequent first: a function of the
// counts alone. May be fewer than requested where the text has no more pairs. Throws Error when the size leaves no
// room for the characters, or there are no words.
std::vector<std::string> learn_wordpiece(const std::unordered_map<std::string, int64_t>& words,
                                         const WordPieceTraining& training, const WordPieceOptions& options);

}  // namespace fovea::data
