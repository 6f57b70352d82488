// Keyword arguments of Python for structs that list their fields: an unknown name is an error with the nearest match.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/fields.h"

namespace fovea::python {

template <class Value>
Value option_value(const std::string& name, nanobind::handle given) {
  try {
    return nanobind::cast<Value>(given);
  } catch (const nanobind::cast_error&) {
    fail(name, ": got ", nanobind::cast<std::string>(nanobind::repr(given)), ", which has the wrong type");
  }
}

// Sets the field of that name; false: there is none.
template <HasFields T>
bool set_field(T& options, const std::string& name, nanobind::handle given) {
  bool found = false;
  for_each_field<T>([&](const auto& field) {
    if (found || name != field.name) return;
    found = true;
    auto& value = options.*field.member;
    value = option_value<std::remove_cvref_t<decltype(value)>>(name, given);
  });
  return found;
}

[[noreturn]] inline void refuse_name(const std::string& name, const std::vector<std::string_view>& known) {
  fail("unknown option '", name, "'", name_hint(name, known));
}

}  // namespace fovea::python
