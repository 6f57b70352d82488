// Whatever its attention, a model in use answers for a text the same bits alone, in any batch and on any
// number of threads; and whatever can be used can be trained.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "autograd/ops.h"
#include "base/parallel.h"
#include "infer/decode_all.h"
#include "models/recurrent_choices.h"
#include "models/registry/classifiers.h"
#include "models/registry/translators.h"
#include "models/sentence_pairs.h"

namespace fovea {
namespace {

using testing::ModelChoice;

constexpr const char* kSpecs[] = {
    "scaled_dot / full / soft",
    "scaled_dot / full / soft(0.3)",
    "dot / full / soft",
    "cosine(0.1) / full / soft",
    "scaled_dot / causal / soft",
    "scaled_dot / window(3,2) / soft",
    "scaled_dot / window(2,2) | global(0) / soft",
    "scaled_dot / window(2,2,3) | global(0,5) / soft",
    "scaled_dot / window(2,0) | strided(4) / soft",
    "scaled_dot / fixed(8,2) / soft",
    "scaled_dot / block_window(16,1,1) / soft",
    "scaled_dot / random_blocks(4,2,7) | window(1,1) / soft",
    "scaled_dot / heads(window(2,2); full; causal & strided(3); global(0) | window(1,1)) / soft",
    "scaled_dot + alibi / full / soft",
    "scaled_dot + alibi / window(9,9) / soft",
    "scaled_dot + relative(8,32) / full / soft",
    "scaled_dot + relative(8,32) / window(5,5) | global(0) / soft",
    "scaled_dot + sink / full / soft",
    "scaled_dot + sink + relative(8,32) + soft_cap(5) / window(4,4) / soft",
    "scaled_dot + soft_cap(2) / full / soft",
    "scaled_dot / full / top_k(3)",
    "scaled_dot + alibi / window(6,6) / top_k(2)",
    "scaled_dot / full / sparsemax",
    "scaled_dot / window(6,6) / sparsemax",
    "scaled_dot / full / sigmoid",
    "scaled_dot / full / argmax",
    "scaled_dot / full / gumbel(0.5)",
    "scaled_dot / window(3,3) | global(0) / gumbel(1,straight_through)",
    "bilinear / full / soft",
    "additive / full / soft",
    "additive / window(3,3) | global(0) / top_k(3)",
    "concat + alibi / causal / soft",
};

// Texts of these lengths, their end included.
struct Texts {
  explicit Texts(std::vector<int32_t> sizes) : lengths(std::move(sizes)) {
    Rng rng(3);
    for (const int32_t length : lengths) {
      std::vector<int32_t>& one = apart.emplace_back();
      for (int32_t i = 1; i < length; ++i) one.push_back(static_cast<int32_t>(4 + rng.below(26)));
      one.push_back(data::kEnd);
      packed.insert(packed.end(), one.begin(), one.end());
    }
  }
  std::vector<int32_t> lengths, packed;
  std::vector<std::vector<int32_t>> apart;
};

// Weights large enough that ways of computing differ.
void enlarge(const nn::Module& model) {
  Rng rng(8);
  for (const auto& [name, parameter] : model.parameters()) {
    const Tensor larger = parameter.value().clone();
    for (float& x : larger.span()) x = 1.5f * x + 0.05f * rng.normal();
    parameter.set_value(larger);
  }
}

std::unique_ptr<models::TranslationModel> translator(const std::string& model, Json settings) {
  if (model != "transformer") settings.update(Json{{"embedding", 13}, {"width", 14}});
  Rng rng(4);
  auto network = models::make_model<models::Translators>(
      model, models::model_config<models::Translators>(model, settings, models::vocabularies(30, 30)), rng);
  enlarge(*network);
  return network;
}

Json transformer_settings(const std::string& spec) {
  return {{"width", 32},         {"heads", 4},          {"hidden", 40},
          {"encoder_layers", 2}, {"decoder_layers", 1}, {"self_attention", spec}};
}

class AnySpec : public ::testing::TestWithParam<const char*> {
 protected:
  ~AnySpec() override { set_num_threads(0); }
};
INSTANTIATE_TEST_SUITE_P(Specs, AnySpec, ::testing::ValuesIn(kSpecs),
                         [](const auto& chosen) { return "spec" + std::to_string(chosen.index); });

TEST_P(AnySpec, ATranslatorReadsASentenceTheSameAloneInABatchAndOnAnyThreadCount) {
  const auto owner = translator("transformer", transformer_settings(GetParam()));
  const auto& model = dynamic_cast<const models::Transformer&>(*owner);
  const Texts texts({3, 60, 1, 17, 130, 5, 49, 700, 2});
  const NoGrad no_grad;
  nn::Context context;
  for (const Compute compute : {Compute::float32, Compute::int8}) {
    const nn::Prepared prepared(model, compute);
    for (const int threads : {1, 3}) {
      set_num_threads(threads);
      const Tensor together = model.encode({texts.packed, texts.lengths}, context).states.value();
      set_num_threads(1);
      const float* rows = together.data();
      for (size_t i = 0; i < texts.apart.size(); ++i) {
        const Tensor alone = model.encode({texts.apart[i], {&texts.lengths[i], 1}}, context).states.value();
        EXPECT_EQ(std::memcmp(alone.data(), rows, static_cast<size_t>(alone.count()) * sizeof(float)), 0)
            << GetParam() << ", a sentence of " << texts.lengths[i];
        rows += alone.count();
      }
    }
  }
}

// Compares a classifier's logits for texts alone with those for all texts at once, bit by bit.
void expect_same_bits_in_any_batch(const std::string& name, const Json& settings,
                                   std::vector<int32_t> lengths) {
  Rng rng(4);
  const auto model = models::make_model<models::Classifiers>(
      name, models::model_config<models::Classifiers>(name, settings, models::vocabulary_and_classes(30, 3)),
      rng);
  enlarge(*model);
  const Texts texts(std::move(lengths));
  const NoGrad no_grad;
  nn::Context context;
  for (const Compute compute : {Compute::float32, Compute::int8}) {
    const nn::Prepared prepared(*model, compute);
    for (const int threads : {1, 3}) {
      set_num_threads(threads);
      const std::vector<float> together =
          model->logits({texts.packed, texts.lengths}, context).value().to_vector();
      set_num_threads(1);
      for (size_t i = 0; i < texts.apart.size(); ++i) {
        const std::vector<float> alone =
            model->logits({texts.apart[i], {&texts.lengths[i], 1}}, context).value().to_vector();
        EXPECT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + static_cast<long>(3 * i)))
            << name << settings << ", a text of " << texts.lengths[i];
      }
    }
  }
}

