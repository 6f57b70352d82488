// From captioned pictures to a model folder, and from the folder to captions and where their words looked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <numeric>

#include "base/error_of.h"
#include "base/parallel.h"
#include "models/captioned_pictures.h"
#include "tasks/explain_caption.h"
#include "tasks/open.h"
#include "tasks/train_caption.h"
#include "tasks/train_settings.h"

namespace fovea::tasks {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class NotesObserver : public CaptionObserver {
 public:
  void on_note(const std::string& text) override { notes += text + "\n"; }
  std::string notes;
};

class CaptionTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("fovea-caption-" + std::to_string(getpid()));
    fs::remove_all(folder_);
    models::write_captioned_pictures(folder_, 40);
    files_ = {.images = path("images"),
              .captions = {path("captions.txt")},
              .train = path("train.txt"),
              .valid = path("valid.txt"),
              .encoder = path("encoder"),
              .features = {},
              .out = folder_ / "model"};
    training_.min_count = 1;
    training_.picture_size = 32;
    training_.blocks = 5;
    training_.batch_words = 160;
    training_.learning_rate = 1e-2;
    options_ = {.steps = 60, .clip_norm = 1, .average = 2, .validate_every = 30, .save_every = 10, .seed = 3};
    settings_ = {{"embedding", 16}, {"width", 24}, {"attention_width", 8}, {"dropout", 0.1}};
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  TrainingOutcome train(const std::function<bool()>& stop = [] { return false; }) {
    return train_caption(files_, {training_, options_, settings_}, "a test", observer_, stop);
  }
  std::string weights() const { return read_text(files_.out / "model.safetensors"); }

  fs::path folder_;
  CaptionFiles files_;
  CaptionTraining training_;
  train::TrainOptions options_;
  Json settings_;
  NotesObserver observer_;
};

TEST_F(CaptionTest, EveryAttentionLearnsAndTheFolderWorksAlone) {
  files_.features = folder_ / "shared.records";
  for (const std::string attention : {"soft", "hard", "gumbel"}) {
    SCOPED_TRACE(attention);
    settings_["attention"] = attention;
    files_.out = folder_ / attention;
    settings_["width"] = 64;
    settings_["embedding"] = 32;
    options_.steps = 300;
    options_.validate_every = 60;
    EXPECT_GT(train().best, attention == "soft" ? 95 : 50);
    // Nothing outside of the folder is needed.
    fs::rename(files_.out, folder_ / "elsewhere");
    const auto model = open(folder_ / "elsewhere");
    const Input inputs[] = {
        read_input(path("images/36.png")), read_input(path("images/37.png")), {"no picture", "x.png"}};
    const std::vector<Answer> answers = model->answer(inputs, {.caption = {.beam = 3, .n_best = 2}});
    ASSERT_EQ(answers[0].captions.size(), 2u);
    EXPECT_GE(answers[0].captions[0].score, answers[0].captions[1].score);
    if (attention == "soft") {
      EXPECT_THAT(answers[0].captions[0].text, HasSubstr("red"));
      EXPECT_THAT(answers[1].captions[0].text, HasSubstr("blue"));
      EXPECT_THAT(answers[0].captions[0].text, HasSubstr("left"));
    }
    EXPECT_THAT(answers[2].error, HasSubstr("x.png"));
    // A picture's caption does not depend on the others.
    const std::vector<Answer> alone = model->answer({&inputs[1], 1}, {.caption = {.beam = 3, .n_best = 2}});
    EXPECT_EQ(alone[0].captions[0].text, answers[1].captions[0].text);
    EXPECT_EQ(alone[0].captions[0].score, answers[1].captions[0].score);
    fs::remove_all(folder_ / "elsewhere");
  }
  EXPECT_THAT(observer_.notes, HasSubstr("features of 40 pictures: 40 computed, 0 from the file"));
  EXPECT_THAT(observer_.notes, HasSubstr("features of 40 pictures: 0 computed, 40 from the file"));
}

