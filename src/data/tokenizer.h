// Text to token ids and back: SentencePiece, words of tokenized text, or tokenizers of BERT-family models.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fovea::data {

// The first ids of vocabularies that Fovea learns. BERT-family models have special tokens of their own.
inline constexpr int32_t kPad = 0;      // <pad>: never in a packed batch
inline constexpr int32_t kBegin = 1;    // <s>: what a decoder is fed first
inline constexpr int32_t kEnd = 2;      // </s>: ends a sentence
inline constexpr int32_t kUnknown = 3;  // <unk>: a word the vocabulary lacks
inline constexpr int32_t kSpecials = 4;

// The ids around a translator's sentences.
struct SequenceMarks {
  int32_t begin = kBegin;  // what a decoder is fed first
  int32_t end = kEnd;      // ends a sentence
  int32_t never = -1;      // a token that is never written; -1: any may be
};

// Safe to use from several threads at once.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual int32_t size() const = 0;
  // The ids of the sentence, without special tokens at its ends.
  virtual std::vector<int32_t> encode(std::string_view sentence) const = 0;
  // The sentence of these ids; special tokens at its ends are left out. Throws Error for an id out of range.
  virtual std::string decode(std::span<const int32_t> ids) const = 0;
  // A token as people should see it, with the mark of its tokenizer: "▁food", "fo@@" or "##od".
  virtual std::string piece(int32_t id) const = 0;
  // For each id the number of the word it belongs to, from 0: sub-words of a word share theirs. Chinese
  // characters and kana count as words unless a token joins them.
  virtual std::vector<int32_t> words(std::span<const int32_t> ids) const = 0;

  virtual SequenceMarks sequence_marks() const { return {}; }
  // Whether a token stands for no text.
  virtual bool is_special(int32_t id) const { return id < kSpecials; }
  // The token of texts that the vocabulary lacks; -1: it can spell every text.
  virtual int32_t unknown_id() const { return -1; }
  // The parts of the sentence that encode() turns into unknown tokens, one for each, as they are written there.
  virtual std::vector<std::string> unknown_texts(std::string_view) const { return {}; }

  // What a model folder keeps: the file's name and its content.
  virtual std::string file_name() const = 0;
  virtual std::string bytes() const = 0;
};

struct SentencePieceOptions {
  std::string type = "bpe";  // or "unigram"
  int32_t size = 8000;       // wanted pieces, specials and 256 byte pieces included; small texts give fewer
  // Characters beyond this share of the text are spelled as bytes: no text is ever unknown.
  double character_coverage = 0.9995;
  int64_t max_sentences = 1000000;  // learn from this many, spread evenly over longer texts
};

// Learns pieces from all the given texts together; the same texts give the same bytes. Text is kept as it is
// but for runs of white space. Throws Error when the
// text has more characters than `size` allows.
std::unique_ptr<Tokenizer> train_sentencepiece(std::span<const std::span<const std::string>> texts,
                                               const SentencePieceOptions& options = {});

struct WordOptions {
  int64_t min_count = 1;  // rarer words become kUnknown
  int64_t max_size = 0;   // the most frequent ones, specials included; 0 keeps all
};

// The words of ready-tokenised texts, between white space. Where words end in "@@" (BPE), decoding joins
// them.
std::unique_ptr<Tokenizer> count_words(std::span<const std::span<const std::string>> texts,
                                       const WordOptions& options = {});

// From the content of tokenizer.model or vocab.txt. `name` is for messages. Throws Error for anything else.
std::unique_ptr<Tokenizer> parse_sentencepiece(std::string_view bytes, const std::string& name);
std::unique_ptr<Tokenizer> parse_words(std::string_view bytes, const std::string& name);

// The tokenizers of a translator; one for both sides when joint.
struct Tokenizers {
  std::shared_ptr<const Tokenizer> source, target;
  // Of a published folder: the files they came in, by name. Empty: each writes its own.
  std::vector<std::pair<std::string, std::string>> files = {};
  bool one_vocabulary = false;  // two tokenizers that share their ids
  bool joint() const { return source == target || one_vocabulary; }
};

// Files in a model folder: tokenizer.model or vocab.txt when joint, else source_... and target_...; or those of
// data/marian_tokenizer.h.
void save_tokenizers(const std::filesystem::path& folder, const Tokenizers& tokenizers);
Tokenizers load_tokenizers(const std::filesystem::path& folder);

}  // namespace fovea::data
