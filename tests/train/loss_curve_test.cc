// Ten steps of a small network, from PyTorch's initial weights and on its batches: the same losses, norms and
// weights.
#include <gtest/gtest.h>

#include <cmath>

#include "nn/layers.h"
#include "nn/weights.h"
#include "train/optimizer.h"
#include "train/schedule.h"

namespace fovea::train {
namespace {

constexpr int64_t kSteps = 10, kBatch = 16, kLength = 5, kWidth = 8;

class Network : public nn::Module {
 public:
  explicit Network(Rng rng) : hidden(kLength * kWidth, 24, rng), norm(24), output(24, 7, rng) {
    table = add_parameter("embedding.weight", Tensor::zeros({11, kWidth}));
    add_child("hidden", hidden);
    add_child("norm", norm);
    add_child("output", output);
  }
  Var operator()(std::span<const int32_t> ids) const {
    const Var words = reshape(embedding(table, ids), {-1, kLength * kWidth});
    return output(norm(hidden(words, Activation::gelu)));
  }
  Var table;
  nn::Linear hidden;
  nn::LayerNorm norm;
  nn::Linear output;
};

std::vector<int32_t> integers(const SafetensorsFile& file, const std::string& name) {
  std::vector<int32_t> values;
  for (const float value : file->read(name)) values.push_back(static_cast<int32_t>(value));
  return values;
}

TEST(LossCurve, TenStepsEqualPyTorch) {
  const SafetensorsFile golden(FOVEA_GOLDEN "/loss_curve.safetensors");
  const Network network(Rng(1));
  nn::load_parameters(network,
                      [&](std::string_view name) { return golden->tensor("start." + std::string(name)); });
  Optimizer optimizer(without_decay_on_vectors(network.parameters()),
                      AdamW{.learning_rate = 0.02, .weight_decay = 0.1});
  const Schedule schedule({.name = "cosine", .steps = kSteps});
  const std::vector<int32_t> ids = integers(golden, "ids"), labels = integers(golden, "labels");
  const std::vector<float> losses = golden->read("losses"), norms = golden->read("norms");

  for (int64_t step = 0; step < kSteps; ++step) {
    const auto place = static_cast<size_t>(step);
    const auto batch = std::span(ids).subspan(place * kBatch * kLength, kBatch * kLength);
    const Var loss =
        cross_entropy(network(batch), std::span(labels).subspan(place * kBatch, kBatch), {.smoothing = 0.1f});
    EXPECT_NEAR(loss.value().item(), losses[place], 2e-6) << "step " << step + 1;
    optimizer.clear_grad();
    loss.backward();
    const GradientNorm gradient = gradient_norm(optimizer.parameters());
    EXPECT_NEAR(gradient.norm, norms[place], 2e-6 * norms[place]) << "step " << step + 1;
    optimizer.step(0.02 * schedule.factor(step + 1), static_cast<float>(clip_factor(gradient.norm, 1)));
  }
  for (const nn::NamedParameter& parameter : network.parameters()) {
    const std::vector<float> wanted = golden->read("end." + parameter.name),
                             got = parameter.value.value().to_vector();
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_NEAR(got[i], wanted[i], 5e-6) << parameter.name << "[" << i << "]";
  }
}

}  // namespace
}  // namespace fovea::train
