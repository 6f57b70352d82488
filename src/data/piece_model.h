// SentencePiece models that others have trained, with whatever ids and character replacements they have.
// Models that Fovea trains are read by parse_sentencepiece() in data/tokenizer.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::data {

// Safe to use from several threads at once.
class PieceModel {
 public:
  // The content of a .model or .spm file. `name` begins messages. Throws Error when it is damaged: its table
  // of character replacements is checked before it is used.
  PieceModel(std::string_view bytes, const std::string& name);
  // A unigram model of these pieces, as many as scores, which takes text as it is: no replacements, no white
  // space touched. The pieces of `unused` (by place) are never found in text. The pieces are not copied: they must stay
  // where they are while the model lives. Throws Error on pieces that are empty, stand twice or contain a zero byte.
  static PieceModel verbatim(std::span<const std::string> pieces, std::span<const float> scores,
                             int32_t unknown, std::span<const int32_t> unused, const std::string& name);
  PieceModel(PieceModel&&) noexcept;
  ~PieceModel();

  int32_t size() const;
  const std::string& piece(int32_t id) const;
  int32_t unknown() const;
  int32_t begin() const;  // of <s>; -1: none
  int32_t end() const;    // of </s>; -1: none
  bool is_byte(int32_t id) const;

  std::vector<int32_t> ids(std::string_view text) const;
  // The pieces with the bytes of `text` that they stand for, [begin, end), a word's mark left out. Where characters were
  // replaced, a piece stands for all that became a part of it. text must be UTF-8.
  struct Place {
    int32_t id = 0;
    size_t begin = 0, end = 0;
  };
  std::vector<Place> places(std::string_view text) const;
  // The same as text: unknown characters stand for themselves.
  std::vector<std::string> pieces(std::string_view text) const;
  // The text of such pieces; one that the model lacks stands for itself.
  std::string join(const std::vector<std::string>& pieces) const;
  // As a model file.
  std::string bytes() const;

 private:
  PieceModel();
  struct Processor;
  struct Cut {
    int32_t id;
    std::string_view text;
  };
  void take_pieces();
  template <class Sum>
  std::vector<Cut> best_cut(std::string_view text) const;
  std::vector<std::string> library_pieces(std::string_view text) const;
  template <class Take>
  void for_each_piece(std::string_view text, Take&& take) const;
  std::string bytes_;  // of a model that was read
  std::unique_ptr<Processor> processor_;
};

// For each piece of a text the number of its word, from 0. A word begins at the mark "▁", at a special piece
// and after it; Chinese characters and kana count as words unless a piece joins them.
struct PieceOfText {
  std::string_view text;
  bool special = false;  // no text: a mark of the model
  bool byte = false;     // part of a character
};
std::vector<int32_t> words_of(std::span<const PieceOfText> pieces);

// What SentencePiece writes where a space stood.
inline constexpr std::string_view kWordMark = "▁";

}  // namespace fovea::data
