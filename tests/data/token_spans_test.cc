// Which characters a token stands for, against Hugging Face's tokenizers.
#include <gtest/gtest.h>

#include "data/byte_bpe.h"
#include "data/wordpiece.h"
#include "io/file.h"
#include "io/json.h"

namespace fovea::data {
namespace {

const Json& golden() {
  static const Json json = load_json(FOVEA_GOLDEN "/token_spans.json");
  return json;
}

// The white space before the mask is part of the mask there, and not here.
bool holds_mask(const std::string& text) {
  return text.find("<mask>") != std::string::npos;
}

void expect_spans(const MarkedTokenizer& tokenizer, const std::string& name, bool with_masks) {
  const auto texts = golden()["texts"].get<std::vector<std::string>>();
  ASSERT_GE(texts.size(), 100u);
  for (size_t i = 0; i < texts.size(); ++i) {
    if (!with_masks && holds_mask(texts[i])) continue;
    const std::vector<TokenSpan> spans = tokenizer.spans(texts[i]);
    std::vector<int32_t> ids;
    Json found = Json::array();
    for (const TokenSpan& span : spans) {
      ids.push_back(span.id);
      found.push_back({span.begin, span.end});
    }
    EXPECT_EQ(ids, tokenizer.encode(texts[i])) << name << " text " << i << ": " << texts[i];
    EXPECT_EQ(found, golden()[name][i]) << name << " text " << i << ": " << texts[i];
  }
}

TEST(TokenSpans, OfWordPiecesAreThoseOfBertTokenizer) {
  const std::string path = FOVEA_GOLDEN "/wordpiece_vocab.txt";
  const std::vector<std::string> tokens = parse_wordpiece_tokens(read_text(path), path);
  expect_spans(*make_wordpiece(tokens, {}, path), "uncased", true);
  expect_spans(*make_wordpiece(tokens, {.lowercase = false}, path), "cased", true);
}

TEST(TokenSpans, OfBytesAreThoseOfRobertaTokenizer) {
  const Json learnt = load_json(FOVEA_GOLDEN "/byte_bpe.json");
  std::vector<std::string> tokens(learnt["vocab"].size());
  for (const auto& item : learnt["vocab"].items()) tokens[item.value().get<size_t>()] = item.key();
  std::vector<Merge> merges;
  for (const Json& merge : learnt["merges"])
    merges.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
  expect_spans(*make_byte_bpe(tokens, merges, {}, "golden"), "bytes", false);
  expect_spans(*make_byte_bpe(tokens, merges, {.prefix_space = true}, "golden"), "spaced_bytes", false);
}

TEST(TokenSpans, MarksInATextStandForTheirOwnSpelling) {
  const auto tokenizer =
      make_wordpiece({"[UNK]", "[CLS]", "[SEP]", "[MASK]", "é", "a"}, {.lowercase = false}, "small");
  const std::vector<TokenSpan> wanted{{4, 0, 1}, {3, 2, 8}, {5, 8, 9}, {0, 10, 12}};
  EXPECT_EQ(tokenizer->spans("é [MASK]a xy"), wanted);
  EXPECT_TRUE(tokenizer->spans("").empty());
  EXPECT_TRUE(tokenizer->spans(" \t ").empty());
}

}  // namespace
}  // namespace fovea::data
