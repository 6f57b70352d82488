// Reads texts with labels from files, decides whether the labels are classes, sets or numbers, and makes token ids of
// the texts.
#include "data/labelled_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "base/error.h"
#include "base/fields.h"
#include "base/parallel.h"
#include "base/stop_check.h"
#include "data/marked_tokenizer.h"
#include "data/number_text.h"
#include "data/pack_texts.h"
#include "data/rows.h"
#include "data/text.h"

namespace fovea::data {
namespace {

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

// Whether labels (`set`: the different ones, of `count` texts) are quantities to predict.
bool are_measurements(std::span<const std::string> set, size_t count) {
  constexpr size_t kFewNumbers = 20, kManyNumbers = 100, kEnoughTexts = 4;
  if (set.size() <= kFewNumbers) return false;
  double least = 0, most = 0;
  bool fractions = false;
  for (const std::string& label : set) {
    const auto value = number(label);
    if (!value || !std::isfinite(*value)) return false;
    fractions = fractions || *value != std::floor(*value);
    least = &label == set.data() ? *value : std::min(least, *value);
    most = &label == set.data() ? *value : std::max(most, *value);
  }
  const bool gaps = most - least + 1 > 2 * static_cast<double>(set.size());
  return fractions || count < kEnoughTexts * set.size() || (gaps && set.size() > kManyNumbers);
}

// A label fit for a one-line message.
std::string shown(std::string_view label) {
  constexpr size_t kMost = 60;
  std::string text(label.substr(0, kMost));
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return "'" + text + (label.size() > kMost ? "...'" : "'");
}

// White space inside a text is a space: what a line of a file can hold.
std::string as_one_line(std::string_view text) {
  std::string line(strip(text));
  for (char& c : line)
    if (c == '\n' || c == '\r' || c == '\t') c = ' ';
  return line;
}

// Labels between separators, each once. Throws Error for an empty one.
std::vector<std::string> split_labels(std::string_view field, std::string_view separator) {
  std::vector<std::string> labels;
  if (strip(field).empty()) return labels;
  while (true) {
    const size_t end = field.find(separator);
    const std::string_view label = strip(field.substr(0, end));
    require(!label.empty(), "an empty label between separators");
    if (std::find(labels.begin(), labels.end(), label) == labels.end()) labels.emplace_back(label);
    if (end == std::string_view::npos) return labels;
    field.remove_prefix(end + separator.size());
  }
}

// The labels of a fastText line, whose first the reader has taken off.
std::vector<std::string> take_more_labels(std::string_view first, std::string& text) {
  constexpr std::string_view kMark = "__label__";
  std::vector<std::string> labels{std::string(first)};
  while (std::string_view(text).starts_with(kMark)) {
    const size_t end = std::min(text.find(' '), text.size());
    std::string label = text.substr(kMark.size(), end - kMark.size());
    require(!label.empty(), "an empty label");
    if (std::find(labels.begin(), labels.end(), label) == labels.end()) labels.push_back(std::move(label));
    text.erase(0, std::min(end + 1, text.size()));
  }
  text = std::string(strip(text));
  return labels;
}

// The text of a row, or its two texts with a tab between them; empty where one of them is.
std::string text_of(const std::vector<std::string>& fields, const LabelColumns& columns) {
  std::string text = as_one_line(fields[columns.text]);
  if (!columns.pair) return text;
  const std::string second = as_one_line(fields[*columns.pair]);
  return text.empty() || second.empty() ? "" : text + '\t' + second;
}

// Adds what the label column says to the text. Throws Error, without the place, where it says nothing usable.
void keep_label(std::string_view label, const LabelledOptions& options, std::string& one,
                LabelledText& text) {
  switch (options.form) {
    case LabelForm::one:
      break;
    case LabelForm::several:
      text.several.push_back(text.columns.separated ? split_labels(label, options.separator)
                                                    : take_more_labels(label, one));
      break;
    case LabelForm::number: {
      const auto value = number(label);
      require(!is_too_large(label), "got the label ", shown(label), kTooLarge);
      require(value && std::isfinite(static_cast<float>(*value)), "the label ", shown(label),
              " is not a number; choose the column of the numbers with --label-column");
      text.numbers.push_back(static_cast<float>(*value));
      break;
    }
  }
}

// Adds a row's text and label, or drops it, or stops at it.
void keep(const Row& row, const LabelledOptions& options, LabelledText& text) {
  const auto drop = [&](int64_t& counter, const std::string& why) {
    require(options.skip_bad, why, options.skip_hint);
    ++counter;
  };
  const LabelColumns& columns = text.columns;
  switch (row.fault) {
    case RowFault::bad_utf8:
      return drop(text.skipped.bad_utf8, row.fault_text);
    case RowFault::too_long:
      return drop(text.skipped.too_long, row.fault_text);
    case RowFault::bad_quotes:
      return drop(text.skipped.bad_quotes, row.fault_text);
    case RowFault::none:
      break;
  }
  if (row.fields.size() != columns.count)
    return drop(text.skipped.wrong_columns, message(row.place, ": ", row.fields.size(), " columns, wanted ",
                                                    columns.count, " as in the first row"));
  std::string one = text_of(row.fields, columns);
  const std::string_view label = strip(row.fields[columns.label]);
  const bool no_label = label.empty() && options.form != LabelForm::several;
  if (one.empty() || no_label)
    return drop(text.skipped.empty, row.place + (one.empty() ? ": an empty text" : ": an empty label"));
  try {
    keep_label(label, options, one, text);
  } catch (const Error& error) {
    return drop(text.skipped.bad_labels, row.place + ": " + error.what());
  }
  if (one.empty()) {  // a fastText line of labels alone
    text.several.pop_back();
    return drop(text.skipped.empty, row.place + ": an empty text");
  }
  text.texts.push_back(std::move(one));
  text.labels.emplace_back(label);
  text.lines.push_back(row.line);
}

// Whether a first row that has no number for a label names columns, because the second has one.
bool names_numbers(std::span<const std::vector<std::string>* const> rows, const LabelColumns& columns) {
  return rows.size() > 1 && !number(strip((*rows[0])[columns.label])) &&
         number(strip((*rows[1])[columns.label]));
}

// Whether the first text kept is that of the file's first row.
bool is_kept_first(const std::vector<std::string>& first, const LabelledText& text) {
  return text_of(first, text.columns) == text.texts[0] && strip(first[text.columns.label]) == text.labels[0];
}

// The first texts of pairs; texts that are none as they are.
std::vector<std::string> first_texts(const LabelledText& text) {
  std::vector<std::string> firsts;
  for (const std::string& one : text.texts) firsts.push_back(one.substr(0, one.find('\t')));
  return firsts;
}

bool ends_sentence(char32_t c) {
  return c == U'.' || c == U'!' || c == U'?' || c == U'…';
}
bool ends_ideographic_sentence(char32_t c) {
  return c == U'。' || c == U'！' || c == U'？';
}
bool closes(char32_t c) {
  return c == U'"' || c == U'\'' || c == U')' || c == U']' || c == U'”' || c == U'’' || c == U'」' ||
         c == U'』' || c == U'）';
}

// The first rows of a file, by which its columns are chosen: a thousand, and more until each column has two values. Files
// are often sorted by label.
std::vector<Row> rows_to_choose_by(RowReader& reader) {
  constexpr size_t kEnough = 1000;
  std::vector<Row> rows;
  std::vector<std::string> second;  // the fields below a header, if there is one
  std::vector<bool> varies;         // columns with other values than this row's
  const auto enough = [&] {
    return rows.size() >= kEnough && std::find(varies.begin(), varies.end(), false) == varies.end();
  };
  for (Row row; !enough() && reader.next(row); rows.push_back(std::move(row))) {
    if (rows.empty() || row.fault != RowFault::none) continue;
    if (second.empty()) {
      second = row.fields;
      varies.assign(second.size(), false);
    } else if (row.fields.size() == second.size()) {
      for (size_t i = 0; i < second.size(); ++i) varies[i] = varies[i] || row.fields[i] != second[i];
    }
  }
  return rows;
}

// The first words of lines are taken as labels where a file has no columns: of a file of JSON they are none.
void refuse_json(std::span<const Row> rows, const RowReader& reader) {
  if (rows.empty() || reader.has_columns() || rows[0].fields.empty()) return;
  const std::string& first = rows[0].fields[0];
  require(
      !first.starts_with('{') && !first.starts_with('['), reader.name(),
      ": the first line looks like JSON, wanted a label and a text on each line, separated by a tab; in a .csv file, by "
      "a comma");
}

// So are the first words of a text without any labels: most of such words are rare.
void refuse_first_words(const LabelledText& text, const RowReader& reader) {
  constexpr size_t kFew = 10;
  if (reader.has_columns() || reader.has_marked_labels()) return;
  std::unordered_map<std::string_view, int64_t> counts;
  for (const std::string& label : text.labels) ++counts[label];
  const auto once = static_cast<size_t>(
      std::count_if(counts.begin(), counts.end(), [](const auto& entry) { return entry.second == 1; }));
  require(counts.size() <= kFew || 3 * once <= counts.size(), reader.name(),
          ": the first word of each line is taken as its label, but ", once, " of these ", counts.size(),
          " words occur only once; wanted a label and a text on each line, separated by a tab");
}

}  // namespace

LabelledText read_labelled(const std::string& path, const LabelledOptions& options) {
  RowReader reader(path, options.max_text_bytes);
  const std::vector<Row> sample = rows_to_choose_by(reader);
  refuse_json(sample, reader);
  LabelledText text;
  std::vector<const std::vector<std::string>*> usable;
  for (const Row& row : sample)
    if (row.fault == RowFault::none && (usable.empty() || row.fields.size() == usable[0]->size()))
      usable.push_back(&row.fields);
  const bool numbers = options.form == LabelForm::number;
  if (!usable.empty())
    text.columns = choose_columns(usable, reader.has_columns(),
                                  {.label = options.label_column,
                                   .text = options.text_column,
                                   .like = options.like,
                                   .pairs = options.pairs,
                                   .pair = options.pair_column,
                                   .numbers = numbers},
                                  reader.name());
  if (numbers && text.columns.names.empty() && names_numbers(usable, text.columns))
    text.columns.names = *usable[0];
  const bool header = !text.columns.names.empty();
  const std::vector<std::string>* const first = usable.empty() ? nullptr : usable[0];
  for (const Row& row : sample)
    if (!header || &row.fields != first) keep(row, options, text);
  for (Row row; reader.next(row);) {
    check_stop();
    keep(row, options, text);
  }
  if (!header && !text.texts.empty() && is_kept_first(*first, text) &&
      first_row_is_header(text.labels, options.pairs ? first_texts(text) : text.texts)) {
    text.columns.names = *first;
    text.texts.erase(text.texts.begin());
    text.labels.erase(text.labels.begin());
    text.lines.erase(text.lines.begin());
    if (!text.several.empty()) text.several.erase(text.several.begin());
    if (!text.numbers.empty()) text.numbers.erase(text.numbers.begin());
  }
  require(text.size() > 0, reader.name(),
          text.skipped.total() > 0 ? ": no usable text; " + text.skipped.text("text")
          : usable.empty()         ? ": no lines"
                                   : ": no lines below the header");
  if (options.form == LabelForm::one) refuse_first_words(text, reader);
  return text;
}

std::vector<std::string> label_set(const LabelledText& text, const std::string& path, LabelForm form) {
  constexpr size_t kMany = 1000;
  if (form == LabelForm::number) return {};
  std::vector<std::string> set;
  if (form == LabelForm::several)
    for (const std::vector<std::string>& labels : text.several)
      set.insert(set.end(), labels.begin(), labels.end());
  else
    set = text.labels;
  const bool numbers = std::all_of(set.begin(), set.end(), [](const auto& l) { return whole_number(l); });
  std::sort(set.begin(), set.end(), [numbers](const std::string& a, const std::string& b) {
    return numbers ? *whole_number(a) < *whole_number(b) : a < b;
  });
  set.erase(std::unique(set.begin(), set.end()), set.end());
  if (form == LabelForm::several) {
    require(!set.empty(), path, ": no text has a label, wanted at least one");
    require(set.size() <= kMany || set.size() <= text.labels.size() / 4, path, ": ", set.size(),
            " different labels for ", text.labels.size(), " texts; is ", shown(set.front()),
            " one label? say what separates two labels with --label-separator");
    return set;
  }
  require(set.size() >= 2, path, ": every text has the label ", shown(set.front()), ", wanted at least two");
  require(!are_measurements(set, text.labels.size()), path, ": the labels are ", set.size(),
          " different numbers, such as ", shown(set.front()), " and ", shown(set.back()),
          "; predict numbers with --task regression, sort them into classes first, or choose another column "
          "with --label-column");
  require(set.size() <= kMany || set.size() <= text.labels.size() / 4, path, ": ", set.size(),
          " different labels for ", text.labels.size(),
          " texts; is this the column of labels? choose it with --label-column");
  return set;
}

std::vector<int32_t> label_places(std::span<const std::string> labels, std::span<const std::string> set,
                                  const std::string& path, std::span<const int64_t> lines) {
  std::unordered_map<std::string_view, int32_t> places;
  for (size_t i = 0; i < set.size(); ++i) places.emplace(set[i], static_cast<int32_t>(i));
  std::vector<int32_t> found;
  for (const std::string& label : labels) {
    const auto place = places.find(label);
    if (place == places.end()) {
      constexpr size_t kFew = 20;  // that a message can list
      const std::vector<std::string_view> known(set.begin(), set.end());
      const std::string line = lines.empty() ? "" : message(", line ", lines[found.size()]);
      fail(path, line, ": the label ", shown(label), " is not among the training text's",
           set.size() <= kFew ? name_hint(label, known)
                              : message("; it has ", set.size(), ", such as ", shown(set.front())));
    }
    found.push_back(place->second);
  }
  return found;
}

Targets Targets::at(std::span<const int64_t> places) const {
  Targets some{.form = form, .width = width};
  for (const int64_t place : places) {
    if (form == LabelForm::one)
      some.labels.push_back(labels[static_cast<size_t>(place)]);
    else
      some.values.insert(some.values.end(), values.begin() + place * width,
                         values.begin() + (place + 1) * width);
  }
  return some;
}

Targets targets_of(const LabelledText& text, LabelForm form, std::span<const std::string> set,
                   const std::string& path) {
  Targets targets{.form = form};
  switch (form) {
    case LabelForm::one:
      targets.labels = label_places(text.labels, set, path, text.lines);
      break;
    case LabelForm::several:
      targets.width = static_cast<int64_t>(set.size());
      for (size_t i = 0; i < text.several.size(); ++i) {
        const std::vector<int64_t> line(text.several[i].size(), text.lines[i]);
        targets.values.resize(targets.values.size() + set.size());
        for (const int32_t place : label_places(text.several[i], set, path, line))
          *(targets.values.end() - targets.width + place) = 1;
      }
      break;
    case LabelForm::number:
      targets.values = text.numbers;
      break;
  }
  return targets;
}

std::vector<std::string_view> split_sentences(std::string_view text) {
  std::vector<std::string_view> sentences;
  size_t begin = 0;
  const auto cut = [&](size_t end) {
    const std::string_view sentence = strip(text.substr(begin, end - begin));
    if (!sentence.empty()) sentences.push_back(sentence);
    begin = end;
  };
  bool ended = false;  // the last character but closing ones was an end
  for (std::string_view rest = text; !rest.empty();) {
    const size_t at = text.size() - rest.size();
    const char32_t c = next_character(rest);
    const size_t after = text.size() - rest.size();
    if (c == U'\n' || (ended && is_space(c))) {
      cut(at);
      ended = false;
    } else if (ends_ideographic_sentence(c)) {
      // Closing quotes belong to the sentence.
      std::string_view ahead = rest;
      size_t end = after;
      while (!ahead.empty()) {
        const char32_t next = next_character(ahead);
        if (!closes(next) && !ends_ideographic_sentence(next)) break;
        end = text.size() - ahead.size();
      }
      rest = text.substr(end);
      cut(end);
      ended = false;
    } else {
      ended = ends_sentence(c) || (ended && closes(c));
    }
  }
  cut(text.size());
  return sentences;
}

std::vector<int32_t> encode_text(std::string_view text, const Tokenizer& tokenizer,
                                 const TextEncoding& encoding) {
  std::string lower;
  if (encoding.lowercase) text = lower = lowercase(text);
  if (const auto* marked = dynamic_cast<const MarkedTokenizer*>(&tokenizer))
    return marked->mark(tokenizer.encode(text), encoding.max_tokens).ids;
  std::vector<int32_t> ids;
  if (encoding.form == TextForm::marked) ids.push_back(kBegin);
  const auto add = [&](std::string_view part) {
    const std::vector<int32_t> tokens = tokenizer.encode(part);
    if (tokens.empty()) return;
    ids.insert(ids.end(), tokens.begin(), tokens.end());
    ids.push_back(kEnd);
  };
  if (encoding.form == TextForm::sentences)
    for (const std::string_view sentence : split_sentences(text)) add(sentence);
  else
    add(text);
  if (ids.empty() || ids.back() != kEnd) ids.push_back(kEnd);
  if (const int64_t most = std::max<int64_t>(encoding.max_tokens, 2);
      encoding.max_tokens > 0 && static_cast<int64_t>(ids.size()) > most) {
    ids.resize(static_cast<size_t>(most));
    ids.back() = kEnd;
  }
  return ids;
}

EncodedText encode_text_or_pair(std::string_view text, const Tokenizer& tokenizer,
                                const TextEncoding& encoding) {
  if (!encoding.pairs) return {encode_text(text, tokenizer, encoding)};
  const size_t tab = text.find('\t');
  require(tab != std::string_view::npos && text.find('\t', tab + 1) == std::string_view::npos,
          "the model reads pairs of texts: wanted a text, a tab and a text");
  const std::string_view one = text.substr(0, tab), two = text.substr(tab + 1);
  if (const auto* marked = dynamic_cast<const MarkedTokenizer*>(&tokenizer)) {
    MarkedText pair = marked->mark(tokenizer.encode(one), tokenizer.encode(two), encoding.max_tokens);
    const auto second = std::find(pair.types.begin(), pair.types.end(), 1);
    return {std::move(pair.ids), static_cast<int32_t>(second - pair.types.begin())};
  }
  TextEncoding each = encoding;
  each.max_tokens = 0;
  EncodedText pair{encode_text(one, tokenizer, each)};
  if (each.form == TextForm::marked) each.form = TextForm::plain;  // <s> appears once
  std::vector<int32_t> second = encode_text(two, tokenizer, each);
  if (encoding.max_tokens > 0) {
    const PairLengths kept = cut_pair(pair.ids.size(), second.size(),
                                      static_cast<size_t>(std::max<int64_t>(encoding.max_tokens, 4)));
    pair.ids.resize(kept.first);
    second.resize(kept.second);
    pair.ids.back() = second.back() = kEnd;
  }
  pair.first = static_cast<int32_t>(pair.ids.size());
  pair.ids.insert(pair.ids.end(), second.begin(), second.end());
  return pair;
}

EncodedTexts encode_texts(std::span<const std::string> texts, const Tokenizer& tokenizer,
                          const TextEncoding& encoding) {
  EncodedTexts packed;
  constexpr int64_t kBlock = 4096;  // texts held as separate vectors at one time
  std::vector<EncodedText> ids(kBlock);
  const auto all = static_cast<int64_t>(texts.size());
  for (int64_t first = 0; first < all; first += kBlock) {
    check_stop();
    const int64_t count = std::min(kBlock, all - first);
    parallel_for(count, 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        ids[static_cast<size_t>(i)] =
            encode_text_or_pair(texts[static_cast<size_t>(first + i)], tokenizer, encoding);
    });
    for (int64_t i = 0; i < count; ++i) packed.append(ids[static_cast<size_t>(i)]);
  }
  return packed;
}

SentenceLengths sentence_lengths(std::span<const int32_t> ids, std::span<const int64_t> texts) {
  SentenceLengths lengths;
  size_t at = 0;
  for (const int64_t length : texts) {
    int64_t tokens = 0, sentences = 0;
    for (const size_t end = at + static_cast<size_t>(length); at < end; ++at) {
      ++tokens;
      if (ids[at] != kEnd && at + 1 < end) continue;
      lengths.tokens.push_back(tokens);
      tokens = 0;
      ++sentences;
    }
    lengths.sentences.push_back(sentences);
  }
  return lengths;
}

TextBatch make_text_batch(const EncodedTexts& texts, std::span<const int64_t> places) {
  TextBatch batch;
  for (const int64_t place : places) {
    const std::span<const int32_t> text = texts[place];
    batch.tokens.insert(batch.tokens.end(), text.begin(), text.end());
    batch.lengths.push_back(static_cast<int32_t>(text.size()));
    batch.places.push_back(place);
    if (!texts.firsts.empty()) batch.firsts.push_back(texts.firsts[static_cast<size_t>(place)]);
  }
  return batch;
}

}  // namespace fovea::data
