// From scenes to a ship detector, and from its folder to ships and what they rest on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "base/error_of.h"
#include "base/parallel.h"
#include "data/harbour_scenes.h"
#include "io/file.h"
#include "io/temporary_directory.h"
#include "tasks/explain_partition.h"
#include "tasks/open.h"
#include "tasks/scene_picture.h"
#include "tasks/train_partition.h"

namespace fovea::tasks {
namespace {

using testing::HasSubstr;

// A bitmap in which each pixel of the picture is a square of zoom x zoom pixels.
std::string bitmap_of(const data::Image& image, int64_t zoom) {
  const int64_t height = image.height * zoom, width = image.width * zoom, line = (3 * width + 3) / 4 * 4;
  std::string bytes(static_cast<size_t>(54 + line * height), '\0');
  const auto put = [&](size_t at, int64_t value) {
    const auto number = static_cast<uint32_t>(value);
    std::memcpy(bytes.data() + at, &number, sizeof number);
  };
  bytes[0] = 'B';
  bytes[1] = 'M';
  put(10, 54);
  put(14, 40);
  put(18, width);
  put(22, height);
  put(26, 1 | 24 << 16);
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x)
      for (int64_t c = 0; c < 3; ++c)  // rows from below, blue first
        bytes[static_cast<size_t>(54 + (height - 1 - y) * line + 3 * x + c)] = static_cast<char>(
            image.pixels[static_cast<size_t>((y / zoom * image.width + x / zoom) * 3 + 2 - c)]);
  return bytes;
}

class PartitionTest : public testing::Test {
 protected:
  TrainingOutcome train(const std::function<bool()>& stop = [] { return false; }) {
    RunObserver observer;
    return train_partition(files_, {training_, options_, settings_}, "a test", observer, stop);
  }
  TemporaryDirectory directory_;
  PartitionFiles files_{"scenes", "scenes", directory_.path() / "model"};
  PartitionTraining training_{.size = 64, .scenes = 24, .valid_scenes = 4, .batch = 8, .warmup = 2};
  train::TrainOptions options_{.steps = 8, .clip_norm = 1, .validate_every = 4, .save_every = 3, .seed = 3};
  Json settings_{{"width", 4}, {"gate_steps", 4}};
};

TEST_F(PartitionTest, AnInterruptedTrainingGoesOnToTheSameBytesWithAnyThreads) {
  train();
  const std::string whole = read_text(files_.out / "model.safetensors");
  files_.out = directory_.path() / "again";
  int steps = 0;
  EXPECT_EQ(train([&] { return ++steps == 5; }).outcome, train::Outcome::interrupted);
  const int before = num_threads();
  set_num_threads(before == 1 ? 2 : 1);
  train();
  set_num_threads(before);
  EXPECT_EQ(read_text(files_.out / "model.safetensors"), whole);
}

TEST_F(PartitionTest, LearnsToFindShipsAndShowsItsMaps) {
  // A few scenes by heart.
  training_ = {.size = 96, .scenes = 8, .batch = 8, .learning_rate = 5e-3, .turn = false};
  options_ = {.steps = 200, .clip_norm = 1, .validations = 1, .seed = 3};
  files_.valid.clear();
  settings_ = {{"width", 8}, {"gate_steps", 100}};
  train();
  const LoadedPartitioner loaded = load_partition(files_.out);
  const std::vector<data::ShipScene> known = read_scenes({"scenes", 8, 3}, 96);
  EXPECT_GT(evaluate_scenes(loaded, known).f1(), 0.6);
  const PartitionExplanation seen = explain_partition(loaded, known[0].image);
  EXPECT_EQ(partition_figure(seen).panels.size(), 5u);
  for (const char* name : {"a.png", "a.svg", "a.pdf", "a.html", "a.json", "a.txt"})
    EXPECT_FALSE(explain_partition_file(seen, name).empty()) << name;
  EXPECT_THAT(explain_partition_text(seen), HasSubstr("B bow, S stern"));

  EXPECT_EQ(look_into(files_.out).parameters, loaded.network->parameter_count());
  const auto model = open(files_.out);
  const Input picture{draw_pixels(96, 96, known[0].image.pixels, PictureFormat::png), "a.png"};
  const Answer answer = model->answer({&picture, 1}, {})[0];
  EXPECT_EQ(answer.error, "");
  ASSERT_EQ(answer.ships.size(), seen.maps.ships.size());
  ASSERT_FALSE(answer.ships.empty());
  for (size_t i = 0; i < answer.ships.size(); ++i) {
    EXPECT_EQ(answer.ships[i].ship.x, seen.maps.ships[i].ship.x);
    EXPECT_EQ(answer.ships[i].ship.heading, seen.maps.ships[i].ship.heading);
    EXPECT_EQ(answer.ships[i].score, seen.maps.ships[i].score);
  }
  const Json json = model->to_json(picture, answer);
  EXPECT_EQ(json["file"], "a.png");
  EXPECT_EQ(json["ships"].size(), answer.ships.size());
  // The ships of another size of picture are in its pixels, in answers and explanations alike; a bitmap is read too.
  const Input larger{bitmap_of(known[0].image, 2), "c.bmp"};
  const Answer twice = model->answer({&larger, 1}, {})[0];
  EXPECT_EQ(twice.error, "");
  ASSERT_EQ(twice.ships.size(), answer.ships.size());
  EXPECT_NEAR(twice.ships[0].ship.length, 2 * answer.ships[0].ship.length, 0.5);
  const Json numbers = Json::parse(model->explain(larger, {}, ".json", 80).content);
  EXPECT_EQ(numbers["width"], 192);
  EXPECT_EQ(numbers["height"], 192);
  EXPECT_EQ(numbers["cell"], 4);
  EXPECT_EQ(numbers["ships"], model->to_json(larger, twice)["ships"]);
  const Input broken{"no picture", "b.png"};
  EXPECT_THAT(model->answer({&broken, 1}, {})[0].error, HasSubstr("b.png"));
}

TEST(DetectionCounts, HaveNoErrorOfPlaceWithoutAMatch) {
  const infer::DetectionCounts none{.ships = 3, .found = 2};
  EXPECT_TRUE(to_json(none)["localisation"].is_null()) << to_json(none);
  EXPECT_THAT(to_text(none), HasSubstr("localisation -,"));
  const infer::DetectionCounts one{.ships = 3, .found = 2, .matched = 1, .bow_error = 3, .stern_error = 1};
  EXPECT_EQ(to_json(one)["localisation"], 2);
  EXPECT_THAT(to_text(one), HasSubstr("localisation 2.00 pixels,"));
}

TEST_F(PartitionTest, RefusesWhatItCannotUse) {
  files_.train = (directory_.path() / "nowhere").string();
  EXPECT_THAT(error_of([&] { train(); }), HasSubstr("scenes applies to --train scenes only"));
  training_.scenes.reset();
  EXPECT_THAT(error_of([&] { train(); }), HasSubstr("no such folder"));
  training_.size = 100;
  EXPECT_THAT(error_of([&] { train(); }), HasSubstr("size: got 100, wanted a multiple of 8"));
  training_.size = 64;
  settings_["branches"] = "none";
  EXPECT_THAT(error_of([&] { train(); }), HasSubstr("wanted gated, ungated or single"));
  files_.train = "scenes";
  settings_ = {{"width", 4}};
  options_.steps = 1;
  train();
  const Json whole = load_json(files_.out / "config.json");
  for (const auto& [name, value, wanted] : {std::tuple{"size", Json(60), "wanted a multiple of 8"},
                                            std::tuple{"size", Json(1 << 20), "wanted a multiple of 8"},
                                            std::tuple{"mean", Json{0.5}, "3 numbers"},
                                            std::tuple{"task", Json("image"), "wanted 'partition'"}}) {
    Json damaged = whole;
    damaged[name] = value;
    save_json(files_.out / "config.json", damaged);
    EXPECT_THAT(error_of([&] { load_partition(files_.out); }), HasSubstr(wanted));
  }
}

TEST(ScenePicture, IsThePictureItselfOrWithItsLabels) {
  const ScenePicture plain = scene_picture(7, 64, false, "a.png"),
                     labels = scene_picture(7, 64, true, "a.svg");
  EXPECT_EQ(plain.title, labels.title);
  const data::Image image = data::decode_image(std::as_bytes(std::span(plain.content)), "a.png");
  EXPECT_EQ(image.pixels, data::draw_harbour(kTestHarbours, 7, 64).image.pixels);
  EXPECT_THROW(scene_picture(-1, 64, false, "a.png"), Error);
  EXPECT_THROW(scene_picture(1, 66, false, "a.png"), Error);
  EXPECT_THROW(scene_picture(1, 64, false, "a.txt"), Error);
}

}  // namespace
}  // namespace fovea::tasks
