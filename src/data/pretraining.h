// Examples for the pre-training of BERT: pairs of text spans of which half follow one another, and masked words,
// made as in the original code (Devlin et al. 2019).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/rng.h"
#include "data/batches.h"
#include "data/marked_tokenizer.h"

namespace fovea::data {

// Sentences of documents, as token ids without marks.
struct TokenDocuments {
  PackedSentences sentences;
  std::vector<int64_t> starts{0};  // document i is sentences [starts[i], starts[i + 1])

  int64_t size() const { return static_cast<int64_t>(starts.size()) - 1; }
};

// Calls sentence(line) for each line of the files and end_document() at blank lines and the ends of files. A line
// is a sentence; files may be gzip. Throws Error, naming file and line, for what is not UTF-8 or too long.
void read_documents(std::span<const std::string> paths,
                    const std::function<void(const std::string&)>& sentence,
                    const std::function<void()>& end_document);

// Two spans of the tokens of all sentences; the second follows the first, or was taken from another document.
struct SpanPair {
  int64_t first_begin = 0, second_begin = 0;  // among the tokens of all sentences
  int32_t first_length = 0, second_length = 0;
  bool follows = false;
};

struct PairOptions {
  int64_t max_tokens = 128;  // of a pair with its three marks
  double short_share = 0.1;  // of pairs are cut short, so that short texts are known too
};
// Goes through all documents once. Pairs of max_tokens tokens or less; the sentences that a pair taken from another
// document has replaced are used again.
std::vector<SpanPair> make_pairs(const TokenDocuments& documents, const PairOptions& options, Rng& rng);

struct MaskOptions {
  double share = 0.15;       // of the tokens
  int64_t most = 20;         // in a sequence
  bool whole_words = false;  // all pieces of a word, or none
};
struct MaskedPair {
  MarkedText text;              // [CLS] first [SEP] second [SEP], some tokens replaced
  std::vector<int32_t> places;  // of the tokens to predict, ascending
  std::vector<int32_t> tokens;  // what they are
};
// Chooses tokens that are no marks; 80 % of them become [MASK], 10 % any token, 10 % stay.
MaskedPair mask_pair(const TokenDocuments& documents, const SpanPair& pair, const MarkedTokenizer& tokenizer,
                     const MaskOptions& options, Rng& rng);

}  // namespace fovea::data
