// Step by step, in any batch and any beam, the recurrent translators say what their training code says.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "autograd/ops.h"
#include "infer/beam_walk.h"
#include "infer/inference.h"
#include "models/recurrent_choices.h"
#include "models/sentence_pairs.h"

namespace fovea {
namespace {

using testing::ModelChoice;
using testing::recurrent_choices;

std::unique_ptr<models::TranslationModel> make(const ModelChoice& choice) {
  Json settings = choice.settings;
  settings["embedding"] = 13;
  settings["width"] = 14;
  if (choice.settings.value("tie", "none") != "none") settings["width"] = 13;
  Rng rng(4);
  auto model = models::make_model<models::Translators>(
      choice.model,
      models::model_config<models::Translators>(choice.model, settings, models::vocabularies(30, 30)), rng);
  // Fresh weights say little: larger ones tell ways of computing apart.
  for (const auto& [name, parameter] : model->parameters()) {
    const Tensor larger = parameter.value().clone();
    for (float& x : larger.span()) x = 2 * x + 0.05f * rng.normal();
    parameter.set_value(larger);
  }
  return model;
}

// Logits after each token of target_in by the training code.
Tensor forced_logits(const models::TranslationModel& model, const data::Batch& batch) {
  const NoGrad no_grad;
  nn::Context context;
  const models::OutputLayer output = model.output_layer();
  return linear(model.states(batch, context), output.weight, output.bias).value();
}

TEST(RecurrentDecoders, StepsEqualTheTrainingCodeAndRowsCarryTheirPastsAlong) {
  for (const ModelChoice& choice : recurrent_choices()) {
    const auto model = make(choice);
    const Inference inference(*model);
    Rng rng(7);
    const data::Batch batch = testing::reversals(rng, 3, 26, 1, 8);
    const auto decoder = inference.start(models::Sentences{batch.source, batch.source_lengths});
    testing::walk_as_a_beam(*decoder, rng,
                            [&](size_t sentence, const std::vector<int32_t>& prefix, const float* logits) {
                              data::Batch one = testing::only(batch, sentence);
                              one.target_in = one.target_out = prefix;
                              one.target_lengths = {static_cast<int32_t>(prefix.size())};
                              const Tensor wanted = forced_logits(*model, one);
                              const float* last = wanted.data() + (wanted.size(0) - 1) * 30;
                              for (int64_t c = 0; c < 30; ++c)
                                ASSERT_NEAR(logits[c], last[c], 3e-5 * (1 + std::abs(last[c])))
                                    << choice.model << choice.settings;
                            });
  }
}

TEST(RecurrentDecoders, GreedySearchIsTheTrainingCodesBestTokenByToken) {
  for (const ModelChoice& choice : recurrent_choices()) {
    const auto model = make(choice);
    const Inference inference(*model);
    Rng rng(8);
    const data::Batch batch = testing::reversals(rng, 6, 26, 1, 8);
    const std::vector<int32_t> limits(6, 12);
    const auto found = beam_search(*inference.start(models::Sentences{batch.source, batch.source_lengths}),
                                   limits, {.beam = 1, .begin = data::kBegin, .end = data::kEnd});
    for (size_t s = 0; s < 6; ++s) {
      data::Batch one = testing::only(batch, s);
      one.target_in = {data::kBegin};
      const std::vector<int32_t>& tokens = found[s][0].tokens;
      one.target_in.insert(one.target_in.end(), tokens.begin(), tokens.end());
      one.target_out = one.target_in;
      one.target_lengths = {static_cast<int32_t>(one.target_in.size())};
      const Tensor logits = forced_logits(*model, one);
      for (size_t t = 0; t < std::min<size_t>(tokens.size() + 1, 12); ++t) {
        const float* row = logits.data() + static_cast<int64_t>(t) * 30;
        const auto best = static_cast<int32_t>(std::max_element(row, row + 30) - row);
        EXPECT_EQ(t < tokens.size() ? tokens[t] : data::kEnd, best) << choice.model << choice.settings;
      }
    }
  }
}

TEST(RecurrentDecoders, WeightsOfEightBitsSayNearlyTheSame) {
  for (const ModelChoice& choice : recurrent_choices()) {
    const auto model = make(choice);
    std::vector<double> differences;
    for (const uint64_t seed : {10, 11, 12, 13, 14}) {
      Rng rng(seed);
      const data::Batch batch = testing::reversals(rng, 3, 26, 1, 8);
      std::vector<std::vector<float>> said(2);
      for (const Compute compute : {Compute::float32, Compute::int8}) {
        const Inference inference(*model, compute);
        const auto decoder = inference.start(models::Sentences{batch.source, batch.source_lengths});
        Rng moves(seed + 1);
        testing::walk_as_a_beam(*decoder, moves,
                                [&](size_t, const std::vector<int32_t>&, const float* logits) {
                                  auto& all = said[compute == Compute::int8 ? 1 : 0];
                                  all.insert(all.end(), logits, logits + 30);
                                });
      }
      EXPECT_NE(said[0], said[1]) << choice.model << choice.settings;
      differences.push_back(testing::relative_difference(said[1], said[0]));
    }
    std::sort(differences.begin(), differences.end());
    // Of two keys with nearly the same score another one may be chosen, where one or two are: seldom.
    const std::string settings = choice.settings.dump();
    const bool chooses = settings.find("hard") != std::string::npos ||
                         settings.find("gumbel") != std::string::npos ||
                         settings.find("top_k") != std::string::npos;
    EXPECT_LT(chooses ? differences[2] : differences[4], 0.05) << choice.model << settings;
  }
}

TEST(RecurrentDecoders, ALineIsTranslatedTheSameInAnyBatch) {
  for (const ModelChoice& choice : recurrent_choices()) {
    const auto model = make(choice);
    Rng rng(9);
    const data::Batch batch = testing::reversals(rng, 12, 26, 1, 8);
    const std::vector<int32_t> limits(12, 15);
    for (const Compute compute : {Compute::float32, Compute::int8}) {
      const Inference inference(*model, compute);
      for (const int beam : {1, 4}) {
        const BeamOptions options{.beam = beam, .begin = data::kBegin, .end = data::kEnd};
        const auto together = beam_search(
            *inference.start(models::Sentences{batch.source, batch.source_lengths}), limits, options);
        for (size_t s = 0; s < 12; ++s) {
          const data::Batch one = testing::only(batch, s);
          const auto alone = beam_search(*inference.start(models::Sentences{one.source, one.source_lengths}),
                                         std::span(limits).subspan(0, 1), options);
          EXPECT_EQ(alone[0][0].tokens, together[s][0].tokens) << choice.model << choice.settings;
          EXPECT_EQ(alone[0][0].score, together[s][0].score) << choice.model << choice.settings;
        }
      }
    }
  }
}

}  // namespace
}  // namespace fovea
