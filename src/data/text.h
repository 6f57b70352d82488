// Text as bytes and as characters: UTF-8 checked and walked, words split and case folded as Python does,
// because scores and vocabularies of the field are defined by what Python does.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::data {

// How many leading bytes of `text` are well-formed UTF-8 (shortest form, no surrogates, at most U+10FFFF).
// Equal to text.size() when all is well.
size_t valid_utf8_prefix(std::string_view text);
inline bool is_utf8(std::string_view text) {
  return valid_utf8_prefix(text) == text.size();
}

// Takes one character off the front of `text`, which is not empty. A byte that is not UTF-8 counts as U+FFFD.
char32_t next_character(std::string_view& text);

// The characters of `text`.
std::u32string characters(std::string_view text);

// Python's str.isspace: what str.split() cuts at and str.strip() takes off.
bool is_space(char32_t character);

// Chinese characters, kana and full-width forms: written without spaces, so each may stand as a word.
bool is_ideograph(char32_t character);

// The words between white space, as Python's str.split() gives them. Views into `text`.
std::vector<std::string_view> split_words(std::string_view text);

// `text` without white space at its ends: Python's str.strip() and str.rstrip(). Views into `text`.
std::string_view strip(std::string_view text);
std::string_view strip_end(std::string_view text);

// Lower case by the full Unicode mapping, final sigma included: Python's str.lower().
std::string lowercase(std::string_view text);

}  // namespace fovea::data
