// Examples for pre-training: the vocabulary, the pairs and the masks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/error.h"
#include "data/pretraining.h"
#include "data/wordpiece_trainer.h"

namespace fovea::data {
namespace {

TEST(WordPieceTraining, MergesTheMostFrequentNeighboursFirst) {
  WordCounts counts({});
  for (int i = 0; i < 10; ++i) counts.add("Hug, hugs");
  for (int i = 0; i < 5; ++i) counts.add("pug");
  const std::vector<std::string> tokens = learn_wordpiece(counts.counts(), {.size = 18}, {});
  EXPECT_THAT(std::vector(tokens.begin(), tokens.begin() + 5),
              testing::ElementsAre("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"));
  EXPECT_THAT(std::vector(tokens.begin() + 5, tokens.begin() + 11),
              testing::ElementsAre("##g", "##s", "##u", ",", "h", "p"));
  // ##u ##g stands 25 times, then h ##ug 20 times, then hug ##s 10 times.
  EXPECT_THAT(std::vector(tokens.begin() + 11, tokens.end()),
              testing::ElementsAre("##ug", "hug", "hugs", "pug"));
  const auto tokenizer = make_wordpiece(tokens, {}, "test");
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("Hugs, pug")), "hugs, pug");
}

TEST(WordPieceTraining, DoesNotDependOnTheOrderOfTextAndRefusesTooSmallASize) {
  WordCounts one({}), other({});
  for (const char* text : {"the film is fine", "a dull film", "the fine print"}) one.add(text);
  for (const char* text : {"the fine print", "a dull film", "the film is fine"}) other.add(text);
  EXPECT_EQ(learn_wordpiece(one.counts(), {.size = 60}, {}),
            learn_wordpiece(other.counts(), {.size = 60}, {}));
  EXPECT_THROW(learn_wordpiece(one.counts(), {.size = 10}, {}), Error);
  EXPECT_THROW(learn_wordpiece({}, {.size = 100}, {}), Error);
}

std::unique_ptr<MarkedTokenizer> tokenizer_of(int pieces) {
  std::vector<std::string> tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  for (int i = 0; i < pieces; ++i) tokens.push_back((i % 3 == 2 ? "##p" : "w") + std::to_string(i));
  return make_wordpiece(std::move(tokens), {}, "test");
}

// Documents of sentences of 1 to 12 tokens; a token tells its document.
TokenDocuments random_documents(int64_t documents, int pieces, Rng& rng) {
  TokenDocuments all;
  for (int64_t d = 0; d < documents; ++d) {
    const int64_t sentences = 2 + rng.below(10);
    for (int64_t s = 0; s < sentences; ++s) {
      std::vector<int32_t> ids(static_cast<size_t>(1 + rng.below(12)));
      for (int32_t& id : ids) id = 5 + static_cast<int32_t>(rng.below(pieces));
      all.sentences.append(ids);
    }
    all.starts.push_back(all.sentences.size());
  }
  return all;
}

int64_t document_of(const TokenDocuments& documents, int64_t token) {
  int64_t d = 0;
  while (documents.sentences.starts[static_cast<size_t>(documents.starts[static_cast<size_t>(d) + 1])] <=
         token)
    ++d;
  return d;
}

TEST(Pretraining, HalfOfThePairsFollowAndNoneIsTooLong) {
  Rng rng(1);
  const TokenDocuments documents = random_documents(300, 100, rng);
  const std::vector<SpanPair> pairs = make_pairs(documents, {.max_tokens = 32}, rng);
  ASSERT_GT(pairs.size(), 300u);
  int64_t follow = 0;
  for (const SpanPair& pair : pairs) {
    ASSERT_GE(pair.first_length, 1);
    ASSERT_GE(pair.second_length, 1);
    ASSERT_LE(pair.first_length + pair.second_length, 29);
    const int64_t a = document_of(documents, pair.first_begin), b = document_of(documents, pair.second_begin);
    ASSERT_EQ(a == b, pair.follows);
    if (pair.follows) {
      ASSERT_GE(pair.second_begin, pair.first_begin + pair.first_length);
    }
    follow += pair.follows;
  }
  // Pairs of a single sentence never follow: a little less than half do.
  EXPECT_NEAR(static_cast<double>(follow) / static_cast<double>(pairs.size()), 0.45, 0.1);
}

