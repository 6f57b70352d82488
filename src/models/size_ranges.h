// The numbers that a model's settings may have: far above any model in use, and low enough that no product of
// them overflows.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "base/fields.h"

namespace fovea::models {

struct Range {
  double low, high;
  bool below = false;  // high itself is not allowed

  constexpr bool holds(double x) const { return x >= low && (below ? x < high : x <= high); }
};
// Both are allowed.
constexpr Range between(double low, double high) {
  return {low, high};
}
// 0 or more and below 1.
constexpr Range probability() {
  return {0, 1, true};
}

inline constexpr Range kVocabularies = between(0, 1 << 24);
inline constexpr Range kWidths = between(1, 1 << 16);
inline constexpr Range kLayers = between(1, 1024);

// A Field (base/fields.h) that is a number within a range.
template <class Owner, class Value>
struct Sized : Field<Owner, Value> {
  constexpr Sized(const char* field, Value Owner::*value, const char* help, Range allowed)
      : Field<Owner, Value>{field, value, help}, range(allowed) {}
  Range range;
};

// Throws Error, beginning with `where`, when a number lies outside of its range.
template <HasFields T>
void check_ranges(const T& options, std::string_view where) {
  for_each_field<T>([&](const auto& field) {
    if constexpr (requires { field.range; }) {
      const auto& value = options.*field.member;
      const Range& range = field.range;
      if (range.holds(static_cast<double>(value))) return;
      if (range.below)
        fail(where, ": ", field.name, " is ", value, ", wanted ", range.low, " or more and below ",
             range.high);
      // Whole numbers without an exponent.
      const auto shown = [](double x) {
        const auto whole = static_cast<int64_t>(x);
        return static_cast<double>(whole) == x ? message(whole) : message(x);
      };
      fail(where, ": ", field.name, " is ", value, ", wanted ", shown(range.low), " to ", shown(range.high));
    }
  });
}

}  // namespace fovea::models
