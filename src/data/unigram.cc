// The tokenizer of XLM-RoBERTa and BigBird on a SentencePiece unigram model, with the ids of the published
// vocabularies.
#include "data/unigram.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>

#include "base/error.h"
#include "data/piece_model.h"
#include "data/replacement_table.h"
#include "data/text.h"

namespace fovea::data {
namespace {

class Unigram final : public MarkedTokenizer {
 public:
  Unigram(UnigramFile file, std::shared_ptr<const PieceModel> model, std::optional<ReplacementTable> table,
          const Marks& marks)
      : MarkedTokenizer(marks),
        tokens_(std::move(file.tokens)),
        ids_(std::move(file.ids)),
        split_white_(file.split_white),
        strip_end_(file.strip_end),
        join_spaces_(file.join_spaces),
        model_(std::move(model)),
        table_(std::move(table)) {
    whole_.add_marks(marks, tokens_, file.options.strip_before_mask);
    for (const std::string& token : file.options.whole) {
      const auto place = std::find(tokens_.begin(), tokens_.end(), token);
      whole_.add(token, static_cast<int32_t>(place - tokens_.begin()));
    }
  }

  int32_t size() const override { return static_cast<int32_t>(tokens_.size()); }

  std::vector<int32_t> encode(std::string_view text) const override {
    return whole_.encode(text, [&](std::string_view plain, std::vector<int32_t>& ids) {
      if (!ids_.empty()) {
        for (const int32_t id : model_->ids(plain)) ids.push_back(ids_[static_cast<size_t>(id)]);
        return;
      }
      cut(table_ ? table_->replace_clusters(plain) : std::string(plain), [&](const Word& word) {
        for (const int32_t id : model_->ids(word.text)) ids.push_back(id);
      });
    });
  }

