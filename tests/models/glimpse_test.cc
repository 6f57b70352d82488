// The glimpse models against PyTorch with fixed draws (tests/golden/make_glimpse.py), and the gradient of REINFORCE
// against the exact gradient of the expected reward, found by looking at every place there is.
#include "models/glimpse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/error_of.h"
#include "base/parallel.h"
#include "io/safetensors.h"
#include "models/golden_training.h"

namespace fovea::models {
namespace {

using ::testing::HasSubstr;

std::vector<int32_t> labels_in(const SafetensorsFile& file, const std::string& name) {
  std::vector<int32_t> labels;
  for (const float label : file->read(name)) labels.push_back(static_cast<int32_t>(label));
  return labels;
}

// Loss, every gradient and ten steps of Adam; loss_at(step) is the network's.
template <class Loss>
void expect_golden_glimpses(const GlimpseClassifier& network, const SafetensorsFile& file,
                            const std::string& prefix, Loss loss_at) {
  nn::load_parameters(
      network, [&](std::string_view name) { return file->tensor(prefix + "weight." + std::string(name)); });
  GoldenTraining golden = golden_training(file, prefix, "grad.");
  golden.learning_rate = 0.003;
  golden.loss = golden.gradients = 1e-5;
  golden.growth = 2;
  expect_golden_training(network, golden, loss_at);
}

void expect_near(const std::vector<Tensor>& got, const std::vector<float>& wanted) {
  std::vector<float> all;
  for (const Tensor& one : got)
    for (const float value : one.to_vector()) all.push_back(value);
  ASSERT_EQ(all.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(all[i], wanted[i], 1e-4) << "element " << i;
}

TEST(Ram, EqualsPyTorchsLossGradientsAndTenStepsForFixedDraws) {
  const SafetensorsFile file(FOVEA_GOLDEN "/glimpse.safetensors");
  RamConfig rnn, lstm;
  rnn.classes = lstm.classes = 4;
  rnn.hidden = lstm.hidden = 12;
  rnn.features = lstm.features = 10;
  rnn.deviation = lstm.deviation = 0.75f;
  rnn.reinforce = lstm.reinforce = 0.7f;
  rnn.glimpses = 3, rnn.patch = 4, rnn.scales = 2, rnn.copies = 3;
  lstm.glimpses = 4, lstm.patch = 3, lstm.channels = 2, lstm.core = "lstm";
  for (const RamConfig& config : {rnn, lstm}) {
    SCOPED_TRACE(config.core);
    const std::string prefix = "ram_" + config.core + ".";
    const Tensor pictures = file->tensor(prefix + "pictures"), noise = file->tensor(prefix + "noise");
    const std::vector<int32_t> labels = labels_in(file, prefix + "labels");
    Rng rng(1);
    const Ram network(config, rng);
    expect_golden_glimpses(network, file, prefix, [&](int64_t step) {
      const Tensor one = noise.narrow(0, step, 1).contiguous();
      return network.loss(pictures, labels, one.reshape({one.size(1), one.size(2), 2}));
    });
    expect_near(network.trace(pictures).logits, file->read(prefix + "logits"));
  }
}

TEST(SoftGlimpses, EqualPyTorchsLossGradientsTenStepsAndWeights) {
  const SafetensorsFile file(FOVEA_GOLDEN "/glimpse.safetensors");
  SoftGlimpseConfig rnn, lstm;
  rnn.classes = lstm.classes = 4;
  rnn.hidden = lstm.hidden = 12;
  rnn.features = lstm.features = 10;
  rnn.glimpses = 3, rnn.patch = 3, rnn.scales = 2, rnn.grid = 3;
  lstm.glimpses = 2, lstm.patch = 2, lstm.channels = 2, lstm.grid = 4, lstm.core = "lstm";
  for (const SoftGlimpseConfig& config : {rnn, lstm}) {
    SCOPED_TRACE(config.core);
    const std::string prefix = "soft_" + config.core + ".";
    const Tensor pictures = file->tensor(prefix + "pictures");
    const std::vector<int32_t> labels = labels_in(file, prefix + "labels");
    Rng rng(1);
    const SoftGlimpses network(config, rng);
    expect_golden_glimpses(network, file, prefix, [&](int64_t) {
      nn::Context context{.training = true};
      return network.loss(pictures, labels, context);
    });
    const GlimpseTrace trace = network.trace(pictures);
    expect_near(trace.logits, file->read(prefix + "logits"));
    expect_near(trace.weights, file->read(prefix + "weights"));
  }
}

std::map<std::string, std::vector<float>> gradients(const nn::Module& network) {
  std::map<std::string, std::vector<float>> all;
  for (const auto& [name, parameter] : network.parameters()) {
    const Tensor grad = parameter.grad();
    all[name] =
        grad.defined() ? grad.to_vector() : std::vector<float>(static_cast<size_t>(parameter.count()));
  }
  return all;
}

RamConfig tiny_config() {
  RamConfig config;
  config.classes = 2;
  config.hidden = 6;
  config.features = 4;
  config.glimpses = 2;
  config.patch = 2;
  config.deviation = 0.5f;
  return config;
}

Tensor random_pictures(const Shape& shape, uint64_t seed) {
  Tensor pictures(shape);
  Rng rng(seed);
  for (float& value : pictures.span()) value = rng.uniform();
  return pictures;
}

// What reproductions of the paper got wrong: the reward must move the location network alone.
TEST(Ram, RewardMovesTheLocationNetworkAlone) {
  const Tensor pictures = random_pictures({8, 6, 6, 1}, 3);
  const std::vector<int32_t> labels = {0, 1, 0, 1, 1, 0, 1, 0};
  std::vector<std::map<std::string, std::vector<float>>> found;
  for (const float weight : {0.0f, 5.0f}) {
    RamConfig config = tiny_config();
    config.reinforce = weight;
    Rng rng(7);
    const Ram network(config, rng);
    nn::Context context{.training = true, .rng = Rng(9)};
    network.loss(pictures, labels, context).backward();
    found.push_back(gradients(network));
  }
  for (const auto& [name, without] : found[0]) {
    const std::vector<float>& with = found[1].at(name);
    if (name.starts_with("locate")) {
      EXPECT_EQ(without, std::vector<float>(without.size(), 0.0f))
          << name << ": nothing but the reward reaches it";
      EXPECT_NE(with, without) << name;
    } else {
      EXPECT_EQ(with, without) << name << " must not learn from the reward";
    }
  }
}

TEST(Ram, BaselineReadsTheStateWithoutTeachingIt) {
  const Tensor pictures = random_pictures({4, 6, 6, 1}, 3);
  const std::vector<int32_t> labels = {0, 1, 0, 1};
  RamConfig config = tiny_config();
  config.reinforce = 0;
  std::vector<std::map<std::string, std::vector<float>>> found;
  for (const float bias : {0.0f, 100.0f}) {
    Rng rng(7);
    const Ram network(config, rng);
    for (const auto& [name, parameter] : network.parameters())
      if (name == "baseline.bias") parameter.set_value(Tensor::full({1}, bias));
    nn::Context context{.training = true, .rng = Rng(9)};
    network.loss(pictures, labels, context).backward();
    found.push_back(gradients(network));
  }
  for (const auto& [name, gradient] : found[0]) {
    if (name.starts_with("baseline"))
      EXPECT_NE(found[1].at(name), gradient) << name;
    else
      EXPECT_EQ(found[1].at(name), gradient) << name;
  }
}

// The expected reward of a small model with two glimpses, exactly: locations matter through the window they give (the
// weights of `where` are 0), so there are finitely many.
class Enumeration {
 public:
  Enumeration(const Ram& network, const RamConfig& config, const Tensor& picture, int32_t label)
      : config_(config), picture_(picture), label_(label) {
    for (const auto& [name, parameter] : network.parameters())
      for (const float value : parameter.value().to_vector()) weights[name].push_back(value);
  }

  double expected_reward() const {
    const std::vector<double> first(static_cast<size_t>(config_.hidden), 0.0);
    double expected = 0;
    for_each_window(first, [&](double p1, const std::vector<double>& state) {
      for_each_window(state, [&](double p2, const std::vector<double>& last) {
        const std::vector<double> logits = layer("output", last, false);
        const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
        expected += p1 * p2 * (best == label_);
      });
    });
    return expected;
  }

  std::map<std::string, std::vector<double>> weights;

 private:
  std::vector<double> layer(const std::string& name, const std::vector<double>& x, bool relu) const {
    const std::vector<double>&weight = weights.at(name + ".weight"), &bias = weights.at(name + ".bias");
    std::vector<double> y = bias;
    for (size_t i = 0; i < y.size(); ++i) {
      for (size_t j = 0; j < x.size(); ++j) y[i] += weight[i * x.size() + j] * x[j];
      if (relu) y[i] = std::max(0.0, y[i]);
    }
    return y;
  }

  std::vector<double> after(const std::vector<double>& state, int64_t top, int64_t left) const {
    const int64_t size = picture_.size(1);
    std::vector<double> pixels;
    for (int64_t v = top; v < top + config_.patch; ++v)
      for (int64_t h = left; h < left + config_.patch; ++h)
        pixels.push_back(v >= 0 && v < size && h >= 0 && h < size ? picture_.data()[v * size + h] : 0.0f);
    std::vector<double> seen = layer("what", pixels, true);
    seen.resize(2 * seen.size(), 0.0);
    const std::vector<double> glimpse = layer("glimpse", seen, true);
    std::vector<double> both = state;
    both.insert(both.end(), glimpse.begin(), glimpse.end());
    return layer("core", both, true);
  }

  // visit(probability, state after it) for every window that may be looked at from this state.
  template <class Visit>
  void for_each_window(const std::vector<double>& state, Visit visit) const {
    const std::vector<double> mean = layer("locate2", layer("locate1", state, true), false);
    const auto below = [&](double mean_of_axis, double x) {
      return 0.5 * std::erfc(-(x - std::tanh(mean_of_axis)) / (config_.deviation * std::sqrt(2.0)));
    };
    const double size = static_cast<double>(picture_.size(1)), half = static_cast<double>(config_.patch) / 2;
    // A window begins at pixel k from location (2 (k + half) - 1) / size - 1 on.
    const auto border = [&](int64_t k) { return (2 * (static_cast<double>(k) + half) - 1) / size - 1; };
    const auto first = static_cast<int64_t>(-half), last = static_cast<int64_t>(size - half);
    const auto share = [&](size_t axis, int64_t k) {
      const double from = k == first ? 0 : below(mean[axis], border(k));
      return (k == last ? 1 : below(mean[axis], border(k + 1))) - from;
    };
    for (int64_t top = first; top <= last; ++top)
      for (int64_t left = first; left <= last; ++left)
        visit(share(0, top) * share(1, left), after(state, top, left));
  }

  const RamConfig& config_;
  const Tensor& picture_;
  int32_t label_;
};

struct Estimates {
  std::map<std::string, std::vector<double>> mean, error;  // of the mean
  double variance = 0;                                     // of one batch's gradient, summed over elements
};

// The gradients of the location network over many batches of draws.
Estimates reinforce_gradients(const Ram& network, const Tensor& picture, int32_t label, int batches) {
  std::map<std::string, std::vector<double>> sum, squares;
  nn::Context context{.training = true, .rng = Rng(5)};
  for (int b = 0; b < batches; ++b) {
    network.clear_grad();
    network.loss(picture, std::vector<int32_t>{label}, context).backward();
    for (const auto& [name, gradient] : gradients(network)) {
      if (!name.starts_with("locate")) continue;
      sum[name].resize(gradient.size());
      squares[name].resize(gradient.size());
      for (size_t i = 0; i < gradient.size(); ++i) {
        sum[name][i] += gradient[i];
        squares[name][i] += double{gradient[i]} * gradient[i];
      }
    }
  }
  Estimates result;
  for (const auto& [name, total] : sum)
    for (size_t i = 0; i < total.size(); ++i) {
      const double mean = total[i] / batches, variance = squares[name][i] / batches - mean * mean;
      result.mean[name].push_back(mean);
      result.error[name].push_back(std::sqrt(variance / batches));
      result.variance += variance;
    }
  return result;
}

TEST(Ram, ReinforceIsUnbiasedAgainstEnumerationAndTheBaselineLowersItsVariance) {
  RamConfig config = tiny_config();
  config.copies = 1000;
  config.reinforce = 1;  // the gradient itself
  const Tensor picture = random_pictures({1, 4, 4, 1}, 21);
  const int32_t label = 1;
  // The first network whose reward depends on where it looks.
  std::unique_ptr<Ram> chosen;
  double expected = 0;
  for (uint64_t seed = 1; seed < 200 && !(expected > 0.3 && expected < 0.7); ++seed) {
    Rng rng(seed);
    chosen = std::make_unique<Ram>(config, rng);
    for (const auto& [name, parameter] : chosen->parameters()) {
      Tensor value = parameter.value().clone();
      for (float& x : value.span()) x = name.starts_with("where") ? 0 : 3 * x;
      if (name == "baseline.weight") value.fill(0.05f);
      parameter.set_value(value);
    }
    expected = Enumeration(*chosen, config, picture, label).expected_reward();
  }
  const Ram& network = *chosen;
  const Enumeration exact(network, config, picture, label);
  ASSERT_GT(expected, 0.3);
  ASSERT_LT(expected, 0.7);

  const Estimates found = reinforce_gradients(network, picture, label, 400);
  double largest = 0, worst = 0;
  for (const auto& [name, estimates] : found.mean)
    for (size_t i = 0; i < estimates.size(); ++i) {
      Enumeration up = exact, down = exact;
      constexpr double kStep = 1e-4;
      up.weights[name][i] += kStep;
      down.weights[name][i] -= kStep;
      // The loss is the negative reward.
      const double slope = -(up.expected_reward() - down.expected_reward()) / (2 * kStep);
      const double error = found.error.at(name)[i];
      largest = std::max(largest, std::abs(slope));
      worst = std::max(worst, error);
      EXPECT_NEAR(estimates[i], slope, 4.5 * error + 1e-6) << name << " element " << i;
    }
  EXPECT_GT(largest, 20 * worst) << "the estimate must be sharp enough to tell";

  const auto variance_with = [&](float bias) {
    for (const auto& [name, parameter] : network.parameters()) {
      if (name == "baseline.weight") parameter.set_value(Tensor::zeros(parameter.shape()));
      if (name == "baseline.bias") parameter.set_value(Tensor::full({1}, bias));
    }
    return reinforce_gradients(network, picture, label, 60).variance;
  };
  const double without = variance_with(0), with = variance_with(static_cast<float>(expected));
  std::cout << "expected reward " << expected << "; variance of the gradient of " << config.copies
            << " draws: " << without << " without a baseline, " << with
            << " with the expected reward as baseline\n";
  EXPECT_LT(with, 0.9 * without);
}

TEST(GlimpseModels, SameBitsForAnyNumberOfThreads) {
  const Tensor pictures = random_pictures({21, 28, 28, 1}, 4);
  const std::vector<int32_t> labels(21, 1);
  const auto expect_same = [&](const GlimpseClassifier& network) {
    std::vector<std::map<std::string, std::vector<float>>> found;
    std::vector<std::vector<float>> logits;
    for (const int threads : {1, 2, 3}) {
      set_num_threads(threads);
      network.clear_grad();
      nn::Context context{.training = true, .rng = Rng(8)};
      network.loss(pictures, labels, context).backward();
      found.push_back(gradients(network));
      logits.push_back(network.trace(pictures).logits.back().to_vector());
    }
    set_num_threads(0);
    for (const size_t i : {1, 2}) {
      EXPECT_EQ(found[0], found[i]);
      EXPECT_EQ(logits[0], logits[i]);
    }
  };
  Rng rng(2);
  RamConfig ram;
  ram.classes = 4, ram.scales = 2, ram.copies = 3;
  expect_same(Ram(ram, rng));
  ram.core = "lstm";
  expect_same(Ram(ram, rng));
  SoftGlimpseConfig grid;
  grid.classes = 4, grid.grid = 4, grid.glimpses = 3;
  for (const char* selection : {"soft", "hard", "gumbel(1)"}) {
    grid.selection = selection;
    expect_same(SoftGlimpses(grid, rng));
  }
}

TEST(GlimpseModels, PathsAreDrawnOnlyWhenAskedFor) {
  Rng rng(2);
  const Ram network(tiny_config(), rng);
  const Tensor pictures = random_pictures({3, 8, 8, 1}, 4);
  const auto path = [&](const Rollouts& rollouts) {
    return network.trace(pictures, rollouts).locations[1].to_vector();
  };
  EXPECT_EQ(path({}), path({}));
  EXPECT_EQ(path({.copies = 4, .seed = 3}), path({.copies = 4, .seed = 3}));
  EXPECT_NE(path({.copies = 4, .seed = 3}), path({.copies = 4, .seed = 4}));
  EXPECT_EQ(path({.copies = 4, .seed = 3}).size(), 3u * 4 * 2);
  // The paths of the last picture do not depend on those before it.
  const std::vector<float>
      all = path({.copies = 4, .seed = 3}),
      alone = network.trace(pictures.narrow(0, 2, 1), {.copies = 4, .seed = 3}).locations[1].to_vector();
  EXPECT_EQ(std::vector<float>(all.end() - 8, all.end()), alone);
  EXPECT_NE(std::vector<float>(all.begin(), all.begin() + 8), alone);
}

TEST(GlimpseModels, NonsenseIsRefused) {
  Rng rng(1);
  RamConfig config = tiny_config();
  config.core = "gru";
  EXPECT_THAT(error_of([&] { Ram(config, rng); }), HasSubstr("core 'gru', wanted rnn or lstm"));
  config = tiny_config();
  config.deviation = 0;
  EXPECT_THAT(error_of([&] { Ram(config, rng); }), HasSubstr("deviation is 0"));
  SoftGlimpseConfig grid;
  grid.classes = 2, grid.selection = "argmax";
  EXPECT_THAT(error_of([&] { SoftGlimpses(grid, rng); }), HasSubstr("choose hard"));
  const Ram network(tiny_config(), rng);
  EXPECT_THAT(error_of([&] {
                network.trace(Tensor::zeros({1, 8, 8, 3}));
              }),
              HasSubstr("wanted [pictures, height, width, 1]"));
}

}  // namespace
}  // namespace fovea::models
