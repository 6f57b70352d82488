#include "tasks/setting.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace fovea::tasks {
namespace {

// The whole text as a number, or nothing.
template <class T>
std::optional<T> number_in(const std::string& text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

Json integer_from(const std::string& text, const std::string& where) {
  if (const auto value = number_in<int64_t>(text)) return *value;
  if (const auto value = number_in<uint64_t>(text)) return *value;  // a seed may be larger
  fail(where, ": got ", in_quotes(text), ", wanted a whole number");
}

}  // namespace

std::string default_text(const Setting& setting) {
  if (setting.standard.is_null()) return "from the size of the data";
  if (setting.standard.is_string()) {
    const std::string text = setting.standard.get<std::string>();
    return text.empty() ? "none" : text;
  }
  return setting.standard.dump();
}

void check_choice(const std::string& value, const std::vector<std::string>& choices,
                  const std::string& where) {
  if (choices.empty() || std::find(choices.begin(), choices.end(), value) != choices.end()) return;
  std::string all;
  for (size_t i = 0; i < choices.size(); ++i)
    all += (i == 0 ? "" : i + 1 == choices.size() ? " or " : ", ") + choices[i];
  fail(where, ": got ", in_quotes(value), ", wanted ", all);
}

Json setting_from_text(const Setting& setting, const std::string& text, const std::string& where) {
  switch (setting.type) {
    case SettingType::truth: {
      const bool yes = text.empty() || text == "true" || text == "1";
      require(yes || text == "false" || text == "0", where, ": got ", in_quotes(text),
              ", wanted true or false");
      return yes;
    }
    case SettingType::integer:
      return integer_from(text, where);
    case SettingType::number: {
      const auto value = number_in<double>(text);
      require(value && std::isfinite(*value), where, ": got ", in_quotes(text), ", wanted a finite number");
      return *value;
    }
    case SettingType::text:
      check_choice(text, setting.choices, where);
      return text;
  }
  fail(where, ": a setting of no known type");
}

}  // namespace fovea::tasks