TEST_P(AnySpec, AClassifierAnswersATextTheSameAloneInABatchAndOnAnyThreadCount) {
  expect_same_bits_in_any_batch(
      "transformer",
      {{"width", 32}, {"heads", 4}, {"hidden", 40}, {"layers", 2}, {"self_attention", GetParam()}},
      {3, 60, 1, 17, 130, 5, 49, 700, 2});
}

TEST(AttentionSpecs, ARecurrentClassifierAnswersATextTheSameAloneInABatchAndOnAnyThreadCount) {
  for (const char* score : {"additive", "gated", "scaled_dot", "cosine(0.1)", "bilinear", "concat"})
    for (const char* selection : {"soft", "hard", "sparsemax"})
      expect_same_bits_in_any_batch(
          "lstm", {{"embedding", 12}, {"width", 14}, {"score", score}, {"selection", selection}},
          {3, 60, 1, 17, 5, 49, 130, 2});
  set_num_threads(0);
}

TEST_P(AnySpec, EveryParameterOfATranslatorGetsAGradientOrTheSelectionHasNone) {
  const auto model = translator("transformer", transformer_settings(GetParam()));
  Rng rng(6);
  const data::Batch batch = testing::reversals(rng, 6, 26, 4, 12);
  nn::Context context{.training = true};
  const OutputLoss loss = model->loss(batch, 0.1f, context);
  loss.loss.backward();
  const bool chosen = parse_spec(GetParam()).selection.kind == SelectionKind::argmax;
  for (const auto& [name, parameter] : model->parameters()) {
    if (chosen && name.starts_with("encoder.") && name.find("in_proj") != std::string::npos) continue;
    ASSERT_TRUE(parameter.grad().defined()) << GetParam() << ": " << name;
    double size = 0;
    for (const float x : parameter.grad().contiguous().span()) size += std::abs(x);
    EXPECT_TRUE(std::isfinite(size) && size > 0) << GetParam() << ": " << name;
  }
}

