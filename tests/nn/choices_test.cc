// Hard attention that learns: REINFORCE by the losses of the examples.
#include "nn/choices.h"

#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <optional>

#include "autograd/ops.h"
#include "autograd/ops_loss.h"
#include "base/error.h"
#include "nn/attention.h"
#include "nn/attention_pooling.h"
#include "nn/layers.h"

namespace fovea::nn {
namespace {

// One learned query over three states, and a loss for each that may be chosen.
constexpr float kStates[3][2] = {{1, 0.5f}, {-0.5f, 1}, {0.2f, -1}};
constexpr float kLosses[3] = {2.3f, 4, 1};
constexpr float kQuery[2] = {0.4f, -0.3f};

double expected_loss(double q0, double q1) {
  double sum = 0, loss = 0;
  for (int j = 0; j < 3; ++j) {
    const double p = std::exp(q0 * kStates[j][0] + q1 * kStates[j][1]);
    sum += p;
    loss += p * kLosses[j];
  }
  return loss / sum;
}

double slope(int axis) {
  constexpr double h = 1e-4;
  const auto at = [&](double step) {
    return expected_loss(kQuery[0] + (axis == 0 ? step : 0), kQuery[1] + (axis == 1 ? step : 0));
  };
  return (at(h) - at(-h)) / (2 * h);
}

// Batches of examples that each draw one of the three states.
class ThreeStates {
 public:
  explicit ThreeStates(int64_t examples) : examples_(examples) {
    pooling_.parameters()[0].value.set_value(Tensor::from({kQuery[0], kQuery[1]}, {2}));
    std::vector<float> states;
    for (int64_t e = 0; e < examples; ++e) states.insert(states.end(), kStates[0], kStates[0] + 6);
    states_ = Var(Tensor::from(states, {3 * examples, 2}));
  }
  // What training takes as the gradient of the query, for the draws of a new batch.
  std::vector<float> gradient(std::optional<float> baseline = {}) {
    pooling_.clear_grad();
    context_.rows_of_example.assign(static_cast<size_t>(examples_), 1);
    const Var out = pooling_(states_, std::vector<int64_t>(static_cast<size_t>(examples_), 3), context_);
    std::vector<float> losses;
    for (int64_t e = 0; e < examples_; ++e)
      for (int j = 0; j < 3; ++j)
        if (out.value().data()[2 * e] == kStates[j][0]) losses.push_back(kLosses[j]);
    EXPECT_EQ(losses.size(), static_cast<size_t>(examples_));
    const Var loss = choices_loss(context_, losses, baseline);
    EXPECT_EQ(loss.value().item(), 0);  // the loss that is reported stays what it was
    EXPECT_TRUE(context_.choices.empty());
    loss.backward();
    return pooling_.parameters()[0].value.grad().to_vector();
  }

