// Texts with labels: from files to token ids and batches of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/batches.h"
#include "data/corpus.h"
#include "data/label_columns.h"
#include "data/tokenizer.h"

namespace fovea::data {

// What the column of labels contains.
enum class LabelForm {
  one,      // a label
  several,  // any number of labels, also none, between separators
  number,
};

struct LabelledOptions {
  bool skip_bad = false;  // drop and count what cannot be used, instead of stopping at the first
  size_t max_text_bytes = size_t{1} << 20;
  // By name (of the first row) or number (from 1). Empty: see choose_columns() in data/label_columns.h.
  std::string label_column = {}, text_column = {};
  // Columns of the training file when another one is read that goes with it; may be null.
  const LabelColumns* like = nullptr;
  LabelForm form = LabelForm::one;
  std::string separator = ",";   // between several labels
  bool pairs = false;            // rows hold two texts
  std::string pair_column = {};  // of the second one
  // How messages about a row that skip_bad would drop end: where there is no such option, without it.
  const char* skip_hint = kSkipHint;
};

struct LabelledText {
  std::vector<std::string> texts, labels;  // as many of each; the texts of a pair are joined by a tab
  Skipped skipped;
  LabelColumns columns = {};        // where they were found
  std::vector<int64_t> lines = {};  // of each text, in the file
  std::vector<float> numbers = {};  // LabelForm::number
  std::vector<std::vector<std::string>> several =
      {};  // LabelForm::several: the labels of each text, no two equal
  int64_t size() const { return static_cast<int64_t>(texts.size()); }
};

// A .csv file (quoted as RFC 4180 has it), a file with tabs, or lines that begin with their label, fastText's
// __label__ or not; plain or gzip. A header row is found and left out. Throws Error naming file and line for
// what is not UTF-8, empty, too long, wrongly quoted, has other columns than the first row or a label that is
// not of the form, unless skip_bad; and for a file without a usable text.
LabelledText read_labelled(const std::string& path, const LabelledOptions& options = {});

// The different labels, in order: of numbers if all are whole ones, of letters otherwise. Throws Error when
// there are fewer than two, so many that they cannot be labels, or numbers that measure instead of naming
// classes: more than 20 different ones of which some are fractions, or more than 20 that occur fewer than
// four times on average, or more than 100 with gaps between them. Of texts with several labels, all that
// occur, at least one.
std::vector<std::string> label_set(const LabelledText& text, const std::string& path,
                                   LabelForm form = LabelForm::one);
// For each label its place in the set. Throws Error naming a label that the set lacks, with its line where
// `lines` are given.
std::vector<int32_t> label_places(std::span<const std::string> labels, std::span<const std::string> set,
                                  const std::string& path, std::span<const int64_t> lines = {});

// What a model should say of texts, by the form of their labels.
struct Targets {
  LabelForm form = LabelForm::one;
  std::vector<int32_t> labels = {};  // one: [texts], places in the set
  std::vector<float> values = {};    // several: [texts, labels] of 0 and 1; number: [texts]
  int64_t width = 1;                 // values of a text

  int64_t size() const {
    return static_cast<int64_t>(form == LabelForm::one ? labels.size() : values.size()) / width;
  }
  // Those of some texts.
  Targets at(std::span<const int64_t> places) const;
};
// set: the labels of the training text; empty for numbers. Throws Error naming file and line of a label that the
// set lacks.
Targets targets_of(const LabelledText& text, LabelForm form, std::span<const std::string> set,
                   const std::string& path);

// The sentences of a text: cut after . ! ? … with closing quotes and brackets where white space follows, and
// after 。！？ anywhere. Views without white space at their ends; none is empty.
std::vector<std::string_view> split_sentences(std::string_view text);

// How a text's tokens are laid out for a model.
enum class TextForm {
  plain,      // tokens </s>
  marked,     // <s> tokens </s>, or between the marks of the tokenizer's own
  sentences,  // each sentence's tokens </s>
};

struct TextEncoding {
  TextForm form = TextForm::plain;
  int64_t max_tokens = 0;  // longer texts are cut, <s> and </s> included; 0: never
  bool lowercase = false;
  bool pairs = false;  // texts are two, with a tab between them
};

// Never empty: a text without tokens is </s> alone (<s> </s> when marked).
std::vector<int32_t> encode_text(std::string_view text, const Tokenizer& tokenizer,
                                 const TextEncoding& encoding);

// The tokens of a text, and of a pair how many of them belong to the first text, with the marks that come before
// the second; 0: not a pair.
struct EncodedText {
  std::vector<int32_t> ids;
  int32_t first = 0;
};
// A pair has the form of its texts: a </s> b </s>; <s> a </s> b </s>; the sentences of a, those of b; or [CLS] a
// [SEP] b [SEP]. Beyond max_tokens the longer text is cut first. Throws Error unless the text holds one tab.
// Of texts that are no pairs: encode_text.
EncodedText encode_text_or_pair(std::string_view text, const Tokenizer& tokenizer,
                                const TextEncoding& encoding);

// Texts or pairs one after the other.
struct EncodedTexts : PackedSentences {
  std::vector<int32_t> firsts = {};  // of pairs: tokens of the first text of each; empty: no pairs

  void append(const EncodedText& text) {
    PackedSentences::append(text.ids);
    if (text.first > 0) firsts.push_back(text.first);
  }
};
// On all threads.
EncodedTexts encode_texts(std::span<const std::string> texts, const Tokenizer& tokenizer,
                          const TextEncoding& encoding);

// Of texts in the form `sentences`.
struct SentenceLengths {
  std::vector<int64_t> tokens;     // of each sentence of each text, </s> included
  std::vector<int64_t> sentences;  // of each text
};
SentenceLengths sentence_lengths(std::span<const int32_t> ids, std::span<const int64_t> texts);

// Packed tokens of n texts.
struct TextBatch {
  std::vector<int32_t> tokens;   // [sum of lengths]
  std::vector<int32_t> lengths;  // [n]
  std::vector<int64_t> places;   // [n], in the corpus
  std::vector<int32_t> firsts;   // [n] of pairs, else empty: tokens of the first text
};
TextBatch make_text_batch(const EncodedTexts& texts, std::span<const int64_t> places);

}  // namespace fovea::data
