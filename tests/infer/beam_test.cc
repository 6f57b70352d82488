#include "infer/beam.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/error.h"
#include "base/rng.h"

namespace fovea {
namespace {

constexpr int32_t kBegin = 1, kEnd = 2;

// A toy language: the logits are a fixed random function of the sentence and the whole prefix.
class PrefixModel : public StepDecoder {
 public:
  PrefixModel(std::vector<uint64_t> sentences, int64_t vocabulary) : vocabulary_(vocabulary) {
    for (const uint64_t sentence : sentences) prefixes_.push_back({sentence, {}});
  }
  static std::vector<float> logits(uint64_t sentence, const std::vector<int32_t>& prefix,
                                   int64_t vocabulary) {
    uint64_t key = sentence;
    for (const int32_t token : prefix) key = key * 1000003 + static_cast<uint64_t>(token) + 17;
    Rng rng(key);
    std::vector<float> row(static_cast<size_t>(vocabulary));
    for (float& x : row) x = 2 * rng.normal();
    row[0] = row[kBegin] = -1e9f;
    return row;
  }
  Logits step(std::span<const int32_t> tokens) override {
    Tensor result({static_cast<int64_t>(tokens.size()), vocabulary_});
    EXPECT_EQ(tokens.size(), prefixes_.size());
    for (size_t i = 0; i < tokens.size(); ++i) {
      prefixes_[i].second.push_back(tokens[i]);
      const auto row = logits(prefixes_[i].first, prefixes_[i].second, vocabulary_);
      std::copy(row.begin(), row.end(), result.data() + static_cast<int64_t>(i) * vocabulary_);
    }
    return Logits(result);
  }
  std::vector<int32_t> best(std::span<const int32_t> tokens, std::span<const int32_t> skipped) override {
    const Tensor logits = step(tokens).values;
    std::vector<int32_t> found;
    for (size_t r = 0; r < tokens.size(); ++r) {
      float* row = logits.data() + static_cast<int64_t>(r) * vocabulary_;
      if (skipped[r] >= 0) row[skipped[r]] = -1e9f;
      found.push_back(static_cast<int32_t>(std::max_element(row, row + vocabulary_) - row));
    }
    return found;
  }
  void reorder(std::span<const int32_t> parents) override {
    auto old = prefixes_;
    prefixes_.clear();
    for (const int32_t parent : parents) prefixes_.push_back(old[static_cast<size_t>(parent)]);
  }

 private:
  int64_t vocabulary_;
  std::vector<std::pair<uint64_t, std::vector<int32_t>>> prefixes_;
};

std::vector<double> log_softmax(const std::vector<float>& logits) {
  double sum = 0;
  for (const float x : logits) sum += std::exp(double{x});
  std::vector<double> result;
  for (const float x : logits) result.push_back(x - std::log(sum));
  return result;
}

// Every sequence of up to `left` tokens and its end.
void enumerate(uint64_t sentence, std::vector<int32_t> prefix, double log_probability, int left,
               double penalty, int64_t vocabulary, std::vector<Hypothesis>& all) {
  const auto next = log_softmax(PrefixModel::logits(sentence, prefix, vocabulary));
  const double ended = log_probability + next[kEnd];
  all.push_back({{prefix.begin() + 1, prefix.end()}, ended, ended / std::pow(prefix.size(), penalty)});
  if (left == 0) return;
  for (int32_t token = 3; token < vocabulary; ++token) {
    auto longer = prefix;
    longer.push_back(token);
    enumerate(sentence, longer, log_probability + next[static_cast<size_t>(token)], left - 1, penalty,
              vocabulary, all);
  }
}

TEST(BeamSearch, WideBeamEqualsExhaustiveSearch) {
  for (const float penalty : {0.0f, 0.6f, 1.0f}) {
    for (uint64_t sentence = 0; sentence < 20; ++sentence) {
      std::vector<Hypothesis> all;
      enumerate(sentence, {kBegin}, 0, 3, penalty, 6, all);
      std::stable_sort(all.begin(), all.end(),
                       [](const auto& a, const auto& b) { return a.score > b.score; });
      PrefixModel model({sentence}, 6);
      const int32_t limit[] = {3};
      const auto found = beam_search(model, limit, {.beam = 64, .n_best = 5, .length_penalty = penalty})[0];
      ASSERT_EQ(found.size(), 5u);
      for (size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i].tokens, all[i].tokens) << "sentence " << sentence << " rank " << i;
        EXPECT_NEAR(found[i].score, all[i].score, 1e-6);
      }
    }
  }
}

