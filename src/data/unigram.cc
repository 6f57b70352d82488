// The tokenizer of XLM-RoBERTa and BigBird on a SentencePiece unigram model, with the ids of the published
// vocabularies.
#include "data/unigram.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/error.h"
#include "data/piece_model.h"
#include "data/replacement_table.h"
#include "data/text.h"

namespace fovea::data {
namespace {

std::string with_mark(std::string_view word) {
  return word.starts_with(kWordMark) ? std::string(word) : std::string(kWordMark) + std::string(word);
}

// Spaces become marks, and a mark stands before the first word: Metaspace of `tokenizers`.
std::string metaspace(std::string_view text) {
  std::string marked;
  for (const char c : text)
    if (c == ' ')
      marked += kWordMark;
    else
      marked += c;
  return with_mark(marked);
}

class Unigram final : public MarkedTokenizer {
 public:
  Unigram(UnigramFile file, PieceModel model, std::optional<ReplacementTable> table, const Marks& marks)
      : MarkedTokenizer(marks),
        tokens_(std::move(file.tokens)),
        ids_(std::move(file.ids)),
        split_white_(file.split_white),
        strip_end_(file.strip_end),
        join_spaces_(file.join_spaces),
        model_(std::move(model)),
        table_(std::move(table)) {
    for (const int32_t mark : {marks.begin, marks.end, marks.unknown, marks.mask, marks.pad})
      if (mark >= 0) whole_.add(at(mark), mark, mark == marks.mask && file.options.strip_before_mask);
    for (const std::string& token : file.options.whole) {
      const auto place = std::find(tokens_.begin(), tokens_.end(), token);
      whole_.add(token, static_cast<int32_t>(place - tokens_.begin()));
    }
  }

  int32_t size() const override { return static_cast<int32_t>(tokens_.size()); }

  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> ids;
    whole_.split(
        text, [&](std::string_view plain) { ids_.empty() ? cut(plain, ids) : cut_by_model(plain, ids); },
        [&](int32_t id) { ids.push_back(id); });
    return ids;
  }

  std::string decode(std::span<const int32_t> ids) const override {
    std::string text;
    for (const int32_t id : ids)
      if (id == marks_.unknown || !whole_.contains(id)) text += at(id);
    for (size_t at = 0; (at = text.find(kWordMark, at)) != std::string::npos;)
      text.replace(at, kWordMark.size(), " ");
    return std::string(strip(text));
  }

  std::string piece(int32_t id) const override { return at(id); }

  std::vector<int32_t> words(std::span<const int32_t> ids) const override {
    std::vector<PieceOfText> pieces;
    for (const int32_t id : ids) pieces.push_back({at(id), whole_.contains(id), false});
    return words_of(pieces);
  }

  // A folder keeps the files it came in.
  std::string file_name() const override { return "sentencepiece.bpe.model"; }
  std::string bytes() const override { return model_.bytes(); }

 private:
  const std::string& at(int32_t id) const {
    require(id >= 0 && id < size(), "token id ", id, " is outside the vocabulary of ", size());
    return tokens_[static_cast<size_t>(id)];
  }

  void cut_by_model(std::string_view plain, std::vector<int32_t>& ids) const {
    for (const int32_t id : model_.ids(plain)) ids.push_back(ids_[static_cast<size_t>(id)]);
  }

  void cut(std::string_view plain, std::vector<int32_t>& ids) const {
    const std::string text = table_ ? table_->replace_clusters(plain) : std::string(plain);
    if (split_white_) {
      for (std::string_view rest = text; !rest.empty();) {
        const std::string_view from = rest;
        size_t length = 0;
        while (!rest.empty() && !is_white(next_character(rest))) length = from.size() - rest.size();
        if (length > 0) cut_at_marks(metaspace(from.substr(0, length)), ids);
      }
      return;
    }
    std::string once;
    for (const char c : strip_end_ ? without_white_end(text) : std::string_view(text))
      if (!join_spaces_ || c != ' ' || !once.ends_with(' ')) once += c;
    if (!once.empty()) cut_at_marks(metaspace(once), ids);
  }

  // Each mark begins a word of its own.
  void cut_at_marks(std::string_view text, std::vector<int32_t>& ids) const {
    while (!text.empty()) {
      const size_t next = std::min(text.find(kWordMark, 1), text.size());
      for (const int32_t id : model_.ids(text.substr(0, next))) ids.push_back(id);
      text.remove_prefix(next);
    }
  }

