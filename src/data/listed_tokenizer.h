// What tokenizers with a vocabulary of one token a line have in common (vocab.txt): a token's id is its place.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "data/marked_tokenizer.h"

namespace fovea::data {

class ListedTokenizer : public MarkedTokenizer {
 public:
  int32_t size() const override { return static_cast<int32_t>(tokens_.size()); }
  std::string file_name() const override { return "vocab.txt"; }
  std::string bytes() const override {
    std::string text;
    for (const std::string& token : tokens_) text.append(token).append(1, '\n');
    return text;
  }

 protected:
  ListedTokenizer(std::vector<std::string> tokens, const Marks& marks)
      : MarkedTokenizer(marks), tokens_(std::move(tokens)) {}

  const std::string& at(int32_t id) const {
    require(id >= 0 && id < size(), "token id ", id, " is outside the vocabulary of ", size());
    return tokens_[static_cast<size_t>(id)];
  }
  const std::vector<std::string>& tokens() const { return tokens_; }

 private:
  std::vector<std::string> tokens_;
};

}  // namespace fovea::data
