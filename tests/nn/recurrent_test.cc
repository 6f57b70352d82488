// LSTM and GRU layers against PyTorch's, weights loaded from its state dict: forward and every gradient.
#include "nn/recurrent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "autograd/ops.h"
#include "io/safetensors.h"

namespace fovea::nn {
namespace {

constexpr double kTolerance = 1e-5;  // relative to the largest value of a result
const std::vector<int64_t> kLengths{4, 7, 1, 5};

class Golden {
 public:
  explicit Golden(std::string prefix)
      : file_(std::string(FOVEA_GOLDEN) + "/recurrent.safetensors"), prefix_(std::move(prefix)) {}
  Tensor tensor(const std::string& name) const { return file_->tensor(prefix_ + name); }
  Var input(const std::string& name) const { return Var(tensor("input." + name), true); }
  void load(const Module& module) const {
    load_parameters(module, [&](std::string_view name) {
      const std::string full = prefix_ + "weight." + std::string(name);
      return file_->contains(full) ? file_->tensor(full) : Tensor();
    });
  }
  void expect(const Tensor& got, const std::string& name) const {
    const Tensor wanted = tensor(name);
    ASSERT_TRUE(got.defined()) << name;
    ASSERT_EQ(got.shape(), wanted.shape()) << name;
    const auto a = got.to_vector(), b = wanted.to_vector();
    double largest = 1e-3;
    for (const float x : b) largest = std::max(largest, std::abs(double{x}));
    for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], kTolerance * largest) << prefix_ << name;
  }
  // The outputs, then the gradients that their weighted sum gives.
  void check(const Module& module, std::vector<std::pair<std::string, Var>> inputs,
             std::vector<std::pair<std::string, Var>> outputs) const {
    Var loss;
    for (const auto& [name, value] : outputs) {
      expect(value.value(), "output." + name);
      const Var part = sum(value * Var(tensor("output_grad." + name)));
      loss = loss.defined() ? loss + part : part;
    }
    loss.backward();
    for (const auto& [name, value] : inputs) expect(value.grad(), "input_grad." + name);
    for (const auto& [name, value] : module.parameters()) expect(value.grad(), "grad." + name);
  }

 private:
  SafetensorsFile file_;
  std::string prefix_;
};

TEST(LSTM, StackedBidirectionalRaggedEqualsPyTorch) {
  const Golden golden("LSTM.");
  Rng rng(1);
  const LSTM layer({.input = 5, .hidden = 6, .layers = 2, .bidirectional = true}, rng);
  golden.load(layer);
  Context context;
  const Var x = golden.input("x"), h = golden.input("h"), c = golden.input("c");
  const RecurrentResult y = layer(x, kLengths, context, {h, c});
  golden.check(layer, {{"x", x}, {"h", h}, {"c", c}}, {{"out", y.out}, {"h", y.last.h}, {"c", y.last.c}});
}

TEST(GRU, StackedBidirectionalRaggedEqualsPyTorch) {
  const Golden golden("GRU.");
  Rng rng(1);
  const GRU layer({.input = 5, .hidden = 6, .layers = 2, .bidirectional = true}, rng);
  golden.load(layer);
  Context context;
  const Var x = golden.input("x"), h = golden.input("h");
  const RecurrentResult y = layer(x, kLengths, context, {h});
  golden.check(layer, {{"x", x}, {"h", h}}, {{"out", y.out}, {"h", y.last.h}});
}

TEST(LSTMCell, OneStepEqualsPyTorch) {
  const Golden golden("LSTMCell.");
  Rng rng(1);
  const LSTMCell cell(5, 6, rng);
  golden.load(cell);
  const Var x = golden.input("x"), h = golden.input("h"), c = golden.input("c");
  const LstmState y = cell(x, {h, c});
  golden.check(cell, {{"x", x}, {"h", h}, {"c", c}}, {{"h", y.h}, {"c", y.c}});
}

TEST(GRUCell, OneStepEqualsPyTorch) {
  const Golden golden("GRUCell.");
  Rng rng(1);
  const GRUCell cell(5, 6, rng);
  golden.load(cell);
  const Var x = golden.input("x"), h = golden.input("h");
  golden.check(cell, {{"x", x}, {"h", h}}, {{"h", cell(x, h)}});
}

TEST(Recurrent, ParameterNamesAreThoseOfPyTorch) {
  Rng rng(1);
  const LSTM layer({.input = 2, .hidden = 3, .layers = 2, .bidirectional = true, .bias = false}, rng);
  std::vector<std::string> names;
  for (const auto& parameter : layer.parameters()) names.push_back(parameter.name);
  EXPECT_THAT(names, testing::ElementsAre("weight_ih_l0", "weight_hh_l0", "weight_ih_l0_reverse",
                                          "weight_hh_l0_reverse", "weight_ih_l1", "weight_hh_l1",
                                          "weight_ih_l1_reverse", "weight_hh_l1_reverse"));
}

TEST(Recurrent, ABatchOfEqualLengthsIsTheSameAsItsPackedTokens) {
  Rng rng(2);
  const GRU layer({.input = 3, .hidden = 4}, rng);
  Context context;
  const Var x(Tensor::from(std::vector<float>(2 * 5 * 3, 0.5f), {2, 5, 3}));
  const Tensor batch = layer(x, context).out.value();
  EXPECT_EQ(batch.shape(), (Shape{2, 5, 4}));
  const std::vector<int64_t> lengths{5, 5};
  EXPECT_EQ(layer(reshape(x, {10, 3}), lengths, context).out.value().to_vector(), batch.to_vector());
}

TEST(Recurrent, DropoutActsBetweenLayersAndOnlyWhileTraining) {
  Rng rng(3);
  const LSTM layer({.input = 3, .hidden = 4, .layers = 2, .dropout = 0.5f}, rng);
  const Var x(Tensor::full({6, 3}, 0.5f));
  const std::vector<int64_t> lengths{6};
  const auto run = [&](bool training, uint64_t seed) {
    Context context{.training = training, .rng = Rng(seed)};
    return layer(x, lengths, context).out.value().to_vector();
  };
  EXPECT_EQ(run(false, 1), run(false, 2));
  EXPECT_EQ(run(true, 1), run(true, 1));
  EXPECT_NE(run(true, 1), run(true, 2));
  EXPECT_NE(run(true, 1), run(false, 1));
}

TEST(Recurrent, WrongSizesAreRefusedWithWhatWasWanted) {
  Rng rng(4);
  const LSTM layer({.input = 3, .hidden = 4}, rng);
  Context context;
  const Var x(Tensor::zeros({6, 3}));
  const auto message_of = [&](auto&& call) {
    try {
      call();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const std::vector<int64_t> short_of_one{3, 2}, negative{7, -1}, fits{6};
  EXPECT_THAT(message_of([&] { layer(x, short_of_one, context); }), testing::HasSubstr("add up to 5 tokens"));
  EXPECT_THAT(message_of([&] { layer(x, negative, context); }), testing::HasSubstr("length of -1"));
  EXPECT_THAT(message_of([&] {
                layer(x, fits, context, {.h = Var(Tensor::zeros({2, 1, 4}))});
              }),
              testing::HasSubstr("first states h"));
  EXPECT_THAT(message_of([&] {
                layer(Var(Tensor::zeros({6, 5})), fits, context);
              }),
              testing::HasSubstr("weight_ih"));
  EXPECT_THAT(message_of([&] { LSTM({.input = 3, .hidden = 4, .layers = 0}, rng); }),
              testing::HasSubstr("layers"));
}

}  // namespace
}  // namespace fovea::nn
