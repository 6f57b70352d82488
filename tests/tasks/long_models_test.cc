// Longformer and BigBird folders in use and in training, folders converted to them, and vectors of tokens and parts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error_of.h"
#include "io/temporary_directory.h"
#include "tasks/classifier.h"
#include "tasks/convert.h"
#include "tasks/encoder.h"
#include "tasks/open.h"
#include "tasks/train_classify.h"
#include "tasks/untrained_encoder.h"

namespace fovea::tasks {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class LongModels : public testing::Test {
 protected:
  fs::path path(const std::string& name) const { return folder_ / name; }
  // With windows, blocks and texts that are small.
  void write(const std::string& name, const std::string& type, const models::BertHeads& heads) const {
    models::BertConfig config = untrained_encoder_config(type);
    config.max_position_embeddings = 200;
    config.attention_window.assign(type == "longformer" ? 2 : 0, 4);
    config.block_size = 4;
    config.num_random_blocks = 1;
    Rng rng(5);
    models::save_bert(path(name), models::Bert(config, heads, rng));
    write_atomically(path(name) / "vocab.txt", encoder_vocabulary_file());
  }
  static std::vector<float> embed(const fs::path& folder, const std::string& line,
                                  const OpenOptions& options = {}) {
    const Input input{line};
    return open(folder, options)->answer({&input, 1}, {})[0].vector;
  }

  TemporaryDirectory folder_;
};

void expect_near(const std::vector<float>& got, const std::vector<float>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], wanted[i], 2e-5) << i;
}

std::string long_text() {
  std::string text = "one";
  for (int i = 0; i < 20; ++i) text += " like food , paris is the food";
  return text;
}

TEST_F(LongModels, GlobalTokensAreChosenAndRefused) {
  for (const std::string type : {"longformer", "big_bird"}) {
    write(type, type, {.masked_lm = true});
    const std::vector<float> none = embed(path(type), long_text());
    EXPECT_EQ(none, embed(path(type), long_text(), {.global = "none"}));
    const std::vector<float> comma = embed(path(type), long_text(), {.global = ","});
    EXPECT_NE(none, comma);
    EXPECT_EQ(comma, embed(path(type), long_text(), {.global = "punctuation"}));
    EXPECT_THAT(error_of([&] { embed(path(type), "one", {.global = "beer"}); }),
                HasSubstr("no token 'beer'"));
    // What a folder's config says holds where nothing else is said.
    Json json = load_json(path(type) / "config.json");
    json["global_tokens"] = ",";
    save_json(path(type) / "config.json", json);
    EXPECT_EQ(comma, embed(path(type), long_text()));
    EXPECT_EQ(none, embed(path(type), long_text(), {.global = "none"}));
  }
  write_untrained_encoder(path("bert"));
  EXPECT_THAT(error_of([&] { embed(path("bert"), "one", {.global = "first"}); }),
              HasSubstr("global tokens are for Longformer and BigBird"));
}

TEST_F(LongModels, FillClassifyAndExplain) {
  for (const std::string type : {"longformer", "big_bird"}) {
    write("filler", type, {.masked_lm = true});
    const Input masked{long_text() + " [MASK]"};
    const Answer filled = open(path("filler"), {.purpose = Ability::fill})->answer({&masked, 1}, {})[0];
    EXPECT_EQ(filled.error, "");
    EXPECT_EQ(filled.masks.size(), 1u);
    write("classifier", type, {.labels = 3});
    const auto model = open(path("classifier"));
    const Input text{long_text()};
    const Answer answer = model->answer({&text, 1}, {})[0];
    EXPECT_EQ(answer.prediction.probabilities.size(), 3u);
    // Both layers are shown, and each row of weights sums to 1, those of global tokens too.
    const Json shown = Json::parse(model->explain(text, {}, ".json").content);
    // Longformer's classifier has one global token; a long text of BigBird the first and the last of its blocks of 4.
    const auto tokens = shown["attention"]["source"]["tokens"].size();
    const size_t last = (tokens - 1) / 4 * 4;
    std::vector<size_t> global{0};
    if (type == "big_bird") {
      global = {0, 1, 2, 3};
      for (size_t i = last; i < tokens; ++i) global.push_back(i);
    }
    EXPECT_EQ(shown["global"].get<std::vector<size_t>>(), global) << type;
    EXPECT_THAT(model->explain(text, {}, "").content, HasSubstr("global tokens"));
    const Json& layers = shown["attention"]["kinds"][0]["layers"];
    ASSERT_EQ(layers.size(), 2u);
    for (const Json& layer : layers)
      for (const Json& head : layer["heads"])
        for (const Json& row : head) {
          double sum = 0;
          for (const Json& weight : row) sum += weight.get<double>();
          ASSERT_NEAR(sum, 1, 1e-2) << type;
        }
  }
}

