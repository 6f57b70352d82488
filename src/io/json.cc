#include "io/json.h"

#include <array>
#include <charconv>
#include <set>

#include "io/file.h"

namespace fovea {

std::string in_quotes(std::string_view text) {
  constexpr size_t kLongest = 80;
  const bool cut = text.size() > kLongest;
  if (cut) {
    text = text.substr(0, kLongest);
    while (!text.empty() && (text.back() & 0xC0) == 0x80) text.remove_suffix(1);  // no half characters
    if (!text.empty() && (text.back() & 0x80)) text.remove_suffix(1);
  }
  std::string out = "'";
  for (const char c : text) out += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? '?' : c;
  return out + (cut ? "...'" : "'");
}

namespace {

template <class Value>
Value parse_as(std::string_view text, std::string_view where, int max_depth) {
  // The library's lexer takes a zero byte for the end of the text and would not see what follows.
  require(text.find('\0') == std::string_view::npos, where, ": zero byte in JSON");
  std::vector<std::set<std::string>> names;  // of each open object
  const auto watch = [&](int depth, typename Value::parse_event_t event, Value& parsed) {
    using Event = typename Value::parse_event_t;
    if (event == Event::object_start || event == Event::array_start)
      require(depth < max_depth, where, ": JSON nested deeper than ", max_depth, " levels");
    if (event == Event::object_start) names.emplace_back();
    if (event == Event::object_end) names.pop_back();
    if (event == Event::key) {
      const auto& name = parsed.template get_ref<const std::string&>();
      require(names.back().insert(name).second, where, ": duplicate name ", in_quotes(name));
    }
    return true;
  };
  try {
    return Value::parse(text, watch);
  } catch (const nlohmann::json::exception& error) {
    std::string reason = error.what();
    if (const size_t end = reason.find("] "); end != std::string::npos) reason.erase(0, end + 2);
    for (char& c : reason)
      if (static_cast<unsigned char>(c) < 0x20) c = ' ';
    fail(where, ": no valid JSON: ", reason);
  }
}

}  // namespace

Json parse_json(std::string_view text, std::string_view where, int max_depth) {
  return parse_as<Json>(text, where, max_depth);
}

nlohmann::json parse_large_json(std::string_view text, std::string_view where, int max_depth) {
  return parse_as<nlohmann::json>(text, where, max_depth);
}

Json load_json(const std::filesystem::path& path) {
  return parse_json(read_text(path), path.string());
}

void save_json(const std::filesystem::path& path, const Json& json) {
  write_atomically(path, json.dump(2) + "\n");
}

namespace detail {

void fail_kind(const Json& got, std::string_view wanted, const std::string& where) {
  // Texts from outside may hold bytes that are no UTF-8; the message replaces them.
  std::string shown = got.dump(-1, ' ', false, Json::error_handler_t::replace);
  fail(where, ": got ", in_quotes(shown), ", wanted ", wanted);
}

double shortest_double(float value) {
  std::array<char, 64> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  double wide = value;
  std::from_chars(text.data(), end, wide);
  return wide;
}

int64_t json_integer(const Json& json, int64_t low, uint64_t high, const std::string& where) {
  if (json.is_number_unsigned()) {
    const auto value = json.get<uint64_t>();
    require(value <= high, where, ": got ", value, ", wanted at most ", high);
    return static_cast<int64_t>(value);
  }
  if (!json.is_number_integer()) fail_kind(json, "a whole number", where);
  const auto value = json.get<int64_t>();
  require(value >= low, where, ": got ", value, ", wanted at least ", low);
  require(value < 0 || static_cast<uint64_t>(value) <= high, where, ": got ", value, ", wanted at most ",
          high);
  return value;
}

}  // namespace detail
}  // namespace fovea
