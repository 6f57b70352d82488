// A model folder's config.json comes from outside: what it says of sizes is held against its range and
// against the weights file before memory is taken by it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <filesystem>

#include "io/file.h"
#include "io/temporary_directory.h"
#include "models/registry/classifiers.h"
#include "models/registry/image_classifiers.h"
#include "models/registry/translators.h"
#include "tasks/classifier.h"
#include "tasks/image_classifier.h"
#include "tasks/untrained_captioner.h"
#include "tasks/untrained_classifiers.h"
#include "tasks/untrained_series.h"
#include "tasks/untrained_translator.h"
#include "tasks/untrained_vision.h"
#include "tensor/allocator.h"

namespace fovea::tasks {
namespace {

namespace fs = std::filesystem;

struct Refusal {
  std::string message;
  double seconds;  // of this process's own time
  int64_t bytes;   // of tensors, at most
};

template <class Open>
Refusal refusal(const Open& open) {
  trim_memory();
  const int64_t before = memory_use().live_bytes;
  reset_peak_memory();
  const std::clock_t begin = std::clock();
  std::string message = "no error";
  try {
    open();
  } catch (const Error& error) {
    message = error.what();
  }
  return {message, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC,
          memory_use().peak_bytes - before};
}

class HostileConfig : public ::testing::Test {
 protected:
  // The folder's settings with one of them changed, opened. name: of a setting, or the path of another value.
  template <class Open>
  void expect_refused(const std::string& name, const Json& value, const Open& open) {
    Json config = load_json(folder_ / "config.json");
    const Json whole = config;
    (name.starts_with('/') ? config.at(Json::json_pointer(name)) : config["settings"][name]) = value;
    save_json(folder_ / "config.json", config);
    const Refusal got = refusal(open);
    EXPECT_NE(got.message, "no error") << name << " " << value;
    EXPECT_EQ(got.message.find('\n'), std::string::npos) << got.message;
    EXPECT_LT(got.seconds, 0.5) << name << " " << value;
    EXPECT_LT(got.bytes, 4 << 20) << name << " " << value;
    save_json(folder_ / "config.json", whole);
  }

  // Every number of the settings, at sizes that no folder can mean.
  template <class Open>
  void expect_bounds(const Open& open, const std::vector<std::string>& sizes) {
    EXPECT_EQ(refusal(open).message, "no error");
    const Json config = load_json(folder_ / "config.json");
    for (const auto& item : config.items())
      if (item.value().is_number_integer())
        for (const Json& value : {Json(int64_t{1} << 31), Json(int64_t{1} << 62), Json(-1)})
          expect_refused("/" + item.key(), value, open);
    const Json settings = config["settings"];
    for (const auto& item : settings.items()) {
      if (!item.value().is_number()) continue;
      for (const Json& value : {Json(int64_t{1} << 31), Json(int64_t{1} << 62), Json(-1), Json(1e300)})
        expect_refused(item.key(), value, open);
    }
    // Within their ranges, but more than the weights are.
    for (const std::string& name : sizes)
      for (const int64_t value : {1000, 1024, 1 << 16, 1 << 24}) expect_refused(name, value, open);
  }

