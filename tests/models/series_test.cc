// The models of number sequences: against PyTorch, and packed series against each series alone.
#include <gtest/gtest.h>

#include "autograd/ops.h"
#include "base/parallel.h"
#include "io/safetensors.h"
#include "models/golden_training.h"
#include "models/registry/series_models.h"
#include "train/optimizer.h"

namespace fovea::models {
namespace {

TEST(SeriesModels, EqualPyTorchsLossGradientsAndTenSteps) {
  const SafetensorsFile file(FOVEA_GOLDEN "/series.safetensors");
  const Json cases = load_json(FOVEA_GOLDEN "/series.json");
  ASSERT_EQ(cases.size(), 6u);
  for (size_t i = 0; i < cases.size(); ++i) {
    const Json& one = cases[i];
    const std::string model = one["model"], prefix = std::to_string(i) + "/";
    SCOPED_TRACE(model + one["settings"].dump());
    Rng rng(1);
    const auto network = make_model<SeriesModels>(
        model, model_config<SeriesModels>(model, one["settings"], one["counts"]), rng);
    nn::load_parameters(*network, [&](std::string_view name) {
      return file->tensor(prefix + "weight/" + std::string(name));
    });
    const SeriesBatch batch{file->tensor(prefix + "values"), file->tensor(prefix + "known"),
                            one["lengths"].get<std::vector<int64_t>>()};
    SeriesTargets targets{.labels = one["labels"].get<std::vector<int32_t>>()};
    if (targets.labels.empty()) targets.numbers = file->tensor(prefix + "targets");
    nn::Context context{.training = true};
    GoldenTraining golden = golden_training(file, prefix, "grad/");
    golden.gradients = 5e-5;
    golden.relative = true;
    expect_golden_training(*network, golden,
                           [&](int64_t) { return network->loss(batch, targets, 0.1f, context); });
  }
}

constexpr const char* kChoices[] = {
    R"({"model": "transformer", "settings": {"width": 8, "heads": 2, "hidden": 16}})",
    R"({"model": "transformer", "settings": {"width": 8, "heads": 2, "patch": 4, "channels": "independent",
        "pooling": "mean", "self_attention": "scaled_dot / window(2,2) | global(0) / soft"}})",
    R"({"model": "transformer", "settings": {"width": 8, "heads": 2, "pooling": "last", "normalize": "instance",
        "self_attention": "scaled_dot / causal & strided(3) / soft"}})",
    R"({"model": "lstm", "settings": {"width": 8}})",
    R"({"model": "lstm", "settings": {"width": 8, "patch": 3, "pooling": "first"}})"};

SeriesBatch random_series(const std::vector<int64_t>& lengths, int64_t features) {
  Rng rng(9);
  int64_t steps = 0;
  for (const int64_t length : lengths) steps += length;
  SeriesBatch batch{Tensor({steps, features}), {}, lengths};
  for (float& value : batch.values.span()) value = rng.normal();
  return batch;
}

class EverySeriesModel : public testing::TestWithParam<const char*> {
 protected:
  static std::unique_ptr<SeriesModel> make() {
    const Json choice = parse_json(GetParam(), "test");
    Rng rng(4);
    const Json counts{{"features", 3}, {"outputs", 4}};
    return make_model<SeriesModels>(
        choice["model"], model_config<SeriesModels>(choice["model"], choice["settings"], counts), rng);
  }
};

TEST_P(EverySeriesModel, GivesASeriesTheSameScoresAloneAndAmongOthers) {
  const auto network = make();
  const std::vector<int64_t> lengths{7, 1, 40, 3, 90, 12};
  const SeriesBatch all = random_series(lengths, 3);
  const NoGrad no_grad;
  nn::Context context;
  const Tensor together = network->outputs(all, context).value();
  int64_t begin = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const SeriesBatch own{all.values.narrow(0, begin, lengths[i]).contiguous(), {}, {lengths[i]}};
    const Tensor alone = network->outputs(own, context).value();
    for (int64_t c = 0; c < 4; ++c)
      EXPECT_NEAR(together.data()[static_cast<int64_t>(i) * 4 + c], alone.data()[c], 5e-6)
          << "series " << i << ", class " << c;
    begin += lengths[i];
  }
}

