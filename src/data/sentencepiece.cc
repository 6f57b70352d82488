// Sub-words by the SentencePiece library.
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "data/lines.h"
#include "data/piece_model.h"
#include "data/sentencepiece_library.h"
#include "data/text.h"
#include "data/tokenizer.h"
#include "data/wire_format.h"

namespace fovea::data {
namespace {

// Whether a model brings its own table of character replacements. The library follows such a table without
// checking it, so a damaged or hostile one would have it read anywhere in memory; models trained here have
// none.
bool has_replacement_table(std::string_view model) {
  constexpr uint64_t kNormalizer = 3, kDenormalizer = 5, kTable = 2;
  bool found = false, well_formed = true;
  well_formed &= visit_bytes(model, [&](uint64_t field, std::string_view bytes) {
    if (field != kNormalizer && field != kDenormalizer) return;
    well_formed &= visit_bytes(bytes, [&](uint64_t inner, std::string_view table) {
      found = found || (inner == kTable && !table.empty());
    });
  });
  return found || !well_formed;
}

class SentencePieces final : public Tokenizer {
 public:
  SentencePieces(std::string_view bytes, const std::string& name) {
    require(!has_replacement_table(bytes), name,
            ": not a SentencePiece model without character replacements; train the model with Fovea");
    load_model(processor_, bytes, name);
    require(processor_.pad_id() == kPad && processor_.bos_id() == kBegin && processor_.eos_id() == kEnd &&
                processor_.unk_id() == kUnknown,
            name, ": ids of <pad>, <s>, </s>, <unk> are ", processor_.pad_id(), ", ", processor_.bos_id(),
            ", ", processor_.eos_id(), ", ", processor_.unk_id(),
            ", wanted 0, 1, 2, 3; train the model with Fovea");
  }

  int32_t size() const override { return processor_.GetPieceSize(); }

  std::vector<int32_t> encode(std::string_view sentence) const override {
    std::vector<int> ids;
    const auto status = processor_.Encode({sentence.data(), sentence.size()}, &ids);
    require_ok(status, "cannot tokenise");
    return {ids.begin(), ids.end()};
  }

  std::string decode(std::span<const int32_t> ids) const override {
    std::vector<int> kept;
    for (const int32_t id : ids) {
      check(id);
      if (id == kUnknown || id >= kSpecials) kept.push_back(id);
    }
    std::string sentence;
    const auto status = processor_.Decode(kept, &sentence);
    require_ok(status, "cannot join tokens");
    return sentence;
  }

  std::string piece(int32_t id) const override {
    check(id);
    return processor_.IdToPiece(id);
  }

  std::vector<int32_t> words(std::span<const int32_t> ids) const override {
    std::vector<PieceOfText> pieces;
    for (const int32_t id : ids) {
      check(id);
      pieces.push_back({processor_.IdToPiece(id), id < kSpecials, processor_.IsByte(id)});
    }
    return words_of(pieces);
  }

  std::string file_name() const override { return "tokenizer.model"; }
  std::string bytes() const override { return processor_.serialized_model_proto(); }

 private:
  void check(int32_t id) const {
    require(id >= 0 && id < size(), "token id ", id, " is outside the vocabulary of ", size());
  }

  sentencepiece::SentencePieceProcessor processor_;
};

// Hands the trainer our sentences one by one, every `stride`-th.
class Sentences final : public sentencepiece::SentenceIterator {
 public:
  Sentences(std::span<const std::span<const std::string>> texts, size_t stride)
      : texts_(texts), stride_(stride) {
    settle();
  }
  bool done() const override { return text_ == texts_.size(); }
  void Next() override {
    place_ += stride_;
    settle();
  }
  const std::string& value() const override { return texts_[text_][place_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  void settle() {
    while (text_ < texts_.size() && place_ >= texts_[text_].size()) place_ -= texts_[text_++].size();
  }
  std::span<const std::span<const std::string>> texts_;
  size_t stride_, text_ = 0, place_ = 0;
};

// Why training failed, in our words: the library's name options that nobody can give here.
std::string training_failure(const std::string& reason, int32_t size) {
  const std::string_view mark = " vs ";
  const size_t place =
      reason.find("required_chars") == std::string::npos ? std::string::npos : reason.find(mark);
  if (place == std::string::npos)
    return message("cannot learn a vocabulary of ", size, " tokens from this text; try another size");
  const std::string_view rest = std::string_view(reason).substr(place + mark.size());
  const std::string_view least = rest.substr(0, rest.find_first_not_of("0123456789"));
  return message("vocabulary: got ", size, ", wanted at least ", least,
                 ": one token for each character of the text and for each byte; choose a larger one");
}

}  // namespace

std::unique_ptr<Tokenizer> train_sentencepiece(std::span<const std::span<const std::string>> texts,
                                               const SentencePieceOptions& options) {
  require(options.type == "bpe" || options.type == "unigram", "SentencePiece type '", options.type,
          "', wanted bpe or unigram");
  require(options.max_sentences > 0, "SentencePiece learns from ", options.max_sentences,
          " sentences, wanted at least 1");
  size_t total = 0;
  bool any = false, short_enough = false;
  for (const auto& text : texts) {
    total += text.size();
    for (const std::string& line : text) {
      if (strip(line).empty()) continue;
      any = true;
      short_enough = short_enough || line.size() <= kMaxLineBytes;
    }
  }
  require(any, "no text to learn SentencePiece pieces from");
  // The library leaves out longer ones without saying so.
  require(short_enough, "no text to learn SentencePiece pieces from: all have more than ", kMaxLineBytes,
          " bytes, wanted shorter ones");

  const auto limit = static_cast<size_t>(options.max_sentences);
  Sentences sentences(texts, (total + limit - 1) / limit);
  const std::unordered_map<std::string, std::string> flags{
      {"model_type", options.type},
      {"vocab_size", std::to_string(options.size)},
      {"character_coverage", std::to_string(options.character_coverage)},
      {"normalization_rule_name", "identity"},
      {"byte_fallback", "true"},
      {"hard_vocab_limit", "false"},
      {"max_sentence_length", std::to_string(kMaxLineBytes)},
      {"pad_id", std::to_string(kPad)},
      {"bos_id", std::to_string(kBegin)},
      {"eos_id", std::to_string(kEnd)},
      {"unk_id", std::to_string(kUnknown)},
      // Sums are made per thread: one number of threads, one result.
      {"num_threads", "1"},
      // Only errors; the library must not print.
      {"minloglevel", "3"},
  };
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(flags, &sentences, &model);
  require(status.ok(), status.ok() ? "" : training_failure(status.ToString(), options.size));
  return parse_sentencepiece(model, "the SentencePiece model just trained");
}

std::unique_ptr<Tokenizer> parse_sentencepiece(std::string_view bytes, const std::string& name) {
  return std::make_unique<SentencePieces>(bytes, name);
}

}  // namespace fovea::data
