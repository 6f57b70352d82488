// BigBird's tokenizer: a SentencePiece model with all scores 0, as the SentencePiece library cuts with it, and the
// tokenizer.json that transformers makes of it.
#include <gtest/gtest.h>

#include "data/encoder_tokenizer.h"
#include "data/unigram.h"
#include "io/file.h"
#include "io/json.h"
#include "io/temporary_directory.h"

namespace fovea::data {
namespace {

using Ids = std::vector<int32_t>;

const Json& golden() {
  static const Json json = load_json(FOVEA_GOLDEN "/big_bird_pieces.json");
  return json;
}

void expect_ids(const MarkedTokenizer& tokenizer, const std::string& name) {
  const auto texts = golden()["texts"].get<std::vector<std::string>>();
  ASSERT_GE(texts.size(), 200u);
  for (size_t i = 0; i < texts.size(); ++i)
    EXPECT_EQ(tokenizer.encode(texts[i]), golden()[name][i].get<Ids>())
        << name << " text " << i << ": " << texts[i];
}

TEST(BigBirdTokenizer, GivesTheIdsOfTheSentencePieceLibrary) {
  const TemporaryDirectory folder;
  write_atomically(folder / "spiece.model", read_text(FOVEA_GOLDEN "/big_bird.model"));
  const auto tokenizer = load_encoder_tokenizer(folder.path(), "big_bird").tokenizer;
  expect_ids(*tokenizer, "ids");
  EXPECT_EQ(tokenizer->piece(tokenizer->marks().begin), "[CLS]");
  EXPECT_EQ(tokenizer->piece(tokenizer->marks().mask), "[MASK]");
  // Pairs are BERT's: [CLS] a [SEP] b [SEP].
  EXPECT_EQ(tokenizer->mark(Ids{9}, Ids{8}).types, (Ids{0, 0, 0, 1, 1}));
  // A mark in the text is never cut, and the space before the mask goes with it.
  const Ids masked = tokenizer->encode("the [MASK]");
  EXPECT_EQ(masked.back(), tokenizer->marks().mask);
  EXPECT_EQ(masked.size(), tokenizer->encode("the").size() + 1);
}

TEST(BigBirdTokenizer, GivesTheIdsOfTransformersFromTokenizerJson) {
  const TemporaryDirectory folder;
  save_json(folder / "tokenizer.json", golden()["tokenizer"]);
  const auto tokenizer = load_encoder_tokenizer(folder.path(), "big_bird").tokenizer;
  expect_ids(*tokenizer, "fast");
  EXPECT_EQ(tokenizer->mark(tokenizer->encode("a quick fox")).ids, golden()["marked"].get<Ids>());
}

TEST(BigBirdTokenizer, RefusesADamagedModelInOneLine) {
  const TemporaryDirectory folder;
  write_atomically(folder / "spiece.model", "no model");
  try {
    load_encoder_tokenizer(folder.path(), "big_bird");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("spiece.model"), std::string::npos);
  }
}

}  // namespace
}  // namespace fovea::data
