// The characters of a spec, read one word or number at a time. Errors name the column.
#pragma once

#include <charconv>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attention/pattern.h"
#include "base/error.h"
#include "base/fields.h"

namespace fovea {

class SpecText {
 public:
  static constexpr size_t kLongest = size_t{1} << 24;
  static constexpr int kDeepestBrackets = 32;

  explicit SpecText(std::string_view text) : text_(text) {
    require(text.size() <= kLongest, "attention: got a text of ", text.size(), " characters, wanted at most ",
            kLongest);
  }

  // Where the last word() began.
  size_t word_begin() const { return word_begin_; }

  [[noreturn]] void unexpected(std::string_view wanted) {
    skip_spaces();
    if (at_ == text_.size()) fail_at(at_, "the text ends", message("wanted ", wanted));
    fail_at(at_, message("unexpected '", printable(text_[at_]), "'"), message("wanted ", wanted));
  }
  [[noreturn]] static void fail_at(size_t place, std::string_view got, std::string_view hint) {
    fail("attention: ", got, " at column ", place + 1, ": ", hint);
  }

  // Runs something that checks its numbers, and adds the place to what it says.
  template <class F>
  auto checked(F make, size_t place) const -> decltype(make()) {
    try {
      return make();
    } catch (const Error& error) {
      fail("attention: at column ", place + 1, ": ", error.what());
    }
  }

  // The same where an error may have its place already.
  template <class F>
  auto located(F make, size_t place) const -> decltype(make()) {
    try {
      return make();
    } catch (const Error& error) {
      if (std::string_view(error.what()).starts_with("attention: ")) throw;
      fail("attention: at column ", place + 1, ": ", error.what());
    }
  }

  char peek() {
    skip_spaces();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool at_letter() { return is_letter(peek()); }
  bool take(char c) {
    if (peek() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  void want(char c, std::string_view wanted) {
    if (!take(c)) unexpected(wanted);
  }
  void end(std::string_view wanted) {
    skip_spaces();
    if (at_ != text_.size()) unexpected(wanted);
  }

  std::string_view word(std::string_view wanted) {
    if (!is_letter(peek())) unexpected(wanted);
    const size_t begin = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    word_begin_ = begin;
    return text_.substr(begin, at_ - begin);
  }
  // A row of digits, at least one.
  std::string digits(std::string_view wanted) {
    skip_spaces();
    const size_t begin = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    if (at_ == begin) unexpected(wanted);
    return std::string(text_.substr(begin, at_ - begin));
  }

  // The place of the word among the names; an unknown word is an error that names the nearest.
  size_t one_of(std::string_view what, std::span<const std::string_view> names) {
    const std::string_view got = word(what);
    for (size_t i = 0; i < names.size(); ++i)
      if (names[i] == got) return i;
    unknown(what, got, names);
  }
  [[noreturn]] void unknown(std::string_view what, std::string_view got,
                            std::span<const std::string_view> names) const {
    const std::string shown(got.substr(0, 40));
    std::string_view nearest;
    size_t distance = 4;  // further away is another word
    for (const std::string_view name : names)
      if (const size_t d = edit_distance(shown, name); d < std::min(distance, name.size())) {
        distance = d;
        nearest = name;
      }
    std::string hint;
    if (!nearest.empty()) {
      hint = message("did you mean \"", nearest, "\"?");
    } else {
      hint = "wanted one of";
      for (const std::string_view name : names) hint.append(" ").append(name);
    }
    fail_at(word_begin_, message("unknown ", what, " \"", shown, "\""), hint);
  }

  int64_t integer(std::string_view wanted = "a whole number") {
    const char first = peek();
    if (!is_digit(first) && first != '-') unexpected(wanted);
    int64_t value = 0;
    const auto [rest, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error == std::errc::result_out_of_range)
      fail_at(at_, "a number too large", "wanted less than 2147483648");
    if (error != std::errc()) unexpected(wanted);
    at_ = static_cast<size_t>(rest - text_.data());
    return value;
  }
  int64_t next_integer() {
    want(',', "','");
    return integer();
  }
  float number() {
    peek();
    float value = 0;
    const auto [rest, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error == std::errc::result_out_of_range)
      fail_at(at_, "a number out of range", "wanted one that fits a float");
    if (error != std::errc()) unexpected("a number");
    at_ = static_cast<size_t>(rest - text_.data());
    return value;
  }
  std::vector<int64_t> integers() {
    std::vector<int64_t> values{integer()};
    while (take(',')) values.push_back(integer());
    return values;
  }
  Align align(std::string_view signature) {
    if (!at_letter()) unexpected(signature);
    static constexpr std::string_view kNames[] = {"bottom_right", "top_left"};
    return one_of("alignment", kNames) == 1 ? Align::top_left : Align::bottom_right;
  }
  // [ "," "top_left" | "bottom_right" ]
  Align align_after_comma(std::string_view signature) {
    return take(',') ? align(signature) : Align::bottom_right;
  }

  // "(" body ")"; the signature says which arguments are expected.
  template <class F>
  auto bracketed(std::string_view signature, F body) {
    want('(', message("'(': ", signature));
    auto result = body();
    if (!take(')')) unexpected(message("',' or ')': ", signature));
    return result;
  }

  // Patterns inside patterns.
  void open() {
    if (++depth_ > kDeepestBrackets)
      fail_at(at_, message("more than ", kDeepestBrackets, " open brackets"),
              "wanted fewer: | and & need few");
  }
  void close() { --depth_; }

 private:
  static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static std::string printable(char c) {
    if (c >= ' ' && c <= '~') return {c};
    static constexpr char kHex[] = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    return {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
  }
  void skip_spaces() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
      ++at_;
  }

  std::string_view text_;
  size_t at_ = 0, word_begin_ = 0;
  int depth_ = 0;
};

}  // namespace fovea
