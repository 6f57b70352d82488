// Finds the columns of labels and texts by their names in the first row, or else by what the columns hold.
#include "data/label_columns.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/fields.h"
#include "data/text.h"

namespace fovea::data {
namespace {

using Rows = std::span<const std::vector<std::string>* const>;

// In order of preference, in lower case.
constexpr auto kLabelNames = std::to_array<std::string_view>(
    {"label", "labels", "class", "category", "target", "topic", "sentiment", "intent", "y", "emotion",
     "polarity", "gold_label", "label_text", "tag", "rating", "stars", "quality", "标签", "类别"});
constexpr auto kTextNames = std::to_array<std::string_view>(
    {"text", "texts", "sentence", "review", "content", "comment", "document", "message", "tweet", "question",
     "body", "utterance", "query", "headline", "review_text", "文本", "内容", "评论"});

// Names of the two texts of a pair.
struct PairNames {
  std::string_view first, second;
};
constexpr auto kPairNames = std::to_array<PairNames>({{"sentence1", "sentence2"},
                                                      {"sentence_1", "sentence_2"},
                                                      {"sentence_a", "sentence_b"},
                                                      {"text1", "text2"},
                                                      {"text_a", "text_b"},
                                                      {"question1", "question2"},
                                                      {"#1 string", "#2 string"},
                                                      {"premise", "hypothesis"},
                                                      {"question", "sentence"},
                                                      {"query", "passage"}});
constexpr auto kNumberNames = std::to_array<std::string_view>(
    {"score", "similarity", "similarity_score", "relatedness_score", "value"});

template <size_t N>
bool is_among(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), lowercase(strip(name))) != names.end();
}

template <size_t N>
std::optional<size_t> find_name(const std::vector<std::string>& fields,
                                const std::array<std::string_view, N>& names) {
  for (const std::string_view name : names)
    for (size_t i = 0; i < fields.size(); ++i)
      if (lowercase(strip(fields[i])) == name) return i;
  return {};
}

bool is_number(std::string_view text) {
  double value = 0;
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return !text.empty() && error == std::errc() && end == text.data() + text.size() && std::isfinite(value);
}

bool looks_like_a_name(std::string_view text) {
  constexpr size_t kLongest = 32;
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto inner = [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '.' || c == '-'; };
  return !text.empty() && text.size() <= kLongest && letter(text[0]) &&
         std::all_of(text.begin(), text.end(), inner);
}

// Four words, or as much of a script that is written without spaces.
bool looks_like_prose(std::string_view text) {
  constexpr size_t kWords = 4, kForeignBytes = 24;
  if (split_words(text).size() >= kWords) return true;
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return c & 0x80; })) >=
         kForeignBytes;
}

// What a column's values are like.
struct Column {
  size_t distinct = 0;        // values
  size_t distinct_below = 0;  // the same without the first row
  double bytes = 0;           // of all values together
  size_t prose = 0;           // values that look like sentences
  bool numbers_below = true;  // all but the first row's are numbers
};

Column look_at(Rows rows, size_t place) {
  Column column;
  std::unordered_set<std::string_view> all, below;
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string& value = (*rows[i])[place];
    all.insert(value);
    if (i > 0) below.insert(value);
    if (i > 0) column.numbers_below = column.numbers_below && is_number(strip(value));
    column.bytes += static_cast<double>(value.size());
    column.prose += looks_like_prose(value);
  }
  column.numbers_below = column.numbers_below && rows.size() > 1;
  column.distinct = all.size();
  column.distinct_below = below.size();
  return column;
}

std::vector<Column> look_at_all(Rows rows) {
  std::vector<Column> columns;
  for (size_t i = 0; i < rows.front()->size(); ++i) columns.push_back(look_at(rows, i));
  return columns;
}

// The labels' column by what the columns hold, texts set aside where they are known. numbers: where some column
// below the first row holds nothing else, one of those.
size_t guess_label(const std::vector<Column>& columns, size_t rows, std::optional<size_t> text,
                   std::optional<size_t> pair, bool numbers) {
  numbers = numbers && std::any_of(columns.begin(), columns.end(),
                                   [](const Column& column) { return column.numbers_below; });
  constexpr size_t kEnoughRows = 4;  // to call a value below the first row the only one
  std::optional<size_t> best;
  const auto constant = [&](size_t i) { return rows >= kEnoughRows && columns[i].distinct_below < 2; };
  for (size_t i = 0; i < columns.size(); ++i) {
    if (i == text || i == pair || (numbers && !columns[i].numbers_below)) continue;
    if (!best || (constant(*best) && !constant(i))) {
      best = i;
      continue;
    }
    if (constant(i) && !constant(*best)) continue;
    const Column &a = columns[i], &b = columns[*best];
    if (a.distinct < b.distinct || (a.distinct == b.distinct && a.bytes < b.bytes)) best = i;
  }
  return best.value_or(0);
}

