#include "autograd/ops_repeated.h"

#include <algorithm>
#include <cmath>

#include "autograd/gradient_check.h"
#include "autograd/ops.h"
#include "autograd/ops_attentive.h"
#include "base/parallel.h"

namespace fovea {
namespace {

using testing::check_gradients;
using testing::random_tensor;
using Inputs = std::span<const Var>;

TEST(RepeatedLinear, GradientsOfAllCallsMatchFiniteDifferences) {
  for (const Activation activation : {Activation::none, Activation::gelu, Activation::silu}) {
    const testing::GradientCheck fine{.step = 0.02f, .tolerance = 5e-3};
    // Three calls, the second one on what the first one made, and one whose result nobody uses.
    const auto steps = [=](const RepeatedLinear& layer, const Var& x, const Var& y) {
      const Var first = layer(x, activation);
      layer(y);
      const Var parts[] = {layer(tanh(first), activation), layer(y, activation)};
      return concat(parts, 0);
    };
    check_gradients(
        [&](Inputs in) { return steps(RepeatedLinear(in[2], in[3]), in[0], in[1]); },
        {random_tensor({5, 7}, 1), random_tensor({3, 7}, 2), random_tensor({7, 7}, 3), random_tensor({7}, 4)},
        fine);
    check_gradients([&](Inputs in) { return steps(RepeatedLinear(in[2]), in[0], in[1]); },
                    {random_tensor({5, 7}, 1), random_tensor({3, 7}, 2), random_tensor({7, 7}, 3)}, fine);
  }
}

TEST(RepeatedLinear, GivesWhatLinearGives) {
  for (const Shape& size : {Shape{1, 1}, Shape{2, 33}, Shape{65, 2}, Shape{130, 600}, Shape{3, 0}}) {
    for (const int64_t rows : {1, 7, 64, 300}) {
      const Var weight(random_tensor(size, 1), true), bias(random_tensor({size[0]}, 2), true);
      const Var same_weight(weight.value(), true), same_bias(bias.value(), true);
      const Var x(random_tensor({rows, size[1]}, 3), true), same_x(x.value(), true);
      const Var y = RepeatedLinear(weight, bias)(x, Activation::relu);
      const Var wanted = linear(same_x, same_weight, same_bias, Activation::relu);
      sum(y * y).backward();
      sum(wanted * wanted).backward();
      const auto expect_near = [](const Tensor& got, const Tensor& expected) {
        ASSERT_EQ(got.shape(), expected.shape());
        float largest = 1;
        for (const float value : expected.span()) largest = std::max(largest, std::fabs(value));
        for (int64_t i = 0; i < got.count(); ++i)
          ASSERT_NEAR(got.data()[i], expected.data()[i], 1e-5 * largest);
      };
      expect_near(y.value(), wanted.value());
      expect_near(weight.grad(), same_weight.grad());
      expect_near(bias.grad(), same_bias.grad());
      expect_near(x.grad(), same_x.grad());
    }
  }
}

TEST(RepeatedLinear, AWeightMadeOnTheTapePassesItsGradientOn) {
  check_gradients(
      [](Inputs in) {
        const Var parts[] = {in[1], in[2]};
        const RepeatedLinear layer(concat(parts, 0));
        return layer(slice(layer(in[0]), 1, 0, 3));
      },
      {random_tensor({4, 3}, 1), random_tensor({2, 3}, 2), random_tensor({3, 3}, 3)});
}

TEST(RepeatedOps, BytesDoNotDependOnThreads) {
  constexpr int64_t kRows = 48, kHidden = 160, kKeys = 20;
  const auto gradients = [&](int threads) {
    set_num_threads(threads);
    const Var weight(random_tensor({4 * kHidden, kHidden}, 1), true),
        query(random_tensor({kHidden, kHidden}, 2), true), vector(random_tensor({kHidden}, 3), true),
        keys(random_tensor({kRows * kKeys, kHidden}, 4), true),
        values(random_tensor({kRows * kKeys, 4 * kHidden}, 5), true);
    const RepeatedLinear product(weight), ask(query);
    const RepeatedRuns look(keys, values, {.family = kernels::ScoreFamily::additive, .vector = vector});
    const std::vector<int64_t> ones(kRows, 1), counts(kRows, kKeys);
    const KeyRuns runs = KeyRuns::sentences(ones, counts);
    LstmState state{Var(random_tensor({kRows, kHidden}, 6)), Var(random_tensor({kRows, kHidden}, 7))};
    for (int t = 0; t < 3; ++t)
      state = lstm_gates(product(state.h), look(ask(state.h), runs).out, {}, state.c);
    sum(state.h).backward();
    set_num_threads(0);
    std::vector<std::vector<float>> all;
    for (const Var& v : {weight, query, vector, keys, values}) all.push_back(v.grad().to_vector());
    return all;
  };
  EXPECT_EQ(gradients(1), gradients(3));
}

TEST(LstmGates, GradientsMatchFiniteDifferences) {
  for (const bool added : {false, true}) {
    const auto step = [=](Inputs in) {
      const LstmState next = lstm_gates(in[0], slice(in[1], 1, 2, 12), added ? in[2] : Var(), in[3]);
      const LstmState last = lstm_gates(in[0], in[0], {}, next.c);
      const Var parts[] = {next.h, last.h, last.c};
      return concat(parts, 1);
    };
    check_gradients(step, {random_tensor({5, 12}, 1), random_tensor({5, 17}, 2), random_tensor({5, 12}, 3),
                           random_tensor({5, 3}, 4)});
  }
}

// Queries of two steps: of all sentences, then of the first one alone.
Var two_steps(const RepeatedRuns& look, const Var& q) {
  const std::vector<int64_t> keys{4, 3}, first{1, 1}, second{1, 0};
  const RepeatedRuns::Seen one = look(slice(q, 0, 0, 2), KeyRuns::sentences(first, keys), true),
                           two = look(slice(q, 0, 2, 1), KeyRuns::sentences(second, keys), true);
  const Var weights[] = {one.weights, two.weights}, seen[] = {one.out, two.out};
  const Var all[] = {concat(seen, 0), concat(weights, 0)};
  return concat(all, 1);
}

TEST(RepeatedRuns, GradientsOfAllCallsMatchFiniteDifferences) {
  for (const bool additive : {false, true})
    check_gradients(
        [=](Inputs in) {
          const RunScore score{
              .family = additive ? kernels::ScoreFamily::additive : kernels::ScoreFamily::dot,
              .vector = additive ? in[3] : Var()};
          return two_steps(RepeatedRuns(in[1], in[2], score), in[0]);
        },
        {random_tensor({3, 5}, 1), random_tensor({7, 5}, 2), random_tensor({7, 3}, 3),
         random_tensor({5}, 4)});
}

TEST(RepeatedRuns, NumbersBeyondTheRangeOfExponentialsGiveTheSame) {
  // Queries and keys that cancel: the tanh of their sums is far from 1.
  const Tensor near_q = random_tensor({3, 5}, 1), near_k = random_tensor({7, 5}, 2);
  const Tensor far_q = near_q.clone(), far_k = near_k.clone();
  for (float& x : far_q.span()) x += 64;
  for (float& x : far_k.span()) x -= 64;
  const Var vector(random_tensor({5}, 4)), v(random_tensor({7, 3}, 3));
  const RunScore score{.family = kernels::ScoreFamily::additive, .vector = vector};
  const Var q(near_q, true), k(near_k, true), q2(far_q, true), k2(far_k, true);
  const Var wanted = two_steps(RepeatedRuns(k, v, score), q);
  const Var got = two_steps(RepeatedRuns(k2, v, score), q2);
  sum(wanted * wanted).backward();
  sum(got * got).backward();
  for (int64_t i = 0; i < wanted.count(); ++i)
    EXPECT_NEAR(got.value().data()[i], wanted.value().data()[i], 1e-4);
  for (int64_t i = 0; i < q.count(); ++i) EXPECT_NEAR(q2.grad().data()[i], q.grad().data()[i], 1e-4);
  for (int64_t i = 0; i < k.count(); ++i) EXPECT_NEAR(k2.grad().data()[i], k.grad().data()[i], 1e-4);
}

}  // namespace
}  // namespace fovea
