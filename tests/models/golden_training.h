// Compares the training of a network with golden values: the loss of every step, and each gradient of the first.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "io/safetensors.h"
#include "nn/module.h"
#include "train/optimizer.h"

namespace fovea::models {

struct GoldenTraining {
  std::vector<float> losses;                           // of each step
  std::function<Tensor(const std::string&)> gradient;  // of a parameter, at the first step
  double learning_rate = 0.01;                         // of Adam
  // How far losses may be off: `loss` at first, and as much again times `growth` at each step, as differences grow;
  // gradients: `gradients`. relative: times 1 + the size of the golden value.
  double loss = 1e-4, growth = 1, gradients = 2e-5;
  bool relative = false;
};

// Golden values under `prefix`: "losses", and gradients after `gradients` ("grad." or "grad/").
inline GoldenTraining golden_training(const SafetensorsFile& file, const std::string& prefix,
                                      const std::string& gradients) {
  return {.losses = file->read(prefix + "losses"),
          .gradient = [&file, before = prefix + gradients](const std::string& name) {
            return file->tensor(before + name);
          }};
}

// loss_at(step): the loss as a variable.
template <class LossAt>
void expect_golden_training(const nn::Module& network, const GoldenTraining& golden, const LossAt& loss_at) {
  const auto allowed = [&](double tolerance, float wanted) {
    return golden.relative ? tolerance * (1 + std::abs(wanted)) : tolerance;
  };
  train::Optimizer optimizer(network.parameters(), train::Adam{.learning_rate = golden.learning_rate});
  for (size_t step = 0; step < golden.losses.size(); ++step) {
    optimizer.clear_grad();
    const Var loss = loss_at(static_cast<int64_t>(step));
    loss.backward();
    EXPECT_NEAR(loss.value().item(), golden.losses[step],
                allowed(golden.loss * (1 + golden.growth * static_cast<double>(step)), golden.losses[step]))
        << "step " << step;
    if (step == 0)
      for (const auto& [name, parameter] : network.parameters()) {
        const Tensor got = parameter.grad(), wanted = golden.gradient(name);
        ASSERT_TRUE(got.defined()) << name;
        for (int64_t e = 0; e < wanted.count(); ++e)
          ASSERT_NEAR(got.data()[e], wanted.data()[e], allowed(golden.gradients, wanted.data()[e]))
              << name << " element " << e;
      }
    optimizer.step();
  }
}

}  // namespace fovea::models
