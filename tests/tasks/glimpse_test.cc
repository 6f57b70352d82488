// From labelled pictures to a glimpse classifier's folder, and from the folder to labels and the path of its glimpses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "base/error_of.h"
#include "base/parallel.h"
#include "io/file.h"
#include "tasks/explain_glimpse.h"
#include "tasks/open.h"
#include "tasks/train_glimpse.h"

namespace fovea::tasks {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// A bar across or a bar down, 8 x 8, as IDX files.
struct Bars {
  explicit Bars(const fs::path& folder, int count = 64) {
    std::string images{"\0\0\x08\x03\0\0\0", 7}, labels{"\0\0\x08\x01\0\0\0", 7};
    images += static_cast<char>(count);
    images += std::string{"\0\0\0\x08\0\0\0\x08", 8};
    labels += static_cast<char>(count);
    Rng rng(4);
    for (int i = 0; i < count; ++i) {
      const int64_t at = rng.below(8), down = i % 2;
      for (int64_t row = 0; row < 8; ++row)
        for (int64_t column = 0; column < 8; ++column)
          images += static_cast<char>((down ? column : row) == at ? 250 : 0);
      labels += static_cast<char>(down);
    }
    write_atomically(folder / "images", images);
    write_atomically(folder / "labels", labels);
    paths = {(folder / "images").string(), (folder / "labels").string()};
  }
  std::vector<std::string> paths;
};

class GlimpseTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("fovea-glimpse-" + std::to_string(getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    const Bars bars(folder_);
    files_ = {bars.paths, bars.paths, folder_ / "model"};
    training_ = {.batch = 16, .learning_rate = 3e-3, .warmup = 5};
    options_ = {.steps = 150, .clip_norm = 5, .validate_every = 50, .save_every = 40, .seed = 3};
    settings_ = {{"hidden", 32}, {"features", 16}, {"patch", 4}, {"scales", 2}, {"glimpses", 3}};
  }
  void TearDown() override { fs::remove_all(folder_); }

  TrainingOutcome train(const std::function<bool()>& stop = [] { return false; }) {
    RunObserver observer;
    return train_glimpse(files_, {training_, options_, settings_}, "a test", observer, stop);
  }
  fs::path folder_;
  GlimpseFiles files_;
  GlimpseTraining training_;
  train::TrainOptions options_;
  Json settings_;
};

TEST_F(GlimpseTest, BothModelsLearnAndShowWhereTheyLook) {
  for (const std::string model : {"ram", "soft"}) {
    SCOPED_TRACE(model);
    training_.model = model;
    files_.out = folder_ / model;
    if (model == "soft") settings_["grid"] = 3;
    options_.steps = 400;
    EXPECT_GE(train().best, 95);
    const LoadedGlimpseClassifier loaded = load_glimpse_classifier(files_.out);
    EXPECT_EQ(loaded.labels.size(), 2u);
    const std::string file = read_text(files_.out / "scenes/3.png");
    const GlimpseExplanation seen = explain_glimpses(
        loaded, data::decode_picture_as(std::as_bytes(std::span(file)), "3.png", loaded.form()));
    EXPECT_EQ(seen.prediction().label, 1);
    ASSERT_EQ(seen.steps.size(), 3u);
    for (const auto& step : seen.steps) {
      if (model == "ram") {
        ASSERT_EQ(step.windows.size(), 2u);
        EXPECT_EQ(step.windows[0].side, 4);
        EXPECT_EQ(step.windows[0].pixels.size(), 48u);
      } else {
        EXPECT_EQ(step.weights.size(), 9u);
        EXPECT_NEAR(std::accumulate(step.weights.begin(), step.weights.end(), 0.0), 1, 1e-5);
      }
    }
    for (const char* name : {"a.png", "a.svg", "a.pdf", "a.html", "a.json", "a.txt"})
      EXPECT_FALSE(explain_glimpse_file(seen, name).empty()) << name;
    EXPECT_THAT(explain_glimpse_text(seen), HasSubstr("probability\n1\t"));
  }
}

TEST_F(GlimpseTest, AnInterruptedTrainingGoesOnToTheSameBytesWithAnyThreads) {
  training_.scene = "cluttered";
  training_.size = 16;
  training_.fragments = 2;
  options_.steps = 30;
  settings_["copies"] = 2;
  for (const std::string core : {"rnn", "lstm"}) {
    SCOPED_TRACE(core);
    settings_["core"] = core;
    files_.out = folder_ / core;
    train();
    const std::string whole = read_text(files_.out / "model.safetensors");
    files_.out = folder_ / (core + " again");
    int steps = 0;
    EXPECT_EQ(train([&] { return ++steps == 13; }).outcome, train::Outcome::interrupted);
    const int before = num_threads();
    set_num_threads(before == 1 ? 2 : 1);
    train();
    set_num_threads(before);
    EXPECT_EQ(read_text(files_.out / "model.safetensors"), whole);
  }
}

TEST_F(GlimpseTest, TestScenesAreTheOnesOfValidationAndPathsCanBeDrawn) {
  training_.scene = "translated";
  training_.size = 14;
  const TrainingOutcome outcome = train();
  const auto model = tasks::open(files_.out);
  EXPECT_NEAR(model->evaluate({files_.valid}).scores.accuracy * 100, outcome.best, 1e-3);
  const auto drawn = tasks::open(files_.out, {.rollouts = 5});
  const Evaluation once = drawn->evaluate({files_.valid}), again = drawn->evaluate({files_.valid});
  EXPECT_EQ(once.scores.accuracy, again.scores.accuracy) << "draws are a function of the picture's place";
  EXPECT_THAT(error_of([&] { tasks::open(files_.out, {.rollouts = -1}); }), HasSubstr("--rollouts: got -1"));
}

TEST_F(GlimpseTest, OptionsThatDoNotApplyAreRefusedBeforeDataIsRead) {
  files_.train = {"nowhere", "nowhere"};
  training_.clutter = "behind";
  EXPECT_THAT(error_of([&] { train(); }), HasSubstr("clutter needs --scene cluttered; got --scene plain"));
  training_.clutter = {};
  training_.fragments = 3;
  EXPECT_THAT(error_of([&] { train(); }), HasSubstr("fragments needs --scene cluttered"));
  training_.fragments = {};
  training_.model = "soft";
  settings_["copies"] = 2;
  EXPECT_THAT(error_of([&] { train(); }), HasSubstr("copies"));
  settings_.erase("copies");
  EXPECT_THAT(error_of([&] { train(); }), HasSubstr("nowhere"));
}

TEST_F(GlimpseTest, SizesThatDoNotFitAreRefused) {
  training_.size = 30;
  EXPECT_THAT(error_of([&] { train(); }),
              HasSubstr("a plain scene has the size of its pictures, got --size 30"));
  training_.scene = "cluttered";
  training_.size = 8;
  EXPECT_EQ(error_of([&] { train(); }), "no error");
  files_.out = folder_ / "other";
  files_.train = {files_.train[0]};
  EXPECT_THAT(error_of([&] { train(); }),
              HasSubstr("give the file of pictures and the file of their labels"));
}

TEST_F(GlimpseTest, ADamagedFolderIsNamed) {
  options_.steps = 2;
  train();
  const Json good = load_json(files_.out / "config.json");
  const auto damaged = [&](const char* key, const Json& value) {
    Json json = good;
    if (value.is_null())
      json.erase(key);
    else
      json[key] = value;
    save_json(files_.out / "config.json", json);
    return error_of([&] { load_glimpse_classifier(files_.out); });
  };
  EXPECT_THAT(damaged("scene", nullptr), HasSubstr("without scene"));
  EXPECT_THAT(damaged("scene", Json::object({{"kind", "plain"}})), HasSubstr("a scene without size"));
  EXPECT_THAT(damaged("height", 100000), HasSubstr("wanted 1 to 4096"));
  EXPECT_THAT(damaged("labels", Json::array({"one"})), HasSubstr("1 labels for 2 classes"));
}

}  // namespace
}  // namespace fovea::tasks
