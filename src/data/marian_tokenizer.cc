// Reads source.spm, target.spm and the vocabularies of a Marian folder, and converts between text and ids.
#include "data/marian_tokenizer.h"

#include <algorithm>

#include "base/error.h"
#include "data/marked_tokenizer.h"
#include "data/piece_model.h"
#include "data/text.h"
#include "data/vocabulary_json.h"
#include "io/file.h"

namespace fovea::data {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kLargestFile = uint64_t{1} << 28;
// What a folder keeps when it is saved again; the last is how `transformers` searches for translations.
constexpr const char* kFiles[] = {"source.spm",
                                  "target.spm",
                                  "vocab.json",
                                  "target_vocab.json",
                                  "special_tokens_map.json",
                                  "tokenizer_config.json",
                                  "generation_config.json"};

bool is_language(std::string_view token) {
  return token.size() > 4 && token.starts_with(">>") && token.ends_with("<<");
}

// One side's vocabulary.
struct Vocabulary {
  std::vector<std::string> tokens;
  TextIds ids;
  int32_t unknown = -1, end = -1, pad = -1;

  Vocabulary(std::vector<std::string> list, const std::string& name) : tokens(std::move(list)) {
    for (size_t i = 0; i < tokens.size(); ++i) ids.emplace(tokens[i], static_cast<int32_t>(i));
    const auto need = [&](const char* token) {
      const auto place = ids.find(std::string_view(token));
      require(place != ids.end(), name, ": no '", token, "' among its ", tokens.size(),
              " tokens; is it the vocabulary of a Marian model?");
      return place->second;
    };
    unknown = need("<unk>");
    end = need("</s>");
    pad = need("<pad>");
  }
};

class MarianTokenizer final : public Tokenizer {
 public:
  MarianTokenizer(std::shared_ptr<const Vocabulary> vocabulary, std::string_view model,
                  const std::string& name)
      : vocabulary_(std::move(vocabulary)), model_(model, name) {
    whole_.add("<unk>", vocabulary_->unknown);
    whole_.add("</s>", vocabulary_->end);
    whole_.add("<pad>", vocabulary_->pad);
  }

  int32_t size() const override { return static_cast<int32_t>(vocabulary_->tokens.size()); }

  std::vector<int32_t> encode(std::string_view sentence) const override {
    return whole_.encode(sentence, [&](std::string_view plain, std::vector<int32_t>& ids) {
      for_each_piece(plain, [&](std::string_view piece) { ids.push_back(id_of(piece)); });
    });
  }

  std::string decode(std::span<const int32_t> ids) const override {
    std::vector<std::string> pieces;
    for (const int32_t id : ids)
      if (id == vocabulary_->unknown || !is_special(id)) pieces.push_back(at(id));
    std::string text = model_.join(pieces);
    for (size_t place = 0; (place = text.find(kWordMark, place)) != std::string::npos;)
      text.replace(place, kWordMark.size(), " ");
    return std::string(strip(text));
  }

  std::string piece(int32_t id) const override { return at(id); }

  std::vector<int32_t> words(std::span<const int32_t> ids) const override {
    std::vector<PieceOfText> pieces;
    // An unknown character is a part of its word.
    for (const int32_t id : ids)
      pieces.push_back(
          {at(id), (is_special(id) && id != vocabulary_->unknown) || is_language(at(id)), false});
    return words_of(pieces);
  }

  SequenceMarks sequence_marks() const override {
    return {.begin = vocabulary_->pad, .end = vocabulary_->end, .never = vocabulary_->pad};
  }
  bool is_special(int32_t id) const override {
    return id == vocabulary_->unknown || id == vocabulary_->end || id == vocabulary_->pad;
  }