TEST(AttentionSpecs, DropoutInASpecActsInTrainingAlone) {
  const auto model = translator("transformer", transformer_settings("scaled_dot / full / soft(0.3)"));
  const auto plain = translator("transformer", transformer_settings("scaled_dot / full / soft"));
  for (const auto* each : {model.get(), plain.get()}) each->clear_grad();
  Rng rng(6);
  const data::Batch batch = testing::reversals(rng, 6, 26, 4, 12);
  const NoGrad no_grad;
  nn::Context use;
  EXPECT_EQ(model->states(batch, use).value().to_vector(), plain->states(batch, use).value().to_vector());
  Json settings = transformer_settings("scaled_dot / full / soft(0.3)");
  settings["dropout"] = 0;
  const auto only_attention = translator("transformer", settings);
  nn::Context training{.training = true};
  EXPECT_NE(only_attention->states(batch, training).value().to_vector(),
            only_attention->states(batch, training).value().to_vector());
}

TEST(AttentionSpecs, EveryTranslatorTranslatesALineTheSameInAnyBatchAndOnAnyThreadCount) {
  std::vector<ModelChoice> choices = testing::recurrent_choices();
  for (const char* spec : {kSpecs[0], kSpecs[6], kSpecs[16], kSpecs[20], "additive / full / soft"})
    choices.push_back({"transformer", transformer_settings(spec)});
  const Texts texts({3, 9, 1, 17, 5, 12, 2, 8, 30, 4});
  const std::vector<int32_t> limits(texts.apart.size(), 12);
  const BeamOptions options{.beam = 3, .n_best = 2, .begin = data::kBegin, .end = data::kEnd};
  for (const ModelChoice& choice : choices) {
    const auto model = translator(choice.model, choice.settings);
    for (const Compute compute : {Compute::float32, Compute::int8}) {
      const Inference inference(*model, compute);
      std::vector<std::vector<Hypothesis>> alone;
      for (size_t i = 0; i < texts.apart.size(); ++i)
        alone.push_back(decode_all(inference, std::span(texts.apart).subspan(i, 1),
                                   std::span(limits).subspan(i, 1), options)[0]);
      for (const int threads : {1, 3}) {
        set_num_threads(threads);
        const auto found = decode_all(inference, texts.apart, limits, options, {.sentences = 4});
        for (size_t i = 0; i < found.size(); ++i)
          for (size_t j = 0; j < found[i].size(); ++j) {
            EXPECT_EQ(found[i][j].tokens, alone[i][j].tokens) << choice.model << choice.settings;
            EXPECT_EQ(found[i][j].score, alone[i][j].score) << choice.model << choice.settings;
          }
      }
      set_num_threads(0);
    }
  }
}

TEST(AttentionSpecs, WhatCannotBeTrainedOrUsedIsRefused) {
  const auto refusal = [](const std::string& spec) -> std::string {
    try {
      translator("transformer", transformer_settings(spec));
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  for (const char* spec :
       {"location", "scaled_dot + bias", "scaled_dot + gaussian(2)", "scaled_dot / lengths(3,4)",
        "scaled_dot / documents(3;4)", "scaled_dot / layout(2;11,01)", "scaled_dot / full / hard"})
    EXPECT_NE(refusal(spec), "no error") << spec;
}

}  // namespace
}  // namespace fovea
