#include "data/labelled_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <unordered_map>

#include "base/error.h"
#include "base/fields.h"
#include "base/parallel.h"
#include "data/marked_tokenizer.h"
#include "data/text.h"

namespace fovea::data {
namespace {

constexpr std::string_view kFastText = "__label__";
constexpr std::array<std::string_view, 8> kLabelNames = {"label",  "labels", "class",     "category",
                                                         "target", "topic",  "sentiment", "intent"};
constexpr std::array<std::string_view, 8> kTextNames = {"text",    "texts",   "sentence", "review",
                                                        "content", "comment", "document", "message"};

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

// Records of a file: fields between commas, tabs, or a label and the rest.
class Records {
 public:
  Records(const std::string& path, size_t max_bytes) : reader_(path, max_bytes), max_bytes_(max_bytes) {
    const std::string_view name = path;
    csv_ = name.ends_with(".csv") || name.ends_with(".csv.gz");
  }

  // False at the end of the file. fault() says what is wrong with a record that cannot be used.
  bool next(std::vector<std::string>& fields) {
    fields.clear();
    fault_.clear();
    do {
      if (!reader_.next(line_)) return false;
    } while (reader_.fault() == LineFault::none && strip(line_).empty());
    place_ = reader_.place();
    kind_ = reader_.fault();
    if (kind_ != LineFault::none) {
      fault_ = reader_.fault_text();
      return true;
    }
    if (!csv_ && !known_) {
      known_ = true;
      tabs_ = line_.find('\t') != std::string::npos;
    }
    if (csv_) {
      take_csv(fields);
    } else if (tabs_) {
      for (std::string_view rest = line_;;) {
        const size_t tab = rest.find('\t');
        fields.emplace_back(rest.substr(0, tab));
        if (tab == std::string_view::npos) break;
        rest.remove_prefix(tab + 1);
      }
    } else {
      take_labelled_line(fields);
    }
    return true;
  }

  const std::string& fault() const { return fault_; }
  LineFault kind() const { return kind_; }
  const std::string& place() const { return place_; }
  const std::string& name() const { return reader_.name(); }
  bool has_columns() const { return csv_ || tabs_; }

 private:
  // A quoted field may go on over several lines.
  void take_csv(std::vector<std::string>& fields) {
    std::string field;
    bool quoted = false, was_quoted = false;
    size_t bytes = 0;
    for (;;) {
      for (size_t i = 0; i < line_.size(); ++i) {
        const char c = line_[i];
        if (quoted && c == '"' && i + 1 < line_.size() && line_[i + 1] == '"') {
          field += line_[i++];
        } else if (c == '"' && (quoted || (field.empty() && !was_quoted))) {
          was_quoted = true;
          quoted = !quoted;
        } else if (c == ',' && !quoted) {
          fields.push_back(std::move(field));
          field.clear();
          was_quoted = false;
        } else {
          field += c;
        }
      }
      if (!quoted) break;
      field += '\n';
      bytes += line_.size() + 1;
      const bool too_long = bytes > max_bytes_;
      if (too_long || !reader_.next(line_) || reader_.fault() != LineFault::none) {
        kind_ = too_long ? LineFault::too_long : reader_.fault();
        fault_ = place_ + (too_long ? message(": a quoted field of more than ", max_bytes_, " bytes")
                                    : ": a quote that never closes");
        return;
      }
    }
    fields.push_back(std::move(field));
  }

  void take_labelled_line(std::vector<std::string>& fields) {
    std::string_view rest = strip(line_);
    if (rest.starts_with(kFastText)) rest.remove_prefix(kFastText.size());
    const std::vector<std::string_view> words = split_words(rest);
    fields.emplace_back(words.empty() ? std::string_view() : words[0]);
    fields.emplace_back(words.size() > 1 ? rest.substr(static_cast<size_t>(words[1].data() - rest.data()))
                                         : std::string_view());
  }

