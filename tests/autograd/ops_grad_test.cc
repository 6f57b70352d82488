#include "autograd/ops.h"

#include <gtest/gtest-spi.h>

#include <cmath>
#include <limits>

#include "autograd/gradient_check.h"
#include "autograd/in_place.h"
#include "base/error.h"
#include "tensor/allocator.h"

namespace fovea {
namespace {

using testing::check_gradients;
using testing::random_tensor;
using Inputs = std::span<const Var>;

// Odd shapes: scalars, ones, primes, off the vector width, empty.
const std::vector<Shape>& odd_shapes() {
  static const std::vector<Shape> shapes{{}, {1}, {7}, {3, 5}, {2, 37}, {0, 3}, {2, 1, 3}};
  return shapes;
}

TEST(UnaryGradient, MatchesDifferences) {
  for (const Shape& shape : odd_shapes()) {
    const Tensor x = random_tensor(shape, 1, 0.1f);
    for (Var (*op)(const Var&) : {relu, gelu, gelu_tanh, silu, tanh, sigmoid, exp})
      check_gradients([op](Inputs in) { return op(in[0]); }, {x});
    const Tensor positive = x.clone();
    for (float& v : positive.span()) v = std::fabs(v) + 0.5f;
    check_gradients([](Inputs in) { return log(in[0]); }, {positive});
  }
}

TEST(ArithmeticGradient, MatchesDifferencesForEveryBroadcast) {
  const std::vector<std::pair<Shape, Shape>> pairs{
      {{}, {}},     {{7}, {7}},       {{3, 5}, {5}},  {{3, 5}, {3, 1}}, {{3, 1}, {1, 5}},
      {{3, 5}, {}}, {{5}, {2, 3, 5}}, {{1}, {2, 37}}, {{0, 3}, {1, 3}}, {{2, 1, 4}, {1, 3, 1}},
  };
  for (const auto& [a, b] : pairs) {
    const std::vector<Tensor> inputs{random_tensor(a, 1), random_tensor(b, 2, 0.7f)};
    check_gradients([](Inputs in) { return in[0] + in[1]; }, inputs);
    check_gradients([](Inputs in) { return in[0] - in[1]; }, inputs);
    check_gradients([](Inputs in) { return in[0] * in[1]; }, inputs);
    check_gradients([](Inputs in) { return in[0] / in[1]; }, inputs);
  }
}

TEST(ArithmeticGradient, MatchesDifferencesWithNumbersAndItself) {
  const std::vector<Tensor> x{random_tensor({3, 7}, 1, 0.7f)};
  check_gradients([](Inputs in) { return 2.0f * in[0] + 1.0f - in[0] / 3.0f; }, x);
  check_gradients([](Inputs in) { return (1.0f - in[0]) * (2.0f / in[0]); }, x);
  check_gradients([](Inputs in) { return -in[0] * in[0] + in[0]; }, x);
}

TEST(ArithmeticGradient, ReadsTransposedViews) {
  check_gradients([](Inputs in) { return transpose(in[0], 0, 1) * in[1]; },
                  {random_tensor({5, 3}, 1), random_tensor({3, 5}, 2)});
}

TEST(Arithmetic, RefusesShapesThatDoNotMeet) {
  const Var a(Tensor::zeros({3, 5})), b(Tensor::zeros({3, 4}));
  try {
    a + b;
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("[3, 5] and [3, 4]"), std::string::npos) << error.what();
  }
}

TEST(ReduceGradient, MatchesDifferences) {
  for (const Shape& shape : odd_shapes()) {
    const std::vector<Tensor> x{random_tensor(shape, 1)};
    check_gradients([](Inputs in) { return sum(in[0]); }, x);
    if (shape.count() > 0) check_gradients([](Inputs in) { return mean(in[0]); }, x);
    for (int axis = 0; axis < shape.rank(); ++axis)
      for (const bool keep : {false, true}) {
        check_gradients([=](Inputs in) { return sum(in[0], axis, keep); }, x);
        if (shape[axis] == 0) continue;
        check_gradients([=](Inputs in) { return mean(in[0], axis, keep); }, x);
        check_gradients([=](Inputs in) { return max(in[0], axis, keep); }, x,
                        {.step = 1e-3f, .tolerance = 5e-3});
      }
  }
}

TEST(Reduce, RefusesTheMaximumOfNothing) {
  EXPECT_THROW(max(Var(Tensor::zeros({0, 3})), 0), Error);
}

TEST(SoftmaxGradient, MatchesDifferencesForEveryMask) {
  const std::vector<int32_t> lengths{5, 0};
  const Tensor seen = Tensor::from({1, 0, 1, 1, 1, 0, 1}, {7});
  const Tensor by_batch = Tensor::from({1, 0}, {2, 1, 1});
  const std::vector<SoftmaxMask> masks{{},
                                       {.lengths = lengths},
                                       {.causal = true},
                                       {.causal = true, .causal_offset = 2},
                                       {.seen = seen},
                                       {.seen = by_batch},
                                       {.lengths = lengths, .causal = true, .seen = seen}};
  for (const SoftmaxMask& mask : masks) {
    check_gradients([&](Inputs in) { return softmax(in[0], mask); }, {random_tensor({2, 3, 7}, 1)});
    // -inf would spoil the weighted sum; exp brings hidden columns back to 0.
    check_gradients([&](Inputs in) { return exp(log_softmax(in[0], mask)); }, {random_tensor({2, 3, 7}, 1)});
  }
  for (const Shape& shape : {Shape{1}, Shape{3, 37}, Shape{0, 3}, Shape{3, 0}}) {
    check_gradients([](Inputs in) { return softmax(in[0]); }, {random_tensor(shape, 1)});
    check_gradients([](Inputs in) { return log_softmax(in[0]); }, {random_tensor(shape, 1)});
  }
}

TEST(Softmax, RefusesMasksThatDoNotFit) {
  const Var x(Tensor::zeros({2, 3, 7}));
  const std::vector<int32_t> too_many{1, 2, 3, 4, 5}, too_long{8, 1};
  EXPECT_THROW(softmax(x, {.lengths = too_many}), Error);
  EXPECT_THROW(softmax(x, {.lengths = too_long}), Error);
  EXPECT_THROW(softmax(x, {.seen = Tensor::zeros({6})}), Error);
  EXPECT_THROW(softmax(x, {.seen = Tensor::zeros({4, 2, 3, 7})}), Error);
}

TEST(CrossEntropyGradient, MatchesDifferences) {
  const std::vector<int32_t> targets{3, -100, 0, 36, 5};
  for (const Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::none})
    for (const float smoothing : {0.0f, 0.1f})
      for (const int64_t classes : {37, 40})
        check_gradients(
            [&](Inputs in) {
              return cross_entropy(in[0], targets, {.smoothing = smoothing, .reduction = reduction}) * 1.5f;
            },
            {random_tensor({5, classes}, 1)});
}

