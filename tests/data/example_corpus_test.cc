#include "data/example_corpus.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/error.h"

namespace fovea::data {
namespace {

TEST(ExampleCorpus, PartsShareNoSentenceAndTheSeedNamesThem) {
  const ExampleCorpus corpus = example_corpus(2000, 7), again = example_corpus(2000, 7);
  EXPECT_EQ(corpus.train.source, again.train.source);
  EXPECT_EQ(corpus.test.target, again.test.target);
  EXPECT_NE(corpus.train.source, example_corpus(2000, 8).train.source);
  std::set<std::string> all;
  size_t count = 0;
  for (const ParallelText* part : {&corpus.train, &corpus.valid, &corpus.test}) {
    ASSERT_EQ(part->source.size(), part->target.size());
    all.insert(part->source.begin(), part->source.end());
    count += part->source.size();
  }
  EXPECT_EQ(corpus.train.size(), 2000);
  EXPECT_EQ(all.size(), count);
  EXPECT_EQ(corpus.test.source.front(), "我喜欢食物");
  EXPECT_EQ(corpus.test.target.front(), "i like food");
  EXPECT_THROW(example_corpus(0, 1), Error);
  EXPECT_THROW(example_corpus(200000, 1), Error);
}

// A comparison of translators by length needs as many test sentences of each length, and a training text that
// has long sentences too.
TEST(ExampleCorpus, EveryLengthIsTestedAlikeAndOccursInTraining) {
  const ExampleCorpus corpus = example_corpus(5000, 3);
  const auto lengths = [](const ParallelText& text) {
    std::map<int64_t, int64_t> counts;
    for (const std::string& line : text.target) {
      int64_t words = 1;
      for (const char c : line) words += c == ' ' || c == ',' || c == '?';
      ++counts[(words - 1) / 8];
    }
    return counts;
  };
  EXPECT_EQ(lengths(corpus.test), (std::map<int64_t, int64_t>{{0, 80}, {1, 80}, {2, 80}, {3, 80}, {4, 80}}));
  const auto train = lengths(corpus.train);
  EXPECT_EQ(train.size(), 5u);
  for (const auto& [length, count] : train) EXPECT_GE(count, 450) << length;
}

// A sentence with two translations could not be learnt. Nested 的 is ambiguous, as in real Chinese, but
// rarely.
TEST(ExampleCorpus, ASentenceHasOneTranslation) {
  std::map<std::string, std::string> said;
  int64_t again = 0, other = 0;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const ParallelText text = example_corpus(20000, seed).train;
    for (size_t i = 0; i < text.source.size(); ++i) {
      const auto [place, fresh] = said.emplace(text.source[i], text.target[i]);
      again += !fresh;
      other += place->second != text.target[i];
    }
  }
  EXPECT_GT(again, 1000);
  EXPECT_LT(static_cast<double>(other), 0.01 * static_cast<double>(again));
}

}  // namespace
}  // namespace fovea::data
