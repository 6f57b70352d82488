// Parses dates and times, counts them as seconds, and turns them into the numbers that series models read.
#include "data/time_features.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <map>

#include "base/error.h"
#include "base/fields.h"
#include "data/text.h"

namespace fovea::data {
namespace {

using std::chrono::sys_days;
using std::chrono::year_month_day;

constexpr int64_t kDay = 24 * 60 * 60;

// Takes `fewest` to `most` digits from the front; -1: there are not so many.
int take_digits(std::string_view& text, size_t fewest, size_t most) {
  int value = 0;
  size_t digits = 0;
  for (; digits < text.size() && digits < most && text[digits] >= '0' && text[digits] <= '9'; ++digits)
    value = 10 * value + (text[digits] - '0');
  if (digits < fewest) return -1;
  text.remove_prefix(digits);
  return value;
}

bool take(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text[0]) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

// "AM" and "PM" after an hour of 1 to 12 -> the hour of 0 to 23; -1: they do not fit.
int take_half_of_day(std::string_view& text, int hour) {
  std::string_view rest = text;
  take(rest, " ");
  const bool pm = !rest.empty() && (rest[0] == 'P' || rest[0] == 'p');
  if (!take(rest, "AaPp") || !take(rest, "Mm")) return hour;
  text = rest;
  if (hour < 1 || hour > 12) return -1;
  return hour % 12 + (pm ? 12 : 0);
}

// "", "Z", "+02:00", "-0500", "+02" -> seconds east of Greenwich.
std::optional<int64_t> take_offset(std::string_view& text) {
  if (take(text, "Z") || text.empty()) return 0;
  const int64_t sign = text[0] == '-' ? -1 : 1;
  if (!take(text, "+-")) return {};
  const int hours = take_digits(text, 2, 2);
  take(text, ":");
  const int minutes = text.empty() ? 0 : take_digits(text, 2, 2);
  if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return {};
  return sign * (int64_t{hours} * 3600 + minutes * 60);
}

// The clock of a day, after the date: "", " 13:00", "T13:00:05.25Z", " 1:00 PM".
std::optional<int64_t> take_clock(std::string_view text) {
  if (text.empty()) return 0;
  if (!take(text, " T")) return {};
  int hour = take_digits(text, 1, 2);
  if (hour < 0 || hour > 23 || !take(text, ":")) return {};
  const int minute = take_digits(text, 2, 2);
  if (minute < 0 || minute > 59) return {};
  int second = 0;
  if (take(text, ":")) {
    second = take_digits(text, 2, 2);
    if (second < 0 || second > 59) return {};
    if (take(text, "."))
      while (take(text, "0123456789")) continue;
  }
  hour = take_half_of_day(text, hour);
  const auto offset = take_offset(text);
  if (hour < 0 || !offset || !text.empty()) return {};
  return int64_t{hour} * 3600 + minute * 60 + second - *offset;
}

// Year first with any of three separators, or day first with dots; a month alone is its first day.
std::optional<year_month_day> take_date(std::string_view& text) {
  std::string_view rest = text;
  int day = take_digits(rest, 1, 2), month = -1, year = -1;
  if (day >= 0 && take(rest, ".")) {
    month = take_digits(rest, 1, 2);
    if (month < 0 || !take(rest, ".")) return {};
    year = take_digits(rest, 4, 4);
  } else {
    rest = text;
    year = take_digits(rest, 4, 4);
    const std::string_view separator = rest.substr(0, std::min<size_t>(1, rest.size()));
    if (year < 0 || !take(rest, "-/.")) return {};
    month = take_digits(rest, 1, 2);
    if (rest.empty() && separator != ".")
      day = 1;
    else if (!take(rest, separator))
      return {};
    else
      day = take_digits(rest, 1, 2);
  }
  if (day < 0 || month < 0 || year < 0) return {};
  text = rest;
  return year_month_day{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                        std::chrono::day(static_cast<unsigned>(day))};
}

int64_t seconds_of(const year_month_day& date) {
  return int64_t{sys_days(date).time_since_epoch().count()} * kDay;
}

// A moment of the years that can be written.
std::optional<int64_t> in_range(int64_t seconds) {
  using namespace std::chrono;
  const bool inside =
      seconds >= seconds_of(year(0) / January / 1) && seconds < seconds_of(year(9999) / December / 31) + kDay;
  return inside ? std::optional(seconds) : std::nullopt;
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
  const auto date = take_date(text);
  if (!date || !date->ok()) return {};
  const auto clock = take_clock(text);
  if (!clock) return {};
  return in_range(seconds_of(*date) + *clock);
}

std::optional<int64_t> parse_time_number(std::string_view text) {
  text = strip(text);
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return {};
  if (text.size() == 10) return in_range(number);
  if (text.size() == 13) return in_range(number / 1000);
  if (text.size() != 8) return {};
  const year_month_day date{std::chrono::year(static_cast<int>(number / 10000)),
                            std::chrono::month(static_cast<unsigned>(number / 100 % 100)),
                            std::chrono::day(static_cast<unsigned>(number % 100))};
  return date.ok() ? in_range(seconds_of(date)) : std::nullopt;
}

std::string time_text(int64_t seconds) {
  const Moment m = moment_of(seconds);
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02u-%02u %02d:%02d:%02d", static_cast<int>(m.date.year()),
                unsigned{m.date.month()}, unsigned{m.date.day()}, static_cast<int>(m.second / 3600),
                static_cast<int>(m.second / 60 % 60), static_cast<int>(m.second % 60));
  return text;
}

namespace {

int64_t month_number(const Moment& moment) {
  return int64_t{static_cast<int>(moment.date.year())} * 12 + unsigned{moment.date.month()} - 1;
}

bool ends_month(const Moment& moment) {
  return moment.date == year_month_day(moment.date.year() / moment.date.month() / std::chrono::last);
}

// The months between all rows, where they are equal and rows stand on one day of their months; 0 otherwise.
int64_t months_between(std::span<const int64_t> times, bool at_month_ends) {
  const Moment first = moment_of(times[0]), second = moment_of(times[1]);
  const int64_t months = month_number(second) - month_number(first);
  for (size_t i = 0; i < times.size(); ++i) {
    const Moment moment = moment_of(times[i]);
    const bool same_day = at_month_ends ? ends_month(moment) : moment.date.day() == first.date.day();
    if (!same_day || moment.second != first.second ||
        month_number(moment) != month_number(first) + static_cast<int64_t>(i) * months)
      return 0;
  }
  return months;
}

}  // namespace

TimeStep step_between(std::span<const int64_t> times) {
  require(times.size() >= 2, "times: ", times.size(), " of them, wanted at least 2");
  TimeStep step;
  for (const bool at_month_ends : {false, true}) {
    step.months = months_between(times, at_month_ends);
    step.at_month_ends = at_month_ends;
    if (step.months > 0) return step;
  }
  step.at_month_ends = false;
  std::map<int64_t, int64_t> counts;
  for (size_t i = 1; i < times.size(); ++i) ++counts[times[i] - times[i - 1]];
  const auto most = std::max_element(counts.begin(), counts.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  step.seconds = most->first;
  step.irregular = static_cast<int64_t>(times.size()) - 1 - most->second;
  return step;
}

int64_t time_after(int64_t time, const TimeStep& step, int64_t steps) {
  if (step.months == 0) return time + steps * step.seconds;
  const Moment moment = moment_of(time);
  const int64_t month = month_number(moment) + steps * step.months;
  const auto first = std::chrono::year(static_cast<int>(month / 12)) /
                     std::chrono::month(static_cast<unsigned>(month % 12) + 1);
  const year_month_day last(first / std::chrono::last);
  const auto day = step.at_month_ends ? last.day() : std::min(last.day(), moment.date.day());
  return seconds_of(first / day) + moment.second;
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
            "' appears twice");
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