TEST(CrossEntropy, OverwritingTheLogitsGivesTheSameGradient) {
  const std::vector<int32_t> targets{3, 1, 0};
  for (const Reduction reduction : {Reduction::mean, Reduction::sum}) {
    Tensor grads[2];
    for (const bool overwrite : {false, true}) {
      const Var x(random_tensor({3, 13}, 1), true);
      const Var logits = x * 2.0f;
      cross_entropy(logits, targets, {.reduction = reduction, .overwrite_logits = overwrite}).backward();
      grads[overwrite] = x.grad();
    }
    EXPECT_EQ(grads[0].to_vector(), grads[1].to_vector());
  }
}

TEST(CrossEntropy, MeanOfNoRowsIsZero) {
  const std::vector<int32_t> targets{-100, -100};
  const Var x(random_tensor({2, 5}, 1), true);
  const Var loss = cross_entropy(x, targets);
  loss.backward();
  EXPECT_EQ(loss.value().item(), 0);
  EXPECT_EQ(x.grad().to_vector(), std::vector<float>(10, 0));
}

TEST(CrossEntropy, RefusesWrongTargets) {
  const Var x(Tensor::zeros({2, 5}));
  const std::vector<int32_t> too_few{1}, no_class{1, 5}, negative{-1, 2};
  EXPECT_THROW(cross_entropy(x, too_few), Error);
  EXPECT_THROW(cross_entropy(x, no_class), Error);
  EXPECT_THROW(cross_entropy(x, negative), Error);
}