  std::vector<std::string> tokens_;
  std::vector<int32_t> ids_;  // of the model's pieces; empty: the same
  bool split_white_, strip_end_, join_spaces_;
  PieceModel model_;
  std::optional<ReplacementTable> table_;
  WholeTokens whole_;
};

}  // namespace

UnigramFile parse_xlm_roberta_model(std::string bytes, const std::string& name) {
  const PieceModel model(bytes, name);
  require(model.unknown() == 0 && model.begin() == 1 && model.end() == 2 && model.size() > 3, name,
          ": ids of <unk>, <s>, </s> are ", model.unknown(), ", ", model.begin(), ", ", model.end(),
          ", wanted 0, 1, 2; is it the model of an XLM-RoBERTa tokenizer?");
  UnigramFile file;
  file.model = std::move(bytes);
  file.tokens = {"<s>", "<pad>", "</s>", "<unk>"};
  file.ids = {3, 0, 2};
  for (int32_t id = 3; id < model.size(); ++id) {
    file.ids.push_back(static_cast<int32_t>(file.tokens.size()));
    file.tokens.push_back(model.piece(id));
  }
  file.tokens.emplace_back("<mask>");
  return file;
}

UnigramOptions big_bird_options() {
  return {.begin = "[CLS]", .end = "[SEP]", .mask = "[MASK]", .doubled = false};
}

UnigramFile parse_big_bird_model(std::string bytes, const std::string& name) {
  const PieceModel model(bytes, name);
  UnigramFile file;
  file.options = big_bird_options();
  file.options.unknown = model.piece(model.unknown());
  file.model = std::move(bytes);
  for (int32_t id = 0; id < model.size(); ++id) {
    file.ids.push_back(id);
    file.tokens.push_back(model.piece(id));
  }
  for (const char* const mark : {"<s>", "</s>"})
    if (std::find(file.tokens.begin(), file.tokens.end(), mark) != file.tokens.end())
      file.options.whole.emplace_back(mark);
  return file;
}

std::unique_ptr<MarkedTokenizer> make_unigram(UnigramFile file, const std::string& name) {
  constexpr size_t kMostWhole = 10'000;  // each is looked for in every text
  const UnigramOptions& options = file.options;
  require(file.tokens.size() < std::numeric_limits<int32_t>::max(), name, ": ", file.tokens.size(),
          " tokens, too many");
  require(options.whole.size() <= kMostWhole, name, ": ", options.whole.size(),
          " tokens that are never cut, wanted at most ", kMostWhole);
  TextIds ids;
  for (size_t i = 0; i < file.tokens.size(); ++i) {
    require(!file.tokens[i].empty(), name, ": token ", i, " is empty");
    const auto [place, fresh] = ids.emplace(file.tokens[i], static_cast<int32_t>(i));
    require(fresh, name, ": tokens ", place->second, " and ", i, " are the same");
  }
  const auto find = [&](const std::string& token) {
    const auto place = ids.find(token);
    return place == ids.end() ? -1 : place->second;
  };
  const auto need = [&](const std::string& token) {
    const int32_t id = find(token);
    require(id >= 0, name, ": no '", token, "' among its ", file.tokens.size(), " tokens");
    return id;
  };
  for (const std::string& token : options.whole) need(token);
  const Marks marks{need(options.begin), need(options.end), need(options.unknown),
                    find(options.mask),  find(options.pad), options.doubled};
  if (!file.model.empty()) {
    PieceModel model(file.model, name);
    return std::make_unique<Unigram>(std::move(file), std::move(model), std::nullopt, marks);
  }
  const std::span<const std::string> scored(file.tokens.data(), file.scores.size());
  std::vector<int32_t> unused;
  for (const int32_t mark : {marks.begin, marks.end, marks.mask, marks.pad})
    if (mark >= 0 && mark < static_cast<int32_t>(scored.size())) unused.push_back(mark);
  std::optional<ReplacementTable> table;
  if (!file.replacements.empty()) table.emplace(file.replacements, name);
  PieceModel model = PieceModel::verbatim(scored, file.scores, marks.unknown, unused, name);
  return std::make_unique<Unigram>(std::move(file), std::move(model), std::move(table), marks);
}

}  // namespace fovea::data