  TemporaryDirectory directory_;
  fs::path folder_ = directory_.path() / "model";
};

TEST_F(HostileConfig, OfATransformerIsRefusedAtOnce) {
  save_translation(folder_, untrained_translator("words", "transformer",
                                                 {{"width", 16},
                                                  {"heads", 2},
                                                  {"hidden", 32},
                                                  {"encoder_layers", 2},
                                                  {"decoder_layers", 2},
                                                  {"positions", "learned"},
                                                  {"max_positions", 20}}));
  expect_bounds([&] { load_translation(folder_); }, {"encoder_layers", "decoder_layers", "width", "hidden",
                                                     "max_positions", "source_vocabulary"});
  expect_refused("dropout", 1, [&] { load_translation(folder_); });
  expect_refused("self_attention", "scaled_dot / window(-1,2)", [&] { load_translation(folder_); });
}

TEST_F(HostileConfig, OfARecurrentTranslatorIsRefusedAtOnce) {
  save_translation(folder_,
                   untrained_translator("words", "luong", {{"width", 16}, {"embedding", 12}, {"layers", 2}}));
  expect_bounds([&] { load_translation(folder_); }, {"layers", "width", "embedding"});
  save_translation(folder_, untrained_translator("words", "bahdanau", {{"width", 16}, {"embedding", 12}}));
  expect_bounds([&] { load_translation(folder_); }, {"width", "embedding", "attention_width"});
}

TEST_F(HostileConfig, OfAClassifierIsRefusedAtOnce) {
  const LoadedTranslator words = untrained_translator();
  for (const std::string model : {"lstm", "han", "transformer"}) {
    SCOPED_TRACE(model);
    LoadedClassifier loaded;
    loaded.model = model;
    loaded.labels = {"a", "b"};
    loaded.tokenizer = words.tokenizers.source;
    loaded.config = models::model_config<models::Classifiers>(
        model, Json{{"width", 16}}, models::vocabulary_and_classes(loaded.tokenizer->size(), 2));
    Rng rng(1);
    loaded.network = models::make_model<models::Classifiers>(model, loaded.config, rng);
    folder_ = directory_.path() / model;
    save_classifier(folder_, loaded);
    expect_bounds([&] { load_classifier(folder_); }, model == "han"
                                                         ? std::vector<std::string>{"width", "embedding"}
                                                         : std::vector<std::string>{"width", "layers"});
  }
}

TEST_F(HostileConfig, OfAnImageClassifierIsRefusedAtOnce) {
  LoadedImageClassifier loaded;
  loaded.model = "resnet";
  loaded.labels = {"a", "b"};
  loaded.form = {.height = 8, .width = 8, .channels = 1};
  loaded.moments = {.mean = {0.5f}, .deviation = {0.5f}};
  loaded.config = models::model_config<models::ImageClassifiers>(
      "resnet", Json{{"depth", 8}, {"width", 4}, {"gate", "se"}}, Json{{"classes", 2}, {"channels", 1}});
  Rng rng(1);
  loaded.network = models::make_model<models::ImageClassifiers>("resnet", loaded.config, rng);
  save_image_classifier(folder_, loaded);
  expect_bounds([&] { load_image_classifier(folder_); }, {"width", "channels"});
  expect_refused("depth", 1202, [&] { load_image_classifier(folder_); });
}

TEST_F(HostileConfig, OfAVisionTransformerIsRefusedAtOnce) {
  save_image_classifier(folder_, untrained_vit());
  expect_bounds([&] { load_image_classifier(folder_); },
                {"width", "hidden", "layers", "patch", "channels", "picture_height", "picture_width"});
  expect_refused("self_attention", "scaled_dot / window(-1,2)", [&] { load_image_classifier(folder_); });
  // The picture's own size must be the network's.
  Json config = load_json(folder_ / "config.json");
  config["height"] = 20;
  save_json(folder_ / "config.json", config);
  EXPECT_NE(refusal([&] { load_image_classifier(folder_); }).message.find("takes 16 x 16"),
            std::string::npos);
}

TEST_F(HostileConfig, OfAGlimpseClassifierIsRefusedAtOnce) {
  for (const std::string model : {"ram", "soft"}) {
    SCOPED_TRACE(model);
    folder_ = directory_.path() / model;
    save_glimpse_classifier(folder_, untrained_glimpse_classifier(model));
    expect_bounds([&] { load_glimpse_classifier(folder_); },
                  {"hidden", "features", "patch", "channels", "classes"});
  }
}

TEST_F(HostileConfig, OfAClipClassifierIsRefusedAtOnce) {
  save_clip_classifier(folder_, untrained_clip_classifier());
  expect_bounds([&] { load_clip_classifier(folder_); },
                {"filters", "features", "hidden", "channels", "classes", "height", "width"});
}

TEST_F(HostileConfig, OfACaptionerIsRefusedAtOnce) {
  save_captioner(folder_, untrained_captioner());
  expect_bounds([&] { load_captioner(folder_); }, {"embedding", "width", "vocabulary", "channels"});
}

TEST_F(HostileConfig, OfAShipDetectorIsRefusedAtOnce) {
  save_partition(folder_, untrained_partition());
  expect_bounds([&] { load_partition(folder_); }, {"width"});
}

TEST_F(HostileConfig, OfASeriesModelIsRefusedAtOnce) {
  for (const std::string model : {"transformer", "lstm"})
    for (const SeriesGoal goal : {SeriesGoal::forecast, SeriesGoal::classify, SeriesGoal::regress}) {
      SCOPED_TRACE(message(model, " ", name_of(goal)));
      folder_ = directory_.path() / message(model, name_of(goal));
      save_series(folder_, untrained_series(goal, model));
      expect_bounds([&] { load_series(folder_); },
                    {"width", "layers", "features", "known", "targets", "outputs", "window"});
    }
}

TEST(Settings, AreHeldToTheirRangesBeforeAnythingIsRead) {
  const auto complaint = [](const Json& settings) -> std::string {
    try {
      models::model_config<models::Translators>("luong", settings);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(complaint({{"window", -1}}), "model settings: window is -1, wanted 1 to 1048576");
  EXPECT_EQ(complaint({{"dropout", -1}}), "model settings: dropout is -1, wanted 0 or more and below 1");
  EXPECT_EQ(complaint({{"layers", 2147483648}}), "model settings: layers is 2147483648, wanted 1 to 1024");
  EXPECT_EQ(complaint({{"layers", 2}, {"dropout", 0.5}}), "no error");
}

}  // namespace
}  // namespace fovea::tasks