  LineReader reader_;
  size_t max_bytes_;
  bool csv_ = false, known_ = false, tabs_ = false;
  std::string line_, place_, fault_;
  LineFault kind_ = LineFault::none;
};

// Which columns hold what, by the options and the first record.
struct Columns {
  size_t label = 0, text = 1, count = 2;
  bool header = false;  // the first record names them
};

template <size_t N>
std::optional<size_t> find_name(const std::vector<std::string>& fields,
                                const std::array<std::string_view, N>& names) {
  for (const std::string_view name : names)
    for (size_t i = 0; i < fields.size(); ++i)
      if (lowercase(strip(fields[i])) == name) return i;
  return {};
}

size_t chosen_column(const std::string& wanted, const char* what, const std::vector<std::string>& fields,
                     const Records& records, bool& header) {
  if (const auto number = whole_number(wanted)) {
    require(*number >= 1 && static_cast<size_t>(*number) <= fields.size(), records.place(), ": ",
            fields.size(), " columns, but ", what, " ", *number, " was asked for; columns count from 1");
    return static_cast<size_t>(*number - 1);
  }
  header = true;
  for (size_t i = 0; i < fields.size(); ++i)
    if (strip(fields[i]) == wanted) return i;
  std::vector<std::string_view> known(fields.begin(), fields.end());
  fail(records.place(), ": no column is named '", wanted, "'", name_hint(wanted, known));
}

Columns choose_columns(const LabelledOptions& options, const std::vector<std::string>& first,
                       const Records& records) {
  Columns columns;
  columns.count = first.size();
  if (!records.has_columns()) {
    require(options.label_column.empty() && options.text_column.empty(), records.name(),
            ": has no columns to choose from: its lines have no tabs, and begin with their label");
    return columns;
  }
  require(first.size() >= 2, records.place(), ": 1 column, wanted a label and a text");
  const auto label = find_name(first, kLabelNames), text = find_name(first, kTextNames);
  columns.header = label && text;
  columns.label = columns.header ? *label : 0;
  columns.text = columns.header ? *text : first.size() - 1;
  if (!options.label_column.empty())
    columns.label = chosen_column(options.label_column, "label column", first, records, columns.header);
  if (!options.text_column.empty())
    columns.text = chosen_column(options.text_column, "text column", first, records, columns.header);
  require(columns.label != columns.text, records.name(), ": column ", columns.label + 1,
          " is both label and text; say which is which by label_column and text_column");
  return columns;
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

}  // namespace

LabelledText read_labelled(const std::string& path, const LabelledOptions& options) {
  Records records(path, options.max_text_bytes);
  LabelledText text;
  std::vector<std::string> fields;
  std::optional<Columns> columns;
  // Drops the record, or stops at it.
  const auto drop = [&](int64_t& counter, const std::string& why) {
    require(options.skip_bad, why, kSkipHint);
    ++counter;
  };
  while (records.next(fields)) {
    if (!records.fault().empty()) {
      drop(records.kind() == LineFault::bad_utf8 ? text.skipped.bad_utf8 : text.skipped.too_long,
           records.fault());
      continue;
    }
    if (!columns) {
      columns = choose_columns(options, fields, records);
      if (columns->header) continue;
    }
    if (fields.size() != columns->count) {
      drop(text.skipped.wrong_columns, message(records.place(), ": ", fields.size(), " columns, wanted ",
                                               columns->count, " as in the first line"));
      continue;
    }
    std::string one = as_one_line(fields[columns->text]);
    const std::string_view label = strip(fields[columns->label]);
    if (one.empty() || label.empty()) {
      drop(text.skipped.empty,
           message(records.place(), one.empty() ? ": an empty text" : ": an empty label"));
      continue;
    }
    text.texts.push_back(std::move(one));
    text.labels.emplace_back(label);
  }
  require(text.size() > 0, records.name(),
          text.skipped.total() == 0 ? ": no lines" : ": no usable text; " + text.skipped.text("text"));
  return text;
}

std::vector<std::string> label_set(const LabelledText& text, const std::string& path) {
  constexpr size_t kMany = 1000;
  std::vector<std::string> set = text.labels;
  const bool numbers = std::all_of(set.begin(), set.end(), [](const auto& l) { return whole_number(l); });
  std::sort(set.begin(), set.end(), [numbers](const std::string& a, const std::string& b) {
    return numbers ? *whole_number(a) < *whole_number(b) : a < b;
  });
  set.erase(std::unique(set.begin(), set.end()), set.end());
  require(set.size() >= 2, path, ": every text has the label ", shown(set.front()), ", wanted at least two");
  require(set.size() <= kMany || set.size() <= text.labels.size() / 4, path, ": ", set.size(),
          " different labels for ", text.labels.size(),
          " texts; is this the column of labels? say which by label_column");
  return set;
}

std::vector<int32_t> label_places(std::span<const std::string> labels, std::span<const std::string> set,
                                  const std::string& path) {
  std::unordered_map<std::string_view, int32_t> places;
  for (size_t i = 0; i < set.size(); ++i) places.emplace(set[i], static_cast<int32_t>(i));
  std::vector<int32_t> found;
  for (const std::string& label : labels) {
    const auto place = places.find(label);
    if (place == places.end()) {
      const std::vector<std::string_view> known(set.begin(), set.end());
      fail(path, ": the label ", shown(label), " is not among the training text's", name_hint(label, known));
    }
    found.push_back(place->second);
  }
  return found;
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

PackedSentences encode_texts(std::span<const std::string> texts, const Tokenizer& tokenizer,
                             const TextEncoding& encoding) {
  PackedSentences packed;
  constexpr int64_t kBlock = 4096;  // texts held as separate vectors at one time
  std::vector<std::vector<int32_t>> ids(kBlock);
  const auto all = static_cast<int64_t>(texts.size());
  for (int64_t first = 0; first < all; first += kBlock) {
    const int64_t count = std::min(kBlock, all - first);
    parallel_for(count, 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        ids[static_cast<size_t>(i)] = encode_text(texts[static_cast<size_t>(first + i)], tokenizer, encoding);
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

TextBatch make_text_batch(const PackedSentences& texts, std::span<const int64_t> places) {
  TextBatch batch;
  for (const int64_t place : places) {
    const std::span<const int32_t> text = texts[place];
    batch.tokens.insert(batch.tokens.end(), text.begin(), text.end());
    batch.lengths.push_back(static_cast<int32_t>(text.size()));
    batch.places.push_back(place);
  }
  return batch;
}

}  // namespace fovea::data
