// Dropout and sampling: frequencies match the probabilities, and the estimators of gradients have the
// expectation they promise. Every statistic is also shown a planted bias, which it must catch.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "attention/attention.h"
#include "base/rng.h"
#include "kernels/attention/draws.h"
#include "kernels/attention/dropout.h"

namespace fovea {
namespace {

const std::vector<float> kScores{0.3f, -1.2f, 1.1f, 0, -0.4f};

std::vector<double> softmax(const std::vector<float>& scores) {
  std::vector<double> p;
  double sum = 0;
  for (const float x : scores) sum += std::exp(double{x});
  for (const float x : scores) p.push_back(std::exp(double{x}) / sum);
  return p;
}

// Many equal queries against keys whose scores are given: each row is an independent draw.
Var many_queries(int64_t rows) {
  return Var(Tensor::full({1, 1, rows, 1}, 1));
}
Var keys_of(const std::vector<float>& scores, bool trained = false) {
  return Var(Tensor::from(scores, {1, 1, static_cast<int64_t>(scores.size()), 1}), trained);
}

std::vector<int64_t> counts_of_hard(const std::vector<float>& scores, int64_t rows, uint64_t seed) {
  const Var v(Tensor::zeros({1, 1, static_cast<int64_t>(scores.size()), 1}));
  const auto result = attend(many_queries(rows), keys_of(scores), v, {.score = dot(), .selection = hard()},
                             {.training = true, .seed = seed});
  std::vector<int64_t> counts(scores.size());
  for (const int32_t key : result.chosen) ++counts[static_cast<size_t>(key)];
  return counts;
}

double chi_square(const std::vector<int64_t>& counts, const std::vector<double>& p) {
  double total = 0, sum = 0;
  for (const int64_t count : counts) total += static_cast<double>(count);
  for (size_t n = 0; n < p.size(); ++n) {
    const double wanted = total * p[n], off = static_cast<double>(counts[n]) - wanted;
    sum += off * off / wanted;
  }
  return sum;
}

constexpr int64_t kDraws = 200000;
constexpr double kChiSquareLimit = 23.5;  // 4 degrees of freedom: exceeded once in 10 000 by chance

TEST(Draws, HardFrequenciesAreTheSoftmax) {
  for (const uint64_t seed : {1, 2, 3})
    EXPECT_LT(chi_square(counts_of_hard(kScores, kDraws, seed), softmax(kScores)), kChiSquareLimit) << seed;
}

TEST(Draws, APlantedBiasOfHardIsCaught) {
  std::vector<float> tilted = kScores;
  tilted[0] += 0.05f;  // about one part in a hundred of its frequency
  EXPECT_GT(chi_square(counts_of_hard(tilted, kDraws, 1), softmax(kScores)), kChiSquareLimit);
}

TEST(Draws, AreTheSameForAnySplitOfTheRows) {
  const Var v(Tensor::zeros({1, 1, 5, 1}));
  const auto all = attend(many_queries(100), keys_of(kScores), v, {.score = dot(), .selection = hard()},
                          {.training = true, .seed = 9});
  const auto few = attend(many_queries(7), keys_of(kScores), v, {.score = dot(), .selection = hard()},
                          {.training = true, .seed = 9});
  for (size_t i = 0; i < 7; ++i) EXPECT_EQ(all.chosen[i], few.chosen[i]);
}

// How many standard deviations the number of kept weights is away from what p promises.
double dropout_deviation(float drawn_p, double promised_p, int64_t queries, int64_t keys) {
  int64_t kept = 0;
  for (int64_t i = 0; i < queries; ++i)
    for (int64_t j = 0; j < keys; ++j) kept += kernels::attention_keep(5, 0, 1, i, j, drawn_p);
  const auto n = static_cast<double>(queries * keys);
  return (static_cast<double>(kept) - n * (1 - promised_p)) / std::sqrt(n * promised_p * (1 - promised_p));
}

TEST(Draws, DropoutKeepsWhatItPromises) {
  for (const float p : {0.1f, 0.5f, 0.9f}) EXPECT_LT(std::abs(dropout_deviation(p, p, 1000, 500)), 4) << p;
  EXPECT_GT(std::abs(dropout_deviation(0.1f, 0.103, 1000, 500)), 4);
}

// Neighbours in every direction must not agree more often than chance has it.
TEST(Draws, DropoutNeighboursAreIndependent) {
  const float p = 0.3f;
  const int64_t n = 700;
  const auto kept = [&](int64_t b, int64_t h, int64_t i, int64_t j) {
    return kernels::attention_keep(11, b, h, i, j, p) ? 1.0 : 0.0;
  };
  const auto correlation = [&](int64_t db, int64_t dh, int64_t di, int64_t dj) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j)
        sum += (kept(0, 0, i, j) - (1 - p)) * (kept(db, dh, i + di, j + dj) - (1 - p));
    return sum / (static_cast<double>(n * n) * p * (1 - p)) *
           static_cast<double>(n);  // in standard deviations
  };
  for (const auto& d : {std::array<int64_t, 4>{1, 0, 0, 0},
                        {0, 1, 0, 0},
                        {0, 0, 1, 0},
                        {0, 0, 0, 1},
                        {0, 0, 1, 1},
                        {0, 0, 0, 2},
                        {0, 0, 2, 0},
                        {0, 0, 1, -1 + 2}})
    EXPECT_LT(std::abs(correlation(d[0], d[1], d[2], d[3])), 4.5);
  EXPECT_GT(std::abs(correlation(0, 0, 0, 0)), 4.5);
}

