// Tokenizers of encoders, which read text between marks: [CLS] a [SEP], or a pair as [CLS] a [SEP] b [SEP].
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/tokenizer.h"

namespace fovea::data {

// The ids of a vocabulary's marks; -1 where it has none.
struct Marks {
  int32_t begin = -1, end = -1;  // [CLS] and [SEP], or <s> and </s>
  int32_t unknown = -1;
  int32_t mask = -1, pad = -1;
  bool doubled = false;  // RoBERTa's pairs: <s> a </s></s> b </s>, all of type 0
};

// What an encoder reads.
struct MarkedText {
  std::vector<int32_t> ids;
  std::vector<int32_t> types;  // of each token the text it belongs to: 0 or 1
};

// A token and the characters of the text that it stands for, [begin, end), counted from 0. Where one character is
// several tokens (bytes), each stands for all of it; a token that stands for none has begin == end.
struct TokenSpan {
  int32_t id = 0;
  int64_t begin = 0, end = 0;
  friend bool operator==(const TokenSpan&, const TokenSpan&) = default;
};

// encode() gives ids without marks, but for marks that are in the text itself ("the [MASK] of France");
// decode() leaves out all marks but the unknown one.
class MarkedTokenizer : public Tokenizer {
 public:
  const Marks& marks() const { return marks_; }
  // The tokens of encode() with the places they came from; white space around a token is not part of it. A
  // tokenizer that does not say so itself has its pieces looked for in the text, one after the other; pieces that
  // are written otherwise there share what lies between their neighbours.
  virtual std::vector<TokenSpan> spans(std::string_view text) const;
  int32_t unknown_id() const override { return marks_.unknown; }
  std::vector<std::string> unknown_texts(std::string_view text) const override;

  // How many marks are around one text, or a pair of texts.
  int64_t marks_around(bool pair) const { return !pair ? 2 : marks_.doubled ? 4 : 3; }
  // One text between its marks. With limit > 0 the end of the text is cut so that no more tokens come out.
  MarkedText mark(std::span<const int32_t> text, int64_t limit = 0) const;
  // A pair. With a limit the longer text is cut, down to the length of the shorter; then both. Throws Error
  // where the limit leaves no room for the marks.
  MarkedText mark(std::span<const int32_t> first, std::span<const int32_t> second, int64_t limit = 0) const;

 protected:
  explicit MarkedTokenizer(const Marks& marks) : marks_(marks) {}

  Marks marks_;

 private:
  void append(MarkedText& marked, int32_t before, std::span<const int32_t> text, int32_t type) const;
};

// How many tokens of two texts are kept when both together may have `room`.
struct PairLengths {
  size_t first, second;
};
PairLengths cut_pair(size_t first, size_t second, size_t room);
// limit - around, or all there is without a limit. Throws Error where that is below 0.
size_t room_within(int64_t limit, int64_t around);

// Unicode's White_Space, which is Python's but for four control characters; and a text without it at its end.
bool is_white(char32_t character);
std::string_view without_white_end(std::string_view text);

// Finds the tokens in raw text that are never cut: at each place the longest that begins there.
class WholeTokens {
 public:
  // strip_left: white space before it belongs to it.
  void add(const std::string& text, int32_t id, bool strip_left = false);
  // Those of the marks that exist. tokens: of all ids; strip_before_mask: as strip_left of the mask.
  void add_marks(const Marks& marks, std::span<const std::string> tokens, bool strip_before_mask);
  bool contains(int32_t id) const { return ids_.contains(id); }

  // Calls plain(text) and whole(id) for the pieces of `text` from left to right; no plain piece is empty.
  // whole(id, begin) if it takes the place of the token in the text too.
  template <class Plain, class Whole>
  void split(std::string_view text, Plain&& plain, Whole&& whole) const {
    size_t begin = 0;
    for (size_t at = 0; at < text.size();) {
      const Entry* found = find(text.substr(at));
      if (found == nullptr) {
        ++at;
        continue;
      }
      std::string_view before = text.substr(begin, at - begin);
      if (found->strip_left) before = without_white_end(before);
      if (!before.empty()) plain(before);
      if constexpr (requires { whole(found->id, at); })
        whole(found->id, at);
      else
        whole(found->id);
      begin = at += found->text.size();
    }
    if (begin < text.size()) plain(text.substr(begin));
  }
  // The ids of a text; encode_plain(piece, ids) appends those of the pieces between whole tokens.
  template <class EncodePlain>
  std::vector<int32_t> encode(std::string_view text, const EncodePlain& encode_plain) const {
    std::vector<int32_t> ids;
    split(
        text, [&](std::string_view piece) { encode_plain(piece, ids); },
        [&](int32_t id) { ids.push_back(id); });
    return ids;
  }

 private:
  struct Entry {
    std::string text;
    int32_t id;
    bool strip_left;
  };
  const Entry* find(std::string_view text) const;

  std::vector<Entry> by_first_byte_[256];  // the longest first
  std::unordered_map<int32_t, bool> ids_;
};

// Spans that were counted in bytes of `text`, counted in characters, without white space at their ends. Ends inside
// of a character are moved outwards.
void count_in_characters(std::string_view text, std::vector<TokenSpan>& spans);

// Looks texts up without copying them.
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
using TextIds = std::unordered_map<std::string, int32_t, TextHash, std::equal_to<>>;

}  // namespace fovea::data
