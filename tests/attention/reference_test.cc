// The oracle itself: its forward pass against results known by hand, its gradients against finite
// differences.
#include "attention/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "attention/problem.h"
#include "base/error.h"

namespace fovea {
namespace {

using reference::Array;
using reference::Inputs;
using test::random_inputs;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// One query of one head against the keys of a number line: scores are the keys themselves.
Inputs number_line(const Array& scores, const Array& values) {
  const auto keys = static_cast<int64_t>(scores.size());
  return {.queries = 1, .keys = keys, .d = 1, .dk = 1, .dv = 1, .q = {1}, .k = scores, .v = values};
}

TEST(Reference, SoftmaxOfKnownScores) {
  const auto r = reference::forward({.score = dot()}, number_line({0, std::log(3.0)}, {4, 8}));
  EXPECT_NEAR(r.weights[0], 0.25, 1e-12);
  EXPECT_NEAR(r.out[0], 7, 1e-12);
  EXPECT_NEAR(r.lse[0], std::log(4.0), 1e-12);
}

TEST(Reference, ASinkTakesWeightAndCarriesNothing) {
  Inputs in = number_line({0, 0}, {4, 8});
  in.sink = {std::log(2.0)};
  const auto r = reference::forward({.score = dot(), .terms = {.sink = true}}, in);
  EXPECT_NEAR(r.out[0], 3, 1e-12);
  EXPECT_NEAR(r.lse[0], std::log(4.0), 1e-12);
}

TEST(Reference, SparsemaxOfKnownScores) {
  const auto r =
      reference::forward({.score = dot(), .selection = sparsemax()}, number_line({1, 0.6, -5}, {1, 1, 1}));
  EXPECT_NEAR(r.weights[0], 0.7, 1e-6);
  EXPECT_NEAR(r.weights[1], 0.3, 1e-6);
  EXPECT_EQ(r.weights[2], 0);
}

TEST(Reference, TopKKeepsTheFirstOfEquals) {
  const auto r =
      reference::forward({.score = dot(), .selection = top_k(2)}, number_line({1, 2, 1, 1}, {1, 2, 3, 4}));
  EXPECT_GT(r.weights[0], 0);
  EXPECT_GT(r.weights[1], r.weights[0]);
  EXPECT_EQ(r.weights[2] + r.weights[3], 0);
}

TEST(Reference, CosineScaleCapAndGaussianAreWhatTheySay) {
  Inputs in{.queries = 1, .keys = 1, .d = 2, .dk = 2, .dv = 1, .q = {3, 4}, .k = {30, 40}, .v = {1}};
  EXPECT_NEAR(reference::forward({.score = cosine(0.5)}, in).lse[0], 2, 1e-12);
  EXPECT_NEAR(reference::forward({.score = scaled_dot()}, in).lse[0], 250 / std::sqrt(2.0), 1e-9);
  EXPECT_NEAR(reference::forward({.score = scaled_dot(10)}, in).lse[0], 25, 1e-12);
  EXPECT_NEAR(reference::forward({.score = dot(), .terms = {.soft_cap = 30}}, in).lse[0],
              30 * std::tanh(250 / 30.0), 1e-12);
  in.centre = {2};
  EXPECT_NEAR(reference::forward({.score = dot(), .terms = {.gaussian = 2}}, in).out[0], std::exp(-0.5),
              1e-12);
}

TEST(Reference, ARowThatSeesNothingGivesZero) {
  Inputs in = number_line({0, 1}, {4, 8});
  for (const Selection& s : {soft(), hard(), gumbel(), argmax(), top_k(1), sparsemax(), sigmoid_selection(),
                             identity_selection()}) {
    const AttentionSpec spec{.score = dot(), .pattern = lengths({0}), .selection = s};
    const auto r = reference::forward(spec, in);
    EXPECT_EQ(r.out[0], 0);
    EXPECT_EQ(r.lse[0], -kInfinity);
    EXPECT_EQ(r.chosen[0], -1);
    const Inputs grad = reference::backward(spec, in, {.out = {1}});
    for (const double g : {grad.q[0], grad.k[0], grad.k[1], grad.v[0], grad.v[1]}) EXPECT_EQ(g, 0);
  }
}

// The derivative of the loss along each input number, by central differences.
void expect_true_gradients(const std::string& text, uint64_t seed) {
  const AttentionSpec spec = parse_spec(text);
  Rng rng(seed);
  const test::ProblemSizes sizes{
      .batch = 2, .heads = 4, .kv_heads = 2, .queries = 3, .keys = 5, .d = 3, .dv = 2};
  Inputs in = random_inputs(spec, sizes, rng);
  const int64_t rows = in.batch * in.heads * in.queries;
  const bool is_hard = spec.selection.kind == SelectionKind::hard;
  reference::ResultGradients d{.out = test::random_array(rng, rows * in.dv)};
  if (is_hard) {
    d.log_probability = test::random_array(rng, rows);
    d.entropy = test::random_array(rng, rows);
  }
  // Straight through passes the gradient of the relaxed choice on: v's weights are another matter.
  const bool straight = spec.selection.straight_through;
  AttentionSpec smooth = spec;
  smooth.selection.straight_through = false;
  const auto loss = [&](const Inputs& at) {
    const auto r = reference::forward(smooth, at);
    double sum = 0;
    for (size_t n = 0; n < r.out.size(); ++n) sum += r.out[n] * d.out[n];
    if (is_hard)
      for (int64_t n = 0; n < rows; ++n)
        sum += r.log_probability[n] * d.log_probability[n] + r.entropy[n] * d.entropy[n];
    return sum;
  };
  const Inputs grad = reference::backward(spec, in, d);
  for (const auto& [name, array] : test::kInputArrays) {
    if (straight && array == &Inputs::v) continue;
    for (size_t n = 0; n < (in.*array).size(); ++n) {
      const double step = 1e-5, before = (in.*array)[n];
      (in.*array)[n] = before + step;
      const double up = loss(in);
      (in.*array)[n] = before - step;
      const double down = loss(in);
      (in.*array)[n] = before;
      ASSERT_NEAR((grad.*array)[n], (up - down) / (2 * step), 1e-7)
          << text << ": " << name << '[' << n << ']';
    }
  }
}

TEST(Reference, GradientsAreThoseOfFiniteDifferences) {
  uint64_t seed = 1;
  for (const char* score : {"dot", "scaled_dot", "cosine(0.5)", "bilinear", "additive", "concat"})
    for (const char* selection : {"soft", "hard", "gumbel(0.7)", "gumbel(0.7,straight_through)", "argmax",
                                  "top_k(2)", "sparsemax", "sigmoid", "soft(0.3)"})
      expect_true_gradients(message(score, " / causal | global(1) / ", selection), seed++);
  for (const char* terms :
       {"soft_cap(2)", "alibi", "bias", "relative(4,3)", "relative(6,9,one_sided)", "gaussian(1.5)", "sink",
        "soft_cap(3) + alibi + bias + relative(4,3) + gaussian(2) + sink"})
    for (const char* selection : {"soft(0.2)", "top_k(3)"})
      expect_true_gradients(message("dot + ", terms, " / window(2,1) / ", selection), seed++);
}

}  // namespace
}  // namespace fovea