TEST(Draws, GumbelNoiseHasItsMeanAndVariance) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < 400; ++i)
    for (int64_t j = 0; j < 500; ++j) {
      const double g = kernels::attention_gumbel(3, 0, 0, i, j);
      sum += g;
      squares += g * g;
    }
  const double n = 200000, mean = sum / n;
  EXPECT_NEAR(mean, 0.5772, 0.012);
  EXPECT_NEAR(squares / n - mean * mean, 1.6449, 0.03);
}

const std::vector<float> kReward{1, -2, 0.5f, 3, 0};

// The exact gradient of the expected reward with respect to the keys: soft attention carries the reward as
// its value.
std::vector<float> exact_gradient() {
  const Var keys = keys_of(kScores, true);
  const Var v(Tensor::from(kReward, {1, 1, 5, 1}));
  attention(many_queries(1), keys, v, {.score = dot()}).backward();
  return keys.grad().to_vector();
}

// REINFORCE's estimate of the same, over many draws, with `baseline(key)` taken from the reward.
std::vector<float> reinforce_gradient(float (*baseline)(float reward)) {
  const Var keys = keys_of(kScores, true);
  const Var v(Tensor::zeros({1, 1, 5, 1}));
  const auto result = attend(many_queries(kDraws), keys, v, {.score = dot(), .selection = hard()},
                             {.training = true, .seed = 21});
  const Tensor reward(result.log_probability.shape()), base(result.log_probability.shape());
  for (int64_t i = 0; i < kDraws; ++i) {
    reward.data()[i] = kReward[static_cast<size_t>(result.chosen[static_cast<size_t>(i)])];
    base.data()[i] = baseline(reward.data()[i]);
  }
  reinforce_loss(result.log_probability, reward, base).backward();
  std::vector<float> gradient = keys.grad().to_vector();
  for (float& g : gradient) g = -g;  // the loss falls where the reward grows
  return gradient;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0;
  for (size_t n = 0; n < a.size(); ++n) largest = std::max<double>(largest, std::abs(a[n] - b[n]));
  return largest;
}

constexpr double kFiveDeviations =
    0.015;  // one draw's estimate deviates by about 1.3; over 200 000 draws by 0.003

TEST(Reinforce, IsUnbiasedWithAndWithoutABaseline) {
  EXPECT_LT(largest_difference(reinforce_gradient([](float) { return 0.0f; }), exact_gradient()),
            kFiveDeviations);
  EXPECT_LT(largest_difference(reinforce_gradient([](float) { return 0.8f; }), exact_gradient()),
            kFiveDeviations);
}

