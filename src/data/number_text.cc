#include "data/number_text.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <string>

#include "base/error.h"
#include "data/text.h"

namespace fovea::data {

Missing missing_named(std::string_view name) {
  if (name == "stop") return Missing::stop;
  require(name == "last", "missing: got '", name, "', wanted stop or last");
  return Missing::last;
}

bool is_missing(std::string_view field) {
  field = strip(field);
  constexpr size_t kLongest = 4;
  if (field.size() > kLongest) return false;
  std::string lower;
  for (const char c : field) lower += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower.empty() || lower == "?" || lower == "nan" || lower == "na" || lower == "null" ||
         lower == "none" || lower == "n/a" || lower == "#n/a" || lower == "-";
}

std::optional<float> number_of(std::string_view field) {
  field = strip(field);
  if (!field.empty() && field[0] == '+') field.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error != std::errc() || end != field.data() + field.size() || field.empty()) return {};
  if (!(std::abs(value) <= double{std::numeric_limits<float>::max()})) return {};
  return static_cast<float>(value);
}

bool is_too_large(std::string_view field) {
  field = strip(field);
  if (!field.empty() && field[0] == '+') field.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (end != field.data() + field.size()) return false;
  // Out of a double's range: 1e400, or 1e-400.
  if (error == std::errc::result_out_of_range) return field.find('-', 1) == std::string_view::npos;
  return error == std::errc() && std::isfinite(value) &&
         std::abs(value) > double{std::numeric_limits<float>::max()};
}

}  // namespace fovea::data
