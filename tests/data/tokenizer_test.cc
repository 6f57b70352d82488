#include "data/tokenizer.h"

#include <gtest/gtest.h>

#include <regex>

#include "data/files.h"
#include "data/unknown_texts.h"

namespace fovea::data {
namespace {

using Ids = std::vector<int32_t>;
using Text = std::vector<std::string>;

std::unique_ptr<Tokenizer> pieces_of(const Text& text, const SentencePieceOptions& options) {
  const std::span<const std::string> texts[] = {text};
  return train_sentencepiece(texts, options);
}
std::unique_ptr<Tokenizer> words_of(const Text& text, const WordOptions& options = {}) {
  const std::span<const std::string> texts[] = {text};
  return count_words(texts, options);
}

Text small_corpus() {
  Text text;
  const char* subjects[] = {"the cat", "a small dog", "my sister", "我", "他的朋友"};
  const char* verbs[] = {"likes", "is eating", "喜欢", "sees"};
  const char* objects[] = {"food", "the green house", "食物", "red apples and bread"};
  for (const char* subject : subjects)
    for (const char* verb : verbs)
      for (const char* object : objects)
        text.push_back(std::string(subject) + " " + verb + " " + object + " .");
  return text;
}

class SentencePieceTypes : public testing::TestWithParam<const char*> {
 protected:
  SentencePieceOptions options() const { return {.type = GetParam(), .size = 400}; }
};
INSTANTIATE_TEST_SUITE_P(All, SentencePieceTypes, testing::Values("bpe", "unigram"));

TEST_P(SentencePieceTypes, GivesBackWhatItWasGiven) {
  const auto tokenizer = pieces_of(small_corpus(), options());
  EXPECT_GT(tokenizer->size(), 256 + kSpecials);
  EXPECT_LE(tokenizer->size(), 400);
  for (const std::string& text : small_corpus()) {
    const Ids ids = tokenizer->encode(text);
    for (const int32_t id : ids) EXPECT_GE(id, kSpecials);
    EXPECT_EQ(tokenizer->decode(ids), text);
  }
  EXPECT_EQ(tokenizer->encode(""), Ids{});
  EXPECT_EQ(tokenizer->decode(Ids{}), "");
}

TEST_P(SentencePieceTypes, SpellsUnseenCharactersInBytes) {
  const auto tokenizer = pieces_of(small_corpus(), options());
  const std::string text = "the 𠀀 🙂 ЖЖ cat，";
  const Ids ids = tokenizer->encode(text);
  for (const int32_t id : ids) EXPECT_NE(id, kUnknown);
  EXPECT_EQ(tokenizer->decode(ids), text);
}

TEST_P(SentencePieceTypes, SameTextGivesTheSameModel) {
  EXPECT_EQ(pieces_of(small_corpus(), options())->bytes(), pieces_of(small_corpus(), options())->bytes());
}

TEST_P(SentencePieceTypes, IsTheSameAfterSaving) {
  const auto tokenizer = pieces_of(small_corpus(), options());
  const auto again = parse_sentencepiece(tokenizer->bytes(), "again");
  EXPECT_EQ(again->size(), tokenizer->size());
  for (const std::string& text : small_corpus()) EXPECT_EQ(again->encode(text), tokenizer->encode(text));
}

TEST(SentencePiece, LeavesSpecialsOutOfText) {
  const auto tokenizer = pieces_of(small_corpus(), {.size = 400});
  Ids ids = tokenizer->encode("the cat");
  ids.insert(ids.begin(), kBegin);
  ids.insert(ids.end(), {kEnd, kPad, kPad});
  EXPECT_EQ(tokenizer->decode(ids), "the cat");
  EXPECT_EQ(tokenizer->piece(kPad), "<pad>");
  EXPECT_EQ(tokenizer->piece(kBegin), "<s>");
  EXPECT_EQ(tokenizer->piece(kEnd), "</s>");
  EXPECT_EQ(tokenizer->piece(kUnknown), "<unk>");
}

TEST(SentencePiece, NumbersWordsAndChineseCharacters) {
  const auto tokenizer = pieces_of(small_corpus(), {.size = 400});
  Ids ids = tokenizer->encode("greenish 我爱食 dogs");
  ids.push_back(kEnd);
  const Ids words = tokenizer->words(ids);
  ASSERT_EQ(words.size(), ids.size());
  std::vector<std::string> joined(words.back() + 1);
  for (size_t i = 0; i < ids.size(); ++i) joined[words[i]] += tokenizer->piece(ids[i]);
  // 爱 is unseen, hence bytes that stay with the character before.
  EXPECT_EQ(joined, (Text{"▁greenish", "▁我<0xE7><0x88><0xB1>", "食", "▁dogs", "</s>"}));
}

TEST(SentencePiece, ExplainsWhatIsWrong) {
  const TestFolder folder;
  const auto train = [&](const Text& text, const SentencePieceOptions& options) {
    return complaint(folder, [&] { pieces_of(text, options); });
  };
  EXPECT_EQ(train({}, {}), "no text to learn SentencePiece pieces from");
  EXPECT_EQ(train({"", " "}, {}), "no text to learn SentencePiece pieces from");
  EXPECT_EQ(
      train({std::string(70'000, 'x'), ""}, {}),
      "no text to learn SentencePiece pieces from: all have more than 65536 bytes, wanted shorter ones");
  EXPECT_EQ(train({"a"}, {.type = "word"}), "SentencePiece type 'word', wanted bpe or unigram");
  // In our words: SentencePiece's own name options that do not exist here.
  EXPECT_TRUE(
      std::regex_match(train(small_corpus(), {.size = 270}),
                       std::regex("vocabulary: got 270, wanted at least [0-9]+: one token for each .*")));
  for (const int32_t size : {270, 0, -5}) {
    const std::string text = train(small_corpus(), {.size = size});
    EXPECT_EQ(text.find("--"), std::string::npos) << text;
    EXPECT_EQ(text.find("vocab_size"), std::string::npos) << text;
    EXPECT_NE(text.find(std::to_string(size)), std::string::npos) << text;
  }
  const auto parse = [&](const std::string& bytes) {
    return complaint(folder, [&] { parse_sentencepiece(bytes, "a.model"); });
  };
  EXPECT_TRUE(parse("rubbish").starts_with("a.model: not a SentencePiece model"));
  // Field 3 (the normalizer) with field 2 (its table of replacements) in it.
  EXPECT_EQ(parse("\x1a\x03\x12\x01x"),
            "a.model: not a SentencePiece model without character replacements; train the model with Fovea");
  EXPECT_TRUE(parse("").starts_with("a.model: not a SentencePiece model"));
  const std::string model = pieces_of(small_corpus(), {.size = 400})->bytes();
  EXPECT_NE(parse(model.substr(0, model.size() / 2)), "no error");
  const auto tokenizer = pieces_of(small_corpus(), {.size = 400});
  EXPECT_EQ(complaint(folder, [&] { tokenizer->decode(Ids{100000}); }),
            "token id 100000 is outside the vocabulary of " + std::to_string(tokenizer->size()));
  EXPECT_NE(complaint(folder, [&] { tokenizer->decode(Ids{-1}); }), "no error");
}

TEST(SentencePiece, LearnsFromTinyTexts) {
  for (const char* type : {"bpe", "unigram"}) {
    SCOPED_TRACE(type);
    const auto tokenizer = pieces_of({"a"}, {.type = type, .size = 8000});
    EXPECT_EQ(tokenizer->decode(tokenizer->encode("a b")), "a b");
  }
}

TEST(WordVocabulary, OrdersWordsByCount) {
  const auto words = words_of({"b a a", "c a b", "<s> d"});
  EXPECT_EQ(words->bytes(), "<pad>\n<s>\n</s>\n<unk>\na\nb\nc\nd\n");
  EXPECT_EQ(words->encode(" a  d x <s>"), (Ids{4, 7, kUnknown, kUnknown}));
  EXPECT_EQ(words->decode(Ids{kBegin, 4, 7, kUnknown, kEnd, kPad}), "a d <unk>");
  EXPECT_EQ(words_of({"b a a", "c a b", "d"}, {.min_count = 2})->size(), 6);
  EXPECT_EQ(words_of({"b a a", "c a b", "d"}, {.max_size = 5})->size(), 5);
}

TEST(WordVocabulary, JoinsBpeOnOutput) {
  const auto words = words_of({"the un@@ break@@ able glass", "@@ b@@"});
  const Ids ids = words->encode("the un@@ break@@ able glass un@@");
  EXPECT_EQ(words->decode(ids), "the unbreakable glass un");
  EXPECT_EQ(words->words(ids), (Ids{0, 1, 1, 1, 2, 3}));
  EXPECT_EQ(words->piece(ids[1]), "un@@");
  EXPECT_EQ(words->decode(words->encode("@@ the")), "@@ the");
}

TEST(WordVocabulary, TellsTheWordsBehindUnknownTokens) {
  const std::vector<std::string> lines{"a film of rare beauty"};
  const std::span<const std::string> texts[] = {lines};
  const auto tokenizer = count_words(texts);
  using Words = std::vector<std::string>;
  const std::string literal = "a plodding film <unk>";
  EXPECT_EQ(texts_of_unknown(*tokenizer, literal, tokenizer->encode(literal)),
            (Words{"", "plodding", "", "<unk>"}));
  // Behind a mark, and cut.
  std::vector<int32_t> ids = tokenizer->encode("dull film of plodding beauty");
  ids.insert(ids.begin(), kBegin);
  ids.pop_back();
  EXPECT_EQ(texts_of_unknown(*tokenizer, "dull film of plodding beauty", ids),
            (Words{"", "dull", "", "", "plodding"}));
}

TEST(WordVocabulary, IsTheSameAfterSaving) {
  const auto words = words_of({"x y@@ z 我"});
  const auto again = parse_words(words->bytes(), "vocab.txt");
  EXPECT_EQ(again->bytes(), words->bytes());
  EXPECT_EQ(again->encode("我 z q"), words->encode("我 z q"));
}

TEST(WordVocabulary, NamesTheLineThatIsWrong) {
  const TestFolder folder;
  const auto parse = [&](const std::string& bytes) {
    return complaint(folder, [&] { parse_words(bytes, "vocab.txt"); });
  };
  const std::string specials = "<pad>\n<s>\n</s>\n<unk>\n";
  EXPECT_EQ(parse(specials + "a\r\nb"), "no error");
  EXPECT_EQ(parse(specials + "a\nb\na\n"), "vocab.txt, line 7: 'a' is in line 5 already");
  EXPECT_EQ(parse(specials + "a\n\nb\n"), "vocab.txt, line 6: empty, wanted one word a line");
  EXPECT_EQ(parse(specials + "a b\n"), "vocab.txt, line 5: white space in a word, wanted one word a line");
  EXPECT_EQ(parse(specials + "\xFF\n"), "vocab.txt, line 5: not UTF-8");
  EXPECT_EQ(parse("<unk>\na\n"),
            "vocab.txt, line 1: '<unk>', wanted '<pad>'; a vocabulary begins with <pad>, <s>, </s>, <unk>");
  EXPECT_EQ(parse(specials), "vocab.txt: 4 lines, wanted words after <pad>, <s>, </s>, <unk>");
  EXPECT_EQ(parse(""), "vocab.txt: 0 lines, wanted words after <pad>, <s>, </s>, <unk>");
  EXPECT_EQ(complaint(folder, [&] { words_of({"a b"}, {.min_count = 2}); }),
            "no words to make a vocabulary of that occur 2 times or more");
}

TEST(Tokenizers, ComeBackFromAFolder) {
  const TestFolder folder;
  const std::shared_ptr<const Tokenizer> words = words_of({"a b c"}),
                                         pieces = pieces_of(small_corpus(), {.size = 400});
  save_tokenizers(folder.path(""), {words, pieces});
  EXPECT_TRUE(std::filesystem::exists(folder.path("source_vocab.txt")));
  EXPECT_TRUE(std::filesystem::exists(folder.path("target_tokenizer.model")));
  const Tokenizers apart = load_tokenizers(folder.path(""));
  EXPECT_FALSE(apart.joint());
  EXPECT_EQ(apart.source->bytes(), words->bytes());
  EXPECT_EQ(apart.target->bytes(), pieces->bytes());

  const TestFolder second;
  save_tokenizers(second.path(""), {pieces, pieces});
  EXPECT_TRUE(load_tokenizers(second.path("")).joint());
  EXPECT_TRUE(std::filesystem::exists(second.path("tokenizer.model")));
  EXPECT_EQ(complaint(second,
                      [&] {
                        save_tokenizers(second.path("absent"), {words, words});
                      }),
            "cannot write absent/vocab.txt: No such file or directory");
  std::filesystem::create_directory(second.path("empty"));
  EXPECT_EQ(complaint(second, [&] { load_tokenizers(second.path("empty")); }),
            "empty has no tokenizer, wanted tokenizer.model or vocab.txt, or source_ and target_ of these");
}

}  // namespace
}  // namespace fovea::data