TEST(RowsGradient, MatchesDifferences) {
  const std::vector<int32_t> ids{4, 1, 4, 0, 4}, padded{4, -1, 2, -1}, none;
  const std::vector<Tensor> table{random_tensor({6, 7}, 1)};
  for (const auto* chosen : {&ids, &padded, &none})
    check_gradients([&](Inputs in) { return embedding(in[0], *chosen); }, table);
  check_gradients([&](Inputs in) { return gather(in[0], ids); }, table);
  check_gradients([&](Inputs in) { return gather(in[0], ids); }, {random_tensor({5, 2, 3}, 1)});
  check_gradients([&](Inputs in) { return pick(in[0], ids); }, {random_tensor({5, 6}, 1)});
  // A table used twice: two row-sparse gradients meet, and one dense.
  check_gradients([&](Inputs in) { return sum(embedding(in[0], ids)) + sum(embedding(in[0], padded)); },
                  table);
  check_gradients([&](Inputs in) { return sum(embedding(in[0], ids)) + sum(in[0] * in[0]); }, table);
  for (const auto* chosen : {&ids, &padded})
    check_gradients([&](Inputs in) { return embedding(in[0], *chosen, {.scale = 3, .added = in[1]}); },
                    {table[0], random_tensor({static_cast<int64_t>(chosen->size()), 7}, 2)});
}

TEST(Embedding, GradientIsRowSparse) {
  const Var table(random_tensor({100, 3}, 1), true);
  const std::vector<int32_t> ids{70, 5, 70};
  embedding(table, ids).backward(Tensor::full({3, 3}, 1));
  ASSERT_NE(table.sparse_grad(), nullptr);
  EXPECT_EQ(table.sparse_grad()->rows, (std::vector<int32_t>{5, 70}));
  EXPECT_EQ(table.sparse_grad()->values.to_vector(), (std::vector<float>{1, 1, 1, 2, 2, 2}));
}

TEST(Embedding, ScalesAndAdds) {
  const Var table(Tensor::from({1, 2, 3, 4}, {2, 2})), added(Tensor::from({10, 20, 30, 40}, {2, 2}));
  const std::vector<int32_t> ids{1, 7};
  EXPECT_EQ(embedding(table, ids, {.padding = 7, .scale = 2, .added = added}).value().to_vector(),
            (std::vector<float>{16, 28, 30, 40}));
  EXPECT_THROW(embedding(table, ids, {.padding = 7, .added = reshape(added, {4, 1})}), Error);
}

TEST(Rows, RefuseNumbersOutOfRange) {
  const Var x(Tensor::zeros({3, 2}));
  const std::vector<int32_t> beyond{3, 0, 0}, negative{-2, 0, 0};
  for (const auto* ids : {&beyond, &negative}) {
    EXPECT_THROW(embedding(x, *ids), Error);
    EXPECT_THROW(gather(x, *ids), Error);
    EXPECT_THROW(pick(x, *ids), Error);
  }
}

TEST(MatmulGradient, MatchesDifferences) {
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      const MatmulOptions options{.transpose_a = ta, .transpose_b = tb, .scale = 0.5f};
      const auto product = [=](Inputs in) { return matmul(in[0], in[1], options); };
      const auto shape = [](bool transposed, int64_t rows, int64_t columns) {
        return transposed ? Shape{columns, rows} : Shape{rows, columns};
      };
      const auto batched = [](const Shape& s) { return Shape{3, s[0], s[1]}; };
      const Shape a = shape(ta, 5, 7), b = shape(tb, 7, 2);
      check_gradients(product, {random_tensor(a, 1), random_tensor(b, 2)});
      check_gradients(product, {random_tensor(batched(a), 1), random_tensor(batched(b), 2)});
      check_gradients(product, {random_tensor(batched(a), 1), random_tensor(b, 2)});
      check_gradients(product, {random_tensor(a, 1), random_tensor(batched(b), 2)});
      check_gradients(product, {random_tensor(shape(ta, 0, 7), 1), random_tensor(b, 2)});
      check_gradients(product, {random_tensor(shape(ta, 1, 1), 1), random_tensor(shape(tb, 1, 1), 2)});
    }
}