TEST(Reinforce, ABaselineThatLooksAtTheDrawIsCaught) {
  EXPECT_GT(
      largest_difference(reinforce_gradient([](float reward) { return 0.2f * reward; }), exact_gradient()),
      kFiveDeviations);
}

TEST(Reinforce, EntropyAndLogProbabilityAreThoseOfTheSoftmax) {
  const std::vector<double> p = softmax(kScores);
  double entropy = 0;
  for (const double each : p) entropy -= each * std::log(each);
  const Var v(Tensor::zeros({1, 1, 5, 1}));
  const auto result = attend(many_queries(10), keys_of(kScores), v, {.score = dot(), .selection = hard()},
                             {.training = true});
  for (int64_t i = 0; i < 10; ++i) {
    EXPECT_NEAR(result.entropy.value().data()[i], entropy, 1e-5);
    EXPECT_NEAR(result.log_probability.value().data()[i],
                std::log(p[static_cast<size_t>(result.chosen[static_cast<size_t>(i)])]), 1e-5);
  }
}

// At use there is no draw: not by another seed, not in another place of the batch, not beside other queries.
TEST(Draws, AtUseHardAndGumbelTakeTheLargestScoreWhateverTheSeed) {
  const Var keys = keys_of(kScores), v(Tensor::from({1, 2, 3, 4, 5}, {1, 1, 5, 1}));
  const auto best = static_cast<int32_t>(std::max_element(kScores.begin(), kScores.end()) - kScores.begin());
  for (const Selection& selection : {hard(), gumbel({.tau = 0.7f}), gumbel({.straight_through = true})})
    for (const uint64_t seed : {0, 1, 99}) {
      const auto result =
          attend(many_queries(50), keys, v, {.score = dot(), .selection = selection}, {.seed = seed});
      for (const float out : result.output.value().to_vector()) ASSERT_EQ(out, static_cast<float>(best + 1));
      for (const int32_t chosen : result.chosen) ASSERT_EQ(chosen, best);
      EXPECT_FALSE(result.log_probability.defined());
    }
}

TEST(Draws, ASelectionsOwnDropoutActsInTrainingOnly) {
  const Var keys = keys_of(kScores), v(Tensor::from({1, 2, 3, 4, 5}, {1, 1, 5, 1}));
  const AttentionSpec plain{.score = dot()}, dropping{.score = dot(), .selection = soft({.dropout = 0.3f})};
  const auto wanted = attend(many_queries(50), keys, v, plain).output.value().to_vector();
  EXPECT_EQ(attend(many_queries(50), keys, v, dropping, {.seed = 3}).output.value().to_vector(), wanted);
  EXPECT_NE(
      attend(many_queries(50), keys, v, dropping, {.training = true, .seed = 3}).output.value().to_vector(),
      wanted);
}

struct GumbelEstimate {
  double value;
  std::vector<float> gradient;
};

GumbelEstimate gumbel_estimate(float tau) {
  const Var keys = keys_of(kScores, true);
  const Var v(Tensor::from(kReward, {1, 1, 5, 1}));
  const auto result =
      attend(many_queries(kDraws), keys, v, {.score = dot(), .selection = gumbel({.tau = tau})},
             {.training = true, .seed = 33});
  double sum = 0;
  for (const float x : result.output.value().to_vector()) sum += x;
  result.output.backward(Tensor::full(result.output.shape(), 1.0f / kDraws));
  return {sum / kDraws, keys.grad().to_vector()};
}

TEST(Gumbel, TendsToTheExactExpectationAsTauFalls) {
  const std::vector<double> p = softmax(kScores);
  double exact = 0;
  for (size_t n = 0; n < p.size(); ++n) exact += p[n] * kReward[n];
  const GumbelEstimate warm = gumbel_estimate(2), cold = gumbel_estimate(0.1f);
  EXPECT_NEAR(cold.value, exact, 0.015);
  EXPECT_GT(std::abs(warm.value - exact), 0.03);
  EXPECT_LT(largest_difference(cold.gradient, exact_gradient()), 0.03);
  EXPECT_GT(largest_difference(warm.gradient, exact_gradient()), 0.06);
}

}  // namespace
}  // namespace fovea