TEST(BeamSearch, BeamOfOneIsGreedy) {
  PrefixModel model({5}, 9);
  const int32_t limit[] = {12};
  const auto found = beam_search(model, limit, {.beam = 1})[0][0];
  std::vector<int32_t> prefix{kBegin};
  for (int i = 0; i < 12; ++i) {
    const auto logits = PrefixModel::logits(5, prefix, 9);
    const auto best = static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    if (best == kEnd) break;
    prefix.push_back(best);
  }
  prefix.erase(prefix.begin());
  EXPECT_EQ(found.tokens, prefix);
}

TEST(BeamSearch, GreedySearchWithoutScoresFindsTheSameTokens) {
  const std::vector<uint64_t> sentences{3, 1, 4, 1, 5, 9, 2, 6};
  const std::vector<int32_t> limits{9, 4, 0, 7, 11, 30, 1, 12};
  for (const int min_length : {0, 3}) {
    PrefixModel scored(sentences, 8), plain(sentences, 8);
    const auto wanted = beam_search(scored, limits, {.beam = 1, .min_length = min_length});
    const auto found = beam_search(plain, limits, {.beam = 1, .min_length = min_length, .scores = false});
    for (size_t s = 0; s < sentences.size(); ++s) {
      ASSERT_EQ(found[s].size(), 1u);
      EXPECT_EQ(found[s][0].tokens, wanted[s][0].tokens);
    }
  }
}

TEST(BeamSearch, ASentenceGetsTheSameResultInAnyBatch) {
  const std::vector<uint64_t> sentences{3, 1, 4, 1, 5};
  const std::vector<int32_t> limits{9, 4, 0, 7, 11};
  PrefixModel batch(sentences, 8);
  const auto together = beam_search(batch, limits, {.beam = 3, .n_best = 3});
  for (size_t s = 0; s < sentences.size(); ++s) {
    PrefixModel single({sentences[s]}, 8);
    const auto alone = beam_search(single, std::span(limits).subspan(s, 1), {.beam = 3, .n_best = 3})[0];
    ASSERT_EQ(alone.size(), together[s].size());
    for (size_t i = 0; i < alone.size(); ++i) {
      EXPECT_EQ(alone[i].tokens, together[s][i].tokens);
      EXPECT_EQ(alone[i].score, together[s][i].score);
    }
  }
  EXPECT_TRUE(together[2][0].tokens.empty());
}

TEST(BeamSearch, NoEndComesBeforeTheLeastLength) {
  for (const int beam : {1, 3}) {
    PrefixModel model({3, 1, 4, 1, 5, 9, 2, 6}, 8);
    const std::vector<int32_t> limits(8, 7);
    for (const auto& sentence : beam_search(model, limits, {.beam = beam, .n_best = beam, .min_length = 7})) {
      EXPECT_EQ(sentence.size(), static_cast<size_t>(beam));
      for (const Hypothesis& hypothesis : sentence) EXPECT_EQ(hypothesis.tokens.size(), 7u);
    }
  }
}

TEST(BeamSearch, RefusesSenselessOptions) {
  PrefixModel model({1}, 5);
  const int32_t limit[] = {3};
  EXPECT_THROW(beam_search(model, limit, {.beam = 0}), Error);
  EXPECT_THROW(beam_search(model, limit, {.beam = 2, .n_best = 3}), Error);
}

}  // namespace
}  // namespace fovea