TEST(LinearGradient, MatchesDifferencesForEveryActivation) {
  for (const Activation activation :
       {Activation::none, Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::silu})
    for (const Shape& shape : {Shape{5, 7}, Shape{2, 3, 7}, Shape{7}, Shape{0, 7}}) {
      const testing::GradientCheck fine{.step = activation == Activation::relu ? 1e-3f : 0.02f,
                                        .tolerance = 5e-3};
      check_gradients([=](Inputs in) { return linear(in[0], in[1], in[2], activation); },
                      {random_tensor(shape, 1), random_tensor({11, 7}, 2), random_tensor({11}, 3)}, fine);
      check_gradients([=](Inputs in) { return linear(in[0], in[1], {}, activation); },
                      {random_tensor(shape, 1), random_tensor({11, 7}, 2)}, fine);
    }
}

TEST(ShapeGradient, MatchesDifferences) {
  const std::vector<Tensor> x{random_tensor({2, 3, 5}, 1)};
  check_gradients([](Inputs in) { return reshape(in[0], {-1, 6}) * 2.0f; }, x);
  check_gradients([](Inputs in) { return transpose(in[0], 0, 2) * 2.0f; }, x);
  check_gradients([](Inputs in) { return permute(in[0], {1, 2, 0}) * 2.0f; }, x);
  check_gradients([](Inputs in) { return slice(in[0], 1, 1, 2) * slice(in[0], 1, 0, 2); }, x);
  check_gradients(
      [](Inputs in) {
        const std::vector<int64_t> counts{1, 0, 4};
        const std::vector<Var> parts = split(in[0], 2, counts);
        return parts[2] * parts[0];
      },
      x);
  check_gradients(
      [](Inputs in) {
        const std::vector<Var> parts{in[0], in[1], in[0]};
        return concat(parts, 1) * 2.0f;
      },
      {random_tensor({2, 3, 5}, 1), random_tensor({2, 1, 5}, 2)});
}

TEST(NormGradient, MatchesDifferences) {
  for (const Shape& shape : {Shape{7}, Shape{3, 5}, Shape{2, 3, 37}, Shape{0, 4}}) {
    const int64_t d = shape[-1];
    const std::vector<Tensor> inputs{random_tensor(shape, 1), random_tensor({d}, 2), random_tensor({d}, 3)};
    check_gradients([](Inputs in) { return layer_norm(in[0], in[1], in[2]); }, inputs);
    check_gradients([](Inputs in) { return layer_norm(in[0], {}, {}); }, {inputs[0]});
    check_gradients([](Inputs in) { return dropout(in[0], 0.3f, 5); }, {inputs[0]});
    const std::vector<Tensor> fused{inputs[0], random_tensor(shape, 4), inputs[1], inputs[2]};
    for (const float p : {0.0f, 0.3f}) {
      check_gradients(
          [=](Inputs in) { return residual_dropout_norm(in[0], in[1], in[2], in[3], p, 5).normed; }, fused);
      check_gradients([=](Inputs in) { return residual_dropout_norm(in[0], in[1], in[2], in[3], p, 5).sum; },
                      fused);
      check_gradients(
          [=](Inputs in) {
            const NormedSum both = residual_dropout_norm(in[0], in[1], in[2], in[3], p, 5);
            return both.normed * both.sum;
          },
          fused);
    }
  }
}

