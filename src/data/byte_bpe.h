// The tokenizer of GPT-2 and RoBERTa: words with the space before them, spelled in bytes, their bytes joined
// by learnt merges. No text is unknown. The same ids as Hugging Face's RobertaTokenizer gives.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/marked_tokenizer.h"

namespace fovea::data {

struct ByteBpeOptions {
  bool prefix_space = false;  // a text begins as if a space stood before it
  // The spelling of the marks; of these only mask and pad may be missing from the vocabulary.
  std::string begin = "<s>", end = "</s>", unknown = "<unk>", mask = "<mask>", pad = "<pad>";
  bool strip_before_mask = true;        // white space before the mask belongs to it
  std::vector<std::string> whole = {};  // more tokens that are never cut
};

using Merge = std::pair<std::string, std::string>;

// A token's id is its place; bytes are spelled as GPT-2 does ("Ġ" is a space). merges: the first one first.
// `name` is for messages. Throws Error on tokens that appear twice, on a byte, a mark or a merge's part that
// the vocabulary lacks.
std::unique_ptr<MarkedTokenizer> make_byte_bpe(std::vector<std::string> tokens,
                                               const std::vector<Merge>& merges,
                                               const ByteBpeOptions& options, const std::string& name);

// The merges of a merges.txt, two parts a line. Throws Error naming the line.
std::vector<Merge> parse_merges(std::string_view bytes, const std::string& name);

// Where a text is cut before its bytes are joined; nothing is left out. Views into `text`.
std::vector<std::string_view> byte_bpe_words(std::string_view text);

}  // namespace fovea::data