TEST_F(CaptionTest, AnInterruptedTrainingGoesOnToTheSameBytesWithAnyThreads) {
  for (const char* attention : {"soft", "hard"}) {
    SCOPED_TRACE(attention);
    settings_["attention"] = attention;
    options_.steps = 30;
    files_.out = folder_ / (std::string("whole-") + attention);
    train();
    const std::string whole = weights();
    files_.out = folder_ / (std::string("again-") + attention);
    const int before = num_threads();
    int calls = 0;
    // Once while features are computed, once while training.
    EXPECT_EQ(train([&] { return ++calls == 2; }).outcome, train::Outcome::interrupted);
    EXPECT_EQ(train([&] { return ++calls == 20; }).outcome, train::Outcome::interrupted);
    set_num_threads(before == 1 ? 3 : 1);
    train();
    set_num_threads(before);
    EXPECT_TRUE(weights() == whole);
  }
}

TEST_F(CaptionTest, FeaturesAreComputedOnceAndAgainWhereTheyAreDamaged) {
  files_.features = folder_ / "features.records";
  options_.steps = 3;
  train();
  const std::string whole = weights(), features = read_text(files_.features);
  std::string damaged = features;
  damaged[5000] = static_cast<char>(damaged[5000] + 1);
  write_atomically(files_.features, damaged);
  files_.out = folder_ / "second";
  train();
  EXPECT_THAT(observer_.notes, HasSubstr("1 damaged records are computed again"));
  EXPECT_TRUE(weights() == whole);
  EXPECT_TRUE(read_text(files_.features) == features);
  // The features of another encoder are not used.
  models::write_mobilenet(folder_ / "encoder", {.width = 0.25f, .blocks = 5}, 4);
  files_.out = folder_ / "third";
  EXPECT_THAT(error_of([&] { train(); }),
              testing::AllOf(HasSubstr("features.records contains 'features of MobileNet"),
                             HasSubstr("; choose another file with --features")));
}

TEST_F(CaptionTest, FeaturesDoNotDependOnTheOtherPicturesOrOnWhereTheyComeFrom) {
  const PictureEncoder encoder = read_encoder(path("encoder"), 5, 32);
  EXPECT_EQ(encoder.side(), 4);
  EXPECT_EQ(encoder.channels(), 64);
  std::vector<std::vector<uint8_t>> pictures;
  std::vector<std::string> names;
  for (int i = 0; i < 5; ++i) {
    names.push_back(std::to_string(i) + ".png");
    pictures.push_back(data::read_picture_as(path("images/" + names.back()), encoder.form()));
  }
  const Tensor all = picture_features(encoder, pictures);
  FeatureCache cache(folder_ / "cache", encoder);
  ASSERT_TRUE(cache.fill(data::PictureFiles(path("images")), names, observer_, [] { return false; }));
  std::vector<float> kept(4 * 4 * 64);
  for (int64_t i = 0; i < 5; ++i) {
    const Tensor one = picture_features(encoder, {&pictures[static_cast<size_t>(i)], 1});
    cache.read(i, kept.data());
    EXPECT_EQ(one.to_vector(), all.narrow(0, i, 1).contiguous().to_vector());
    EXPECT_EQ(one.to_vector(), kept);
  }
  EXPECT_GT(*std::max_element(kept.begin(), kept.end()), 0);
}

