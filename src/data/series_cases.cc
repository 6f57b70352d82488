// Parses .ts files of labelled series: header, dimensions, values, labels or numbers.
#include "data/series_cases.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/fields.h"
#include "data/lines.h"
#include "data/text.h"
#include "io/json.h"

namespace fovea::data {
namespace {

constexpr size_t kLongestCase = size_t{64} << 20;
constexpr size_t kMostFeatures = 65536;
constexpr size_t kMostValues = size_t{1} << 30;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t end = text.find(separator);
    parts.push_back(strip(text.substr(0, end)));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  while (!(text = strip(text)).empty()) {
    const size_t end = std::min(text.find_first_of(" \t"), text.size());
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return words;
}

// One feature's steps, written to every `features`-th place of `values` from its own on.
void read_feature(std::string_view text, size_t feature, size_t features, std::vector<float>& values,
                  const std::string& place, const CaseOptions& options) {
  float last = std::numeric_limits<float>::quiet_NaN();
  size_t step = 0;
  for (std::string_view rest = text;; ++step) {
    const size_t comma = rest.find(',');
    const std::string_view field = strip(rest.substr(0, comma));
    const auto value = number_of(field);
    if (!value) {
      require(!is_too_large(field), place, ", feature ", feature + 1, ", step ", step + 1, ": got ",
              in_quotes(field), kTooLarge);
      require(is_missing(field), place, ", feature ", feature + 1, ", step ", step + 1, ": got ",
              in_quotes(field), ", wanted a number");
      require(options.missing == Missing::last, place, ", feature ", feature + 1, ", step ", step + 1,
              ": the value is missing; fill it, or train with --missing last");
    }
    const size_t at = step * features + feature;
    require(at < values.size(), place, ": feature ", feature + 1, " has more steps than the ",
            values.size() / features, " of the first feature; all features of a case must have as many");
    last = value.value_or(last);
    values[at] = last;
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  require((step + 1) * features == values.size(), place, ": feature ", feature + 1, " has ", step + 1,
          " steps, wanted ", values.size() / features,
          " as the first feature has; all features of a case must have as many");
}

// [steps, features] of the first `features` parts.
std::vector<float> read_features(std::span<const std::string_view> parts, const std::string& place,
                                 const CaseOptions& options) {
  const auto steps = static_cast<size_t>(std::count(parts[0].begin(), parts[0].end(), ',')) + 1;
  require(steps <= kMostValues / parts.size(), place, ": more than ", kMostValues, " numbers");
  std::vector<float> values(steps * parts.size());
  for (size_t f = 0; f < parts.size(); ++f) read_feature(parts[f], f, parts.size(), values, place, options);
  return values;
}

// Takes the lines of a file one after the other.
class CaseReader {
 public:
  CaseReader(std::string name, const CaseOptions& options) : name_(std::move(name)), options_(options) {}

  void take(std::string_view line, int64_t number) {
    line = strip(line);
    if (line.empty() || line[0] == '#') return;
    const std::string place = message(name_, ", line ", number);
    if (data_) {
      take_case(line, place);
      cases_.lines.push_back(number);
      return;
    }
    require(line[0] == '@', place, ": got ", in_quotes(line),
            ", wanted a header line that begins with @, or @data");
    take_header(line.substr(1), place);
  }

  SeriesCases finish() {
    require(data_, name_, ": no line @data, wanted a .ts file");
    require(cases_.size() > 0, name_, ": no cases after @data");
    return std::move(cases_);
  }

 private:
  void take_header(std::string_view line, const std::string& place) {
    const size_t end = std::min(line.find_first_of(" \t"), line.size());
    const std::string tag = lowercase(line.substr(0, end));
    const std::vector<std::string> words = split_words(line.substr(end));
    const auto says_yes = [&] {
      const std::string word = words.empty() ? "" : lowercase(words[0]);
      require(word == "true" || word == "false", place, ": got ", in_quotes(word), ", wanted true or false");
      return word == "true";
    };
    if (tag == "data") {
      data_ = true;
    } else if (tag == "timestamps") {
      require(!says_yes(), place,
              ": series with time stamps of their own are not read; wanted values at equal steps");
    } else if (tag == "univariate") {
      if (says_yes()) cases_.features = 1;
    } else if (tag == "dimension" || tag == "dimensions") {
      const float count = words.empty() ? 0 : number_of(words[0]).value_or(0);
      require(count >= 1 && count <= static_cast<float>(kMostFeatures) && count == std::floor(count), place,
              ": got ", in_quotes(words.empty() ? "" : words[0]), ", wanted a number of features from 1 to ",
              kMostFeatures);
      cases_.features = static_cast<int64_t>(count);
    } else if (tag == "targetlabel") {
      if (says_yes()) cases_.target = CaseTarget::number;
    } else if (tag == "classlabel") {
      if (says_yes()) take_classes({words.begin() + 1, words.end()}, place);
    }
    // Other tags describe the data for people.
  }

  void take_classes(std::vector<std::string> classes, const std::string& place) {
    cases_.target = CaseTarget::classes;
    std::vector<std::string> sorted = classes;
    std::sort(sorted.begin(), sorted.end());
    require(classes.size() >= 2, place, ": ", classes.size(), " class labels, wanted at least 2 after true");
    require(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end(), place,
            ": a class label appears twice");
    cases_.classes = std::move(classes);
  }

  void take_case(std::string_view line, const std::string& place) {
    const std::vector<std::string_view> parts = split(line, ':');
    const size_t label = cases_.target == CaseTarget::none ? 0 : 1;
    require(parts.size() > label, place, ": got ", in_quotes(line), ", wanted values, a colon and a label");
    const size_t features = parts.size() - label;
    if (cases_.features == 0) cases_.features = static_cast<int64_t>(features);
    require(static_cast<int64_t>(features) == cases_.features, place, ": ", features, " features, wanted ",
            cases_.features, label == 1 ? " and a label" : "");
    const std::vector<float> values = read_features(std::span(parts).first(features), place, options_);
    require(cases_.values.size() + values.size() <= kMostValues, place, ": more than ", kMostValues,
            " numbers in the file");
    cases_.values.insert(cases_.values.end(), values.begin(), values.end());
    cases_.starts.push_back(static_cast<int64_t>(cases_.values.size() / features));
    if (cases_.target == CaseTarget::classes) take_label(parts.back(), place);
    if (cases_.target == CaseTarget::number) {
      const auto number = number_of(parts.back());
      require(number.has_value(), place, ": got the target ", in_quotes(parts.back()),
              is_too_large(parts.back()) ? kTooLarge : ", wanted a number");
      cases_.numbers.push_back(*number);
    }
  }

  void take_label(std::string_view label, const std::string& place) {
    const auto found = std::find(cases_.classes.begin(), cases_.classes.end(), label);
    require(found != cases_.classes.end(), place, ": unknown label ", in_quotes(label),
            name_hint(label, {cases_.classes.begin(), cases_.classes.end()}));
    cases_.labels.push_back(static_cast<int32_t>(found - cases_.classes.begin()));
  }

  std::string name_;
  CaseOptions options_;
  bool data_ = false;
  SeriesCases cases_;
};

}  // namespace

SeriesCases read_series_cases(const std::string& path, const CaseOptions& options) {
  LineReader lines(path, kLongestCase, kMaxStreamBytes);
  CaseReader cases(lines.name(), options);
  for (std::string line; lines.next(line);) {
    require(lines.fault() == LineFault::none, lines.fault_text());
    cases.take(line, lines.line_number());
  }
  return cases.finish();
}

SeriesCases parse_series_cases(std::string_view text, const std::string& name, const CaseOptions& options) {
  require(is_utf8(text), name, " is not UTF-8");
  CaseReader cases(name, options);
  for_each_line(text, [&](std::string_view line, int64_t number) { cases.take(line, number); });
  return cases.finish();
}

std::vector<float> parse_case(std::string_view line, int64_t features, const std::string& place,
                              const CaseOptions& options) {
  const std::vector<std::string_view> parts = split(strip(line), ':');
  const auto count = static_cast<int64_t>(parts.size());
  require(count == features || count == features + 1, place, ": ", count, " parts between colons, wanted ",
          features, " features, with or without a label at the end");
  return read_features(std::span(parts).first(static_cast<size_t>(features)), place, options);
}

}  // namespace fovea::data