 private:
  int64_t examples_;
  Rng rng_{1};
  AttentionPooling pooling_{{.width = 2, .score = "dot", .selection = "hard"}, rng_};
  Context context_{.training = true, .rng = Rng(3)};
  Var states_;
};

TEST(Choices, GradientIsThatOfTheExpectedLossByEnumeration) {
  const std::vector<float> gradient = ThreeStates(200000).gradient();
  for (int axis = 0; axis < 2; ++axis) EXPECT_NEAR(gradient[static_cast<size_t>(axis)], slope(axis), 0.01);
}

// Small batches: the mean of the others' losses is a rough baseline, but still one.
TEST(Choices, TheBaselineOfTheOthersIsUnbiasedAndLowersTheVariance) {
  constexpr int kBatches = 20000;
  std::vector<double> variance;
  for (const std::optional<float> baseline : {std::optional<float>(), std::optional<float>(0.0f)}) {
    ThreeStates batches(8);
    double sum[2] = {}, squares[2] = {};
    for (int b = 0; b < kBatches; ++b) {
      const std::vector<float> gradient = batches.gradient(baseline);
      for (size_t i = 0; i < 2; ++i) {
        sum[i] += gradient[i];
        squares[i] += double{gradient[i]} * gradient[i];
      }
    }
    variance.push_back(0);
    for (int i = 0; i < 2; ++i) {
      const double mean = sum[i] / kBatches, own = squares[i] / kBatches - mean * mean;
      EXPECT_NEAR(mean, slope(i), 4.5 * std::sqrt(own / kBatches)) << "with" << (baseline ? "out" : "");
      variance.back() += own;
    }
  }
  std::cout << "variance of the gradient of 8 examples: " << variance[1] << " without a baseline, "
            << variance[0] << " with the mean loss of the others\n";
  EXPECT_LT(variance[0], 0.9 * variance[1]);
}

// Six states (marker, payload). One is marked; its payload is the label, those of the others say nothing. With
// a cosine score no weight can grow beyond e / (e + 5), about a third: whoever mixes the states mixes in the
// others, and is wrong where four of the five speak against it. Only a choice of one state tells the label.
struct Examples {
  Tensor states;
  std::vector<int32_t> labels;
};
constexpr int64_t kBatch = 64, kLength = 6;

Examples draw_examples(Rng& rng) {
  std::vector<float> states;
  std::vector<int32_t> labels;
  for (int64_t e = 0; e < kBatch; ++e) {
    const int64_t marked = rng.below(kLength);
    for (int64_t i = 0; i < kLength; ++i) {
      const auto sign = static_cast<int32_t>(rng.below(2));
      states.push_back(i == marked ? 3.0f : 0.0f);
      states.push_back(static_cast<float>(2 * sign - 1));
      if (i == marked) labels.push_back(sign);
    }
  }
  return {Tensor::from(states, {kBatch * kLength, 2}), labels};
}

// The share of right answers at use, after training.
double accuracy(const std::string& selection, bool rewarded) {
  Rng rng(5);
  const AttentionPooling pooling({.width = 2, .score = "cosine(1)", .selection = selection}, rng);
  const Linear output(1, 2, rng);                                          // reads the payload alone
  pooling.parameters()[0].value.set_value(Tensor::from({-0.3f, 1}, {2}));  // looks away from the mark
  const std::vector<int64_t> lengths(kBatch, kLength);
  Context context{.training = true, .rng = Rng(7)};
  for (int step = 0; step < 800; ++step) {
    const Examples batch = draw_examples(rng);
    context.rows_of_example.assign(kBatch, 1);
    context.choices.clear();
    const Var logits = output(slice(pooling(Var(batch.states), lengths, context), 1, 1, 1));
    Var loss = cross_entropy(logits, batch.labels);
    if (rewarded && !context.choices.empty()) {
      const Tensor each =
          cross_entropy(logits.detach(), batch.labels, {.reduction = Reduction::none}).value();
      loss = loss + choices_loss(context, each.span());
    }
    loss.backward();
    for (const Module* module : {static_cast<const Module*>(&pooling), static_cast<const Module*>(&output)})
      for (const NamedParameter& parameter : module->parameters()) {
        if (!parameter.value.grad().defined()) continue;
        const Tensor value = parameter.value.value().clone(), grad = parameter.value.grad().contiguous();
        for (int64_t i = 0; i < value.count(); ++i) value.data()[i] -= 0.5f * grad.data()[i];
        parameter.value.set_value(value);
        parameter.value.clear_grad();
      }
  }
  int64_t right = 0;
  Context use;
  for (int round = 0; round < 10; ++round) {
    const Examples batch = draw_examples(rng);
    const Tensor logits = output(slice(pooling(Var(batch.states), lengths, use), 1, 1, 1)).value();
    for (int64_t e = 0; e < kBatch; ++e)
      right +=
          (logits.data()[2 * e + 1] > logits.data()[2 * e]) == (batch.labels[static_cast<size_t>(e)] == 1);
  }
  return static_cast<double>(right) / (10 * kBatch);
}

TEST(Choices, ATaskThatOnlyAHardChoiceSolvesIsLearned) {
  EXPECT_GT(accuracy("hard", true), 0.99);
  EXPECT_LT(accuracy("soft", false), 0.85);
}

TEST(Choices, WithoutARewardAHardChoiceLearnsNothing) {
  EXPECT_LT(accuracy("hard", false), 0.7);
}

TEST(Choices, HeadsOfHardSelfAttentionTrainTheirQueriesAndKeys) {
  Rng rng(2);
  const MultiHeadAttention attention({.width = 8, .heads = 2, .spec = parse_spec("scaled_dot / full / hard")},
                                     rng);
  std::vector<float> numbers;
  for (int i = 0; i < 10 * 8; ++i) numbers.push_back(static_cast<float>(rng.normal()));
  const Var x(Tensor::from(numbers, {1, 10, 8}));
  Context context{.training = true, .rng = Rng(4)};
  EXPECT_THROW(attention(x, context), Error) << "nobody rewards it";
  context.rows_of_example = {4, 6};
  const Var out = attention(x, context, {.pattern = documents({4, 6})});
  ASSERT_EQ(context.choices.size(), 1u);
  choices_loss(context, std::vector<float>{1, 3}).backward();
  const Tensor grad = attention.parameters()[0].value.grad();  // in_proj_weight: q, k, v
  ASSERT_TRUE(grad.defined());
  const auto largest = [&](int64_t first) {
    float most = 0;
    for (const float g : grad.narrow(0, first, 8).to_vector()) most = std::max(most, std::abs(g));
    return most;
  };
  EXPECT_GT(largest(0), 1e-4f);
  EXPECT_GT(largest(8), 1e-4f);
  // At use the answer does not depend on the seed.
  Context one{.rng = Rng(1)}, two{.rng = Rng(2)};
  EXPECT_EQ(attention(x, one).value().to_vector(), attention(x, two).value().to_vector());
}

TEST(Pooling, TakesEverySelectionThatCanBeTrained) {
  Rng rng(9);
  std::vector<float> numbers;
  for (int i = 0; i < 9 * 4; ++i) numbers.push_back(static_cast<float>(rng.normal()));
  const std::vector<int64_t> lengths{4, 0, 5};
  for (const char* score : {"additive", "gated", "dot", "scaled_dot", "cosine(2)", "bilinear", "concat"})
    for (const char* selection : {"soft", "soft(0.3)", "hard", "gumbel(0.5)", "gumbel(1,straight_through)",
                                  "sparsemax", "top_k(2)", "sigmoid", "identity"}) {
      Rng draw(1);
      const AttentionPooling pooling({.width = 4, .score = score, .selection = selection}, draw);
      const Var states(Tensor::from(numbers, {9, 4}), true);
      Context context{.training = true, .rng = Rng(6)};
      context.rows_of_example = {1, 1, 1};
      const Var out = pooling(states, lengths, context);
      ASSERT_EQ(out.shape(), (Shape{3, 4}));
      Var loss = sum(out * out);
      if (!context.choices.empty()) loss = loss + choices_loss(context, std::vector<float>{1, 2, 4});
      loss.backward();
      const Tensor grad = pooling.parameters()[0].value.grad();
      ASSERT_TRUE(grad.defined()) << score << ' ' << selection;
      float most = 0;
      for (const float g : grad.to_vector()) most = std::max(most, std::abs(g));
      EXPECT_GT(most, 0) << score << ' ' << selection;
      // Without tokens there is nothing to sum up.
      for (int i = 4; i < 8; ++i) EXPECT_EQ(out.value().data()[i], 0);
      // At use a sequence's answer does not depend on its neighbours.
      Context use;
      const Tensor all = pooling(states, lengths, use).value();
      const Tensor alone = pooling(Var(states.value().narrow(0, 4, 5)), std::vector<int64_t>{5}, use).value();
      for (int i = 0; i < 4; ++i)
        EXPECT_EQ(alone.data()[i], all.contiguous().data()[8 + i]) << score << ' ' << selection;
    }
  EXPECT_THROW(AttentionPooling({.width = 4, .score = "location"}, rng), Error);
  EXPECT_THROW(AttentionPooling({.width = 4, .selection = "argmax"}, rng), Error);
  EXPECT_THROW(AttentionPooling({.width = 4, .selection = "hrad"}, rng), Error);
}

}  // namespace
}  // namespace fovea::nn
