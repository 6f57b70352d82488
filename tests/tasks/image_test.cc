// From a folder of labelled pictures to a model folder, and from the folder to labels and what they rest on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/error_of.h"
#include "base/parallel.h"
#include "data/pictures.h"
#include "io/file.h"
#include "tasks/explain_image.h"
#include "tasks/kernel_curve.h"
#include "tasks/train_image.h"

namespace fovea::tasks {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class ImageTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("fovea-image-" + std::to_string(getpid()));
    fs::remove_all(folder_);
    write_class("train/bright", 24, 200);
    write_class("train/dark", 24, 40);
    files_ = {{(folder_ / "train").string()}, {(folder_ / "train").string()}, folder_ / "model"};
    training_ = {.size = 16, .batch = 8, .learning_rate = 5e-3, .warmup = 5, .shift = 1};
    options_ = {.steps = 30, .clip_norm = 1, .average = 2, .validate_every = 15, .save_every = 10, .seed = 3};
    settings_ = {{"depth", 8}, {"width", 4}, {"gate", "cbam"}, {"reduction", 2}};
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Noise around a brightness, in a picture that is no square.
  void write_class(const std::string& name, int count, int brightness) {
    fs::create_directories(folder_ / name);
    Rng rng(static_cast<uint64_t>(brightness));
    for (int i = 0; i < count; ++i) {
      std::vector<uint8_t> pixels(3 * 20 * 30);
      for (uint8_t& value : pixels) value = static_cast<uint8_t>(brightness - 30 + rng.below(60));
      write_atomically(folder_ / name / (std::to_string(i) + ".png"), data::png_bytes(20, 30, pixels));
    }
  }