TEST_F(LongModels, TrainedClassifiersKeepTheirChoicesAndAreReadBack) {
  {
    std::ofstream train(path("train.tsv"));
    for (int i = 0; i < 40; ++i) train << (i % 2 ? "good\tone two three\n" : "bad\tfour five six\n");
  }
  class Silent : public RunObserver {
  } observer;
  for (const std::string type : {"longformer", "big_bird"}) {
    write(type, type, {});
    ClassifyTraining training;
    training.from = path(type).string();
    training.batch_tokens = 64;
    training.word_dropout = 0.0f;
    train::TrainOptions options = ClassifyTraining::options();
    options.steps = 3;
    Json choices{{"global", "first ,"}};
    if (type == "big_bird") choices["random_blocks"] = "none";
    train_classify({path("train.tsv").string(), "", path("out-" + type)}, {training, options, choices},
                   "test", observer, [] { return false; });
    const Json config = load_json(path("out-" + type) / "config.json");
    EXPECT_EQ(config["global_tokens"], "first ,");
    EXPECT_EQ(config.value("random_blocks", ""), type == "big_bird" ? "none" : "");
    EXPECT_EQ(config["architectures"][0], type == "big_bird" ? "BigBirdForSequenceClassification"
                                                             : "LongformerForSequenceClassification");
    const Input text{long_text()};
    EXPECT_EQ(open(path("out-" + type))->answer({&text, 1}, {})[0].prediction.probabilities.size(), 2u);
  }
  ClassifyTraining training;
  training.from = path("longformer").string();
  EXPECT_THAT(error_of([&] {
                train_classify({path("train.tsv").string(), "", path("new")},
                               {training, ClassifyTraining::options(), {{"random_blocks", "none"}}}, "test",
                               observer, [] { return false; });
              }),
              HasSubstr("random blocks are for BigBird"));
  EXPECT_FALSE(fs::exists(path("new")));
}

TEST_F(LongModels, AddedGlobalTokensAreTrainedStoredAndShown) {
  {
    std::ofstream train(path("train.tsv"));
    for (int i = 0; i < 40; ++i) train << (i % 2 ? "good\tone two three\n" : "bad\tfour five six\n");
  }
  class Silent : public RunObserver {
  } observer;
  for (const std::string type : {"longformer", "big_bird"}) {
    SCOPED_TRACE(type);
    write(type, type, {});
    const auto train = [&](const std::string& out, const Json& choices, int stop_at) {
      ClassifyTraining training;
      training.from = path(type).string();
      training.batch_tokens = 64;
      training.word_dropout = 0.0f;
      train::TrainOptions options = ClassifyTraining::options();
      options.steps = 6;
      int steps = 0;
      train_classify({path("train.tsv").string(), "", path(out)}, {training, options, choices}, "test",
                     observer, [&] { return ++steps == stop_at; });
    };
    const auto weights = [&](const std::string& out) { return read_text(path(out) / "model.safetensors"); };
    const Json choices{{"added_global", 2}, {"global", ","}};
    train("whole-" + type, choices, -1);
    train("again-" + type, choices, 3);
    train("again-" + type, choices, -1);
    EXPECT_TRUE(weights("again-" + type) == weights("whole-" + type)) << "a resumed run ends in other bytes";
    EXPECT_EQ(load_json(path("whole-" + type) / "config.json")["added_global_tokens"], 2);

    const auto model = open(path("whole-" + type));
    const Input text{long_text()};
    const Answer answer = model->answer({&text, 1}, {})[0];
    EXPECT_EQ(answer.prediction.probabilities.size(), 2u);
    const Json shown = Json::parse(model->explain(text, {}, ".json").content);
    EXPECT_EQ(shown["added_global"], 2);
    const auto global = shown["global"].get<std::vector<int>>();
    ASSERT_GE(global.size(), 3u);
    EXPECT_EQ(std::vector<int>(global.begin(), global.begin() + 2), (std::vector<int>{0, 1}));
    const Json& tokens = shown["attention"]["source"]["tokens"];
    EXPECT_EQ(tokens[0], "[global 1]");
    for (const int place : global)
      if (type == "longformer" && place > 1) {
        EXPECT_EQ(tokens[static_cast<size_t>(place)], ",");
      }
    EXPECT_THAT(error_of([&] { train("new", {{"added_global", 2000}}, -1); }), HasSubstr("to 1024"));
    EXPECT_FALSE(fs::exists(path("new")));
  }
  write_untrained_encoder(path("bert"));
  ClassifyTraining training;
  training.from = path("bert").string();
  EXPECT_THAT(error_of([&] {
                train_classify({path("train.tsv").string(), "", path("new")},
                               {training, ClassifyTraining::options(), {{"added_global", 2}}}, "test",
                               observer, [] { return false; });
              }),
              HasSubstr("for Longformer and BigBird"));
}