// A Transformer's feed-forward part with its residual sum and norm.
TEST(InPlace, SameBitsAsThePlainOpsInLessMemory) {
  const int64_t rows = 37, d = 24, hidden = 100;
  for (const Activation activation :
       {Activation::none, Activation::relu, Activation::gelu, Activation::silu}) {
    struct Run {
      std::vector<std::vector<float>> results;
      int64_t bytes = 0;  // that the tape holds
    };
    const auto run = [&](bool in_place) {
      const std::vector<Var> in{
          Var(random_tensor({rows, d}, 1), true), Var(random_tensor({hidden, d}, 2), true),
          Var(random_tensor({hidden}, 3), true),  Var(random_tensor({d, hidden}, 4), true),
          Var(random_tensor({d}, 5), true),       Var(random_tensor({rows, d}, 6), true),
          Var(Tensor::full({d}, 1.5f), true),     Var(random_tensor({d}, 7), true)};
      const int64_t before = memory_use().live_bytes;
      const auto norm = in_place ? residual_dropout_norm_in_place : residual_dropout_norm;
      const NormedSum sum = norm(linear(in_place ? linear_dropout(in[0], in[1], in[2], activation, 0.3f, 9)
                                                 : dropout(linear(in[0], in[1], in[2], activation), 0.3f, 9),
                                        in[3], in[4]),
                                 in[5], in[6], in[7], 0.2f, 11, 1e-5f);
      Run result;
      result.bytes = memory_use().live_bytes - before;
      const Var loss = mean(sum.normed * sum.sum);
      result.results = {sum.normed.value().to_vector(), sum.sum.value().to_vector()};
      loss.backward();
      for (const Var& x : in) result.results.push_back(x.grad().to_vector());
      return result;
    };
    const Run plain = run(false), in_place = run(true);
    EXPECT_EQ(in_place.results, plain.results);
    EXPECT_LE(in_place.bytes, plain.bytes - int64_t{4} * rows * (hidden + d));
  }
}

TEST(InPlace, WhatSomebodyElseHoldsIsNotOverwritten) {
  const Var x(random_tensor({5, 8}, 1)), residual(random_tensor({5, 8}, 2)), weight(Tensor::full({8}, 1)),
      bias(Tensor::zeros({8}));
  const Tensor held = x.value();
  const std::vector<float> before = held.to_vector();
  const NormedSum in_place = residual_dropout_norm_in_place(x, residual, weight, bias, 0, 0);
  EXPECT_EQ(held.to_vector(), before);
  const std::vector<float> normed =
      residual_dropout_norm(x, residual, weight, bias, 0, 0).normed.value().to_vector();
  EXPECT_EQ(in_place.normed.value().to_vector(), normed);
  EXPECT_EQ(residual_dropout_norm_alone(x, residual, weight, bias, 0, 0).value().to_vector(), normed);
  EXPECT_EQ(held.to_vector(), before);
}

TEST(InPlace, ANormWhoseSumNobodyReadsIsWrittenOverItsInput) {
  const Var residual(random_tensor({5, 8}, 2), true), weight(Tensor::full({8}, 1.5f), true),
      bias(random_tensor({8}, 3), true);
  const auto x = [] { return Var(random_tensor({5, 8}, 1)); };
  const std::vector<float> wanted =
      residual_dropout_norm(x(), residual, weight, bias, 0.2f, 7).normed.value().to_vector();
  {
    const NoGrad no_grad;
    const Var in = x();
    const float* const memory = in.value().data();
    const Var normed = residual_dropout_norm_alone(in, residual, weight, bias, 0.2f, 7);
    EXPECT_EQ(normed.value().to_vector(), wanted);
    EXPECT_EQ(normed.value().data(), memory);
  }
  // With the tape, gradients are those of residual_dropout_norm().
  std::vector<std::vector<float>> grads;
  for (const bool alone : {false, true}) {
    for (const Var& leaf : {residual, weight, bias}) leaf.clear_grad();
    const Var normed = alone ? residual_dropout_norm_alone(x(), residual, weight, bias, 0.2f, 7)
                             : residual_dropout_norm(x(), residual, weight, bias, 0.2f, 7).normed;
    mean(normed * normed * normed).backward();
    for (const Var& leaf : {residual, weight, bias}) grads.push_back(leaf.grad().to_vector());
  }
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(grads[i + 3], grads[i]) << i;
}

TEST(RotaryGradient, MatchesDifferences) {
  const std::vector<int32_t> positions{0, 3, 11};
  for (const bool interleaved : {false, true})
    check_gradients([&](Inputs in) { return rotary(in[0], positions, {.interleaved = interleaved}); },
                    {random_tensor({2, 3, 6}, 1)});
}

// The gradient of exp(x) is not that of x.
Var wrong_gradient(Inputs in) {
  const Var x = in[0];
  return record(exp(x).value(), {x}, [x](const Tensor& grad) { x.add_grad(grad); });
}

TEST(GradientCheck, FindsAWrongGradient) {
  EXPECT_FATAL_FAILURE(check_gradients(wrong_gradient, {Tensor::full({3}, 1)}), "input 0");
}

}  // namespace
}  // namespace fovea
