// JSON in and out: hostile text is refused, structs with fields (base/fields.h) load and save by their one
// list.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "base/fields.h"

namespace fovea {

// Keeps the order of its keys, so that what is written reads as it was declared.
using Json = nlohmann::ordered_json;

// Parses a whole text. Throws Error, beginning with `where` (a file's name), on anything but one JSON value
// of at most `max_depth` nested levels without duplicate names.
Json parse_json(std::string_view text, std::string_view where, int max_depth = 64);
Json load_json(const std::filesystem::path& path);
// The same into objects sorted by name: for those of many names, since Json looks names up one by one.
nlohmann::json parse_large_json(std::string_view text, std::string_view where, int max_depth = 64);
// Replaces the file atomically; indented, ends with a newline.
void save_json(const std::filesystem::path& path, const Json& json);

// Text from outside, made fit for a one-line message: quoted, control characters replaced, cut when long.
std::string in_quotes(std::string_view text);

namespace detail {

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};

[[noreturn]] void fail_kind(const Json& got, std::string_view wanted, const std::string& where);
double shortest_double(float value);
int64_t json_integer(const Json& json, int64_t low, uint64_t high, const std::string& where);

}  // namespace detail

template <HasFields T>
Json fields_to_json(const T& options);

// One value of an option: a truth value, a number, a text, a list, an absent one, or a struct with fields.
template <class T>
Json value_to_json(const T& value) {
  if constexpr (HasFields<T>) {
    return fields_to_json(value);
  } else if constexpr (detail::IsOptional<T>::value) {
    return value ? value_to_json(*value) : Json(nullptr);
  } else if constexpr (detail::IsVector<T>::value) {
    Json list = Json::array();
    for (const auto& item : value) list.push_back(value_to_json(item));
    return list;
  } else if constexpr (std::same_as<T, float>) {
    // The shortest text that reads back as the same float: 0.1, not 0.10000000149011612.
    return Json(detail::shortest_double(value));
  } else {
    return Json(value);
  }
}

template <HasFields T>
Json fields_to_json(const T& options) {
  Json json = Json::object();
  for_each_field<T>([&](const auto& field) { json[field.name] = value_to_json(options.*field.member); });
  return json;
}

template <HasFields T>
void fields_from_json(const Json& json, T& options, const std::string& where);

// Reads one value; throws Error naming `where`, what was got and what was wanted.
template <class T>
void value_from_json(const Json& json, T& value, const std::string& where) {
  if constexpr (HasFields<T>) {
    fields_from_json(json, value, where);
  } else if constexpr (detail::IsOptional<T>::value) {
    if (json.is_null()) return value.reset();
    value_from_json(json, value.emplace(), where);
  } else if constexpr (detail::IsVector<T>::value) {
    if (!json.is_array()) detail::fail_kind(json, "a list", where);
    value.assign(json.size(), {});
    for (size_t i = 0; i < json.size(); ++i)
      value_from_json(json[i], value[i], where + "[" + std::to_string(i) + "]");
  } else if constexpr (std::same_as<T, bool>) {
    if (!json.is_boolean()) detail::fail_kind(json, "true or false", where);
    value = json.template get<bool>();
  } else if constexpr (std::integral<T>) {
    value = static_cast<T>(detail::json_integer(json, static_cast<int64_t>(std::numeric_limits<T>::min()),
                                                static_cast<uint64_t>(std::numeric_limits<T>::max()), where));
  } else if constexpr (std::floating_point<T>) {
    if (!json.is_number()) detail::fail_kind(json, "a number", where);
    const double wide = json.template get<double>();
    if (!(std::abs(wide) <= double{std::numeric_limits<T>::max()}))
      detail::fail_kind(json, "a smaller number", where);
    value = static_cast<T>(wide);
  } else {
    static_assert(std::same_as<T, std::string>, "no JSON form for this type of option");
    if (!json.is_string()) detail::fail_kind(json, "a text", where);
    value = json.template get<std::string>();
  }
}

// Sets the fields that `json` names and leaves the others; an unknown name is an Error with the nearest
// match.
template <HasFields T>
void fields_from_json(const Json& json, T& options, const std::string& where) {
  if (!json.is_object()) detail::fail_kind(json, "an object of named options", where);
  for (const auto& item : json.items()) {
    const std::string& name = item.key();
    bool known = false;
    for_each_field<T>([&](const auto& field) {
      if (name != field.name) return;
      known = true;
      value_from_json(item.value(), options.*field.member, where + ": " + name);
    });
    if (!known) fail(where, ": unknown option ", in_quotes(name), name_hint(name, field_names<T>()));
  }
}

}  // namespace fovea