TEST(Pretraining, MasksFifteenPerCentEightyTenTen) {
  Rng rng(2);
  constexpr int kPieces = 1000;
  const TokenDocuments documents = random_documents(500, kPieces, rng);
  const auto tokenizer = tokenizer_of(kPieces);
  double tokens = 0, chosen = 0, masked = 0, kept = 0, other = 0;
  for (const SpanPair& pair : make_pairs(documents, {.max_tokens = 64, .short_share = 0}, rng)) {
    const MaskedPair one = mask_pair(documents, pair, *tokenizer, {}, rng);
    ASSERT_EQ(one.places.size(), one.tokens.size());
    const auto all = static_cast<double>(one.text.ids.size());
    EXPECT_EQ(static_cast<int64_t>(one.places.size()),
              std::min<int64_t>(20, std::max<int64_t>(1, std::llround(0.15 * all))));
    EXPECT_EQ(one.text.ids[0], tokenizer->marks().begin);
    for (size_t i = 0; i < one.places.size(); ++i) {
      const int32_t now = one.text.ids[static_cast<size_t>(one.places[i])];
      EXPECT_GE(one.tokens[i], 5) << "marks are never masked";
      masked += now == tokenizer->marks().mask;
      kept += now == one.tokens[i];
      other += now != tokenizer->marks().mask && now != one.tokens[i];
    }
    chosen += static_cast<double>(one.places.size());
    tokens += all;
  }
  ASSERT_GT(chosen, 3000);
  EXPECT_NEAR(chosen / tokens, 0.15, 0.01);
  EXPECT_NEAR(masked / chosen, 0.8, 0.025);
  EXPECT_NEAR(kept / chosen, 0.1, 0.02);
  EXPECT_NEAR(other / chosen, 0.1, 0.02);
}

TEST(Pretraining, MasksAtMostAsManyAsAskedAndWholeWordsTogether) {
  Rng rng(3);
  constexpr int kPieces = 300;
  const TokenDocuments documents = random_documents(100, kPieces, rng);
  const auto tokenizer = tokenizer_of(kPieces);
  for (const SpanPair& pair : make_pairs(documents, {.max_tokens = 64}, rng)) {
    EXPECT_LE(mask_pair(documents, pair, *tokenizer, {.most = 3}, rng).places.size(), 3u);
    const MaskedPair whole = mask_pair(documents, pair, *tokenizer, {.share = 0.4, .whole_words = true}, rng);
    std::vector<int32_t> original = whole.text.ids;
    for (size_t i = 0; i < whole.places.size(); ++i)
      original[static_cast<size_t>(whole.places[i])] = whole.tokens[i];
    const std::set<int32_t> places(whole.places.begin(), whole.places.end());
    const std::vector<int32_t> words = tokenizer->words(original);
    for (int32_t i = 1; i < static_cast<int32_t>(words.size()); ++i)
      if (words[static_cast<size_t>(i)] == words[static_cast<size_t>(i - 1)]) {
        EXPECT_EQ(places.contains(i), places.contains(i - 1)) << "a word is masked whole or not at all";
      }
  }
}

TEST(Pretraining, TheSameSeedDrawsTheSame) {
  Rng rng(4);
  const TokenDocuments documents = random_documents(20, 50, rng);
  const auto tokenizer = tokenizer_of(50);
  Rng one(7), other(7);
  const auto pairs = make_pairs(documents, {.max_tokens = 32}, one),
             again = make_pairs(documents, {.max_tokens = 32}, other);
  ASSERT_EQ(pairs.size(), again.size());
  for (size_t i = 0; i < pairs.size(); ++i)
    EXPECT_EQ(mask_pair(documents, pairs[i], *tokenizer, {}, one).text.ids,
              mask_pair(documents, again[i], *tokenizer, {}, other).text.ids);
}

}  // namespace
}  // namespace fovea::data