// A text that fits into half a window, or into few blocks, is read as before.
TEST_F(LongModels, AConvertedModelReadsShortTextsAsBefore) {
  const std::string text = "One two three, six teen four. I like food";
  write_untrained_encoder(path("m"));
  write_atomically(path("m/tokenizer_config.json"), R"({"model_max_length": 40, "do_lower_case": true})");
  const std::vector<float> before = embed(path("m"), text);
  const Input masked{"one [MASK]"}, more{long_text() + long_text() + long_text()};
  const auto best = [&](const fs::path& folder) {
    return open(folder, {.purpose = Ability::fill})->answer({&masked, 1}, {})[0].masks[0][0].token;
  };
  for (const std::string to : {"longformer", "bigbird"}) {
    EXPECT_EQ(convert_to_long(path("m"), to, 1000, path(to)), "bert");
    expect_near(embed(path(to), text), before);
    EXPECT_EQ(load_json(path(to) / "tokenizer_config.json")["model_max_length"], 1000);
    EXPECT_EQ(best(path(to)), best(path("m")));
    EXPECT_EQ(open(path(to))->answer({&more, 1}, {})[0].cut_to, 0);
  }
}

// As bert-base-uncased and what `fovea pretrain` makes.
TEST_F(LongModels, AModelWithAHeadForTheNextSentenceIsConvertedWithoutThatHead) {
  write_untrained_encoder(path("m"), {.pooler = true, .masked_lm = true, .next_sentence = true});
  const std::string text = "One two three, six teen four.";
  const std::vector<float> before = embed(path("m"), text);
  for (const std::string to : {"longformer", "bigbird"}) {
    EXPECT_EQ(convert_to_long(path("m"), to, 1000, path(to)), "bert");
    expect_near(embed(path(to), text), before);
  }
}

TEST_F(LongModels, ConversionRefusesWhatItCannotMake) {
  write_untrained_encoder(path("bert"), {.labels = 2});
  write_untrained_encoder(path("distilbert"), {}, "distilbert");
  EXPECT_THAT(error_of([&] { convert_to_long(path("distilbert"), "longformer", 100, path("new")); }),
              HasSubstr("wanted a BERT or RoBERTa folder"));
  EXPECT_THAT(error_of([&] { convert_to_long(path("bert"), "longformer", 40, path("new")); }),
              HasSubstr("max_tokens: got 40, wanted 41"));
  EXPECT_THAT(error_of([&] { convert_to_long(path("bert"), "bigbird", 100, path("new")); }),
              HasSubstr("BigBird's head for labels computes something else"));
  EXPECT_THAT(error_of([&] { convert_to_long(path("bert"), "longformer", 100, path("bert")); }),
              HasSubstr("exists already"));
  EXPECT_FALSE(fs::exists(path("new")));
}

TEST_F(LongModels, TokensAndPartsHaveVectorsAndCharacters) {
  write_untrained_encoder(path("m"));
  const std::string line = "Sixteen like 我.";  // six ##teen like 我 .
  const Input input{line};
  const auto spans = [&](const EmbedOptions& options) {
    return open(path("m"), {.purpose = Ability::embed, .embed = options})->answer({&input, 1}, {})[0].spans;
  };
  const std::vector<EmbeddedSpan> tokens = spans({.tokens = true});
  ASSERT_EQ(tokens.size(), 5u);
  EXPECT_EQ(tokens[1].token, "##teen");
  EXPECT_EQ(tokens[1].begin, 3);
  EXPECT_EQ(tokens[1].end, 7);
  EXPECT_EQ(tokens[3].begin, 13);
  EXPECT_EQ(tokens[3].end, 14);
  // Parts of two tokens: the mean of their states; the marks go with the ends. All parts together give the text's.
  const std::vector<EmbeddedSpan> parts = spans({.chunks = 2});
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[1].begin, 8);
  EXPECT_EQ(parts[1].end, 14);
  std::vector<float> middle(24), all(24);
  for (size_t i = 0; i < 24; ++i) {
    middle[i] = (tokens[2].vector[i] + tokens[3].vector[i]) / 2;
    all[i] = (3 * parts[0].vector[i] + 2 * parts[1].vector[i] + 2 * parts[2].vector[i]) / 7;
  }
  expect_near(parts[1].vector, middle);
  expect_near(embed(path("m"), line), all);
  expect_near(spans({.chunks = 100})[0].vector, embed(path("m"), line));
  EXPECT_THAT(error_of([&] { spans({.tokens = true, .chunks = 2}); }), HasSubstr("one of the two"));
  EXPECT_THAT(error_of([&] { spans({.pooling = "cls", .chunks = 2}); }), HasSubstr("wanted mean or max"));
  EXPECT_THAT(error_of([&] { spans({.chunks = -1}); }), HasSubstr("chunks: got -1"));
}

}  // namespace
}  // namespace fovea::tasks
