// Gates against PyTorch modules (tests/golden/make_gates.py): forward, every gradient, and what is shown.
#include "nn/gates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "autograd/ops.h"
#include "base/error_of.h"
#include "io/safetensors.h"

namespace fovea::nn {
namespace {

class Golden {
 public:
  explicit Golden(const std::string& name)
      : file_(std::string(FOVEA_GOLDEN) + "/gates.safetensors"), prefix_(name + ".") {}
  Tensor tensor(const std::string& name) const { return file_->tensor(prefix_ + name); }
  void load(const Module& module) const {
    load_parameters(module, [&](std::string_view name) {
      const std::string full = prefix_ + "weight." + std::string(name);
      return file_->contains(full) ? file_->tensor(full) : Tensor();
    });
  }
  void expect(const Tensor& got, const std::string& name) const {
    const Tensor wanted = tensor(name);
    ASSERT_TRUE(got.defined()) << prefix_ << name;
    ASSERT_EQ(got.shape(), wanted.shape()) << prefix_ << name;
    const auto a = got.to_vector(), b = wanted.to_vector();
    double largest = 1e-3;
    for (const float x : b) largest = std::max(largest, std::abs(double{x}));
    for (size_t i = 0; i < a.size(); ++i)
      ASSERT_NEAR(a[i], b[i], 1e-5 * largest) << prefix_ << name << " element " << i;
  }
  // The output, the gradients that its weighted sum gives, and the buffers afterwards.
  void check(const Module& module, const Var& x, const Var& y) const {
    expect(y.value(), "y");
    y.backward(tensor("y_grad"));
    expect(x.grad(), "dx");
    for (const auto& [name, value] : module.parameters()) expect(value.grad(), "grad." + name);
    for (const auto& [name, value] : module.buffers()) expect(value.value(), "after." + name);
  }

 private:
  SafetensorsFile file_;
  std::string prefix_;
};

// Keeps all weights of every call by name.
class Everything : public AttentionObserver {
 public:
  Capture capture(const Call& call) override {
    Capture all{{0}, {}};
    for (int64_t row = 0; row < call.queries; ++row) all.rows.push_back(static_cast<int32_t>(row));
    return all;
  }
  void observe(const Call& call, const Capture&, const Captured& captured) override {
    seen[std::string(call.name)] = captured.weights;
    specs[std::string(call.name)] = to_string(call.spec);
  }
  std::map<std::string, Tensor> seen;
  std::map<std::string, std::string> specs;
};

TEST(SqueezeExcite, EqualsPyTorch) {
  const Golden golden("se");
  Rng rng(1);
  const SqueezeExcite layer(8, 4, rng);
  golden.load(layer);
  const Var x(golden.tensor("x"), true);
  golden.check(layer, x, layer(x));
}

TEST(Cbam, EqualsPyTorch) {
  const Golden golden("cbam");
  Rng rng(1);
  const Cbam layer(8, 2, rng);
  golden.load(layer);
  const Var x(golden.tensor("x"), true);
  golden.check(layer, x, layer(x));
}

TEST(Cbam, WithoutBiasesEqualsTheCodeMostPeopleHave) {
  for (const int64_t kernel : {3, 7}) {
    const Golden golden("cbam_plain" + std::to_string(kernel));
    Rng rng(1);
    const Cbam layer(8, 2, rng, {.kernel = kernel, .bias = false});
    EXPECT_EQ(layer.parameters().size(), 3u) << "two matrices and the kernel";
    golden.load(layer);
    const Var x(golden.tensor("x"), true);
    golden.check(layer, x, layer(x));
  }
}

TEST(SelectiveKernel, EqualsPyTorchWithGroupsStrideAndThreeBranches) {
  const std::pair<const char*, SelectiveKernelOptions> cases[] = {
      {"sk", {.channels = 6, .filters = 8, .stride = 2, .groups = 2, .reduction = 2, .least = 5}},
      {"sk3", {.channels = 4, .filters = 4, .branches = 3, .reduction = 16, .least = 3}}};
  for (const auto& [name, options] : cases) {
    const Golden golden(name);
    Rng rng(1);
    const SelectiveKernel layer(options, rng);
    golden.load(layer);
    const Var x(golden.tensor("x"), true);
    const Context context{.training = true};
    golden.check(layer, x, layer(x, context));
  }
}

TEST(Gates, ShowTheirWeightsToAnObserver) {
  Rng rng(2);
  const SqueezeExcite se(4, 2, rng);
  const Cbam cbam(4, 2, rng, {.kernel = 3});
  const SelectiveKernel sk({.channels = 4, .filters = 6}, rng);
  const Var x(Tensor::full({2, 3, 5, 4}, 0.5f));
  Everything everything;
  {
    const ObserveAttention observe(everything);
    const Context context;
    se(x, "se");
    cbam(x, "cbam");
    sk(x, context, "sk");
  }
  EXPECT_EQ(everything.seen.at("se").shape(), (Shape{2, 1, 1, 4}));
  EXPECT_EQ(everything.specs.at("se"), "dot / full / sigmoid");
  EXPECT_EQ(everything.seen.at("cbam.channel").shape(), (Shape{2, 1, 1, 4}));
  EXPECT_EQ(everything.seen.at("cbam.spatial").shape(), (Shape{2, 1, 1, 15}));
  const Tensor branches = everything.seen.at("sk");
  EXPECT_EQ(branches.shape(), (Shape{2, 1, 6, 2}));
  for (int64_t i = 0; i < branches.count(); i += 2)
    EXPECT_NEAR(branches.data()[i] + branches.data()[i + 1], 1, 1e-6);
}

TEST(Gates, ShownWeightsAreTheGatesThatActed) {
  Rng rng(3);
  const SqueezeExcite se(3, 1, rng);
  Everything everything;
  const ObserveAttention observe(everything);
  const Var x(Tensor::full({1, 2, 2, 3}, 2));
  const std::vector<float> out = se(x, "se").value().to_vector();
  const std::vector<float> gate = everything.seen.at("se").to_vector();
  for (size_t i = 0; i < out.size(); ++i) EXPECT_FLOAT_EQ(out[i], 2 * gate[i % 3]);
}

TEST(Gates, WhatDoesNotFitIsRefusedWithWhatWasWanted) {
  using ::testing::HasSubstr;
  Rng rng(4);
  const Var x(Tensor::zeros({1, 2, 2, 3}));
  EXPECT_THAT(error_of([&] { SqueezeExcite(4, 2, rng)(x); }), HasSubstr("height, width, 4]"));
  EXPECT_THAT(error_of([&] { SqueezeExcite(4, 0, rng); }), HasSubstr("reduction of 0"));
  EXPECT_THAT(error_of([&] { SpatialAttention(rng, 4); }), HasSubstr("odd"));
  EXPECT_THAT(error_of([&] { SelectiveKernel({.channels = 3, .filters = 3, .branches = 1}, rng); }),
              HasSubstr("at least 2"));
}

}  // namespace
}  // namespace fovea::nn
