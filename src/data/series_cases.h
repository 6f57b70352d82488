// Series with a label or a number each: .ts files as the UEA and UCR archives have them.
//
//   @dimensions 2
//   @classLabel true up down
//   @data
//   1,2,3:0.5,0.4,0.3:up
//
// A line is a case: its features between colons, the steps of a feature between commas, the label last. Cases
// may differ in length; the features of one case may not.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/number_text.h"

namespace fovea::data {

// What a case is labelled with.
enum class CaseTarget { none, classes, number };

struct SeriesCases {
  int64_t features = 0;
  CaseTarget target = CaseTarget::none;
  std::vector<std::string> classes = {};  // as the header lists them
  std::vector<float> values = {};         // [steps of all cases, features]
  std::vector<int64_t> starts{0};         // case i is steps [starts[i], starts[i + 1])
  std::vector<int32_t> labels = {};       // of each case, a place in `classes`
  std::vector<float> numbers = {};        // of each case
  std::vector<int64_t> lines = {};        // of each case, in the file, from 1; empty: not read from one

  int64_t size() const { return static_cast<int64_t>(starts.size()) - 1; }
  int64_t length(int64_t i) const {
    return starts[static_cast<size_t>(i) + 1] - starts[static_cast<size_t>(i)];
  }
  std::span<const float> operator[](int64_t i) const {
    return std::span(values).subspan(static_cast<size_t>(starts[static_cast<size_t>(i)] * features),
                                     static_cast<size_t>(length(i) * features));
  }
};

struct CaseOptions {
  Missing missing = Missing::stop;  // last: 0 in place of NaN is the reader's to put in
};

// Throws Error, naming file and line, for a header without @data, @timeStamps true, cases of another number of
// features, features of different lengths, what is no number, a label that the header lacks, and a file
// without cases. path: plain or gzip.
SeriesCases read_series_cases(const std::string& path, const CaseOptions& options = {});
// The same of a text; `name` stands for the file in messages.
SeriesCases parse_series_cases(std::string_view text, const std::string& name,
                               const CaseOptions& options = {});

// One line of such a file, of a known number of features, with a label at its end (which is not looked at) or
// without -> [steps, features]. Throws Error, beginning with `place`.
std::vector<float> parse_case(std::string_view line, int64_t features, const std::string& place,
                              const CaseOptions& options = {});

}  // namespace fovea::data
