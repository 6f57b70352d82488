// Step by step, in any batch and any beam, the recurrent translators say what their training code says.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "autograd/ops.h"
#include "infer/inference.h"
#include "models/registry.h"
#include "models/sentence_pairs.h"

namespace fovea {
namespace {

struct Choice {
  const char* model;
  Json settings;
};

std::vector<Choice> choices() {
  std::vector<Choice> all;
  for (const char* score : {"additive", "dot", "scaled_dot", "cosine(0.2)", "bilinear", "concat", "location"})
    all.push_back({"bahdanau", {{"score", score}, {"output", all.size() % 2 == 0 ? "maxout" : "linear"}}});
  all.push_back({"rnn", {{"tie", "output"}}});
  for (const char* score : {"dot", "general", "concat", "location", "cosine(0.2)"})
    for (const char* locality : {"global", "local_m", "local_p"})
      for (const bool feeding : {false, true})
        all.push_back({"luong",
                       {{"score", score},
                        {"locality", locality},
                        {"window", 2},
                        {"layers", all.size() % 2 == 0 ? 1 : 2},
                        {"bidirectional", all.size() % 3 == 0},
                        {"input_feeding", feeding}}});
  return all;
}

std::unique_ptr<models::TranslationModel> make(const Choice& choice) {
  Json settings = choice.settings;
  settings["embedding"] = 13;
  settings["width"] = 14;
  if (choice.settings.value("tie", "none") != "none") settings["width"] = 13;
  Rng rng(4);
  auto model = models::make_translation_model(
      choice.model, models::translation_config(choice.model, settings, 30, 30), rng);
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
  for (const Choice& choice : choices()) {
    const auto model = make(choice);
    const auto inference = make_inference(*model);
    Rng rng(7);
    const data::Batch batch = testing::reversals(rng, 3, 26, 1, 8);
    const auto decoder = inference->start({batch.source, batch.source_lengths});
    std::vector<std::vector<int32_t>> prefixes(3, {data::kBegin});
    std::vector<size_t> sentence{0, 1, 2};
    const std::vector<std::vector<int32_t>> moves{{0, 0, 1, 2, 2}, {4, 1, 2}, {0, 1, 1, 2}, {3, 0}};
    for (size_t turn = 0; turn <= moves.size(); ++turn) {
      std::vector<int32_t> tokens;
      for (const auto& prefix : prefixes) tokens.push_back(prefix.back());
      const Tensor logits = decoder->step(tokens);
      for (size_t r = 0; r < prefixes.size(); ++r) {
        data::Batch one = testing::only(batch, sentence[r]);
        one.target_in = one.target_out = prefixes[r];
        one.target_lengths = {static_cast<int32_t>(prefixes[r].size())};
        const Tensor wanted = forced_logits(*model, one);
        const float* last = wanted.data() + (wanted.size(0) - 1) * 30;
        for (int64_t c = 0; c < 30; ++c)
          ASSERT_NEAR(logits.data()[static_cast<int64_t>(r) * 30 + c], last[c],
                      3e-5 * (1 + std::abs(last[c])))
              << choice.model << choice.settings;
      }
      if (turn == moves.size()) break;
      decoder->reorder(moves[turn]);
      std::vector<std::vector<int32_t>> next;
      std::vector<size_t> next_sentence;
      for (const int32_t parent : moves[turn]) {
        next.push_back(prefixes[static_cast<size_t>(parent)]);
        next.back().push_back(static_cast<int32_t>(4 + rng.below(26)));
        next_sentence.push_back(sentence[static_cast<size_t>(parent)]);
      }
      prefixes = next;
      sentence = next_sentence;
    }
  }
}

TEST(RecurrentDecoders, GreedySearchIsTheTrainingCodesBestTokenByToken) {
  for (const Choice& choice : choices()) {
    const auto model = make(choice);
    const auto inference = make_inference(*model);
    Rng rng(8);
    const data::Batch batch = testing::reversals(rng, 6, 26, 1, 8);
    const std::vector<int32_t> limits(6, 12);
    const auto found = beam_search(*inference->start({batch.source, batch.source_lengths}), limits,
                                   {.beam = 1, .begin = data::kBegin, .end = data::kEnd});
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

TEST(RecurrentDecoders, ALineIsTranslatedTheSameInAnyBatch) {
  for (const Choice& choice : choices()) {
    const auto model = make(choice);
    const auto inference = make_inference(*model);
    Rng rng(9);
    const data::Batch batch = testing::reversals(rng, 12, 26, 1, 8);
    const std::vector<int32_t> limits(12, 15);
    for (const int beam : {1, 4}) {
      const BeamOptions options{.beam = beam, .begin = data::kBegin, .end = data::kEnd};
      const auto together =
          beam_search(*inference->start({batch.source, batch.source_lengths}), limits, options);
      for (size_t s = 0; s < 12; ++s) {
        const data::Batch one = testing::only(batch, s);
        const auto alone = beam_search(*inference->start({one.source, one.source_lengths}),
                                       std::span(limits).subspan(0, 1), options);
        EXPECT_EQ(alone[0][0].tokens, together[s][0].tokens) << choice.model << choice.settings;
        EXPECT_EQ(alone[0][0].score, together[s][0].score) << choice.model << choice.settings;
      }
    }
  }
}

}  // namespace
}  // namespace fovea
