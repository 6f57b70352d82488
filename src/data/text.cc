#include "data/text.h"

#include <unicode/ucasemap.h>

#include <limits>
#include <memory>

#include "base/error.h"

namespace fovea::data {
namespace {

// Length and value of the character at the front; length 0 when the bytes are not UTF-8.
struct Decoded {
  size_t length;
  char32_t character;
};

Decoded decode(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {1, lead};
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return {0, 0};
  char32_t character = lead & (0xFFu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {0, 0};
    character = character << 6 | (byte(i) & 0x3Fu);
  }
  const bool too_long = (length == 3 && character < 0x800) || (length == 4 && character < 0x10000);
  const bool surrogate = character >= 0xD800 && character <= 0xDFFF;
  if (too_long || surrogate || character > 0x10FFFF) return {0, 0};
  return {length, character};
}

struct CloseCaseMap {
  void operator()(UCaseMap* map) const { ucasemap_close(map); }
};

}  // namespace

size_t valid_utf8_prefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const size_t length = decode(text.substr(at)).length;
    if (length == 0) return at;
    at += length;
  }
  return at;
}

char32_t next_character(std::string_view& text) {
  const Decoded next = decode(text);
  text.remove_prefix(next.length == 0 ? 1 : next.length);
  return next.length == 0 ? U'\uFFFD' : next.character;
}

std::u32string characters(std::string_view text) {
  std::u32string result;
  result.reserve(text.size());
  while (!text.empty()) result.push_back(next_character(text));
  return result;
}

bool is_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_ideograph(char32_t c) {
  return (c >= 0x2E80 && c <= 0x30FF) || (c >= 0x3100 && c <= 0x4DBF) || (c >= 0x4E00 && c <= 0x9FFF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0xFF00 && c <= 0xFFEF) || (c >= 0x20000 && c <= 0x3FFFF);
}

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  const char* begin = nullptr;
  while (!text.empty()) {
    const char* const at = text.data();
    if (is_space(next_character(text))) {
      if (begin != nullptr) words.emplace_back(begin, at - begin);
      begin = nullptr;
    } else if (begin == nullptr) {
      begin = at;
    }
  }
  if (begin != nullptr) words.emplace_back(begin, text.data() - begin);
  return words;
}

std::string_view strip_end(std::string_view text) {
  size_t end = 0;
  for (std::string_view rest = text; !rest.empty();)
    if (!is_space(next_character(rest))) end = text.size() - rest.size();
  return text.substr(0, end);
}

std::string_view strip(std::string_view text) {
  for (std::string_view rest = text; !rest.empty(); text = rest)
    if (!is_space(next_character(rest))) break;
  return strip_end(text);
}

std::string lowercase(std::string_view text) {
  require(text.size() < std::numeric_limits<int32_t>::max() / 4, "text of ", text.size(),
          " bytes is too long to lower its case");
  UErrorCode status = U_ZERO_ERROR;
  // The root locale: the same result wherever the program runs.
  thread_local const std::unique_ptr<UCaseMap, CloseCaseMap> map(ucasemap_open("", 0, &status));
  require(map != nullptr, "the Unicode library has no case map");
  std::string lower(text.size() + 16, '\0');
  for (;;) {
    status = U_ZERO_ERROR;
    const int32_t length = ucasemap_utf8ToLower(map.get(), lower.data(), static_cast<int32_t>(lower.size()),
                                                text.data(), static_cast<int32_t>(text.size()), &status);
    if (status == U_BUFFER_OVERFLOW_ERROR) {
      lower.resize(length);
      continue;
    }
    require(U_SUCCESS(status), "cannot lower the case of a text: ", u_errorName(status));
    lower.resize(length);
    return lower;
  }
}

}  // namespace fovea::data
