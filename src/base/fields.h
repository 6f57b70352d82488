// Option fields declared once: a struct lists name, member and meaning, and config files, flags and help read
// that one list. The default is the member's own initialiser.
//
//   struct DemoOptions {
//     int64_t steps = 600;
//     static constexpr auto fields() {
//       return std::tuple{Field{"steps", &DemoOptions::steps, "training steps"}};
//     }
//   };
#pragma once

#include <algorithm>
#include <concepts>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace fovea {

template <class Owner, class Value>
struct Field {
  const char* name;  // snake_case; a flag reads it with dashes
  Value Owner::*member;
  const char* meaning;
};
template <class Owner, class Value>
Field(const char*, Value Owner::*, const char*) -> Field<Owner, Value>;

// A struct that lists its fields.
template <class T>
concept HasFields = requires {
  T::fields();
};

// Calls visit(field) for each field of T in the order of declaration.
template <HasFields T, class Visit>
constexpr void for_each_field(Visit&& visit) {
  std::apply([&](const auto&... field) { (visit(field), ...); }, T::fields());
}

template <HasFields T>
std::vector<std::string_view> field_names() {
  std::vector<std::string_view> names;
  for_each_field<T>([&](const auto& field) { names.emplace_back(field.name); });
  return names;
}

// "save_every" as a flag: "--save-every".
inline std::string flag_name(std::string_view field_name) {
  std::string flag = "--" + std::string(field_name);
  std::replace(flag.begin() + 2, flag.end(), '_', '-');
  return flag;
}

// Letters to insert, delete or change to turn a into b.
inline size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

// The known name that a mistyped one most likely meant; empty when none is near.
inline std::string_view nearest_name(std::string_view typed, const std::vector<std::string_view>& known) {
  constexpr size_t kLongestName = 256;
  if (typed.size() > kLongestName) return {};
  std::string_view best;
  size_t best_distance = std::max<size_t>(2, typed.size() / 3) + 1;
  for (const std::string_view name : known)
    if (const size_t distance = edit_distance(typed, name); distance < best_distance) {
      best = name;
      best_distance = distance;
    }
  return best;
}

// ", did you mean 'steps'?" or ", known: a, b, c": the hint that ends a message about an unknown name.
inline std::string name_hint(std::string_view typed, const std::vector<std::string_view>& known) {
  if (const std::string_view near = nearest_name(typed, known); !near.empty())
    return ", did you mean '" + std::string(near) + "'?";
  std::string hint = ", known:";
  for (const std::string_view name : known) hint += (name == known.front() ? " " : ", ") + std::string(name);
  return hint;
}

}  // namespace fovea