TEST_P(EverySeriesModel, TrainsToTheSameBitsOnAnyNumberOfThreads) {
  const SeriesBatch batch = random_series({30, 7, 64, 19}, 3);
  const SeriesTargets targets{.labels = {0, 3, 1, 2}};
  std::vector<std::vector<float>> weights;
  for (const int threads : {1, 2, 5}) {
    set_num_threads(threads);
    const auto network = make();
    train::Optimizer optimizer(network->parameters(), train::AdamW{.learning_rate = 0.01});
    nn::Context context{.training = true, .rng = Rng(3)};
    for (int step = 0; step < 3; ++step) {
      optimizer.clear_grad();
      network->loss(batch, targets, 0, context).backward();
      optimizer.step();
    }
    weights.emplace_back();
    for (const auto& [name, parameter] : network->parameters()) {
      const std::vector<float> values = parameter.value().to_vector();
      weights.back().insert(weights.back().end(), values.begin(), values.end());
    }
  }
  set_num_threads(0);
  EXPECT_EQ(weights[0], weights[1]);
  EXPECT_EQ(weights[0], weights[2]);
}

INSTANTIATE_TEST_SUITE_P(All, EverySeriesModel, testing::ValuesIn(kChoices));

TEST(SeriesForm, CutsPatchesThatEndWithTheSeriesAndRepeatItsFirstStep) {
  SeriesConfig config;
  config.features = 1;
  config.outputs = 2;
  config.patch = 4;
  config.stride = 2;
  const SeriesForm form(config);
  EXPECT_EQ(form.tokens(1), 1);
  EXPECT_EQ(form.tokens(4), 1);
  EXPECT_EQ(form.tokens(5), 2);
  EXPECT_EQ(form.tokens(8), 3);
  const SeriesTokens tokens = form.cut({Tensor::from({1, 2, 3, 4, 5}, {5, 1}), {}, {5}});
  EXPECT_EQ(tokens.x.to_vector(), (std::vector<float>{1, 1, 2, 3, 2, 3, 4, 5}));
}

TEST(SeriesForm, NormalisesEachSeriesByItsOwnMeanAndDeviation) {
  SeriesConfig config;
  config.features = config.targets = 1;
  config.outputs = 2;
  config.window = 2;
  config.normalize = "instance";
  const SeriesForm form(config);
  const SeriesTokens tokens = form.cut({Tensor::from({1, 3, 100, 100}, {4, 1}), {}, {2, 2}});
  EXPECT_NEAR(tokens.x.data()[0], -1, 1e-4);
  EXPECT_NEAR(tokens.x.data()[1], 1, 1e-4);
  EXPECT_EQ(tokens.x.data()[2], 0);
  EXPECT_EQ(tokens.mean.to_vector(), (std::vector<float>{2, 100}));
}

TEST(SeriesForm, RefusesWhatDoesNotFit) {
  SeriesConfig config;
  config.features = 3;
  config.outputs = 2;
  config.patch = 2;
  config.stride = 3;
  EXPECT_THROW(SeriesForm{config}, Error);
  config.stride = 0;
  config.targets = 2;
  EXPECT_THROW(SeriesForm{config}, Error) << "independent channels forecast all columns";
  config.channels = "mixed";
  EXPECT_NO_THROW(SeriesForm{config});
  config.channels = "both";
  EXPECT_THROW(SeriesForm{config}, Error);
}

TEST(SeriesModels, HardAttentionIsTrainedByTheLossOfItsSeries) {
  const Json settings{{"width", 8}, {"heads", 2}, {"selection", "hard"}};
  Rng rng(4);
  const auto network = make_model<SeriesModels>(
      "transformer", model_config<SeriesModels>("transformer", settings, {{"features", 3}, {"outputs", 2}}),
      rng);
  nn::Context context{.training = true, .rng = Rng(3)};
  network->loss(random_series({5, 9}, 3), {.labels = {0, 1}}, 0, context).backward();
  double moved = 0;
  for (const auto& [name, parameter] : network->parameters())
    if (name == "attention.query")
      for (const float g : parameter.grad().to_vector()) moved += std::abs(g);
  EXPECT_GT(moved, 0);
}

}  // namespace
}  // namespace fovea::models
