// Flags from a struct's fields (base/fields.h): "save_every" becomes --save-every, with its meaning and
// default.
#pragma once

#include <CLI/CLI.hpp>

#include "base/fields.h"

namespace fovea::cli {

// Adds one flag for each field; `options` must live until the line is read.
template <HasFields T>
void add_fields(CLI::App& verb, T& options) {
  for_each_field<T>([&](const auto& field) {
    verb.add_option(flag_name(field.name), options.*field.member, field.meaning)->capture_default_str();
  });
}

}  // namespace fovea::cli