size_t guess_text(const std::vector<Column>& columns, size_t label) {
  size_t best = label == 0 ? 1 : 0;
  for (size_t i = best; i < columns.size(); ++i)
    if (i != label && columns[i].bytes >= columns[best].bytes) best = i;
  return best;
}

// The two longest columns besides the label, in their order; one of them where the other is known.
void guess_pair(const std::vector<Column>& columns, size_t label, std::optional<size_t>& text,
                std::optional<size_t>& pair) {
  const auto longest_besides = [&](std::optional<size_t> taken) {
    std::optional<size_t> best;
    for (size_t i = 0; i < columns.size(); ++i)
      if (i != label && i != taken && (!best || columns[i].bytes > columns[*best].bytes)) best = i;
    return best;
  };
  if (text && pair) return;
  if (pair) {
    text = longest_besides(pair);
  } else if (text) {
    pair = longest_besides(text);
  } else {
    text = longest_besides({});
    pair = longest_besides(text);
    if (*text > *pair) std::swap(text, pair);
  }
}

// The texts of a pair by their names in the first row.
std::optional<std::pair<size_t, size_t>> named_pair(const std::vector<std::string>& first) {
  for (const PairNames& names : kPairNames) {
    const auto one = find_name(first, std::array{names.first}),
               two = find_name(first, std::array{names.second});
    if (one && two) return std::pair{*one, *two};
  }
  return {};
}

std::string described(size_t place, const std::vector<std::string>& names) {
  std::string text = message("column ", place + 1);
  if (place < names.size() && !strip(names[place]).empty()) text += message(" \"", strip(names[place]), "\"");
  return text;
}

// The column that was requested. By name: then the first row is a header.
std::optional<size_t> requested_column(const std::string& wanted, const char* what,
                                       const std::vector<std::string>& first, const std::string& path,
                                       bool& header) {
  if (wanted.empty()) return {};
  int64_t number = 0;
  const char* const end = wanted.data() + wanted.size();
  if (const auto [stop, error] = std::from_chars(wanted.data(), end, number);
      error == std::errc() && stop == end) {
    require(number >= 1 && static_cast<uint64_t>(number) <= first.size(), path, ": ", first.size(),
            " columns, but ", what, " ", number, " was requested; columns count from 1");
    return static_cast<size_t>(number - 1);
  }
  header = true;
  for (size_t i = 0; i < first.size(); ++i)
    if (strip(first[i]) == wanted) return i;
  const std::vector<std::string_view> known(first.begin(), first.end());
  fail(path, ": no column is named '", wanted, "'", name_hint(wanted, known));
}

// The fields of a first row that may be a header; none where it cannot be one.
std::vector<std::string> names_in(const std::vector<std::string>& first) {
  const bool names = std::all_of(first.begin(), first.end(), [](const std::string& field) {
    return strip(field).empty() || looks_like_a_name(strip(field));
  });
  return names ? first : std::vector<std::string>();
}

// A file with more than one text per row, by the names of its columns or by what they hold: none is left out in silence.
void refuse_second_text(const std::vector<Column>& columns, const LabelColumns& chosen, size_t rows,
                        const std::vector<std::string>& first, const std::string& path) {
  const auto refuse = [&](size_t one, size_t two) {
    const std::vector<std::string> names = names_in(first);
    fail(path, ": ", described(std::min(one, two), names), " and ", described(std::max(one, two), names),
         " both contain texts; choose one with --text-column, or read both as a pair with --pairs");
  };
  if (const auto both = named_pair(first);
      both && both->first != chosen.label && both->second != chosen.label)
    refuse(both->first, both->second);
  for (size_t i = 0; i < columns.size(); ++i) {
    if (i == chosen.label || i == chosen.text) continue;
    if (2 * columns[i].prose >= rows && 2 * columns[i].distinct > rows) refuse(i, chosen.text);
  }
}

}  // namespace