  TrainingOutcome train(const std::function<bool()>& stop = [] { return false; }) {
    RunObserver observer;
    return train_image(files_, {training_, options_, settings_}, "a test", observer, stop);
  }
  void expect_same_bytes_after_an_interruption() {
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
  std::string picture(const std::string& name) const { return (folder_ / name).string(); }

  fs::path folder_;
  ImageFiles files_;
  ImageTraining training_;
  train::TrainOptions options_;
  Json settings_;
};

TEST_F(ImageTest, EveryGateLearnsAndIsShown) {
  for (const std::string gate : {"se", "cbam", "sk"}) {
    SCOPED_TRACE(gate);
    settings_["gate"] = gate;
    files_.out = folder_ / gate;
    EXPECT_EQ(train().best, 100);
    const LoadedImageClassifier loaded = load_image_classifier(files_.out);
    EXPECT_THAT(loaded.labels, testing::ElementsAre("bright", "dark"));
    const std::vector<std::string> files{picture("train/dark/3.png"), picture("train/bright/5.png")};
    const std::vector<Prediction> found = classify_picture_files(loaded, files);
    EXPECT_EQ(found[0].label, 1);
    EXPECT_EQ(found[1].label, 0);

    const ImageExplanation seen = explain_image(loaded, files[0]);
    EXPECT_EQ(seen.prediction.label, 1);
    EXPECT_EQ(seen.gates.size(), gate == "cbam" ? 6u : 3u);
    for (const ShownGate& shown : seen.gates) {
      EXPECT_EQ(shown.rows * shown.columns, static_cast<int64_t>(shown.weights.size()));
      for (const float weight : shown.weights) {
        EXPECT_GE(weight, 0) << shown.name;
        EXPECT_LE(weight, 1) << shown.name;
      }
    }
    EXPECT_EQ(places_figure(seen).panels.size(), gate == "cbam" ? 4u : 1u);
    const HeatMap channels = channels_map(seen);
    EXPECT_EQ(channels.row_count, gate == "sk" ? 6 : 3);
    if (gate == "sk") {
      EXPECT_EQ(channels.rows[0], "stage 0, block 0, 3x3");
      EXPECT_EQ(channels.rows[1], "stage 0, block 0, 5x5 dilated");
      // The branches of a block share every channel between them.
      EXPECT_NEAR(channels.weights[0] + channels.weights[static_cast<size_t>(channels.column_count)], 1,
                  1e-5);
    }
    for (const char* name : {"a.png", "a.svg", "a.pdf", "a.html", "a.json", "a.txt"})
      EXPECT_FALSE(explain_image_file(seen, name).empty()) << name;
    EXPECT_THAT(explain_image_text(seen), HasSubstr("dark, "));
    if (gate != "cbam") {
      EXPECT_THAT(explain_image_text(seen), HasSubstr("white is"));
      EXPECT_THAT(explain_image_file(seen, "a.svg"), HasSubstr("every channel (columns)"));
    }
    EXPECT_THAT(explain_image_file(seen, "a.html"), HasSubstr("<b>Fovea</b>"));
  }
}

TEST_F(ImageTest, AVisionTransformerLearnsAndShowsItsHeads) {
  training_.model = "vit";
  settings_ = {{"width", 16}, {"heads", 2}, {"hidden", 32}, {"layers", 2}};
  EXPECT_EQ(train().best, 100);
  const LoadedImageClassifier loaded = load_image_classifier(files_.out);
  const ImageExplanation seen = explain_image(loaded, picture("train/dark/3.png"));
  EXPECT_EQ(seen.prediction.label, 1);
  EXPECT_EQ(seen.grid_rows, 4);
  EXPECT_EQ(seen.grid_columns, 4);
  ASSERT_EQ(seen.attention.layers.size(), 2u);
  for (const AttentionLayer& layer : seen.attention.layers)
    for (const WeightMatrix& head : layer.heads) {
      ASSERT_EQ(head.columns, 17);
      double sum = 0;
      for (int64_t j = 0; j < 17; ++j) sum += double{head.at(0, j)};
      EXPECT_NEAR(sum, 1, 1e-5);
    }
  EXPECT_EQ(places_figure(seen).panels.size(), 4u) << "the picture, two layers, rollout";
  EXPECT_EQ(places_figure(seen, {.layer = "1"}).panels.size(), 4u) << "the picture, the average, two heads";
  EXPECT_EQ(places_figure(seen, {.head = "0"}).panels.size(), 3u) << "the picture, a head of each layer";
  EXPECT_EQ(places_figure(seen, {.layer = "1", .head = "0"}).panels.size(), 2u);
  EXPECT_EQ(places_figure(seen, {.layer = "rollout"}).panels.size(), 2u);
  // A panel is the row of the class token, less its weight on itself.
  const Overlay panel = places_figure(seen, {.layer = "1", .head = "0"}).panels[1];
  for (int64_t j = 0; j < 16; ++j)
    EXPECT_EQ(panel.weights[static_cast<size_t>(j)], seen.attention.layers[1].heads[0].at(0, j + 1));
  for (const char* name : {"a.png", "a.svg", "a.pdf", "a.html", "a.json", "a.txt"})
    EXPECT_FALSE(explain_image_file(seen, name).empty()) << name;
  EXPECT_THAT(explain_image_text(seen), HasSubstr("layer 1, average of heads"));
}

TEST_F(ImageTest, AVisionTransformerGoesOnToTheSameBytesWithAnyThreads) {
  training_.model = "vit";
  training_.schedule = "one_cycle";
  training_.optimizer = "sgd";
  training_.warmup = 0.3;
  settings_ = {{"width", 16}, {"heads", 2}, {"hidden", 32}, {"layers", 2}};
  expect_same_bytes_after_an_interruption();
}

// Seen before anything is read: the folder does not exist.
TEST_F(ImageTest, APatchThatDoesNotDivideTheSizeIsRefusedAtOnce) {
  training_.model = "vit";
  settings_ = {{"patch", 5}};
  files_.train = {picture("nowhere")};
  EXPECT_THAT(error_of([&] { train(); }), HasSubstr("cannot be cut into patches of 5 x 5"));
  training_.schedule = "one_cycle";
  EXPECT_THAT(error_of([&] { train(); }), HasSubstr("wanted a share of the run below 1"));
}

TEST_F(ImageTest, FilesThatAreLeftOutAreNamed) {
  write_atomically(folder_ / "train" / "dark" / "scan.webp", "RIFF");
  std::string notes;
  class Notes : public RunObserver {
   public:
    explicit Notes(std::string& all) : all_(all) {}
    void on_note(const std::string& note) override { all_ += note + "\n"; }

   private:
    std::string& all_;
  } observer(notes);
  options_.steps = 1;
  train_image(files_, {training_, options_, settings_}, "test", observer, [] { return false; });
  EXPECT_THAT(notes, HasSubstr("note: 1 of the files in"));
}

TEST_F(ImageTest, ATarOfFoldersTrainsLikeTheFoldersThemselves) {
  train();
  const std::string tar = picture("train.tar");
  ASSERT_EQ(std::system(("tar -cf " + tar + " -C " + folder_.string() + " train").c_str()), 0);
  const std::string whole = read_text(files_.out / "model.safetensors");
  files_ = {{tar}, {tar}, folder_ / "from-tar"};
  train();
  EXPECT_EQ(read_text(files_.out / "model.safetensors"), whole);
}

TEST_F(ImageTest, TheKernelCurveHasAWeightForEveryScaleAndBlock) {
  settings_["gate"] = "sk";
  train();
  const KernelCurve curve = kernel_curve(files_.out, files_.train, {0.5, 1, 2}, 10);
  EXPECT_EQ(curve.pictures, 10);
  ASSERT_EQ(curve.weights.size(), 3u);
  EXPECT_THAT(curve.blocks, testing::ElementsAre("stage 0, block 0", "stage 1, block 0", "stage 2, block 0"));
  // At scale 1 a weight is the mean of what explain_image() shows.
  const LoadedImageClassifier loaded = load_image_classifier(files_.out);
  const data::Pictures pictures = data::read_pictures_as(files_.train, loaded.form, loaded.labels);
  double sum = 0;
  for (int64_t i = 0; i < 10; ++i) {
    const auto pixels = pictures.picture(i * pictures.count() / 10);
    const ShownGate gate = explain_image(loaded, {pixels.begin(), pixels.end()}).gates[1];
    for (int64_t c = 0; c < gate.rows; ++c)
      sum += double{gate.weights[static_cast<size_t>(2 * c + 1)]} / static_cast<double>(gate.rows);
  }
  EXPECT_NEAR(curve.weights[1][1], sum / 10, 1e-4);
  EXPECT_THAT(to_text(curve), HasSubstr("0.50\t"));
  for (const char* name : {"a.png", "a.svg", "a.pdf", "a.json"})
    EXPECT_FALSE(kernel_curve_file(curve, name).empty()) << name;
}

TEST(ScaledContent, IsShrunkAmongItsMirrorImagesOrEnlargedFromItsMiddle) {
  const Tensor image({1, 8, 1});
  for (int64_t i = 0; i < 8; ++i) image.data()[i] = static_cast<float>(i);
  // Four values of two pixels each, in the middle of their mirror images.
  EXPECT_THAT(scaled_content(image, 0.5).to_vector(),
              testing::ElementsAre(2.5f, 0.5f, 0.5f, 2.5f, 4.5f, 6.5f, 6.5f, 4.5f));
  EXPECT_EQ(scaled_content(image, 1).to_vector(), image.to_vector());
  const std::vector<float> large = scaled_content(image, 2).to_vector();
  EXPECT_EQ(large.front(), 2);
  EXPECT_EQ(large.back(), 5);
  const Tensor tiny = scaled_content(image, 0.1);
  EXPECT_EQ(tiny.shape(), image.shape());
}

TEST_F(ImageTest, AnInterruptedTrainingGoesOnToTheSameBytesWithAnyThreads) {
  expect_same_bytes_after_an_interruption();
}

TEST_F(ImageTest, RefusesWhatItCannotUseNamingIt) {
  EXPECT_THAT(error_of([&] { data::read_pictures({"a", "b", "c"}, 0); }), HasSubstr("got 3 paths"));
  EXPECT_THAT(error_of([&] { data::read_pictures({picture("nowhere")}, 0); }), HasSubstr("nowhere"));
  EXPECT_THAT(error_of([&] { data::read_pictures({picture("train")}, 3); }), HasSubstr("size: got 3"));
  EXPECT_THAT(error_of([&] {
                data::read_pictures_as({picture("train")}, {16, 16, 3}, {"bright", "dar"});
              }),
              HasSubstr("the class 'dark' is not among the model's, did you mean 'dar'?"));
  write_atomically(folder_ / "train/dark/0.png", "no picture");
  EXPECT_THAT(error_of([&] { train(); }), HasSubstr("0.png"));
  fs::remove(folder_ / "train/dark/0.png");
  settings_["gate"] = "none";
  options_.steps = 2;
  train();
  EXPECT_THAT(
      error_of([&] { explain_image(load_image_classifier(files_.out), picture("train/dark/1.png")); }),
      HasSubstr("trained with --gate none"));
  const Json whole = load_json(files_.out / "config.json");
  for (const auto& [name, value, wanted] :
       {std::tuple{"labels", Json{"a"}, "1 labels for 2 classes"},
        std::tuple{"height", Json(0), "wanted 1 to"}, std::tuple{"mean", Json{0.5}, "each of 3 channels"},
        std::tuple{"task", Json("classify"), "wanted 'image'"}}) {
    Json damaged = whole;
    damaged[name] = value;
    save_json(files_.out / "config.json", damaged);
    EXPECT_THAT(error_of([&] { load_image_classifier(files_.out); }), HasSubstr(wanted));
  }
}

}  // namespace
}  // namespace fovea::tasks
