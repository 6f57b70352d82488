// Show, Attend and Tell: against PyTorch (tests/golden/make_show_attend_tell.py), word by word against whole captions,
// and hard attention against the enumeration of all its choices.
#include "models/show_attend_tell.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

#include "attention/attention.h"
#include "autograd/ops.h"
#include "base/parallel.h"
#include "data/tokenizer.h"
#include "io/safetensors.h"
#include "models/golden_training.h"

namespace fovea::models {
namespace {

using ::testing::HasSubstr;

std::vector<int32_t> integers(const std::vector<float>& numbers) {
  return {numbers.begin(), numbers.end()};
}

TEST(ShowAttendTell, EqualsPyTorchsLossGradientsAndTenSteps) {
  const SafetensorsFile file(FOVEA_GOLDEN "/show_attend_tell.safetensors");
  for (const char* name : {"gated", "plain"}) {
    SCOPED_TRACE(name);
    const std::string prefix = std::string(name) + ".";
    const bool gated = std::string(name) == "gated";
    const CaptionBatch batch{.features = file->tensor(prefix + "features"),
                             .in = integers(file->read(prefix + "in")),
                             .out = integers(file->read(prefix + "out")),
                             .lengths = {5, 3, 3, 2}};
    Rng rng(1);
    const ShowAttendTell network({.vocabulary = 13,
                                  .channels = 6,
                                  .embedding = 4,
                                  .width = 7,
                                  .attention_width = 3,
                                  .gate = gated,
                                  .dropout = 0},
                                 rng);
    nn::load_parameters(network, [&](std::string_view parameter) {
      return parameter == "baseline" ? network.baseline.value()
                                     : file->tensor(prefix + "weight." + std::string(parameter));
    });
    const CaptionModel::Trace trace = network.trace(batch);
    const std::vector<float> alpha = file->read(prefix + "alpha"), beta = file->read(prefix + "beta");
    ASSERT_EQ(trace.weights.count(), static_cast<int64_t>(alpha.size()));
    for (size_t i = 0; i < alpha.size(); ++i) ASSERT_NEAR(trace.weights.data()[i], alpha[i], 2e-6) << i;
    ASSERT_EQ(trace.gates.defined(), gated);
    for (size_t i = 0; gated && i < beta.size(); ++i) ASSERT_NEAR(trace.gates.data()[i], beta[i], 2e-6) << i;

    const CaptionLossOptions options{.smoothing = gated ? 0.1f : 0, .penalty = gated ? 1.0f : 0};
    GoldenTraining golden = golden_training(file, prefix, "grad.");
    golden.loss = 1e-5;
    golden.gradients = 5e-6;
    expect_golden_training(network, golden, [&](int64_t) {
      nn::Context context{.training = true};
      return network.loss(batch, options, context).loss;
    });
  }
}

CaptionBatch some_captions(int64_t places, int64_t channels) {
  CaptionBatch batch{.features = Tensor({4, places, channels}), .in = {}, .out = {}, .lengths = {6, 4, 4, 1}};
  Rng rng(5);
  for (float& value : batch.features.span()) value = 3 * rng.uniform();
  for (const int32_t length : batch.lengths) {
    int32_t before = data::kBegin;
    for (int32_t t = 0; t < length; ++t) {
      const int32_t next = t + 1 == length ? data::kEnd : static_cast<int32_t>(4 + rng.below(8));
      batch.in.push_back(before);
      batch.out.push_back(next);
      before = next;
    }
  }
  return batch;
}

ShowAttendTellConfig small_config(const std::string& attention) {
  return {.vocabulary = 12,
          .channels = 5,
          .embedding = 6,
          .width = 8,
          .attention = attention,
          .attention_width = 4};
}

TEST(ShowAttendTell, WordByWordIsWhatTrainingFeeds) {
  const CaptionBatch batch = some_captions(9, 5);
  for (const char* attention : {"soft", "hard", "gumbel", "sparsemax", "top_k(2)"}) {
    for (const char* score : {"additive", "scaled_dot", "bilinear", "concat", "cosine(0.2)"}) {
      SCOPED_TRACE(std::string(attention) + " " + score);
      Rng rng(3);
      ShowAttendTellConfig config = small_config(attention);
      config.score = score;
      const ShowAttendTell network(config, rng);
      nn::Context use;
      const OutputLoss whole = network.loss(batch, {}, use);
      const nn::Prepared prepared(network);
      double sum = 0;
      int64_t first = 0;
      for (int64_t i = 0; i < 4; ++i) {
        const auto decoding = network.decode(batch.features.narrow(0, i, 1).contiguous());
        for (int32_t t = 0; t < batch.lengths[static_cast<size_t>(i)]; ++t, ++first) {
          const auto word = static_cast<size_t>(first);
          const Var read(decoding->step({&batch.in[word], 1}));
          const OutputLayer output = network.output_layer();
          sum +=
              cross_entropy(linear(read, output.weight, output.bias), {&batch.out[word], 1}).value().item();
        }
      }
      EXPECT_NEAR(sum, whole.negative_log_likelihood, 1e-4);
    }
  }
}

TEST(ShowAttendTell, ARowDoesNotDependOnTheOthersAndSurvivesReordering) {
  const CaptionBatch batch = some_captions(9, 5);
  for (const char* attention : {"soft", "hard"}) {
    Rng rng(3);
    const ShowAttendTell network(small_config(attention), rng);
    const nn::Prepared prepared(network);
    const auto together = network.decode(batch.features),
               alone = network.decode(batch.features.narrow(0, 2, 1).contiguous());
    const int32_t first[] = {1, 1, 1, 1}, second[] = {7, 5, 6};
    together->step(first);
    const Tensor one = alone->step({first, 1});
    const int32_t parents[] = {2, 0, 2};
    together->reorder(parents);
    const Tensor all = together->step(second), same = alone->step({&second[0], 1});
    for (int64_t c = 0; c < same.size(1); ++c) EXPECT_EQ(all.data()[c], same.data()[c]) << attention;
    EXPECT_NE(all.data()[0], all.data()[2 * all.size(1)]);  // another word after the same beginning
  }
}

TEST(ShowAttendTell, SameBitsForAnyNumberOfThreads) {
  const CaptionBatch batch = some_captions(25, 5);
  for (const char* attention : {"soft", "hard", "gumbel"}) {
    std::vector<std::vector<float>> results;
    for (const int threads : {1, 2, 3}) {
      set_num_threads(threads);
      Rng rng(2);
      const ShowAttendTell network(small_config(attention), rng);
      nn::Context context{.training = true, .rng = Rng(4)};
      network.loss(batch, {.soft_share = 0}, context).loss.backward();
      std::vector<float>& all = results.emplace_back();
      for (const auto& [name, value] : network.parameters()) {
        const std::vector<float> gradient = value.grad().to_vector();
        all.insert(all.end(), gradient.begin(), gradient.end());
      }
      all.push_back(network.baseline.value().item());
    }
    set_num_threads(0);
    EXPECT_EQ(results[0], results[1]) << attention;
    EXPECT_EQ(results[0], results[2]) << attention;
  }
}

TEST(ShowAttendTell, TheBaselineFollowsTheLossOfDrawnStepsOnly) {
  const CaptionBatch batch = some_captions(9, 5);
  Rng rng(3);
  const ShowAttendTell network(small_config("hard"), rng);
  const float first = network.baseline.value().item();
  EXPECT_NEAR(first, std::log(12.0f), 1e-6);
  nn::Context context{.training = true, .rng = Rng(4)};
  network.loss(batch, {.soft_share = 1}, context);  // soft weights
  EXPECT_EQ(network.baseline.value().item(), first);
  nn::Context use;
  network.loss(batch, {.soft_share = 0}, use);
  EXPECT_EQ(network.baseline.value().item(), first);
  const OutputLoss drawn =
      network.loss(batch, {.entropy = 0, .soft_share = 0, .baseline_decay = 0.75f}, context);
  EXPECT_NEAR(network.baseline.value().item(), 0.75f * first + 0.25f * drawn.loss.value().item(), 1e-5);
}

TEST(ShowAttendTell, RefusesWhatMakesNoSense) {
  Rng rng(1);
  const auto fault = [&](const ShowAttendTellConfig& config) -> std::string {
    try {
      const ShowAttendTell network(config, rng);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(fault({.vocabulary = 4, .channels = 5}), HasSubstr("a vocabulary of 4 tokens"));
  EXPECT_THAT(fault({.vocabulary = 9, .channels = 0}), HasSubstr("places of 0 features"));
  EXPECT_THAT(fault({.vocabulary = 9, .channels = 5, .attention = "softly"}), HasSubstr("softly"));
  EXPECT_THAT(fault({.vocabulary = 9, .channels = 5, .score = "location"}), HasSubstr("whatever they show"));
}

// The smallest captioner, in double precision and with places that are chosen by the caller.
class Enumerated {
 public:
  static constexpr int kPlaces = 3, kWords = 2, kChoices = 9;
  Enumerated(const ShowAttendTell& network, const CaptionBatch& batch)
      : config_(network.config()), batch_(batch) {
    for (const auto& [name, value] : network.parameters()) {
      const std::vector<float> floats = value.value().to_vector();
      weights_[name] = {floats.begin(), floats.end()};
    }
  }
  std::map<std::string, std::vector<double>>& weights() { return weights_; }

  struct Outcome {
    double probability, loss;
  };
  // choice: place of the first word + 3 times that of the second. The loss is a mean over the words.
  Outcome outcome(int choice) {
    const int width = static_cast<int>(config_.width), e = static_cast<int>(config_.embedding),
              channels = static_cast<int>(config_.channels);
    const float* const a = batch_.features.data();
    std::vector<double> mean(channels);
    for (int i = 0; i < kPlaces; ++i)
      for (int k = 0; k < channels; ++k) mean[k] += a[i * channels + k] / double{kPlaces};
    std::vector<double> h = product("first_h.weight", mean), c = product("first_c.weight", mean);
    for (int i = 0; i < width; ++i) {
      h[i] = std::tanh(h[i] + weights_["first_h.bias"][i]);
      c[i] = std::tanh(c[i] + weights_["first_c.bias"][i]);
    }
    Outcome result{1, 0};
    for (int t = 0; t < kWords; ++t) {
      const std::vector<double> alpha = soft_weights(h);
      const int place = (t == 0 ? choice : choice / 3) % 3;
      result.probability *= alpha[place];
      const double beta = 1 / (1 + std::exp(-(product("gate.weight", h)[0] + weights_["gate.bias"][0])));
      std::vector<double> z(a + place * channels, a + (place + 1) * channels);
      for (double& x : z) x *= beta;
      const auto row = weights_["embedding"].begin() + batch_.in[t] * e;
      const std::vector<double> embedded(row, row + e);
      std::vector<double> gates = sum({product("decoder.embedding", embedded), product("decoder.context", z),
                                       product("decoder.state", h), weights_["decoder.bias"]});
      for (int i = 0; i < width; ++i) {
        const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
        c[i] = sigmoid(gates[width + i]) * c[i] + sigmoid(gates[i]) * std::tanh(gates[2 * width + i]);
        h[i] = sigmoid(gates[3 * width + i]) * std::tanh(c[i]);
      }
      std::vector<double> read = sum(
          {embedded, product("readout.state", h), product("readout.context", z), weights_["readout.bias"]});
      for (double& x : read) x = std::tanh(x);
      const std::vector<double> logits = sum({product("output", read), weights_["output_bias"]});
      double total = 0;
      for (const double logit : logits) total += std::exp(logit);
      result.loss += (std::log(total) - logits[batch_.out[t]]) / kWords;
    }
    return result;
  }
  double expected_loss() {
    double expected = 0;
    for (int choice = 0; choice < kChoices; ++choice) {
      const Outcome one = outcome(choice);
      expected += one.probability * one.loss;
    }
    return expected;
  }

 private:
  std::vector<double> product(const std::string& name, const std::vector<double>& x) {
    const std::vector<double>& matrix = weights_[name];
    std::vector<double> y(matrix.size() / x.size());
    for (size_t i = 0; i < matrix.size(); ++i) y[i / x.size()] += matrix[i] * x[i % x.size()];
    return y;
  }
  static std::vector<double> sum(const std::vector<std::vector<double>>& parts) {
    std::vector<double> total(parts[0].size());
    for (const std::vector<double>& part : parts)
      for (size_t i = 0; i < total.size(); ++i) total[i] += part[i];
    return total;
  }
  std::vector<double> soft_weights(const std::vector<double>& h) {
    const int channels = static_cast<int>(config_.channels);
    const std::vector<double> query = sum({product("attention.U", h), weights_["attention.b"]});
    std::vector<double> alpha(kPlaces);
    double total = 0;
    for (int i = 0; i < kPlaces; ++i) {
      const float* const place = batch_.features.data() + i * channels;
      const std::vector<double> key = product("attention.W", {place, place + channels});
      double score = 0;
      for (size_t j = 0; j < key.size(); ++j)
        score += weights_["attention.v"][j] * std::tanh(key[j] + query[j]);
      total += alpha[i] = std::exp(score);
    }
    for (double& weight : alpha) weight /= total;
    return alpha;
  }

  ShowAttendTellConfig config_;
  const CaptionBatch& batch_;
  std::map<std::string, std::vector<double>> weights_;
};

// Which place each word looked at.
class ChoiceObserver : public AttentionObserver {
 public:
  Capture capture(const Call& call) override {
    Capture all{{0}, std::vector<int32_t>(static_cast<size_t>(call.queries))};
    std::iota(all.rows.begin(), all.rows.end(), 0);
    return all;
  }
  void observe(const Call& call, const Capture&, const Captured& captured) override {
    choice = 0;
    for (int64_t t = call.queries - 1; t >= 0; --t)
      for (int64_t i = 0; i < call.keys; ++i)
        if (captured.weights.contiguous().data()[t * call.keys + i] == 1)
          choice = 3 * choice + static_cast<int>(i);
  }
  int choice = -1;
};

struct Estimate {
  std::map<std::string, std::vector<double>> mean;
  double variance = 0;
};

// The expectation and the variance of the gradient that training takes, over all choices.
Estimate estimate(const ShowAttendTell& network, const CaptionBatch& batch, float baseline) {
  Enumerated exact(network, batch);
  std::map<int, std::map<std::string, std::vector<float>>> gradients;  // of each choice
  for (uint64_t seed = 0; gradients.size() < Enumerated::kChoices && seed < 2000; ++seed) {
    network.baseline.set_value(Tensor::full({1}, baseline));
    network.clear_grad();
    ChoiceObserver observer;
    nn::Context context{.training = true, .rng = Rng(seed)};
    Var loss;
    {
      const ObserveAttention observe(observer);
      loss = network.loss(batch, {.penalty = 0, .entropy = 0, .soft_share = 0, .baseline_decay = 1}, context)
                 .loss;
    }
    EXPECT_NEAR(loss.value().item(), exact.outcome(observer.choice).loss, 1e-5);
    loss.backward();
    for (const auto& [name, value] : network.parameters())
      gradients[observer.choice][name] = value.grad().to_vector();
  }
  EXPECT_EQ(gradients.size(), size_t{Enumerated::kChoices});
  Estimate result;
  for (const auto& [choice, of_choice] : gradients)
    for (const auto& [name, gradient] : of_choice) {
      std::vector<double>& mean = result.mean[name];
      mean.resize(gradient.size());
      for (size_t i = 0; i < gradient.size(); ++i) mean[i] += exact.outcome(choice).probability * gradient[i];
    }
  for (const auto& [choice, of_choice] : gradients)
    for (const auto& [name, gradient] : of_choice)
      for (size_t i = 0; i < gradient.size(); ++i)
        result.variance +=
            exact.outcome(choice).probability * std::pow(gradient[i] - result.mean[name][i], 2);
  return result;
}

TEST(ShowAttendTell, HardAttentionsGradientIsUnbiasedAndABaselineCalmsIt) {
  const CaptionBatch batch{.features = Tensor::from({0.2f, 2.1f, 1.7f, 0.1f, 0.9f, 1.2f}, {1, 3, 2}),
                           .in = {1, 5},
                           .out = {5, 2},
                           .lengths = {2}};
  Rng rng(8);
  const ShowAttendTell network({.vocabulary = 6,
                                .channels = 2,
                                .embedding = 3,
                                .width = 3,
                                .attention = "hard",
                                .attention_width = 2,
                                .dropout = 0},
                               rng);
  // Attention that has something to say.
  for (const auto& [name, value] : network.parameters())
    for (float& x : value.value().span()) x = 2 * x + 0.1f * rng.normal();
  Enumerated exact(network, batch);
  const auto near_loss = static_cast<float>(exact.expected_loss());
  const Estimate calm = estimate(network, batch, near_loss), wild = estimate(network, batch, 0);
  for (auto& [name, weights] : exact.weights())
    for (size_t i = 0; i < weights.size(); ++i) {
      const double kept = weights[i], step = 1e-5;
      weights[i] = kept + step;
      const double above = exact.expected_loss();
      weights[i] = kept - step;
      const double below = exact.expected_loss();
      weights[i] = kept;
      const double wanted = (above - below) / (2 * step);
      EXPECT_NEAR(calm.mean.at(name)[i], wanted, 2e-6) << name << " element " << i;
      EXPECT_NEAR(wild.mean.at(name)[i], wanted, 2e-6) << name << " element " << i;
    }
  RecordProperty("variance_with_baseline", std::to_string(calm.variance));
  RecordProperty("variance_without", std::to_string(wild.variance));
  std::printf("variance of the gradient: %.4g with the baseline, %.4g without\n", calm.variance,
              wild.variance);
  EXPECT_LT(calm.variance, 0.5 * wild.variance);
}

}  // namespace
}  // namespace fovea::models
