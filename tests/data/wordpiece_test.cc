#include "data/wordpiece.h"

#include <gtest/gtest.h>

#include "data/files.h"
#include "data/unknown_texts.h"
#include "io/file.h"
#include "io/json.h"

namespace fovea::data {
namespace {

using Ids = std::vector<int32_t>;
using Text = std::vector<std::string>;

std::unique_ptr<MarkedTokenizer> small(const WordPieceOptions& options = {}) {
  return make_wordpiece(
      {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "un", "##aff", "##able", "able", ".", "我"}, options,
      "small");
}

const Json& golden() {
  static const Json json = load_json(FOVEA_GOLDEN "/wordpiece.json");
  return json;
}

std::unique_ptr<MarkedTokenizer> golden_tokenizer(const WordPieceOptions& options = {}) {
  const std::string path = FOVEA_GOLDEN "/wordpiece_vocab.txt";
  return make_wordpiece(parse_wordpiece_tokens(read_text(path), path), options, path);
}

TEST(WordPieceGolden, GivesBertTokenizersIds) {
  const Text texts = golden()["texts"].get<Text>();
  ASSERT_GE(texts.size(), 300u);
  ASSERT_EQ(golden()["settings"].size(), 6u);
  for (const Json& entry : golden()["settings"]) {
    const Json& settings = entry["settings"];
    WordPieceOptions options;
    options.lowercase = settings.value("do_lower_case", true);
    if (settings.contains("strip_accents")) options.strip_accents = settings["strip_accents"].get<bool>();
    options.split_chinese = settings.value("tokenize_chinese_chars", true);
    const auto tokenizer = golden_tokenizer(options);
    for (size_t i = 0; i < texts.size(); ++i) {
      const Ids ids = tokenizer->encode(texts[i]);
      EXPECT_EQ(ids, entry["ids"][i].get<Ids>()) << settings << " text " << i << ": " << texts[i];
      Ids known;
      for (const int32_t id : ids)
        if (id != tokenizer->marks().unknown) known.push_back(id);
      EXPECT_EQ(tokenizer->decode(known), entry["decoded"][i].get<std::string>()) << texts[i];
    }
  }
}

TEST(WordPieceGolden, MarksAndCutsTextsAndPairsAsBertTokenizer) {
  const auto tokenizer = golden_tokenizer();
  for (const Json& entry : golden()["pairs"]) {
    const Ids first = tokenizer->encode(entry["first"].get<std::string>());
    const Ids second = tokenizer->encode(entry["second"].get<std::string>());
    const int64_t limit = entry["limit"].get<int64_t>();
    const MarkedText pair = tokenizer->mark(first, second, limit), one = tokenizer->mark(first, limit);
    EXPECT_EQ(Json::array({pair.ids, pair.types}), entry["pair"]) << entry;
    EXPECT_EQ(Json::array({one.ids, one.types}), entry["one"]) << entry;
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

TEST(WordPieceGolden, EveryCharacterOfUnicodeIsDroppedKeptOrSetApartAsThere) {
  const auto tokenizer = make_wordpiece({"[UNK]", "ab", "a", "b", "[CLS]", "[SEP]"}, {}, "letters");
  const Json& changes = golden()["classes"];
  ASSERT_GT(changes.size(), 500u);
  size_t place = 0;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c == 0xD800) c = 0xE000;
    while (place + 1 < changes.size() && changes[place + 1][0].get<char32_t>() <= c) ++place;
    const Ids ids = tokenizer->encode("a" + utf8(c) + "b");
    const std::string found = ids == Ids{1}         ? "gone"
                              : ids == Ids{2, 3}    ? "space"
                              : ids == Ids{2, 0, 3} ? "apart"
                                                    : "letter";
    ASSERT_EQ(found, changes[place][1].get<std::string>()) << "U+" << std::hex << static_cast<uint32_t>(c);
  }
}

TEST(WordPiece, CutsTheLongestPiecesAndKnowsItsMarks) {
  const auto tokenizer = small();
  EXPECT_EQ(tokenizer->encode("Unaffable able."), (Ids{5, 6, 7, 8, 9}));
  EXPECT_EQ(tokenizer->encode("unaffably"), Ids{1}) << "what has no pieces is unknown as a whole";
  EXPECT_EQ(tokenizer->encode("[MASK]"), Ids{4});
  const Marks& marks = tokenizer->marks();
  EXPECT_EQ((Ids{marks.pad, marks.unknown, marks.begin, marks.end, marks.mask}), (Ids{0, 1, 2, 3, 4}));
  EXPECT_EQ(tokenizer->size(), 11);
  EXPECT_EQ(tokenizer->piece(6), "##aff");
  EXPECT_EQ(tokenizer->decode(Ids{2, 5, 6, 7, 8, 9, 1, 3}), "unaffable able. [UNK]");
  EXPECT_EQ(tokenizer->words(Ids{2, 5, 6, 7, 8, 10, 6, 1, 6, 3}), (Ids{0, 1, 1, 1, 2, 3, 3, 4, 5, 6}))
      << "marks stand alone";
  EXPECT_EQ(tokenizer->file_name(), "vocab.txt");
  EXPECT_EQ(parse_wordpiece_tokens(tokenizer->bytes(), "again").size(), 11u);
}

TEST(WordPiece, TellsTheTextBehindUnknownTokens) {
  const auto tokenizer = small();
  const auto unknown = [&](const std::string& text) {
    Text found;
    for (const std::string& written :
         texts_of_unknown(*tokenizer, text, tokenizer->mark(tokenizer->encode(text)).ids))
      if (!written.empty()) found.push_back(written);
    return found;
  };
  EXPECT_EQ(unknown("Unable to  unaffable 食我 [UNK] able☃."), (Text{"to", "食", "[UNK]", "able☃"}));
  EXPECT_EQ(unknown("unaffable."), Text());
}

TEST(WordPiece, BytesThatAreNoUtf8AreDroppedOrAreUnknown) {
  const auto tokenizer = small();
  EXPECT_EQ(tokenizer->encode("un\xFF"
                              "aff\xC3"),
            (Ids{5, 6}));
  EXPECT_EQ(tokenizer->encode("\x80\x80\xF5"), Ids{});
  EXPECT_EQ(small({.clean = false})->encode("able \xFF"), (Ids{8, 1}));
}

TEST(WordPiece, MoreWholeTokensAndOtherSpellingsOfMarks) {
  const auto tokenizer = make_wordpiece(
      {"<unk>", "<s>", "</s>", "a", "##b", "[ENT]", "[ENTRY]"},
      {.begin = "<s>", .end = "</s>", .unknown = "<unk>", .whole = {"[ENT]", "[ENTRY]"}}, "other");
  EXPECT_EQ(tokenizer->encode("a[ENT]ab[ENTRY]</s>c"), (Ids{3, 5, 3, 4, 6, 2, 0})) << "the longest one wins";
  EXPECT_EQ(tokenizer->decode(Ids{3, 5, 3}), "a a");
  EXPECT_EQ(tokenizer->marks().mask, -1);
  EXPECT_EQ(tokenizer->marks().pad, -1);
}

TEST(WordPiece, RefusesBrokenVocabularies) {
  const TestFolder folder;
  const auto make = [&](const Text& tokens, const WordPieceOptions& options = {}) {
    return complaint(folder, [&] { make_wordpiece(tokens, options, "vocab.txt"); });
  };
  const Text good{"[UNK]", "[CLS]", "[SEP]", "a"};
  EXPECT_EQ(make(good), "no error");
  EXPECT_EQ(make({}), "vocab.txt: no '[CLS]' among its 0 tokens; is it the vocabulary of a BERT model?");
  EXPECT_EQ(make({"[UNK]", "[CLS]", "a"}),
            "vocab.txt: no '[SEP]' among its 3 tokens; is it the vocabulary of a BERT model?");
  EXPECT_EQ(make({"[CLS]", "[SEP]", "a"}),
            "vocab.txt: no '[UNK]' among its 3 tokens; is it the vocabulary of a BERT model?");
  EXPECT_EQ(make({"[UNK]", "[CLS]", "[SEP]", "a", "b", "a"}), "vocab.txt: tokens 3 and 5 are the same");
  EXPECT_EQ(make({"[UNK]", "[CLS]", "[SEP]", "", "b"}), "vocab.txt: token 3 is empty");
  EXPECT_EQ(make(good, {.whole = {"[X]"}}),
            "vocab.txt: no '[X]' among its 4 tokens; is it the vocabulary of a BERT model?");
  EXPECT_EQ(make(good, {.longest_word = 0}), "vocab.txt: words of at most 0 characters, wanted at least 1");
  EXPECT_EQ(make(good, {.whole = Text(10'001, "a")}),
            "vocab.txt: 10001 tokens that are never cut, wanted at most 10000");
  const auto parse = [&](std::string_view bytes) {
    return complaint(folder, [&] { parse_wordpiece_tokens(bytes, "vocab.txt"); });
  };
  EXPECT_EQ(parse("a\nb\xFF\n"), "vocab.txt, line 2: not UTF-8");
  EXPECT_EQ(parse_wordpiece_tokens("a\r\nb c\r\r\n\nd", "x"), (Text{"a", "b c", "", "d"}));
  const auto tokenizer = small();
  EXPECT_EQ(complaint(folder, [&] { tokenizer->piece(11); }), "token id 11 is outside the vocabulary of 11");
  EXPECT_EQ(complaint(folder, [&] { tokenizer->decode(Ids{-1}); }),
            "token id -1 is outside the vocabulary of 11");
  EXPECT_EQ(complaint(folder, [&] { tokenizer->mark(Ids{5}, 1); }),
            "a limit of 1 tokens leaves no room for the 2 marks");
}

TEST(WordPiece, IsKeptApartFromWordsOfATranslator) {
  const TestFolder folder;
  folder.write("vocab.txt", small()->bytes());
  EXPECT_EQ(complaint(folder, [&] { load_tokenizers(folder.path("")); }),
            "vocab.txt, line 1: '[PAD]', wanted '<pad>'; a vocabulary begins with <pad>, <s>, </s>, <unk>");
  EXPECT_EQ(complaint(folder,
                      [&] {
                        make_wordpiece(parse_wordpiece_tokens("<pad>\n<s>\n</s>\n<unk>\nfood\n", "vocab.txt"),
                                       {}, "vocab.txt");
                      }),
            "vocab.txt: no '[CLS]' among its 5 tokens; is it the vocabulary of a BERT model?");
}

}  // namespace
}  // namespace fovea::data
