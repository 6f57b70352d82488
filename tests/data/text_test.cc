#include "data/text.h"

#include <gtest/gtest.h>

namespace fovea::data {
namespace {

TEST(Utf8, AcceptsEveryCharacter) {
  for (char32_t c = 0; c <= 0x10FFFF; c += c < 0x3000 ? 1 : 7) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    std::string bytes;
    if (c < 0x80) {
      bytes = {static_cast<char>(c)};
    } else if (c < 0x800) {
      bytes = {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 63))};
    } else if (c < 0x10000) {
      bytes = {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 63)),
               static_cast<char>(0x80 | (c & 63))};
    } else {
      bytes = {static_cast<char>(0xF0 | c >> 18), static_cast<char>(0x80 | (c >> 12 & 63)),
               static_cast<char>(0x80 | (c >> 6 & 63)), static_cast<char>(0x80 | (c & 63))};
    }
    ASSERT_TRUE(is_utf8(bytes)) << static_cast<uint32_t>(c);
    std::string_view rest = bytes;
    ASSERT_EQ(next_character(rest), c);
    ASSERT_TRUE(rest.empty());
  }
}

TEST(Utf8, RefusesWhatIsNotWellFormed) {
  const std::string_view bad[] = {"\x80",         "\xBF",         "\xC0\x80",         "\xC1\xBF",
                                  "\xE0\x80\x80", "\xE0\x9F\xBF", "\xF0\x80\x80\x80", "\xF0\x8F\xBF\xBF",
                                  "\xED\xA0\x80", "\xED\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80",
                                  "\xFE",         "\xFF",         "\xE4\xBD",         "\xF0\x9F\x99",
                                  "\xC3",         "\xC3(",        "\xE4(\xA0",        "\xE4\xBD("};
  for (const std::string_view bytes : bad) {
    EXPECT_EQ(valid_utf8_prefix(bytes), 0u);
    std::string inside("é");
    inside.append(bytes).append("é");
    EXPECT_EQ(valid_utf8_prefix(inside), 2u);
    std::string_view rest = bytes;
    EXPECT_EQ(next_character(rest), U'\uFFFD');
    EXPECT_EQ(rest.size(), bytes.size() - 1);
  }
}

TEST(Words, AreCutAtEveryKindOfSpace) {
  using Words = std::vector<std::string_view>;
  EXPECT_EQ(split_words("  one\ttwo\u00a0three\u3000\u2028four\x1f"), (Words{"one", "two", "three", "four"}));
  EXPECT_EQ(split_words("zero\u200bwidth"), (Words{"zero\u200bwidth"}));
  EXPECT_EQ(split_words(" \u3000"), Words{});
}

TEST(Strip, TakesSpaceOffTheEnds) {
  EXPECT_EQ(strip(" \u00a0a b\u3000 "), "a b");
  EXPECT_EQ(strip_end(" a b\u3000\t"), " a b");
  EXPECT_EQ(strip("\u3000 "), "");
  EXPECT_EQ(strip_end(""), "");
}

TEST(Lowercase, FollowsUnicode) {
  EXPECT_EQ(lowercase("ÀÉ ΟΔΥΣΣΕΥΣ ДА Straße 我"), "àé οδυσσευς да straße 我");
  EXPECT_EQ(lowercase("İ"), "i\u0307");
  EXPECT_EQ(lowercase(""), "");
  // Grows by half: every İ is two bytes and becomes three.
  std::string many, lower;
  for (int i = 0; i < 100; ++i) many += "İ", lower += "i\u0307";
  EXPECT_EQ(lowercase(many), lower);
}

}  // namespace
}  // namespace fovea::data
