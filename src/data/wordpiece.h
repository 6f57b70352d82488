// BERT's tokenizer: text cleaned, cut at white space, punctuation and Chinese characters, and each word into
// the longest pieces that the vocabulary has, those inside a word marked "##". The same ids as Hugging Face's
// BertTokenizer gives.
//
// Its vocab.txt is not that of parse_words(): one piece a line too, but its marks are [CLS], [SEP], [UNK],
// ... and may stand anywhere.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/marked_tokenizer.h"

namespace fovea::data {

// What BERT's tokenizer sets apart: ASCII that is no letter, digit or space, and Unicode's punctuation.
bool is_punctuation(char32_t character);

struct WordPieceOptions {
  bool clean = true;          // control characters go, white space becomes spaces
  bool split_chinese = true;  // each Chinese character is a word
  bool lowercase = true;
  std::optional<bool> strip_accents = {};  // empty: as lowercase
  // The spelling of the marks; of these only mask and pad may be missing from the vocabulary.
  std::string begin = "[CLS]", end = "[SEP]", unknown = "[UNK]", mask = "[MASK]", pad = "[PAD]";
  bool strip_before_mask = false;       // white space before the mask belongs to it
  bool doubled = false;                 // pairs as RoBERTa marks them (Marks::doubled)
  std::vector<std::string> whole = {};  // more tokens that are never cut
  std::string prefix = "##";            // begins a piece inside a word
  int64_t longest_word = 100;           // characters; a longer word is unknown
};

// A token's id is its place. `name` is for messages. Throws Error on tokens that are empty or appear twice,
// and on marks that are missing.
std::unique_ptr<MarkedTokenizer> make_wordpiece(std::vector<std::string> tokens,
                                                const WordPieceOptions& options, const std::string& name);

// The tokens of a vocab.txt, one a line. Throws Error on bytes that are no UTF-8.
std::vector<std::string> parse_wordpiece_tokens(std::string_view bytes, const std::string& name);

// Text as BERT's vocabulary spells it: cleaned, Chinese characters set apart, accents stripped, case lowered.
std::u32string wordpiece_normal_form(std::string_view text, const WordPieceOptions& options);

// Calls visit(word, length) for each word of a text, cut at white space, and at punctuation, each sign of which is a
// word. length: in characters.
void for_each_wordpiece_word(std::string_view text, const WordPieceOptions& options,
                             const std::function<void(const std::string& word, int64_t length)>& visit);

}  // namespace fovea::data
