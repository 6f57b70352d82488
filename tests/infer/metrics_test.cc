#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/error_of.h"
#include "infer/bleu.h"
#include "infer/caption_scores.h"
#include "infer/chrf.h"

namespace fovea::infer {
namespace {

using nlohmann::json;
using Sets = std::vector<std::vector<std::string>>;

const json& golden() {
  static const json values = [] {
    std::ifstream file(FOVEA_GOLDEN "/metrics.json");
    return json::parse(file);
  }();
  return values;
}

TEST(Bleu, EqualsSacreBleu) {
  ASSERT_EQ(golden()["sacrebleu"], kSacreBleuVersion);
  for (const json& example : golden()["cases"]) {
    const std::vector<std::string> hypotheses = example["hypotheses"];
    const Sets references = example["references"];
    for (const json& want : example["bleu"]) {
      SCOPED_TRACE(example["name"].dump() + " " + want["signature"].dump());
      const BleuScore got =
          bleu(hypotheses, references, {.tokenize = want["tokenize"], .lowercase = want["lowercase"]});
      EXPECT_EQ(got.matched, (want["counts"].get<std::array<int64_t, 4>>()));
      EXPECT_EQ(got.total, (want["totals"].get<std::array<int64_t, 4>>()));
      EXPECT_EQ(got.hypothesis_length, want["sys_len"]);
      EXPECT_EQ(got.reference_length, want["ref_len"]);
      EXPECT_NEAR(got.brevity_penalty, want["bp"].get<double>(), 1e-12);
      for (int n = 0; n < 4; ++n) EXPECT_NEAR(got.precisions[n], want["precisions"][n].get<double>(), 1e-10);
      EXPECT_NEAR(got.score, want["score"].get<double>(), 1e-9);
      EXPECT_EQ(got.signature, want["signature"]);
      const std::string line = want["line"];
      EXPECT_TRUE(line.ends_with(" " + got.details())) << line << "\n" << got.details();
    }
  }
}

TEST(CaptionScores, EqualCocoCaption) {
  std::ifstream file(FOVEA_GOLDEN "/captions.json");
  const json cases = json::parse(file);
  ASSERT_GE(cases.size(), 5u);
  for (const json& example : cases) {
    SCOPED_TRACE(example["name"].dump());
    const std::vector<std::string> hypotheses = example["hypotheses"];
    const Sets references = example["references"];
    const double ratio = example["ratio"];
    for (const char* tokenize : {"none", "caption"}) {  // the words are lower-case and without punctuation
      const CaptionScores got = caption_scores(hypotheses, references, {.tokenize = tokenize});
      const double penalty = ratio < 1 ? std::exp(1 - 1 / ratio) : 1;
      EXPECT_NEAR(got.brevity_penalty, penalty, 1e-6);
      for (size_t n = 0; n < 4; ++n) {
        const double want = 100 * example["bleu"][n].get<double>();
        // Where nothing matches, coco-caption puts a tiny number in the place of 0.
        const double tolerance = got.bleu[n] == 0 ? 0.01 : 1e-6 * want;
        EXPECT_NEAR(got.bleu[n], want, tolerance);
        EXPECT_NEAR(got.bleu_without_penalty[n] * penalty, want, tolerance);
      }
      EXPECT_NEAR(got.cider, example["cider"].get<double>(), 1e-9);
    }
  }
}

TEST(CaptionScores, CountWordsWithoutCaseAndPunctuation) {
  const std::vector<std::string> hypotheses{"A dog runs .", "two men, walking"};
  const Sets references{{"a dog RUNS", "Two men walking!"}};
  const CaptionScores got = caption_scores(hypotheses, references);
  EXPECT_EQ(got.bleu[0], 100);
  EXPECT_EQ(got.bleu[2], 100);
  EXPECT_EQ(got.bleu[3], 0);  // no caption has four words
  EXPECT_EQ(got.hypothesis_length, 6);
}

TEST(Chrf, EqualsSacreBleu) {
  for (const json& example : golden()["cases"]) {
    const std::vector<std::string> hypotheses = example["hypotheses"];
    const Sets references = example["references"];
    for (const json& want : example["chrf"]) {
      SCOPED_TRACE(example["name"].dump() + " " + want["signature"].dump());
      const ChrfScore got =
          chrf(hypotheses, references, {.word_order = want["word_order"], .lowercase = want["lowercase"]});
      EXPECT_NEAR(got.score, want["score"].get<double>(), 1e-9);
      EXPECT_EQ(got.name, want["name"]);
      EXPECT_EQ(got.signature, want["signature"]);
    }
  }
}

TEST(Bleu, TokenisesAsMteval) {
  const auto tokens = [](const char* text, const char* tokenize) {
    return bleu_tokens(text, {.tokenize = tokenize, .lowercase = false});
  };
  using Words = std::vector<std::string>;
  EXPECT_EQ(tokens("It costs $3.50, no?", "13a"), (Words{"It", "costs", "$", "3.50", ",", "no", "?"}));
  EXPECT_EQ(tokens("我喜欢food。", "zh"), (Words{"我", "喜", "欢", "food", "。"}));
  EXPECT_EQ(tokens("ab c", "char"), (Words{"a", "b", "c"}));
  EXPECT_EQ(tokens("don't, stop", "none"), (Words{"don't,", "stop"}));
}

TEST(Metrics, ExplainWhatIsWrong) {
  const std::vector<std::string> two{"a", "b"};
  EXPECT_EQ(error_of([&] { bleu(two, Sets{{"a"}}); }), "2 hypotheses but 1 references, wanted as many");
  EXPECT_EQ(error_of([&] { chrf(two, Sets{{"a"}}); }), "2 hypotheses but 1 references, wanted as many");
  EXPECT_EQ(error_of([&] { bleu({}, Sets{{}}); }), "no sentences to score");
  EXPECT_EQ(error_of([&] { bleu(two, Sets{}); }), "no references to score against");
  EXPECT_EQ(error_of([&] { bleu(two, Sets{two}, {.tokenize = "14", .lowercase = false}); }),
            "no BLEU tokenizer '14', wanted 13a, zh, char, caption or none");
}

TEST(Bleu, ByLengthScoresEachLengthAlone) {
  const std::vector<std::string> hypotheses = {"a b c d", "a b c d e f", "a x c d e"};
  const std::vector<std::vector<std::string>> references = {{"a b c d", "a b c d e f g", "a b c d e"}};
  const auto parts = bleu_by_length(hypotheses, references, 5);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].first, 1);
  EXPECT_EQ(parts[0].last, 5);
  EXPECT_EQ(parts[0].sentences, 2);
  const std::vector<std::string> some = {hypotheses[0], hypotheses[2]};
  const std::vector<std::vector<std::string>> wanted = {{references[0][0], references[0][2]}};
  EXPECT_EQ(parts[0].bleu.score, bleu(some, wanted).score);
  EXPECT_EQ(parts[1].first, 6);
  EXPECT_EQ(parts[1].sentences, 1);
  EXPECT_LT(parts[1].bleu.score, 100);
  EXPECT_THROW(bleu_by_length(hypotheses, references, 0), Error);
}

}  // namespace
}  // namespace fovea::infer