  std::vector<TokenSpan> spans(std::string_view text) const override {
    if (!is_utf8(text)) return MarkedTokenizer::spans(text);
    std::vector<TokenSpan> spans;
    const auto add = [&](int32_t id, size_t begin, size_t end) {
      spans.push_back({id, static_cast<int64_t>(begin), static_cast<int64_t>(end)});
    };
    whole_.split(
        text,
        [&](std::string_view plain) {
          const auto first = static_cast<size_t>(plain.data() - text.data());
          if (!ids_.empty()) {
            for (const PieceModel::Place& place : model_->places(plain))
              add(ids_[static_cast<size_t>(place.id)], first + place.begin, first + place.end);
            return;
          }
          Sources sources;
          std::string normal(plain);
          if (table_) normal = table_->replace_clusters(plain, &sources);
          for (size_t i = 0; !table_ && i < plain.size(); ++i) sources.emplace_back(i, i + 1);
          cut(normal, [&](const Word& word) {
            for (const PieceModel::Place& place : model_->places(word.text)) {
              const size_t begin = word.places[place.begin], end = word.places[place.end];
              const size_t edge = begin < sources.size() ? sources[begin].first : plain.size();
              add(place.id, first + edge, first + (begin < end ? sources[end - 1].second : edge));
            }
          });
        },
        [&](int32_t id, size_t begin) { add(id, begin, begin + at(id).size()); });
    count_in_characters(text, spans);
    return spans;
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
  std::string bytes() const override { return model_->bytes(); }

 private:
  const std::string& at(int32_t id) const {
    require(id >= 0 && id < size(), "token id ", id, " is outside the vocabulary of ", size());
    return tokens_[static_cast<size_t>(id)];
  }

  using Sources = std::vector<std::pair<size_t, size_t>>;
  // A word with its mark, and the place of each of its bytes, and of its end, in the text that was cut.
  struct Word {
    std::string text;
    std::vector<size_t> places;
  };

  // Calls take(word) for the words of a text whose characters are replaced already.
  template <class Take>
  void cut(std::string_view text, Take&& take) const {
    if (!split_white_)
      return cut_at_marks(text, 0, strip_end_ ? without_white_end(text).size() : text.size(), take);
    for (std::string_view rest = text; !rest.empty();) {
      const size_t begin = text.size() - rest.size();
      size_t end = begin;
      while (!rest.empty() && !is_white(next_character(rest))) end = text.size() - rest.size();
      cut_at_marks(text, begin, end, take);
    }
  }

  // Spaces become marks, and a mark stands before the first word: Metaspace of `tokenizers`. Each mark begins a word of
  // its own.
  template <class Take>
  void cut_at_marks(std::string_view text, size_t begin, size_t end, Take&& take) const {
    Word word;
    const auto add = [&](std::string_view bytes, size_t place, size_t step) {
      word.text += bytes;
      for (size_t i = 0; i < bytes.size(); ++i) word.places.push_back(place + i * step);
    };
    const auto close = [&](size_t place) {
      if (word.text.empty()) return;
      word.places.push_back(place);
      take(word);
      word = {};
    };
    if (begin < end && text[begin] != ' ' && !text.substr(begin, end - begin).starts_with(kWordMark))
      add(kWordMark, begin, 0);
    for (size_t at = begin; at < end;) {
      if (text[at] == ' ') {
        if (!join_spaces_ || at == begin || text[at - 1] != ' ') {
          close(at);
          add(kWordMark, at, 0);
        }
        ++at;
      } else if (text.substr(at, end - at).starts_with(kWordMark)) {
        close(at);
        add(kWordMark, at, 1);
        at += kWordMark.size();
      } else {
        add(text.substr(at, 1), at, 1);
        ++at;
      }
    }
    close(end);
  }

  std::vector<std::string> tokens_;
  std::vector<int32_t> ids_;  // of the model's pieces; empty: the same
  bool split_white_, strip_end_, join_spaces_;
  std::shared_ptr<const PieceModel> model_;
  std::optional<ReplacementTable> table_;
  WholeTokens whole_;
};

}  // namespace

UnigramFile parse_xlm_roberta_model(std::string_view bytes, const std::string& name) {
  const auto read = std::make_shared<const PieceModel>(bytes, name);
  const PieceModel& model = *read;
  require(model.unknown() == 0 && model.begin() == 1 && model.end() == 2 && model.size() > 3, name,
          ": ids of <unk>, <s>, </s> are ", model.unknown(), ", ", model.begin(), ", ", model.end(),
          ", wanted 0, 1, 2; is it the model of an XLM-RoBERTa tokenizer?");
  UnigramFile file;
  file.model = read;
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

UnigramFile parse_big_bird_model(std::string_view bytes, const std::string& name) {
  const auto read = std::make_shared<const PieceModel>(bytes, name);
  const PieceModel& model = *read;
  UnigramFile file;
  file.options = big_bird_options();
  file.options.unknown = model.piece(model.unknown());
  file.model = read;
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
  std::unordered_map<std::string_view, int32_t> ids;
  ids.reserve(file.tokens.size());
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
  if (file.model != nullptr) {
    const auto model = file.model;
    return std::make_unique<Unigram>(std::move(file), model, std::nullopt, marks);
  }
  const std::span<const std::string> scored(file.tokens.data(), file.scores.size());
  std::vector<int32_t> unused;
  for (const int32_t mark : {marks.begin, marks.end, marks.mask, marks.pad})
    if (mark >= 0 && mark < static_cast<int32_t>(scored.size())) unused.push_back(mark);
  std::optional<ReplacementTable> table;
  if (!file.replacements.empty()) table.emplace(file.replacements, name);
  // The tokens keep their place: moving the vector moves none of them.
  auto model = std::make_shared<const PieceModel>(
      PieceModel::verbatim(scored, file.scores, marks.unknown, unused, name));
  return std::make_unique<Unigram>(std::move(file), std::move(model), std::move(table), marks);
}

}  // namespace fovea::data