TEST_F(CaptionTest, WordsAreShownOnTheGridThatTheModelSees) {
  train();
  const LoadedCaptioner loaded = load_captioner(files_.out);
  const auto pixels = data::read_picture_as(path("images/36.png"), loaded.encoder.form());
  const CaptionExplanation shown = explain_caption(loaded, pixels, {}, 1);
  EXPECT_EQ(shown.rows, 4);
  EXPECT_EQ(shown.columns, 4);
  EXPECT_TRUE(shown.gated);
  std::string text;
  for (const ShownCaptionWord& word : shown.words) {
    text += (text.empty() ? "" : " ") + word.word;
    EXPECT_NEAR(std::accumulate(word.weights.begin(), word.weights.end(), 0.0), 1, 1e-5);
    EXPECT_GT(word.gate, 0);
    EXPECT_LT(word.gate, 1);
  }
  EXPECT_EQ(text, shown.caption.text);
  EXPECT_NEAR(explain_caption(loaded, pixels, text, 1).caption.score, shown.caption.score, 1e-3)
      << "given or written";
  EXPECT_EQ(look_into(files_.out).parameters, loaded.network->parameter_count());
  const OverlayFigure figure = words_figure(shown, false), smooth = words_figure(shown, true);
  ASSERT_EQ(figure.panels.size(), shown.words.size() + 1);
  // A cell is one colour on the true grid: 8 x 8 pixels here.
  const std::vector<uint32_t> cells = overlay_pixels({.title = "",
                                                      .height = 32,
                                                      .width = 32,
                                                      .pixels = std::vector<uint8_t>(3 * 32 * 32, 128),
                                                      .rows = 4,
                                                      .columns = 4,
                                                      .weights = shown.words[0].weights,
                                                      .smooth = false});
  EXPECT_EQ(cells[0], cells[7 * 32 + 7]);
  EXPECT_EQ(cells[8], cells[7 * 32 + 15]);
  EXPECT_FALSE(figure.panels[1].smooth);
  EXPECT_TRUE(smooth.panels[1].smooth);
  for (const char* name : {"a.png", "a.svg", "a.pdf", "a.html", "a.json", "a.txt"})
    EXPECT_FALSE(explain_caption_file(shown, false, name).empty()) << name;
  EXPECT_NE(explain_caption_file(shown, false, "a.png"), explain_caption_file(shown, true, "a.png"));
  const Json json = Json::parse(explain_caption_file(shown, false, "a.json"));
  EXPECT_EQ(json["words"].size(), shown.words.size());
  EXPECT_EQ(json["words"][0]["weights"].size(), 4u);
  EXPECT_EQ(json["words"][0]["weights"][3].size(), 4u);
  EXPECT_THAT(explain_caption_file(shown, false, "a.html"), HasSubstr("class=\"hover\""));
  EXPECT_THAT(explain_caption_text(shown), HasSubstr("grid of 4 x 4"));
  // A caption that a person gives, with a word in several pieces or unknown.
  const CaptionExplanation given = explain_caption(loaded, pixels, "A blue zebra.", 1);
  ASSERT_EQ(given.words.size(), 3u);
  EXPECT_EQ(given.words[1].word, "blue");
  EXPECT_FALSE(given.words[1].unknown);
  EXPECT_EQ(given.words[2].word, "zebra");
  EXPECT_TRUE(given.words[2].unknown);
  EXPECT_THAT(explain_caption_text(given), HasSubstr("  ‹zebra› "));
  EXPECT_EQ(Json::parse(explain_caption_file(given, false, "a.json"))["words"][2]["unknown"], true);
  EXPECT_THAT(error_of([&] { explain_caption(loaded, pixels, " . ", 1); }),
              HasSubstr("wanted a caption with words"));
}

TEST_F(CaptionTest, PiecesOfAWordAreShownAsOne) {
  training_.tokenizer = "bpe";
  training_.vocabulary = 290;
  options_.steps = 3;
  train();
  const LoadedCaptioner loaded = load_captioner(files_.out);
  const auto pixels = data::read_picture_as(path("images/36.png"), loaded.encoder.form());
  const CaptionExplanation given = explain_caption(loaded, pixels, "a zebra picture", 1);
  EXPECT_GT(given.caption.tokens.size(), 3u);
  ASSERT_EQ(given.words.size(), 3u);
  EXPECT_EQ(given.words[1].word, "zebra");
  for (const ShownCaptionWord& word : given.words)
    EXPECT_NEAR(std::accumulate(word.weights.begin(), word.weights.end(), 0.0), 1, 1e-5);
}

