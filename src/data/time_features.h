// Points in time as files write them, and as numbers that a model can read: the hour, the day of the week.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::data {

// Seconds since 1970-01-01 of "2016-07-01", "2016-7-1 9:00", "2016/07/01T13:00:05Z", "2016-07-01 1:00 PM", "01.07.2016 13:00",
// "2016-07"; nothing for any other text, such as "07/01/2016", in which day and month cannot be told apart. A fraction of a
// second is dropped; with an offset ("+02:00") the time is converted to UTC. Years are 0 to 9999.
std::optional<int64_t> parse_time(std::string_view text);
// Whole numbers that stand for times, where a column is known to hold them: 20160701, seconds since 1970 (ten digits) and
// milliseconds (thirteen). Nothing for any other text.
std::optional<int64_t> parse_time_number(std::string_view text);
// "2016-07-01 13:00:05"
std::string time_text(int64_t seconds);

// How far apart the rows of a table are: by calendar months where all of them are, by seconds otherwise.
struct TimeStep {
  int64_t months = 0;
  bool at_month_ends = false;  // months: rows stand on the last day of each
  int64_t seconds = 0;         // the most frequent distance
  int64_t irregular = 0;       // rows at another distance from the one before
};
// times: at least two, increasing.
TimeStep step_between(std::span<const int64_t> times);
int64_t time_after(int64_t time, const TimeStep& step, int64_t steps);

// Names separated by commas: minute, hour, weekday, day (of the month), yearday, month. Throws Error on any
// other name and on one that appears twice.
std::vector<std::string> parse_time_features(std::string_view names);
// Each feature lies between -0.5 and 0.5. names: as parse_time_features() gives them -> [times, names].
std::vector<float> time_features(std::span<const int64_t> times, std::span<const std::string> names);

}  // namespace fovea::data
