// Flags from a struct's fields (base/fields.h): "save_every" becomes --save-every, with its meaning and
// default.
#pragma once

#include <CLI/CLI.hpp>

#include <concepts>
#include <type_traits>

#include "base/error.h"
#include "base/fields.h"

namespace fovea::cli {

// strtoull takes "-1" for the largest number there is.
template <class Value>
CLI::Option* refuse_negative(CLI::Option* option) {
  if constexpr (std::unsigned_integral<Value> && !std::same_as<Value, bool>)
    option->check(CLI::Validator(
        [](const std::string& text) {
          return text.starts_with('-') ? "got " + text + ", wanted 0 or more" : std::string();
        },
        ""));
  return option;
}

// What a field's help says: its meaning and, unless it is empty, its default.
template <class Value>
std::string described(const char* meaning, const Value& value) {
  const std::string standard = message(value);
  return standard.empty() ? meaning : message(meaning, " (default ", standard, ")");
}

// Adds one flag for each field, one that takes no value where it is a truth value; `options` must live until
// the line is read.
template <HasFields T>
void add_fields(CLI::App& verb, T& options) {
  for_each_field<T>([&](const auto& field) {
    auto& value = options.*field.member;
    using Value = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::same_as<Value, bool>)
      verb.add_flag(flag_name(field.name), value, field.meaning);
    else
      refuse_negative<Value>(verb.add_option(flag_name(field.name), value, described(field.meaning, value)));
  });
}

}  // namespace fovea::cli