TEST_F(CaptionTest, RefusesWhatItCannotUseNamingIt) {
  const auto fault = [&](const std::function<void(CaptionFiles&, CaptionTraining&, Json&)>& change) {
    CaptionFiles files = files_;
    CaptionTraining training = training_;
    Json settings = settings_;
    change(files, training, settings);
    return error_of([&] {
      train_caption(files, {training, options_, settings}, "a test", observer_, [] { return false; });
    });
  };
  write_atomically(folder_ / "list", "99.png\n");
  write_atomically(folder_ / "other.txt", "99.png\tone\n");
  EXPECT_THAT(fault([&](auto& f, auto&, auto&) { f.train = path("list"); }),
              HasSubstr("list: '99.png' has no caption in"));
  EXPECT_THAT(fault([&](auto& f, auto&, auto&) {
                f.captions.push_back(path("other.txt"));
                f.train = path("list");
              }),
              HasSubstr("list: '99.png' is not in"));
  EXPECT_THAT(fault([&](auto& f, auto&, auto&) {
                f.captions = {path("other.txt")};
                f.train = f.valid = "";
              }),
              HasSubstr("contains none of the pictures that"));
  write_atomically(folder_ / "dots.txt", "1.png\t...\n");
  EXPECT_THAT(fault([&](auto& f, auto&, auto&) {
                f.captions = {path("dots.txt")};
                f.train = f.valid = "";
              }),
              HasSubstr("dots.txt: got no caption with words (1 caption without words left out); wanted"));
  EXPECT_THAT(fault([&](auto& f, auto&, auto&) {
                f.captions = {path("captions.txt"), path("captions.txt")};
              }),
              HasSubstr("are in an earlier file already"));
  EXPECT_THAT(fault([&](auto& f, auto&, auto&) { f.encoder = path("nowhere"); }), HasSubstr("nowhere.f32"));
  EXPECT_THAT(fault([&](auto& f, auto&, auto&) { f.encoder = path("images"); }),
              HasSubstr("no .manifest.tsv"));
  EXPECT_THAT(fault([&](auto&, auto& t, auto&) { t.blocks = 14; }), HasSubstr("blocks: got 14"));
  EXPECT_THAT(fault([&](auto&, auto& t, auto&) { t.blocks = 6; }), HasSubstr("keep fewer blocks"));
  EXPECT_THAT(fault([&](auto&, auto& t, auto&) { t.soft_share = 2; }),
              HasSubstr("soft_share: got 2, wanted 0 to 1"));
  EXPECT_THAT(fault([&](auto&, auto& t, auto&) { t.min_count = 0; }), HasSubstr("min_count: got 0"));
  EXPECT_THAT(fault([&](auto&, auto&, auto& s) { s["attention"] = "argmax"; }), HasSubstr("argmax"));
  EXPECT_FALSE(fs::exists(files_.out / "model.safetensors"));

  write_atomically(folder_ / "images/3.png", "no picture");
  files_.out = folder_ / "damaged";
  EXPECT_THAT(error_of([&] { train(); }), HasSubstr("3.png"));
  EXPECT_FALSE(fs::exists(files_.out)) << "no feature was computed";
  files_.out = folder_ / "model";
  models::write_captioned_pictures(folder_, 40);
  options_.steps = 2;
  train();
  fs::rename(files_.out / "encoder.safetensors", folder_ / "encoder.safetensors");
  EXPECT_THAT(error_of([&] { load_captioner(files_.out); }),
              HasSubstr("its encoder is missing: there is no encoder.safetensors; copy it from where"));
  const FolderContents incomplete = look_into(files_.out);
  EXPECT_TRUE(incomplete.abilities.empty());
  ASSERT_EQ(incomplete.lacks.size(), 1u);
  EXPECT_THAT(incomplete.lacks[0], HasSubstr("encoder.safetensors: nothing can be captioned without it"));
  EXPECT_THAT(error_of([&] { open(files_.out, {.purpose = Ability::caption}); }),
              HasSubstr("has no encoder.safetensors: nothing can be captioned without it"));
  fs::rename(folder_ / "encoder.safetensors", files_.out / "encoder.safetensors");
  const Json whole = load_json(files_.out / "config.json");
  for (const auto& [name, value, wanted] :
       {std::tuple{"encoder", Json(3), "wanted an object with width, blocks and picture_size"},
        std::tuple{"encoder", Json{{"width", 0.25}, {"blocks", 5}, {"picture_size", 9}},
                   "pictures of 9 pixels"},
        std::tuple{"encoder", Json{{"width", 0.25}, {"blocks", 4}, {"picture_size", 32}},
                   "encoder.safetensors"},
        std::tuple{"task", Json("image"), "wanted 'caption'"}}) {
    Json damaged = whole;
    damaged[name] = value;
    save_json(files_.out / "config.json", damaged);
    EXPECT_THAT(error_of([&] { load_captioner(files_.out); }), HasSubstr(wanted));
  }
}

TEST_F(CaptionTest, PicturesThatACollectionLacksAreLeftOutWithoutAList) {
  files_.train = files_.valid = "";
  fs::remove(folder_ / "images/5.png");
  options_.steps = 2;
  train();
  EXPECT_THAT(observer_.notes, HasSubstr("1 captioned picture left out: not in"));
  EXPECT_THAT(observer_.notes, HasSubstr("39 pictures, 78 captions"));
}

}  // namespace
}  // namespace fovea::tasks
