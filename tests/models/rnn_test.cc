// The recurrent translators: what they must be whatever they have learnt, and what attention buys.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "attention/attention.h"
#include "autograd/ops.h"
#include "base/parallel.h"
#include "models/recurrent_choices.h"
#include "models/sentence_pairs.h"
#include "train/optimizer.h"

namespace fovea::models {
namespace {

using testing::ModelChoice;
using testing::recurrent_choices;

std::unique_ptr<TranslationModel> make(const ModelChoice& choice, Rng& rng, float dropout = 0) {
  Json settings = choice.settings;
  settings["embedding"] = 12;
  if (!settings.contains("width")) settings["width"] = 12;
  settings["dropout"] = dropout;
  return make_model<Translators>(
      choice.model, model_config<Translators>(choice.model, settings, vocabularies(20, 20)), rng);
}

TEST(RnnTranslators, ABatchIsTheMeanOfItsSentences) {
  for (const ModelChoice& choice : recurrent_choices()) {
    Rng rng(1);
    const auto model = make(choice, rng);
    nn::Context context;
    const data::Batch batch = testing::reversals(rng, 7);
    const OutputLoss all = model->loss(batch, 0, context);
    EXPECT_NEAR(all.loss.value().item(), std::log(20.0), 1.0) << choice.settings;
    double sum = 0;
    for (size_t i = 0; i < batch.pairs.size(); ++i)
      sum += model->loss(testing::only(batch, i), 0, context).negative_log_likelihood;
    EXPECT_NEAR(sum, all.negative_log_likelihood, 1e-3) << choice.model << choice.settings;
  }
}

TEST(ScheduledSampling, FeedsWhatTheModelWouldHaveChosen) {
  for (const ModelChoice& choice : recurrent_choices()) {
    SCOPED_TRACE(choice.model + choice.settings.dump());
    Rng rng(1);
    const auto model = make(choice, rng);
    const data::Batch taught = testing::reversals(rng, 9);
    data::Batch batch = taught;
    feed_own_tokens(*model, 1, 3, batch);
    EXPECT_EQ(batch.target_in, taught.target_in);

    const auto likeliest = [&](const data::Batch& fed) {
      const NoGrad no_grad;
      const nn::Prepared prepared(*model);
      nn::Context context;
      const OutputLayer output = model->output_layer();
      const Tensor logits =
          linear(model->states(fed, context), output.weight, output.bias).value().contiguous();
      std::vector<int32_t> tokens;
      for (int64_t row = 0; row < logits.size(0); ++row) {
        const float* const x = logits.data() + row * logits.size(1);
        tokens.push_back(static_cast<int32_t>(std::max_element(x, x + logits.size(1)) - x));
      }
      return tokens;
    };
    // Fed its own tokens alone, each is what the model says after those before it.
    feed_own_tokens(*model, 0, 3, batch);
    const std::vector<int32_t> own = likeliest(batch);
    size_t begin = 0;
    for (const int32_t length : batch.target_lengths) {
      EXPECT_EQ(batch.target_in[begin], data::kBegin);
      for (size_t i = begin + 1; i < begin + static_cast<size_t>(length); ++i)
        EXPECT_EQ(batch.target_in[i], own[i - 1]) << "token " << i;
      begin += static_cast<size_t>(length);
    }
    EXPECT_EQ(batch.target_out, taught.target_out);

    // A share of them: each token is the target's or the model's, and the seed decides which.
    data::Batch half = taught, again = taught, other = taught;
    feed_own_tokens(*model, 0.5f, 3, half);
    feed_own_tokens(*model, 0.5f, 3, again);
    feed_own_tokens(*model, 0.5f, 4, other);
    EXPECT_EQ(half.target_in, again.target_in);
    EXPECT_NE(half.target_in, other.target_in);
    const std::vector<int32_t> after_half = likeliest(half);
    for (size_t i = 1; i < half.target_in.size(); ++i)
      EXPECT_TRUE(half.target_in[i] == taught.target_in[i] || half.target_in[i] == after_half[i - 1]) << i;
  }
}

TEST(ScheduledSampling, GivesTheSameTokensForAnyThreadCount) {
  const ModelChoice choice = recurrent_choices()[0];
  std::vector<std::vector<int32_t>> fed;
  for (const int threads : {1, 2, 3}) {
    set_num_threads(threads);
    Rng rng(1);
    const auto model = make(choice, rng);
    data::Batch batch = testing::reversals(rng, 30);
    feed_own_tokens(*model, 0.3f, 7, batch);
    fed.push_back(batch.target_in);
  }
  set_num_threads(0);
  EXPECT_EQ(fed[0], fed[1]);
  EXPECT_EQ(fed[0], fed[2]);
}

TEST(RnnTranslators, TrainingGivesTheSameBytesForAnyThreadCount) {
  for (const ModelChoice& choice : recurrent_choices()) {
    std::vector<std::vector<float>> runs;
    for (const int threads : {1, 2, 3}) {
      set_num_threads(threads);
      Rng rng(1);
      const auto model = make(choice, rng, 0.2f);
      nn::Context context{.training = true, .rng = Rng(5)};
      model->loss(testing::reversals(rng, 30), 0.1f, context).loss.backward();
      runs.emplace_back();
      for (const auto& [name, parameter] : model->parameters()) {
        ASSERT_TRUE(parameter.grad().defined()) << name;
        const std::vector<float> grad = parameter.grad().to_vector();
        runs.back().insert(runs.back().end(), grad.begin(), grad.end());
      }
    }
    set_num_threads(0);
    EXPECT_EQ(runs[1], runs[0]) << choice.model << choice.settings;
    EXPECT_EQ(runs[2], runs[0]) << choice.model << choice.settings;
  }
}

// Keeps all weights of the decoder's looks.
struct Watcher : AttentionObserver {
  Capture capture(const Call& call) override {
    Capture all{{0}, {}};
    for (int64_t i = 0; i < call.queries; ++i) all.rows.push_back(static_cast<int32_t>(i));
    return std::string_view(call.name).starts_with("decoder") ? all : Capture{};
  }
  void observe(const Call& call, const Capture&, const Captured& captured) override {
    names.emplace_back(call.name);
    weights.push_back(captured.weights);
  }
  std::vector<std::string> names;
  std::vector<Tensor> weights;
};

// What the weights of a row sum to.
enum class RowSum { one, below_one, any };

// Rows of the batch's other sentences get exactly 0.
void expect_within_sentences(const data::Batch& batch, const Tensor& weights, RowSum row_sum) {
  const auto targets = static_cast<int64_t>(batch.target_in.size()),
             sources = static_cast<int64_t>(batch.source.size());
  ASSERT_EQ(weights.shape(), (Shape{1, 1, targets, sources}));
  int64_t row = 0, key = 0;
  for (size_t s = 0; s < batch.pairs.size(); key += batch.source_lengths[s], ++s) {
    for (int32_t t = 0; t < batch.target_lengths[s]; ++t, ++row) {
      double sum = 0;
      for (int64_t j = 0; j < sources; ++j) {
        const float w = weights.data()[row * sources + j];
        sum += w;
        if (j < key || j >= key + batch.source_lengths[s]) {
          ASSERT_EQ(w, 0) << row << " " << j;
        }
      }
      if (row_sum == RowSum::one) {
        ASSERT_NEAR(sum, 1, 1e-5);
      }
      if (row_sum == RowSum::below_one) {
        ASSERT_GT(sum, 0);
        ASSERT_LT(sum, 1 - 1e-5);
      }
    }
  }
}

TEST(RnnTranslators, ATokenLooksAtItsOwnSentenceAlone) {
  for (const ModelChoice& choice : recurrent_choices()) {
    Rng rng(1);
    const auto model = make(choice, rng);
    nn::Context context;
    const data::Batch batch = testing::reversals(rng, 5);
    Watcher watcher;
    {
      const NoGrad no_grad;
      const ObserveAttention observing(watcher);
      model->states(batch, context);
    }
    if (choice.model == std::string("rnn")) {
      EXPECT_TRUE(watcher.names.empty());
      continue;
    }
    ASSERT_THAT(watcher.names, ::testing::ElementsAre("decoder.cross"));
    // A sink takes a share of the weights; a Gaussian and a sigmoid do not make them sum to 1.
    const std::string spec = choice.settings.value("attention", "");
    const bool any = choice.settings.value("locality", "") == "local_p" ||
                     choice.settings.value("selection", "") == "sigmoid" ||
                     spec.find("gaussian") != std::string::npos;
    const bool has_sink = spec.find("sink") != std::string::npos;
    expect_within_sentences(batch, watcher.weights[0],
                            any        ? RowSum::any
                            : has_sink ? RowSum::below_one
                                       : RowSum::one);
  }
}

// Share of tokens predicted, teacher-forced.
double learn(const ModelChoice& choice, int steps) {
  Rng rng(1);
  Json settings = choice.settings;
  settings["embedding"] = 24;
  settings["width"] = 32;
  settings["dropout"] = 0;
  const auto model = make_model<Translators>(
      choice.model, model_config<Translators>(choice.model, settings, vocabularies(20, 20)), rng);
  train::Optimizer optimizer(model->parameters(), train::Adam{.learning_rate = 5e-3});
  nn::Context context{.training = true, .rng = Rng(5)};
  for (int step = 0; step < steps; ++step) {
    optimizer.clear_grad();
    model->loss(testing::reversals(rng, 32, 16, 6, 10), 0, context).loss.backward();
    optimizer.step();
  }
  const NoGrad no_grad;
  context.training = false;
  const data::Batch batch = testing::reversals(rng, 50, 16, 6, 10);
  const OutputLayer output = model->output_layer();
  const Tensor logits = linear(model->states(batch, context), output.weight, output.bias).value();
  int64_t right = 0;
  for (int64_t i = 0; i < logits.size(0); ++i) {
    const float* row = logits.data() + i * logits.size(1);
    right += std::max_element(row, row + logits.size(1)) - row == batch.target_out[static_cast<size_t>(i)];
  }
  return static_cast<double>(right) / static_cast<double>(logits.size(0));
}

TEST(RnnTranslators, AttentionLearnsToReverseWhatOneVectorCannotHold) {
  const double with = learn({"bahdanau", Json::object()}, 250), without = learn({"rnn", Json::object()}, 250);
  EXPECT_GT(with, 0.95);
  EXPECT_LT(without, with - 0.3);
}

TEST(RnnTranslators, RefuseConfigsThatMakeNoSense) {
  Rng rng(1);
  for (const ModelChoice& choice :
       {ModelChoice{"bahdanau", {{"score", "adition"}}}, ModelChoice{"bahdanau", {{"score", "dot / causal"}}},
        ModelChoice{"bahdanau", {{"output", "softmax"}}}, ModelChoice{"rnn", {{"score", "dot"}}},
        ModelChoice{"rnn", {{"tie", "some"}}}})
    EXPECT_THROW(make(choice, rng), Error) << choice.settings;
}

}  // namespace
}  // namespace fovea::models
