#include "data/byte_bpe.h"

#include <gtest/gtest.h>
#include <unicode/uchar.h>

#include <chrono>

#include "data/files.h"
#include "io/json.h"

namespace fovea::data {
namespace {

using Ids = std::vector<int32_t>;
using Text = std::vector<std::string>;

const Json& golden() {
  static const Json json = load_json(FOVEA_GOLDEN "/byte_bpe.json");
  return json;
}

Text golden_tokens() {
  Text tokens(golden()["vocab"].size());
  for (const auto& item : golden()["vocab"].items()) tokens[item.value().get<size_t>()] = item.key();
  return tokens;
}
std::vector<Merge> golden_merges() {
  return golden()["merges"].get<std::vector<Merge>>();
}

TEST(ByteBpeGolden, GivesRobertaTokenizersIdsAndTextsBack) {
  const Text texts = golden()["texts"].get<Text>();
  ASSERT_GE(texts.size(), 200u);
  for (const Json& entry : golden()["settings"]) {
    const auto tokenizer = make_byte_bpe(golden_tokens(), golden_merges(),
                                         {.prefix_space = entry["prefix_space"].get<bool>()}, "golden");
    for (size_t i = 0; i < texts.size(); ++i) {
      const Ids ids = tokenizer->encode(texts[i]);
      EXPECT_EQ(ids, entry["ids"][i].get<Ids>()) << "text " << i << ": " << texts[i];
      Ids known;
      for (const int32_t id : ids)
        if (id != tokenizer->marks().unknown) known.push_back(id);
      EXPECT_EQ(tokenizer->decode(known), entry["decoded"][i].get<std::string>()) << texts[i];
    }
  }
}

TEST(ByteBpeGolden, MarksAndCutsTextsAndPairsAsRobertaTokenizer) {
  const auto tokenizer = make_byte_bpe(golden_tokens(), golden_merges(), {}, "golden");
  for (const Json& entry : golden()["pairs"]) {
    const Ids first = tokenizer->encode(entry["first"].get<std::string>());
    const Ids second = tokenizer->encode(entry["second"].get<std::string>());
    const int64_t limit = entry["limit"].get<int64_t>();
    const MarkedText pair = tokenizer->mark(first, second, limit);
    EXPECT_EQ(pair.ids, entry["pair"].get<Ids>()) << entry;
    EXPECT_EQ(pair.types, Ids(pair.ids.size(), 0));
    EXPECT_EQ(tokenizer->mark(first, limit).ids, entry["one"].get<Ids>()) << entry;
  }
}

std::string utf8(char32_t c) {
  if (c < 0x80) return {static_cast<char>(c)};
  std::string text;
  const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  text.push_back(static_cast<char>((0xF00 >> (more + 1) & 0xFF) | c >> (6 * more)));
  for (int i = more - 1; i >= 0; --i) text.push_back(static_cast<char>(0x80 | (c >> (6 * i) & 0x3F)));
  return text;
}

TEST(ByteBpeGolden, EveryCharacterOfUnicodeIsOfItsKind) {
  const Json& changes = golden()["classes"];
  ASSERT_GT(changes.size(), 1000u);
  size_t place = 0;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c == 0xD800) c = 0xE000;
    if (u_charType(static_cast<UChar32>(c)) == U_UNASSIGNED) continue;  // later than our tables
    while (place + 1 < changes.size() && changes[place + 1][0].get<char32_t>() <= c) ++place;
    std::string found;
    for (const char* before : {"a", "1", "!", "\t\t"})
      found += std::to_string(byte_bpe_words(before + utf8(c)).size());
    ASSERT_EQ(found, changes[place][1].get<std::string>()) << "U+" << std::hex << static_cast<uint32_t>(c);
  }
}

TEST(ByteBpe, ShowsPiecesAndWords) {
  const auto tokenizer = make_byte_bpe(golden_tokens(), golden_merges(), {}, "golden");
  const Ids ids = tokenizer->encode("the quick<mask>我 x");
  std::string joined;
  for (const int32_t id : ids) joined += tokenizer->piece(id) + "|";
  EXPECT_EQ(tokenizer->piece(tokenizer->marks().mask), "<mask>");
  EXPECT_NE(joined.find("Ġ"), std::string::npos) << joined;
  const Ids words = tokenizer->words(ids);
  ASSERT_EQ(words.size(), ids.size());
  EXPECT_EQ(words.front(), 0);
  EXPECT_EQ(words.back(), 4) << "the, quick, <mask>, 我, x: " << joined;
  const int32_t half = tokenizer->encode("\xE6")[0];
  EXPECT_EQ(tokenizer->decode(Ids{half}), "\xEF\xBF\xBD");
  EXPECT_EQ(tokenizer->piece(tokenizer->encode("\n")[0]), "Ċ");
  EXPECT_EQ(tokenizer->piece(half), "æ") << "half a character stays as it is spelled";
}

TEST(ByteBpe, ALineWithoutSpacesTakesNoLongerThanItShould) {
  const auto tokenizer = make_byte_bpe(golden_tokens(), golden_merges(), {}, "golden");
  std::string line;
  while (line.size() < 64 * 1024) line += "attention";
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_LT(tokenizer->encode(line).size(), line.size());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(line)), line);
}

TEST(ByteBpe, BytesThatAreNoUtf8AreSpelledToo) {
  const auto tokenizer = make_byte_bpe(golden_tokens(), golden_merges(), {}, "golden");
  EXPECT_EQ(tokenizer->encode("\xFF\xFE").size(), 2u);
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("a\xFFz")), "a\xEF\xBF\xBDz");
}

TEST(ByteBpe, RefusesBrokenVocabularies) {
  const TestFolder folder;
  const auto make = [&](const Text& tokens, const std::vector<Merge>& merges,
                        const ByteBpeOptions& options = {}) {
    return complaint(folder, [&] { make_byte_bpe(tokens, merges, options, "vocab.json"); });
  };
  Text tokens = golden_tokens();
  EXPECT_EQ(make(tokens, {}), "no error");
  EXPECT_EQ(make({"<s>", "</s>"}, {}),
            "vocab.json: no 'Ā' among its 2 tokens; is it the vocabulary of a RoBERTa model?");
  EXPECT_EQ(make(tokens, {{"the", "nonsense"}}),
            "vocab.json: merge 0 joins tokens that the vocabulary lacks");
  EXPECT_EQ(make(tokens, {}, {.begin = "[CLS]"}),
            "vocab.json: no '[CLS]' among its 600 tokens; is it the vocabulary of a RoBERTa model?");
  EXPECT_EQ(make(tokens, {}, {.whole = Text(10'001, "<s>")}),
            "vocab.json: 10001 tokens that are never cut, wanted at most 10000");
  tokens.push_back(tokens[7]);
  EXPECT_EQ(make(tokens, {}), "vocab.json: tokens 7 and 600 are the same");
  const auto parse = [&](std::string_view bytes) {
    return complaint(folder, [&] { parse_merges(bytes, "merges.txt"); });
  };
  EXPECT_EQ(parse_merges("#version: 0.2\na b\r\nc d\n", "x"), (std::vector<Merge>{{"a", "b"}, {"c", "d"}}));
  for (const char* bad : {"a\n", "a b c\n", " a\n", "a \n", "\xFF b\n"})
    EXPECT_EQ(parse(bad), "merges.txt, line 1: wanted two parts with a space between them") << bad;
}

}  // namespace
}  // namespace fovea::data