std::string LabelColumns::note(const std::string& path) const {
  if (!separated) return path + ": each line begins with its label";
  const size_t unused = count - (pair ? 3 : 2);
  const std::string others =
      unused == 0
          ? ""
          : message("; ", unused, unused == 1 ? " other column is" : " other columns are", " not used");
  const std::string second = pair ? message(" and ", described(*pair, names)) : "";
  return message(path, ": label is ", described(label, names), pair ? ", texts are " : ", text is ",
                 described(text, names), second,
                 names.empty() ? "; no header row" : "; first row is a header", others);
}

LabelColumns choose_columns(Rows rows, bool separated, const ColumnRequest& request,
                            const std::string& path) {
  const std::vector<std::string>& first = *rows.front();
  LabelColumns chosen;
  chosen.separated = separated;
  chosen.count = first.size();
  if (!separated) {
    require(request.label.empty() && request.text.empty() && request.pair.empty(), path,
            ": has no columns to choose from: its lines have no tabs, and begin with their label");
    require(
        !request.pairs, path,
        ": pairs of texts need columns: a label and two texts, separated by tabs, or by commas in a .csv file");
    if (is_among(first[0], kLabelNames) && is_among(first[1], kTextNames)) chosen.names = first;
    return chosen;
  }
  require(first.size() >= (request.pairs ? 3 : 2), path, ": ", first.size(),
          first.size() == 1 ? " column" : " columns", ", wanted a label and ",
          request.pairs ? "two texts" : "a text", ", separated by tabs, or by commas in a .csv file");
  const LabelColumns* const like =
      request.like != nullptr && request.like->separated && request.like->count == first.size() ? request.like
                                                                                                : nullptr;
  if (like != nullptr && like->names == first) return *like;
  const std::vector<Column> columns = look_at_all(rows);
  bool header = false;
  std::optional<size_t> label = requested_column(request.label, "label column", first, path, header),
                        text = requested_column(request.text, "text column", first, path, header),
                        pair = requested_column(request.pair, "pair column", first, path, header);
  auto named_label = find_name(first, kLabelNames);
  if (request.numbers) {
    if (const auto number = find_name(first, kNumberNames)) named_label = number;
  }
  auto named_text = find_name(first, kTextNames);
  if (request.pairs) {
    const auto both = named_pair(first);
    named_text = both ? std::optional(both->first) : std::nullopt;
    header = header || both;
    if (both && !text && !pair) pair = both->second;
  }
  header = header || (named_label && named_text);
  if (!label && named_label != text && named_label != pair) label = named_label;
  if (!text && named_text != label && named_text != pair) text = named_text;
  if (like != nullptr && !label && !text && !pair) {
    label = like->label;
    text = like->text;
    pair = like->pair;
  }
  chosen.label = label ? *label : guess_label(columns, rows.size(), text, pair, request.numbers);
  if (request.pairs) {
    guess_pair(columns, chosen.label, text, pair);
    chosen.pair = pair;
  }
  chosen.text = text ? *text : guess_text(columns, chosen.label);
  require(chosen.label != chosen.text, path, ": column ", chosen.label + 1,
          " is both label and text; say which is which by --label-column and --text-column");
  require(!chosen.pair || (*chosen.pair != chosen.label && *chosen.pair != chosen.text), path, ": column ",
          chosen.pair.value_or(0) + 1,
          " was chosen twice; say which is which by --label-column, --text-column and --pair-column");
  if (header) chosen.names = first;
  if (request.text.empty() && like == nullptr && !request.pairs)
    refuse_second_text(columns, chosen, rows.size(), first, path);
  return chosen;
}

bool first_row_is_header(std::span<const std::string> labels, std::span<const std::string> texts) {
  constexpr size_t kEnoughRows = 10;
  if (labels.size() < 2) return false;
  const std::string &label = labels[0], &text = texts[0];
  const auto rest = labels.subspan(1), texts_below = texts.subspan(1);
  if (!looks_like_a_name(label) || !looks_like_a_name(text)) return false;
  if (std::find(rest.begin(), rest.end(), label) != rest.end()) return false;
  if (is_among(label, kLabelNames) || is_among(text, kTextNames)) return true;
  if (std::all_of(rest.begin(), rest.end(), is_number)) return true;
  const std::set<std::string_view> distinct(rest.begin(), rest.end());
  const auto names = std::count_if(texts_below.begin(), texts_below.end(), looks_like_a_name);
  return rest.size() >= kEnoughRows && 2 * distinct.size() <= rest.size() &&
         10 * static_cast<size_t>(names) <= rest.size();
}

}  // namespace fovea::data
