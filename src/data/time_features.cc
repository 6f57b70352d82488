// Parses dates and times, counts them as seconds, and turns them into the numbers that series models read.
#include "data/time_features.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>

#include "base/error.h"
#include "base/fields.h"
#include "data/text.h"

namespace fovea::data {
namespace {

using std::chrono::sys_days;
using std::chrono::year_month_day;

constexpr int64_t kDay = 24 * 60 * 60;

// Takes exactly `digits` digits from the front; -1: there are none.
int take_digits(std::string_view& text, size_t digits) {
  int value = 0;
  if (text.size() < digits) return -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + digits, value);
  if (error != std::errc() || end != text.data() + digits || text[0] == '-') return -1;
  text.remove_prefix(digits);
  return value;
}

bool take(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text[0]) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

// The clock of a day, after the date: "", " 13:00", "T13:00:05.25Z".
std::optional<int64_t> take_clock(std::string_view text) {
  if (text.empty()) return 0;
  if (!take(text, " T")) return {};
  const int hour = take_digits(text, 2);
  if (hour < 0 || hour > 23 || !take(text, ":")) return {};
  const int minute = take_digits(text, 2);
  if (minute < 0 || minute > 59) return {};
  int second = 0;
  if (take(text, ":")) {
    second = take_digits(text, 2);
    if (second < 0 || second > 59) return {};
    if (take(text, "."))
      while (take(text, "0123456789")) continue;
  }
  take(text, "Z");
  if (!text.empty()) return {};
  return int64_t{hour} * 3600 + minute * 60 + second;
}

// Days before and the second within the day, also before 1970.
struct Moment {
  year_month_day date;
  sys_days day;
  int64_t second;
};
Moment moment_of(int64_t seconds) {
  int64_t days = seconds / kDay, second = seconds % kDay;
  if (second < 0) {
    --days;
    second += kDay;
  }
  const sys_days day{std::chrono::days(days)};
  return {year_month_day(day), day, second};
}

// A value of 0 to `last` as -0.5 to 0.5.
float centred(int64_t value, int64_t last) {
  return static_cast<float>(value) / static_cast<float>(last) - 0.5f;
}

struct Feature {
  std::string_view name;
  float (*value)(const Moment& moment);
};
constexpr std::array kFeatures = {
    Feature{"minute", [](const Moment& m) { return centred(m.second / 60 % 60, 59); }},
    Feature{"hour", [](const Moment& m) { return centred(m.second / 3600, 23); }},
    Feature{
        "weekday",
        [](const Moment& m) { return centred(int64_t{std::chrono::weekday(m.day).iso_encoding()} - 1, 6); }},
    Feature{"day", [](const Moment& m) { return centred(int64_t{unsigned{m.date.day()}} - 1, 30); }},
    Feature{"yearday",
            [](const Moment& m) {
              const sys_days first = m.date.year() / std::chrono::January / 1;
              return centred((m.day - first).count(), 365);
            }},
    Feature{"month", [](const Moment& m) { return centred(int64_t{unsigned{m.date.month()}} - 1, 11); }}};

const Feature* feature_named(std::string_view name) {
  const auto found = std::find_if(kFeatures.begin(), kFeatures.end(),
                                  [&](const Feature& feature) { return feature.name == name; });
  return found == kFeatures.end() ? nullptr : &*found;
}

}  // namespace

std::optional<int64_t> parse_time(std::string_view text) {
  text = strip(text);
  const int year = take_digits(text, 4);
  if (year < 0 || !take(text, "-/")) return {};
  const int month = take_digits(text, 2);
  if (month < 0 || !take(text, "-/")) return {};
  const int day = take_digits(text, 2);
  if (day < 0) return {};
  const year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                            std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return {};
  const auto clock = take_clock(text);
  if (!clock) return {};
  return int64_t{sys_days(date).time_since_epoch().count()} * kDay + *clock;
}

std::string time_text(int64_t seconds) {
  const Moment m = moment_of(seconds);
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02u-%02u %02d:%02d:%02d", static_cast<int>(m.date.year()),
                unsigned{m.date.month()}, unsigned{m.date.day()}, static_cast<int>(m.second / 3600),
                static_cast<int>(m.second / 60 % 60), static_cast<int>(m.second % 60));
  return text;
}

std::vector<std::string> parse_time_features(std::string_view names) {
  std::vector<std::string> list;
  std::vector<std::string_view> known;
  for (const Feature& feature : kFeatures) known.push_back(feature.name);
  while (!names.empty()) {
    const size_t comma = std::min(names.find(','), names.size());
    const std::string name(strip(names.substr(0, comma)));
    require(feature_named(name) != nullptr, "time_features: unknown feature '", name, "'",
            name_hint(name, known));
    require(std::find(list.begin(), list.end(), name) == list.end(), "time_features: '", name,
            "' stands twice");
    list.push_back(name);
    names.remove_prefix(std::min(comma + 1, names.size()));
  }
  return list;
}

std::vector<float> time_features(std::span<const int64_t> times, std::span<const std::string> names) {
  std::vector<const Feature*> features;
  for (const std::string& name : names) {
    features.push_back(feature_named(name));
    require(features.back() != nullptr, "time_features: unknown feature '", name, "'");
  }
  std::vector<float> values;
  values.reserve(times.size() * names.size());
  for (const int64_t time : times) {
    const Moment moment = moment_of(time);
    for (const Feature* feature : features) values.push_back(feature->value(moment));
  }
  return values;
}

}  // namespace fovea::data
