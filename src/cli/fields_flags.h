// Flags from a struct's fields (base/fields.h): "save_every" becomes --save-every, with its meaning and
// default.
#pragma once

#include <CLI/CLI.hpp>

#include <concepts>
#include <type_traits>

#include "base/fields.h"

namespace fovea::cli {

// Adds one flag for each field, one that takes no value where it is a truth value; `options` must live until
// the line is read.
template <HasFields T>
void add_fields(CLI::App& verb, T& options) {
  for_each_field<T>([&](const auto& field) {
    auto& value = options.*field.member;
    if constexpr (std::same_as<std::remove_cvref_t<decltype(value)>, bool>)
      verb.add_flag(flag_name(field.name), value, field.meaning);
    else
      verb.add_option(flag_name(field.name), value, field.meaning)->capture_default_str();
  });
}

}  // namespace fovea::cli
