#include "models/transformer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "models/sentence_pairs.h"

namespace fovea::models {
namespace {

TransformerConfig tiny() {
  return {.source_vocabulary = 20,
          .target_vocabulary = 20,
          .width = 16,
          .heads = 2,
          .hidden = 32,
          .encoder_layers = 1,
          .decoder_layers = 2,
          .dropout = 0};
}

TEST(Transformer, LossBeginsNearChanceAndIsTheMeanOfItsSentences) {
  Rng rng(1);
  const Transformer model(tiny(), rng);
  nn::Context context;
  const data::Batch batch = testing::reversals(rng, 7);
  const OutputLoss all = model.loss(batch, 0, context);
  EXPECT_NEAR(all.loss.value().item(), std::log(20.0), 1.0);
  EXPECT_NEAR(all.loss.value().item(), all.negative_log_likelihood / static_cast<double>(all.count), 1e-4);
  // Each sentence alone gives the same: nothing leaks between the sentences of a packed batch.
  double sum = 0;
  for (size_t i = 0; i < batch.pairs.size(); ++i)
    sum += model.loss(testing::only(batch, i), 0, context).negative_log_likelihood;
  EXPECT_NEAR(sum, all.negative_log_likelihood, 1e-3);
}

// Gradients of every parameter, tied embeddings included, against differences of the loss along a random
// direction.
TEST(Transformer, GradientsMatchFiniteDifferences) {
  for (const char* tie : {"all", "output", "none"}) {
    for (const bool norm_first : {false, true}) {
      TransformerConfig config = tiny();
      config.tie = tie;
      config.norm_first = norm_first;
      config.positions = norm_first ? "learned" : "sinusoid";
      config.activation = norm_first ? "gelu" : "relu";
      Rng rng(3);
      const Transformer model(config, rng);
      const data::Batch batch = testing::reversals(rng, 4);
      nn::Context context;
      model.loss(batch, 0.1f, context).loss.backward();
      const auto loss_moved = [&](const Var& parameter, const Tensor& direction, float step) {
        const Tensor before = parameter.value().clone();
        const Tensor moved = before.clone();
        for (int64_t i = 0; i < moved.count(); ++i) moved.data()[i] += step * direction.data()[i];
        parameter.set_value(moved);
        const NoGrad no_grad;
        const double loss = model.loss(batch, 0.1f, context).loss.value().item();
        parameter.set_value(before);
        return loss;
      };
      for (const auto& [name, parameter] : model.parameters()) {
        const Tensor direction(parameter.shape()), grad = parameter.grad();
        double wanted = 0, norm = 0;
        for (float& x : direction.span()) x = rng.normal();
        for (int64_t i = 0; i < direction.count(); ++i) {
          wanted += double{grad.data()[i]} * direction.data()[i];
          norm += double{grad.data()[i]} * grad.data()[i];
        }
        const float step = 2e-3f / std::sqrt(static_cast<float>(direction.count()));
        const double got =
            (loss_moved(parameter, direction, step) - loss_moved(parameter, direction, -step)) / (2 * step);
        EXPECT_NEAR(got, wanted, 0.02 * std::sqrt(norm) * 3 + 5e-3) << name << " tie " << tie;
      }
    }
  }
}

TEST(Transformer, RefusesConfigsThatMakeNoSense) {
  Rng rng(1);
  TransformerConfig config = tiny();
  config.tie = "some";
  EXPECT_THROW(Transformer(config, rng), Error);
  config = tiny();
  config.target_vocabulary = 30;
  EXPECT_THROW(Transformer(config, rng), Error);
  config = tiny();
  config.self_attention = "dot / widow(3,3)";
  EXPECT_THROW(Transformer(config, rng), Error);
}

}  // namespace
}  // namespace fovea::models
