// Layer norm and cross-entropy against PyTorch's own values (tests/golden/make_ops.py).
#include <gtest/gtest.h>

#include <cmath>

#include "autograd/ops.h"
#include "io/safetensors.h"

namespace fovea {
namespace {

const SafetensorsFile& golden() {
  static const SafetensorsFile file(FOVEA_GOLDEN "/ops.safetensors");
  return file;
}

void expect_golden(const Tensor& got, const std::string& name) {
  const std::vector<float> wanted = golden()->read(name), values = got.to_vector();
  ASSERT_EQ(values.size(), wanted.size()) << name;
  for (size_t i = 0; i < wanted.size(); ++i)
    ASSERT_NEAR(values[i], wanted[i], 2e-6 * (1 + std::fabs(wanted[i]))) << name << " element " << i;
}

TEST(LayerNormGolden, EqualsPyTorchForwardAndBackward) {
  const auto tensor = [](const char* name) { return golden()->tensor(std::string("layer_norm.") + name); };
  const Var x(tensor("x"), true), weight(tensor("weight"), true), bias(tensor("bias"), true);
  const Var y = layer_norm(x, weight, bias);
  y.backward(tensor("grad"));
  expect_golden(y.value(), "layer_norm.y");
  expect_golden(x.grad(), "layer_norm.dx");
  expect_golden(weight.grad(), "layer_norm.d_weight");
  expect_golden(bias.grad(), "layer_norm.d_bias");
}

TEST(CrossEntropyGolden, EqualsPyTorchForEverySmoothingAndReduction) {
  std::vector<int32_t> targets;
  for (const float target : golden()->read("cross_entropy.targets"))
    targets.push_back(static_cast<int32_t>(target));
  const std::pair<Reduction, const char*> reductions[] = {
      {Reduction::mean, "mean"}, {Reduction::sum, "sum"}, {Reduction::none, "none"}};
  for (const auto& [smoothing, label] : {std::pair{0.0f, "0.0"}, std::pair{0.1f, "0.1"}})
    for (const auto& [reduction, reduction_name] : reductions) {
      const std::string name = std::string("cross_entropy.") + reduction_name + "." + label;
      const Var logits(golden()->tensor("cross_entropy.logits"), true);
      const Var loss = cross_entropy(logits, targets, {.smoothing = smoothing, .reduction = reduction});
      loss.backward(Tensor::full(loss.shape(), 1));
      expect_golden(loss.value(), name + ".loss");
      expect_golden(logits.grad(), name + ".dx");
    }
}

}  // namespace
}  // namespace fovea