  int32_t unknown_id() const override { return vocabulary_->unknown; }
  std::vector<std::string> unknown_texts(std::string_view sentence) const override {
    std::vector<std::string> texts;
    const auto take = [&](std::string_view piece) {
      if (id_of(piece) != vocabulary_->unknown) return;
      if (piece.starts_with(kWordMark)) piece.remove_prefix(kWordMark.size());
      texts.emplace_back(piece);
    };
    whole_.split(
        sentence, [&](std::string_view plain) { for_each_piece(plain, take); },
        [&](int32_t id) { take(at(id)); });
    return texts;
  }

  // A folder keeps the files it came in (Tokenizers::files).
  std::string file_name() const override { return "source.spm"; }
  std::string bytes() const override { return model_.bytes(); }

 private:
  const std::string& at(int32_t id) const {
    require(id >= 0 && id < size(), "token id ", id, " is outside the vocabulary of ", size());
    return vocabulary_->tokens[static_cast<size_t>(id)];
  }

  int32_t id_of(std::string_view piece) const {
    const auto place = vocabulary_->ids.find(piece);
    return place == vocabulary_->ids.end() ? vocabulary_->unknown : place->second;
  }

  template <class Take>
  void for_each_piece(std::string_view plain, Take&& take) const {
    if (const std::string_view language = language_of(plain); !language.empty()) {
      take(language);
      plain.remove_prefix(language.size());
    }
    for (const std::string& piece : model_.pieces(plain)) take(piece);
  }

  std::shared_ptr<const Vocabulary> vocabulary_;
  PieceModel model_;
  WholeTokens whole_;
};

std::string read_needed(const fs::path& folder, const char* name) {
  require(path_exists(folder / name), folder.string(), " has no ", name,
          "; a Marian folder has source.spm, target.spm and vocab.json");
  return read_text(folder / name, kLargestFile);
}

std::vector<std::string> read_vocabulary_tokens(const fs::path& folder, const char* file) {
  return parse_vocabulary_json(read_needed(folder, file), (folder / file).string());
}

std::shared_ptr<const Vocabulary> read_vocabulary(const fs::path& folder, const char* file) {
  return std::make_shared<Vocabulary>(read_vocabulary_tokens(folder, file), (folder / file).string());
}

}  // namespace

bool has_marian_tokenizers(const fs::path& folder) {
  return path_exists(folder / "source.spm") && path_exists(folder / "vocab.json");
}

Tokenizers load_marian_tokenizers(const fs::path& folder) {
  const auto source = read_vocabulary(folder, "vocab.json");
  const auto target =
      path_exists(folder / "target_vocab.json") ? read_vocabulary(folder, "target_vocab.json") : source;
  Tokenizers tokenizers;
  const auto side = [&](const char* file, const std::shared_ptr<const Vocabulary>& vocabulary) {
    return std::make_shared<MarianTokenizer>(vocabulary, read_needed(folder, file), (folder / file).string());
  };
  tokenizers.source = side("source.spm", source);
  tokenizers.target = side("target.spm", target);
  tokenizers.one_vocabulary = source == target;
  for (const char* name : kFiles)
    if (path_exists(folder / name))
      tokenizers.files.emplace_back(name, read_text(folder / name, kLargestFile));
  return tokenizers;
}

std::vector<std::string> missing_marian_files(const fs::path& folder) {
  std::vector<std::string> missing;
  for (const char* name : {"source.spm", "target.spm", "vocab.json"})
    if (!path_exists(folder / name)) missing.emplace_back(name);
  return missing;
}

std::string_view language_of(std::string_view text) {
  if (!text.starts_with(">>")) return {};
  const size_t end = text.find("<<");
  return end == std::string_view::npos ? std::string_view() : text.substr(0, end + 2);
}

std::vector<std::string> target_languages(const fs::path& folder) {
  std::vector<std::string> languages;
  for (std::string& token : read_vocabulary_tokens(folder, "vocab.json"))
    if (is_language(token)) languages.push_back(std::move(token));
  return languages;
}

}  // namespace fovea::data
