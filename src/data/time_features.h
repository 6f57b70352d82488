// Points in time as files write them, and as numbers that a model can read: the hour, the day of the week.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::data {

// Seconds since 1970-01-01 of "2016-07-01", "2016-07-01 13:00", "2016/07/01T13:00:05Z"; nothing for any other
// text. A fraction of a second is dropped.
std::optional<int64_t> parse_time(std::string_view text);
// "2016-07-01 13:00:05"
std::string time_text(int64_t seconds);

// Names separated by commas: minute, hour, weekday, day (of the month), yearday, month. Throws Error on any
// other name and on one that stands twice.
std::vector<std::string> parse_time_features(std::string_view names);
// Each feature lies between -0.5 and 0.5. names: as parse_time_features() gives them -> [times, names].
std::vector<float> time_features(std::span<const int64_t> times, std::span<const std::string> names);

}  // namespace fovea::data
