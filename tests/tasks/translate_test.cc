// From two text files to a model folder, and from the folder to translations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/rng.h"
#include "io/file.h"
#include "io/safetensors.h"
#include "tasks/convert.h"
#include "tasks/train_translate.h"
#include "tensor/allocator.h"

namespace fovea::tasks {
namespace {

namespace fs = std::filesystem;

class TranslateTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("fovea-translate-" + std::to_string(getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    // A language of six words whose translation is said backwards and forwards.
    const char* words[][2] = {{"one", "eins"},  {"two", "zwei"}, {"three", "drei"},
                              {"four", "vier"}, {"red", "rot"},  {"blue", "blau"}};
    Rng rng(3);
    std::ofstream source(folder_ / "s.txt"), target(folder_ / "t.txt");
    for (int i = 0; i < 300; ++i) {
      const auto a = rng.below(6), b = rng.below(6);
      source << words[a][0] << ' ' << words[b][0] << '\n';
      target << words[b][1] << ' ' << words[a][1] << ' ' << words[a][1] << ' ' << words[b][1] << '\n';
    }
    files_ = {(folder_ / "s.txt").string(), (folder_ / "t.txt").string(), (folder_ / "s.txt").string(),
              (folder_ / "t.txt").string(), folder_ / "model"};
    training_ = {.tokenizer = "words",
                 .vocabulary = 0,
                 .joint = false,
                 .batch_tokens = 256,
                 .learning_rate = 5e-3,
                 .warmup = 30,
                 .smoothing = 0,
                 .valid_sentences = 30,
                 .tokenize = "none"};
    options_ = {.steps = 500, .validate_every = 250, .save_every = 20, .seed = 2};
    settings_ = {{"width", 32},         {"heads", 2},     {"hidden", 64},   {"encoder_layers", 1},
                 {"decoder_layers", 1}, {"dropout", 0.0}, {"tie", "output"}};
  }
  void TearDown() override { fs::remove_all(folder_); }

  TrainingOutcome train(const std::function<bool()>& stop = [] { return false; }) {
    TranslateObserver observer;
    return train_translate(files_, {training_, options_, settings_}, "a test", observer, stop);
  }

  fs::path folder_;
  TranslateFiles files_;
  TranslateTraining training_;
  train::TrainOptions options_;
  Json settings_;
};

TEST_F(TranslateTest, LearnsASmallLanguageAndTranslatesFromItsFolder) {
  const TrainingOutcome outcome = train();
  EXPECT_EQ(outcome.outcome, train::Outcome::finished);
  EXPECT_GT(outcome.best, 50);
  const LoadedTranslator loaded = load_translation(files_.out);
  const Translator translator(*loaded.network, loaded.tokenizers);
  const std::vector<std::string> lines{"red two", "", "one blue", "three three"};
  for (const int64_t beam : {1, 4}) {
    const auto found = translator.translate(lines, {.beam = beam});
    ASSERT_EQ(found.size(), 4u);
    EXPECT_EQ(found[0][0].text, "zwei rot rot zwei");
    EXPECT_EQ(found[1][0].text, "");
    EXPECT_EQ(found[2][0].text, "blau eins eins blau");
    EXPECT_EQ(found[3][0].text, "drei drei drei drei");
  }
}

TEST_F(TranslateTest, AnInterruptedRunEndsWithTheSameBytesAsOneThatWasNot) {
  options_.steps = 50;
  train();
  const std::string whole = read_text(files_.out / "model.safetensors");
  files_.out = folder_ / "again";
  int left = 23;
  EXPECT_EQ(train([&] { return --left == 0; }).outcome, train::Outcome::interrupted);
  EXPECT_FALSE(fs::exists(files_.out / "config.json")) << "an unfinished run is no model folder yet";
  try {
    load_translation(files_.out);
    ADD_FAILURE() << "loaded a model that is not there";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("checkpoints/last until it has"));
  }
  const LoadedTranslator so_far = load_translation(files_.out / "checkpoints/last");
  EXPECT_EQ(Translator(*so_far.network, so_far.tokenizers).translate({{"red two"}}, {.beam = 1}).size(), 1u);
  EXPECT_EQ(train().outcome, train::Outcome::finished);
  EXPECT_EQ(read_text(files_.out / "model.safetensors"), whole);
  EXPECT_EQ(train().outcome, train::Outcome::already_finished);
}

TEST_F(TranslateTest, TheFolderHoldsTheAverageOfTheLastCheckpointsWhereItIsBetter) {
  class Notes : public TranslateObserver {
   public:
    void on_note(const std::string& text) override { all += text + "\n"; }
    std::string all;
  };
  options_ = {.steps = 45, .average = 3, .validate_every = 0, .save_every = 10, .seed = 2};
  Notes notes;
  training_.valid_sentences = TranslateTraining().valid_sentences;
  training_.tokenize = TranslateTraining().tokenize;
  files_.valid_source.clear();
  files_.valid_target.clear();
  const auto run = [&] {
    return train_translate(files_, {training_, options_, settings_}, "a test", notes, [] { return false; });
  };
  EXPECT_EQ(run().averaged, 3);
  EXPECT_THAT(notes.all, testing::HasSubstr("the model is the average of the last 3 checkpoints"));
  EXPECT_THAT(read_text(files_.out / "README.md"), testing::HasSubstr("average of the last 3 checkpoints"));
  const SafetensorsFile model(files_.out / "model.safetensors");
  const std::string name = model->entries().front().name;
  std::vector<double> mean;
  for (const char* step : {"020", "030", "040"}) {
    const SafetensorsFile file(files_.out / "checkpoints/recent" / message("step-000", step, ".safetensors"));
    const std::vector<float> values = file->read(name);
    mean.resize(values.size());
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += values[i] / 3.0;
  }
  const std::vector<float> found = model->read(name);
  ASSERT_EQ(found.size(), mean.size());
  for (size_t i = 0; i < mean.size(); ++i) EXPECT_NEAR(found[i], mean[i], 1e-6);

  // With validation, whichever translates it better; the note names both figures.
  files_.valid_source = files_.train_source;
  files_.valid_target = files_.train_target;
  files_.out = folder_ / "validated";
  options_.steps = 500;
  options_.validate_every = 100;
  notes.all.clear();
  const TrainingOutcome outcome = run();
  EXPECT_THAT(notes.all,
              testing::ContainsRegex("average of the last 3 checkpoints: BLEU [0-9.]+; best single"));
  EXPECT_GT(outcome.best, 50);
  const std::string chosen = read_text(files_.out / "model.safetensors");
  EXPECT_EQ(run().outcome, train::Outcome::already_finished);
  EXPECT_EQ(read_text(files_.out / "model.safetensors"), chosen) << "asked again, the same choice";
}

TEST_F(TranslateTest, BrokenFoldersAreRefusedWithOneLine) {
  options_.steps = 2;
  options_.validate_every = 0;
  train();
  const auto message_of = [&] {
    try {
      load_translation(files_.out);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message_of(), "");
  const std::string weights = read_text(files_.out / "model.safetensors");
  write_atomically(files_.out / "model.safetensors", std::string_view(weights).substr(0, weights.size() / 2));
  EXPECT_THAT(message_of(), testing::HasSubstr("model.safetensors"));
  write_atomically(files_.out / "model.safetensors", weights);
  write_atomically(files_.out / "config.json", "{\"architectures\": [\"BertModel\"]}");
  EXPECT_THAT(message_of(), testing::HasSubstr("not a config of Fovea's"));
  fs::remove(files_.out / "config.json");
  EXPECT_THAT(message_of(), testing::HasSubstr("has no config.json"));
  EXPECT_THROW(load_translation(folder_ / "nowhere"), Error);
}

TEST_F(TranslateTest, AnInt8FolderTranslatesAsItsFloatFolderMadeInt8OnLoading) {
  options_.steps = 300;
  options_.validate_every = 0;
  train();
  const fs::path small = folder_ / "small", back = folder_ / "back", twice = folder_ / "twice";
  const Conversion sizes = convert_translation(files_.out, "int8", small);
  EXPECT_LT(sizes.bytes_after, sizes.bytes_before / 2);
  const std::vector<std::string> lines{"red two", "one blue four", "", "three"};
  const auto translated = [&](const fs::path& folder, const std::string& compute) {
    const LoadedTranslator loaded = load_translation(folder, compute);
    const Translator translator(*loaded.network, loaded.tokenizers, loaded.compute);
    std::string all;
    for (const auto& found : translator.translate(lines, {.beam = 3, .n_best = 2}))
      for (const Translation& t : found) all += message(t.text, " ", std::hexfloat, t.score, "\n");
    return all;
  };
  const std::string made_on_loading = translated(files_.out, "int8");
  EXPECT_EQ(translated(small, ""), made_on_loading) << "the folder says int8 by itself";
  EXPECT_NE(made_on_loading, translated(files_.out, "")) << "int8 is not float32";
  EXPECT_THAT(made_on_loading, testing::HasSubstr("zwei rot rot zwei"));
  EXPECT_EQ(load_json(small / "config.json")["compute"], "int8");

  convert_translation(small, "float32", back);
  EXPECT_EQ(translated(back, "int8"), made_on_loading);
  EXPECT_EQ(translated(small, "float32"), translated(back, ""));
  convert_translation(back, "int8", twice);
  EXPECT_EQ(read_text(twice / "model.safetensors"), read_text(small / "model.safetensors"));
}

// Tables apart, the weights are in memory in prepared form alone; those of the file are its own memory.
TEST_F(TranslateTest, AFolderOpenedForUseHoldsItsLayersOnce) {
  options_.steps = 1;
  settings_.update(Json{{"width", 128}, {"hidden", 512}, {"encoder_layers", 2}, {"decoder_layers", 2}});
  train();
  convert_translation(files_.out, "int8", folder_ / "integers");
  const int64_t weights = 2 * (4 + 8) * 128 * 128 + 4 * 2 * 128 * 512;
  const auto bytes_in_use = [](const fs::path& folder, const std::string& compute) {
    const int64_t before = memory_use().live_bytes;
    const LoadedTranslator loaded = load_translation(folder, compute);
    for (const auto& [name, value] : loaded.network->parameters())
      EXPECT_EQ(value.value().defined(), name.find("layers.") == std::string::npos ||
                                             name.find("norm") != std::string::npos || name.ends_with("bias"))
          << name;
    return memory_use().live_bytes - before;
  };
  EXPECT_LT(bytes_in_use(files_.out, "float32"), weights * 4 * 5 / 4);
  EXPECT_LT(bytes_in_use(files_.out, "int8"), weights * 5 / 4);
  EXPECT_LT(bytes_in_use(folder_ / "integers", ""), weights * 5 / 4);
}

TEST_F(TranslateTest, BrokenInt8FoldersAreRefusedWithOneLine) {
  options_.steps = 2;
  options_.validate_every = 0;
  train();
  const fs::path small = folder_ / "small";
  convert_translation(files_.out, "int8", small);
  const auto message_of = [&](const auto& action) -> std::string {
    try {
      action();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  const auto load = [&] { load_translation(small); };
  EXPECT_THAT(message_of([&] { convert_translation(files_.out, "int8", small); }),
              testing::HasSubstr("exists already"));
  EXPECT_THAT(message_of([&] { convert_translation(files_.out, "int4", folder_ / "x"); }),
              testing::HasSubstr("wanted float32 or int8"));
  EXPECT_THAT(message_of([&] { load_translation(files_.out, "bf16"); }), testing::HasSubstr("'bf16'"));
  EXPECT_FALSE(fs::exists(folder_ / "x"));

  // The same tensors, one of them changed or left out.
  const std::string kept = read_text(small / "model.safetensors");
  const auto rewrite = [&](const std::function<bool(TensorToWrite&)>& change) {
    write_atomically(small / "model.safetensors", kept);
    const SafetensorsFile file(small / "model.safetensors");
    std::vector<TensorToWrite> tensors;
    for (const TensorEntry& entry : file->entries()) {
      TensorToWrite tensor{entry.name, entry.dtype, entry.shape, file->bytes(entry)};
      if (change(tensor)) tensors.push_back(tensor);
    }
    save_safetensors(small / "other", tensors);
    fs::rename(small / "other", small / "model.safetensors");
  };
  const std::string scale = "target_embedding.scale";
  rewrite([&](TensorToWrite& tensor) { return tensor.name != scale; });
  EXPECT_THAT(message_of(load), testing::AllOf(testing::HasSubstr("model.safetensors"),
                                               testing::HasSubstr("there is no 'target_embedding.scale'")));
  rewrite([&](TensorToWrite& tensor) {
    if (tensor.name == scale) tensor.shape = {1, tensor.shape[0]};
    return true;
  });
  EXPECT_THAT(message_of(load), testing::HasSubstr("has shape [1, "));
  std::vector<float> wrong;
  for (const float value : {std::nanf(""), -1.0f}) {
    rewrite([&](TensorToWrite& tensor) {
      if (tensor.name == scale) {
        wrong.assign(static_cast<size_t>(tensor.shape[0]), value);
        tensor.bytes = std::as_bytes(std::span(wrong));
      }
      return true;
    });
    EXPECT_THAT(message_of(load), testing::HasSubstr("which is no scale"));
  }
  write_atomically(small / "model.safetensors", kept);
  Json config = load_json(small / "config.json");
  config["compute"] = "int3";
  save_json(small / "config.json", config);
  EXPECT_THAT(message_of(load), testing::HasSubstr("wanted float32 or int8"));
  config["compute"] = 8;
  save_json(small / "config.json", config);
  EXPECT_THAT(message_of(load), testing::HasSubstr("compute"));
}

TEST_F(TranslateTest, TwoVocabulariesHaveTwoTables) {
  settings_["tie"] = "all";
  EXPECT_THAT([&] { train(); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("wants one vocabulary for both languages")));
  EXPECT_FALSE(fs::exists(files_.out));
  settings_.erase("tie");
  options_.steps = 1;
  train();
  EXPECT_EQ(load_translation(files_.out).config["tie"], "output");
}

TEST_F(TranslateTest, UnknownSettingsAreRefused) {
  settings_["widht"] = 3;
  try {
    train();
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("did you mean 'width'"));
  }
}

}  // namespace
}  // namespace fovea::tasks
