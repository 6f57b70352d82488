// Numbers in files of data: what counts as one, what counts as a missing one.
#pragma once

#include <optional>
#include <string_view>

namespace fovea::data {

// What to do with a value that is missing.
enum class Missing {
  stop,  // an Error that names the place
  last,  // the last value known of the same column or feature; before the first one, NaN
};
// "stop" or "last"; throws Error on anything else.
Missing missing_named(std::string_view name);

// Empty, ?, NaN, NA, null or none, in any case.
bool is_missing(std::string_view field);
// A finite number that a float can hold, with spaces around it or not.
std::optional<float> number_of(std::string_view field);
// Whether a field that is no number_of() is a finite number beyond what a float can hold.
bool is_too_large(std::string_view field);
// How a message about such a field ends.
inline constexpr const char* kTooLarge =
    ", which is too large for a 32-bit float, wanted a number of at most 3.4e38; choose a larger unit";

}  // namespace fovea::data
