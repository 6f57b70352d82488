// The tokenizer of XLM-RoBERTa, BigBird and similar models: a SentencePiece unigram model with special tokens and ids of
// its own. From sentencepiece.bpe.model the same ids as the SentencePiece library gives, moved to make room for
// the marks; from tokenizer.json the same as Hugging Face's `tokenizers`, which replaces characters a little
// otherwise.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/marked_tokenizer.h"
#include "data/piece_model.h"

namespace fovea::data {

struct UnigramOptions {
  // The spelling of the marks; of these only mask and pad may be missing from the vocabulary.
  std::string begin = "<s>", end = "</s>", unknown = "<unk>", mask = "<mask>", pad = "<pad>";
  bool strip_before_mask = true;        // white space before the mask belongs to it
  std::vector<std::string> whole = {};  // more tokens that are never cut
  bool doubled = true;                  // pairs have RoBERTa's doubled marks
};

// BigBird's marks, which are BERT's.
UnigramOptions big_bird_options();

struct UnigramFile {
  std::vector<std::string> tokens;  // a token's id is its place
  UnigramOptions options;
  // One of the two. The model that a file holds, with the id of each of its pieces:
  std::shared_ptr<const PieceModel> model = {};
  std::vector<int32_t> ids = {};
  // Or scores of the first tokens, a table of character replacements (may be empty), and what is done to white
  // space before the text is cut.
  std::vector<float> scores = {};
  std::string replacements = {};
  bool split_white = true;   // words between white space; otherwise spaces begin words and stay
  bool strip_end = false;    // white space at the end is taken off
  bool join_spaces = false;  // runs of spaces become one
};

// From the content of a sentencepiece.bpe.model: <s>, <pad>, </s> and <unk>, the other pieces of the model in its
// order, and <mask>. Throws Error when its first pieces are not <unk>, <s> and </s>.
UnigramFile parse_xlm_roberta_model(std::string_view bytes, const std::string& name);

// From the content of a spiece.model: the pieces of the model in its order, marks among them.
UnigramFile parse_big_bird_model(std::string_view bytes, const std::string& name);

// `name` is for messages. Throws Error on tokens that are empty or appear twice, and on marks that are missing.
std::unique_ptr<MarkedTokenizer> make_unigram(UnigramFile file, const std::string& name);

}  // namespace fovea::data
