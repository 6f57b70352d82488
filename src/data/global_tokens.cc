#include "data/global_tokens.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "data/marked_tokenizer.h"
#include "data/text.h"
#include "data/wordpiece.h"

namespace fovea::data {
namespace {

// A token without what its tokenizer adds: "▁good", "##good", "Ġgood" and "good@@" are "good".
std::string_view spelled(std::string_view piece) {
  std::string_view inner = piece;
  for (const std::string_view mark : {"▁", "##", "Ġ"})
    if (inner.starts_with(mark)) {
      inner.remove_prefix(mark.size());
      break;
    }
  if (inner.ends_with("@@")) inner.remove_suffix(2);
  return inner.empty() ? piece : inner;
}

bool all_punctuation(std::string_view text) {
  while (!text.empty())
    if (!is_punctuation(next_character(text))) return false;
  return true;
}

Marks marks_of(const Tokenizer& tokenizer) {
  if (const auto* marked = dynamic_cast<const MarkedTokenizer*>(&tokenizer)) return marked->marks();
  return {.begin = kBegin, .end = kEnd, .unknown = kUnknown};
}

// The mark that begins or ends a text and is written so; -1: none.
int32_t mark_written(std::string_view word, const Tokenizer& tokenizer, const Marks& marks) {
  for (const int32_t id : {marks.begin, marks.end})
    if (id >= 0 && tokenizer.piece(id) == word) return id;
  return -1;
}

}  // namespace

void check_global_rule(const std::string& rule) {
  require(!strip(rule).empty(), "global: got an empty list, wanted first, punctuation, [SEP] or tokens");
}

GlobalTokens::GlobalTokens(const std::string& rule, const Tokenizer& tokenizer) {
  check_global_rule(rule);
  const Marks marks = marks_of(tokenizer);
  const auto add = [&](int32_t id) {
    by_id_.resize(static_cast<size_t>(tokenizer.size()));
    by_id_[static_cast<size_t>(id)] = true;
  };
  for (const std::string_view word : split_words(rule)) {
    if (word == "first") {
      first_ = true;
      continue;
    }
    if (word == "[SEP]" || word == "[CLS]") {
      const int32_t id = word == "[SEP]" ? marks.end : marks.begin;
      require(id >= 0, "global: the tokenizer has no mark ", word);
      add(id);
      continue;
    }
    // As the tokenizer writes them, and `fovea explain` shows them.
    if (const int32_t id = mark_written(word, tokenizer, marks); id >= 0) {
      add(id);
      continue;
    }
    bool found = false;
    for (int32_t id = 0; id < tokenizer.size(); ++id) {
      if (id == marks.begin || id == marks.end || id == marks.unknown || id == marks.pad) continue;
      const std::string piece = tokenizer.piece(id);
      const bool wanted =
          word == "punctuation" ? all_punctuation(spelled(piece)) : piece == word || spelled(piece) == word;
      if (!wanted) continue;
      add(id);
      found = true;
    }
    require(found, "global: the vocabulary has no token '", word,
            word == "punctuation" ? "'" : "'; wanted first, punctuation, [SEP] or tokens of the vocabulary");
  }
}

GlobalTokens GlobalTokens::first() {
  GlobalTokens chosen;
  chosen.first_ = true;
  return chosen;
}

std::vector<int64_t> GlobalTokens::places(std::span<const int32_t> ids) const {
  std::vector<int64_t> places;
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto id = static_cast<size_t>(ids[i]);
    if ((first_ && i == 0) || (id < by_id_.size() && by_id_[id])) places.push_back(static_cast<int64_t>(i));
  }
  return places;
}

}  // namespace fovea::data
