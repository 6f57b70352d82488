// The tokenizer of a Hugging Face folder: vocab.txt (BERT, DistilBERT, MPNet), vocab.json and merges.txt
// (RoBERTa), sentencepiece.bpe.model (XLM-RoBERTa, multilingual BERTs), or tokenizer.json; and tokenizer_config.json.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "data/byte_bpe.h"
#include "data/marked_tokenizer.h"
#include "data/unigram.h"
#include "data/wordpiece.h"
#include "io/json.h"

namespace fovea::data {

struct EncoderTokenizer {
  std::shared_ptr<const MarkedTokenizer> tokenizer;
  int64_t max_tokens = 0;  // of a text with its marks, as tokenizer_config.json says; 0: it does not
};

// model_type: as config.json has it. Throws Error naming the file when one is missing, damaged, or asks for
// what is not here.
EncoderTokenizer load_encoder_tokenizer(const std::filesystem::path& folder, const std::string& model_type);

// Throws Error, beginning with `where`, unless the tokenizer has as many tokens as the embedding table has
// rows. A table whose rows are a multiple of 64 may have up to 127 more, as some are filled up for speed; so may any table
// of a SentencePiece vocabulary.
void require_as_many_tokens(const MarkedTokenizer& tokenizer, int64_t rows, const std::string& where);

// A WordPiece vocabulary out of the content of a tokenizer.json, with the settings that are there. `name`
// begins messages.
struct WordPieceFile {
  std::vector<std::string> tokens;
  WordPieceOptions options;
};
// marks: what the file does not say, such as the spelling of the marks.
WordPieceFile parse_wordpiece_json(std::string_view text, const std::string& name,
                                   const WordPieceOptions& marks = {});

// The same of byte-level BPE.
struct ByteBpeFile {
  std::vector<std::string> tokens;
  std::vector<Merge> merges;
  ByteBpeOptions options;
};
ByteBpeFile parse_byte_bpe_json(std::string_view text, const std::string& name);

// The same of a SentencePiece unigram model: its pieces and scores, character replacements, and how white space is
// cut.
UnigramFile parse_unigram_json(std::string_view text, const std::string& name,
                               const UnigramOptions& marks = {});

// Sets what a tokenizer_config.json says. Tokens that were added to the vocabulary are appended to it.
void apply_tokenizer_config(const nlohmann::json& json, WordPieceFile& file, const std::string& name);
void apply_tokenizer_config(const nlohmann::json& json, ByteBpeFile& file, const std::string& name);
void apply_tokenizer_config(const nlohmann::json& json, UnigramFile& file, const std::string& name);

}  // namespace fovea::data
