// From bags of pictures to a clip classifier's folder, and from the folder to labels and the weights of frames.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error_of.h"
#include "base/parallel.h"
#include "data/png_writer.h"
#include "io/file.h"
#include "tasks/explain_clip.h"
#include "tasks/open.h"
#include "tasks/train_clip.h"

namespace fovea::tasks {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class ClipTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("fovea-clip-" + std::to_string(getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    write_idx();
    files_ = {{path("images"), path("labels")}, {path("images"), path("labels")}, folder_ / "model"};
    training_ = {
        .clips = 40, .test_clips = 30, .target = "1", .batch = 4, .learning_rate = 4e-3, .warmup = 5};
    options_ = {.steps = 60, .clip_norm = 5, .validate_every = 30, .save_every = 20, .seed = 3};
    settings_ = {{"filters", 4}, {"features", 16}, {"hidden", 8}};
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Pictures of 16 x 16: of class 0 black with noise, of class 1 with a white square.
  void write_idx() {
    constexpr int kCount = 60;
    std::string images{"\0\0\x08\x03\0\0\0", 7}, labels{"\0\0\x08\x01\0\0\0", 7};
    images += static_cast<char>(kCount);
    images += std::string{"\0\0\0\x10\0\0\0\x10", 8};
    labels += static_cast<char>(kCount);
    Rng rng(4);
    for (int i = 0; i < kCount; ++i) {
      const bool square = i % 5 == 0;
      for (int row = 0; row < 16; ++row)
        for (int column = 0; column < 16; ++column) {
          const bool white = square && row > 4 && row < 12 && column > 4 && column < 12;
          images += static_cast<char>(white ? 240 : rng.below(60));
        }
      labels += static_cast<char>(square);
    }
    write_atomically(path("images"), images);
    write_atomically(path("labels"), labels);
  }

  TrainingOutcome train(const std::function<bool()>& stop = [] { return false; }) {
    RunObserver observer;
    return train_clip(files_, {training_, options_, settings_}, "a test", observer, stop);
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  fs::path folder_;
  ClipFiles files_;
  ClipTraining training_;
  train::TrainOptions options_;
  Json settings_;
};

TEST_F(ClipTest, BagsAreLearntAndAttentionFindsTheirKeys) {
  for (const std::string pooling : {"gated", "additive", "mean", "max"}) {
    SCOPED_TRACE(pooling);
    settings_["pooling"] = pooling;
    files_.out = folder_ / pooling;
    // The mean learns too, but slowly: one picture in ten makes the difference.
    const bool learns = pooling != "mean";
    options_.steps = learns ? 240 : 20;
    EXPECT_GE(train().best, learns ? 90 : 0);
    const auto model = tasks::open(files_.out);
    const Evaluation evaluation = model->evaluate({files_.valid});
    EXPECT_GE(evaluation.scores.accuracy, learns ? 0.9 : 0);
    const bool attends = pooling == "gated" || pooling == "additive";
    ASSERT_EQ(evaluation.details.size(), attends ? 1u : 0u);
    const Input clip = read_input(files_.out / "clips" / "1");
    EXPECT_FALSE(clip.frames.empty());
    const std::vector<Answer> answers = model->answer(std::vector<Input>{clip}, {});
    EXPECT_EQ(answers[0].error, "");
    if (!attends) {
      EXPECT_THAT(error_of([&] { model->explain(clip, {}, ".png"); }), HasSubstr("without attention"));
      continue;
    }
    EXPECT_GT(evaluation.details[0].second, 0.5) << "weight on the pictures that make a bag positive";
    for (const char* form : {".png", ".svg", ".pdf", ".html", ".json", ".txt", ""})
      EXPECT_FALSE(model->explain(clip, {}, form).content.empty()) << form;
    const Json json = Json::parse(model->explain(clip, {}, ".json").content);
    ASSERT_EQ(json["frames"].size(), json["weights"].size());
    EXPECT_EQ(json["frames"][1], "001.png");
    EXPECT_THAT(model->explain(clip, {}, ".txt").content, HasSubstr("\t001.png\n"));
  }
}

TEST_F(ClipTest, EverySelectionTrainsAndIsShown) {
  for (const std::string selection : {"hard", "gumbel(1)", "sparsemax", "top_k(2)", "sigmoid", "identity"}) {
    SCOPED_TRACE(selection);
    settings_["selection"] = selection;
    files_.out = folder_ / ("s" + selection);
    options_.steps =
        selection == "hard" ? 20 : 240;  // one draw of ten finds the key at first: that takes longer
    EXPECT_GE(train().best, selection == "hard" ? 0 : 85);
    const auto model = tasks::open(files_.out);
    const Evaluation evaluation = model->evaluate({files_.valid});
    ASSERT_EQ(evaluation.details.size(), 1u);
    EXPECT_GE(evaluation.details[0].second, 0);
    EXPECT_LE(evaluation.details[0].second, 1) << "a share, also of weights of any sign";
    const Input clip = read_input(files_.out / "clips" / "1");
    for (const char* form : {".png", ".json", ".txt", ""})
      EXPECT_LT(model->explain(clip, {}, form).content.size(), 100'000u) << form;
  }
  settings_ = {{"pooling", "mean"}, {"selection", "hard"}};
  EXPECT_THAT(error_of([&] { train(); }), HasSubstr("a pooling without scores"));
}

TEST_F(ClipTest, AnInterruptedTrainingGoesOnToTheSameBytesWithAnyThreads) {
  options_.steps = 30;
  train();
  const std::string whole = read_text(files_.out / "model.safetensors");
  files_.out = folder_ / "again";
  int steps = 0;
  EXPECT_EQ(train([&] { return ++steps == 13; }).outcome, train::Outcome::interrupted);
  const int before = num_threads();
  set_num_threads(before == 1 ? 2 : 1);
  train();
  set_num_threads(before);
  EXPECT_EQ(read_text(files_.out / "model.safetensors"), whole);
}

TEST_F(ClipTest, ListsAndFoldersOfFramesTrainToo) {
  std::string list;
  for (int bag = 0; bag < 12; ++bag)
    for (int t = 0; t < 3; ++t) {
      const bool key = bag % 2 == 1 && t == 1;
      const std::string name = message(bag % 2 ? "yes" : "no", "/", bag, "/", t, ".png");
      fs::create_directories((folder_ / "set" / name).parent_path());
      write_atomically(folder_ / "set" / name,
                       data::encode_png(std::vector<uint8_t>(16 * 16, key ? 220 : 20), {16, 16, 1}));
      list += message(bag, '\t', bag % 2 ? "yes" : "no", "\tset/", name, '\t', key ? 1 : 0, '\n');
    }
  write_atomically(folder_ / "list.tsv", list);
  training_.clips = training_.test_clips = {};
  training_.target = {};
  training_.size = 16;
  options_.steps = 150;
  for (const char* name : {"list.tsv", "set"}) {
    SCOPED_TRACE(name);
    files_ = {{path(name)}, {path(name)}, folder_ / (std::string("model of ") + name)};
    EXPECT_EQ(train().best, 100);
    const auto model = tasks::open(files_.out);
    EXPECT_EQ(model->evaluate({files_.valid}).details.size(), name[0] == 'l' ? 1u : 0u)
        << "only the list has keys";
  }
}

TEST_F(ClipTest, OptionsThatDoNotApplyAreRefused) {
  training_.size = 20;
  EXPECT_THAT(error_of([&] { train(); }), HasSubstr("size does not apply: pictures of IDX files"));
  training_.size = {};
  training_.make = "clips";
  EXPECT_THAT(error_of([&] { train(); }), HasSubstr("target does not apply"));
  training_.make = {};
  files_.train = {path("nowhere.tsv")};
  EXPECT_THAT(error_of([&] { train(); }), HasSubstr("clips does not apply: the clips come from files"));
  training_.clips = training_.test_clips = {};
  training_.target = {};
  EXPECT_THAT(error_of([&] { train(); }), HasSubstr("nowhere.tsv"));
  settings_["pooling"] = "sum";
  EXPECT_THAT(error_of([&] { train(); }), HasSubstr("unknown pooling 'sum'")) << "before data is read";
}

}  // namespace
}  // namespace fovea::tasks
