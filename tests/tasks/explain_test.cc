// What a translator looks at: recorded, drawn and aligned; and what a text classifier looks at.
#include "tasks/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error_of.h"
#include "io/file.h"
#include "io/temporary_directory.h"
#include "tasks/explain_classifier.h"
#include "tasks/learning_curve.h"
#include "tasks/train_translate.h"
#include "tasks/untrained_classifiers.h"
#include "tasks/untrained_encoder.h"
#include "tasks/untrained_translator.h"

namespace fovea::tasks {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TEST(Explain, RecordsEveryLayerAndHeadOfTheTransformer) {
  const LoadedTranslator loaded = untrained_translator();
  const AttentionRecord record = explain_translation(loaded, "one two 食物", "three four", {});
  EXPECT_THAT(record.source.tokens, ElementsAre("one", "two", "食物", "</s>"));
  EXPECT_THAT(record.target.tokens, ElementsAre("three", "four", "</s>"));
  EXPECT_THAT(record.fed.tokens, ElementsAre("<s>", "three", "four"));
  ASSERT_EQ(record.layers.size(), 6u);
  for (const AttentionLayer& layer : record.layers) {
    ASSERT_EQ(layer.heads.size(), 2u);
    for (const WeightMatrix& head : layer.heads) {
      EXPECT_EQ(head.rows, static_cast<int64_t>(record.rows(layer.kind).tokens.size()));
      EXPECT_EQ(head.columns, static_cast<int64_t>(record.columns(layer.kind).tokens.size()));
      for (int64_t i = 0; i < head.rows; ++i) {
        double sum = 0;
        for (int64_t j = 0; j < head.columns; ++j) {
          sum += head.at(i, j);
          if (layer.kind == AttentionKind::decoder && j > i) {
            EXPECT_EQ(head.at(i, j), 0);
          }
        }
        EXPECT_NEAR(sum, 1, 1e-5);
      }
    }
  }
  EXPECT_EQ(attention_observer(), nullptr);
}

TEST(Explain, ShowsTheModelsOwnTranslationWithoutATarget) {
  const LoadedTranslator loaded = untrained_translator();
  const std::string source = "five 我";
  const AttentionRecord record = explain_translation(loaded, source, {}, {.beam = 2});
  const Translator translator(*loaded.network, loaded.tokenizers);
  EXPECT_EQ(record.target_text, translator.translate({&source, 1}, {.beam = 2})[0][0].text);
  EXPECT_FALSE(record.target_given);
}

TEST(Explain, JoinsSubwordsToWordsAndRowsStillSumToOne) {
  const LoadedTranslator loaded = untrained_translator("bpe");
  const AttentionRecord record = explain_translation(loaded, "one xylophone two", "three 食物", {});
  EXPECT_GT(record.source.tokens.size(), record.source.words.size());
  EXPECT_THAT(record.source.words, ElementsAre("one", "xylophone", "two", "</s>"));
  const HeatMap map = heat_map(record, {AttentionKind::cross, 0}, true);
  EXPECT_EQ(map.columns, record.source.words);
  for (int64_t i = 0; i < map.row_count; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < map.column_count; ++j)
      sum += map.weights[static_cast<size_t>(i * map.column_count + j)];
    EXPECT_NEAR(sum, 1, 1e-5);
  }
}

TEST(Explain, WritesEachKindOfFile) {
  const LoadedTranslator loaded = untrained_translator();
  const AttentionRecord record = explain_translation(loaded, "one two three", "我 喜欢", {});
  EXPECT_THAT(explain_file(record, {}, "a.png"), StartsWith("\x89PNG"));
  EXPECT_THAT(explain_file(record, {.kind = "all"}, "a.svg"), HasSubstr("<svg"));
  EXPECT_THAT(explain_file(record, {.layer = "1", .head = "average"}, "a.pdf"), StartsWith("%PDF"));
  EXPECT_THAT(explain_file(record, {}, "a.html"), StartsWith("<!DOCTYPE html>"));
  const Json json = parse_json(explain_file(record, {}, "a.json"), "a.json");
  EXPECT_EQ(json["kinds"].size(), 3u);
  EXPECT_EQ(json["kinds"][2]["layers"][1]["heads"][0].size(), 3u);
  EXPECT_THAT(explain_file(record, {}, "a.txt"), testing::MatchesRegex("[0-2]-0 [0-2]-1\n"));
  EXPECT_EQ(explain_file(record, {.threshold = 1}, "a.txt"), "\n");
  EXPECT_THAT(explain_text(record, {}), HasSubstr("喜欢|"));
  EXPECT_THAT(explain_text(record, {.kind = "encoder", .layer = "rollout"}), StartsWith("encoder, rollout"));
}

TEST(Explain, RefusesWhatItCannotShowInOneLine) {
  const LoadedTranslator loaded = untrained_translator();
  EXPECT_THAT(error_of([&] { explain_translation(loaded, " ", {}, {}); }), HasSubstr("empty"));
  EXPECT_THAT(error_of([&] { explain_translation(loaded, "\xff", {}, {}); }), HasSubstr("not UTF-8"));
  const AttentionRecord record = explain_translation(loaded, "one", "two", {});
  const auto refused = [&](const ExplainOptions& options, const char* path) {
    return error_of([&] { explain_file(record, options, path); });
  };
  EXPECT_THAT(refused({}, "a.jpg"),
              HasSubstr("got the ending '.jpg', wanted .png, .svg, .pdf, .html, .json or .txt"));
  EXPECT_THAT(refused({}, "a"), HasSubstr("got no ending, wanted"));
  EXPECT_THAT(refused({.kind = "self"}, "a.png"), HasSubstr("wanted cross, encoder, decoder or all"));
  EXPECT_THAT(refused({.layer = "7"}, "a.png"), HasSubstr("has 0 to 1, and rollout"));
  EXPECT_THAT(refused({.layer = "x"}, "a.png"), HasSubstr("wanted a number from 0, or rollout"));
  EXPECT_THAT(refused({.head = "2"}, "a.png"), HasSubstr("has 0 to 1, and average"));
  EXPECT_THAT(refused({.kind = "encoder"}, "a.txt"), HasSubstr("use --kind cross"));
  EXPECT_THAT(refused({.threshold = 2}, "a.txt"), HasSubstr("wanted a weight from 0 to 1"));
}

TEST(Explain, ShowsTheOneMapOfAnRnn) {
  const Json small{{"width", 16}, {"embedding", 16}};
  Json local = small;
  local["locality"] = "local_p";
  for (const auto& [model, settings] :
       {std::pair{"bahdanau", small}, std::pair{"luong", small}, std::pair{"luong", local}}) {
    SCOPED_TRACE(model + std::string(" ") + settings.dump());
    const LoadedTranslator loaded = untrained_translator("words", model, settings);
    const AttentionRecord record = explain_translation(loaded, "one two three", "我 喜欢", {});
    ASSERT_EQ(record.layers.size(), 1u);
    EXPECT_EQ(record.layers[0].kind, AttentionKind::cross);
    ASSERT_EQ(record.layers[0].heads.size(), 1u);
    const WeightMatrix& weights = record.layers[0].heads[0];
    EXPECT_EQ(weights.rows, 3);
    EXPECT_EQ(weights.columns, 4);
    for (int64_t i = 0; i < weights.rows; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < weights.columns; ++j) sum += weights.at(i, j);
      if (settings.contains("locality"))
        EXPECT_THAT(sum, testing::AllOf(testing::Gt(0), testing::Le(1 + 1e-5)))
            << "a gaussian around the predicted place takes some away";
      else
        EXPECT_NEAR(sum, 1, 1e-5);
    }
    EXPECT_THAT(explain_file(record, {}, "a.png"), StartsWith("\x89PNG"));
    EXPECT_THAT(explain_file(record, {}, "a.txt"), testing::MatchesRegex("[0-2]-0 [0-2]-1\n"));
    EXPECT_THAT(explain_text(record, {}), testing::Not(HasSubstr("layer")));
    EXPECT_THAT(error_of([&] { explain_file(record, {.kind = "encoder"}, "a.png"); }),
                HasSubstr("no encoder attention"));
    EXPECT_THAT(error_of([&] { explain_file(record, {.layer = "rollout"}, "a.png"); }),
                HasSubstr("no stack of layers"));
  }
}

// The vocabulary has one ... six: what a user wrote is shown, not the name of the unknown token.
TEST(Explain, ShowsWordsThatTheModelDoesNotKnowAsTheyWereWritten) {
  const LoadedTranslator loaded = untrained_translator();
  const AttentionRecord record = explain_translation(loaded, "one seven two Eight", "nine four", {});
  EXPECT_THAT(record.source.words, ElementsAre("one", "seven", "two", "Eight", "</s>"));
  EXPECT_THAT(record.source.tokens, ElementsAre("one", "<unk>", "two", "<unk>", "</s>"));
  EXPECT_THAT(record.source.unknown, ElementsAre(1, 3));
  EXPECT_THAT(record.target.words, ElementsAre("nine", "four", "</s>"));
  EXPECT_THAT(record.target.unknown, ElementsAre(0));
  EXPECT_THAT(record.fed.words, ElementsAre("<s>", "nine", "four"));
  EXPECT_THAT(record.fed.unknown, ElementsAre(1));
  const std::string text = explain_text(record, {});
  EXPECT_THAT(text, HasSubstr("‹nine›"));
  EXPECT_THAT(text, HasSubstr("2 ‹seven›"));
  EXPECT_THAT(text, HasSubstr("words that the model does not know"));
  EXPECT_THAT(text, testing::Not(HasSubstr("<unk>")));
  EXPECT_THAT(explain_text(record, {.units = "tokens"}), HasSubstr("2 <unk>"));
  const Json json = Json::parse(explain_file(record, {}, "a.json"));
  EXPECT_EQ(json["source"]["words"][1], "seven");
  EXPECT_EQ(json["source"]["unknown"], Json::parse("[1, 3]"));
  EXPECT_FALSE(
      Json::parse(explain_file(explain_translation(loaded, "one", "two", {}), {}, "a.json"))["source"]
          .contains("unknown"));
  const Translation written{.text = "two", .tokens = loaded.tokenizers.target->encode("two")};
  const Alignment alignment = align(loaded, "seven one", written);
  EXPECT_THAT(alignment.source, ElementsAre("seven", "one", "</s>"));
  EXPECT_THAT(alignment.unknown, ElementsAre(0));
}

TEST(Explain, SaysThatAModelWithoutAttentionHasNone) {
  const LoadedTranslator loaded = untrained_translator("words", "rnn", {{"width", 16}, {"embedding", 16}});
  EXPECT_THAT(error_of([&] { explain_translation(loaded, "one", "two", {}); }),
              HasSubstr("'rnn' has no attention to show"));
}

std::vector<float> weights_of(const ClassifierExplanation& seen) {
  std::vector<float> weights;
  for (const WeighedSentence& sentence : seen.words.sentences)
    for (const WeighedWord& word : sentence.words) weights.push_back(word.weight);
  return weights;
}

// A Transformer of three layers that reads the state of one token.
LoadedClassifier untrained_long_classifier(Json settings = Json::object()) {
  settings.update({{"width", 12}, {"heads", 2}, {"hidden", 16}, {"layers", 3}});
  if (!settings.contains("pooling")) settings["pooling"] = "first";
  LoadedClassifier loaded = untrained_classifier("transformer", settings);
  loaded.network->use_tokenizer(*loaded.tokenizer);
  loaded.encoding.max_tokens = 0;
  return loaded;
}

TEST(ExplainClassifier, WordsOfALongTextWeighAsThoseOfAShortOne) {
  const std::string text = "one two three four five six one two three";
  for (const Json& settings :
       {Json{{"self_attention", "scaled_dot / window(1,1) | global(0)"}},
        Json{{"self_attention", "scaled_dot / window(2,2)"}, {"pooling", "last"}},
        Json{
            {"self_attention", "scaled_dot / window(1,1)"}, {"global", "first four"}, {"added_global", 2}}}) {
    SCOPED_TRACE(settings.dump());
    const LoadedClassifier loaded = untrained_long_classifier(settings);
    const ClassifierExplanation whole = explain_classifier(loaded, text);
    const std::vector<float> weights = weights_of(whole);
    ASSERT_EQ(weights.size(), 11u);
    EXPECT_EQ(whole.record.layers.size(), 3u);
    // One row at a time, a few, and all of a layer.
    for (const int64_t most : {1, 90, 100000}) {
      const ClassifierExplanation seen =
          explain_classifier(loaded, text, {.tokens = 4, .rollout_weights = most});
      const std::vector<float> followed = weights_of(seen);
      ASSERT_EQ(followed.size(), weights.size());
      for (size_t i = 0; i < weights.size(); ++i) EXPECT_NEAR(followed[i], weights[i], 1e-6) << i;
      EXPECT_TRUE(seen.record.layers.empty());
      EXPECT_EQ(seen.prediction.probabilities, whole.prediction.probabilities);
      EXPECT_FALSE(Json::parse(explain_classifier_file(seen, {}, "a.json")).contains("attention"));
    }
  }
}

TEST(ExplainClassifier, MapsOfHeadsHaveALimitAndWordsHaveNone) {
  std::string text = "one";
  for (int i = 0; i < 1100; ++i) text += " two";
  const LoadedClassifier loaded =
      untrained_long_classifier({{"self_attention", "scaled_dot / window(4,4) | global(0)"}});
  const ClassifierExplanation seen = explain_classifier(loaded, text);
  double sum = 0;
  for (const float weight : weights_of(seen)) sum += double{weight};
  EXPECT_NEAR(sum, 1, 1e-4);
  const auto refused = error_of([&] { explain_classifier_text(seen, {.kind = "encoder"}); });
  EXPECT_THAT(refused,
              HasSubstr("a text of 1103 tokens; maps of layers and heads can be shown of at most 1024"));
  EXPECT_THAT(error_of([&] { explain_classifier_file(seen, {.kind = "encoder"}, "a.png"); }),
              HasSubstr("at most 1024"));
  const ClassifierExplanation lstm = explain_classifier(untrained_classifier(), "one two");
  EXPECT_THAT(error_of([&] { explain_classifier_text(lstm, {.kind = "encoder"}); }),
              HasSubstr("the model has no heads to show"));
}

TEST(ExplainClassifier, TextsOfAPairThatAreReadApartStandApart) {
  for (const std::string model : {"lstm", "han"}) {
    SCOPED_TRACE(model);
    LoadedClassifier loaded = untrained_classifier(model, {{"embedding", 6}, {"width", 8}, {"pairs", true}});
    loaded.encoding.pairs = true;
    const ClassifierExplanation seen = explain_classifier(loaded, "one two. three\tfour five");
    EXPECT_THAT(explain_classifier_text(seen), HasSubstr("\n\nsecond text:\n"));
    const Json json = Json::parse(explain_classifier_file(seen, {}, "a.json"));
    std::vector<int> texts;
    for (const Json& sentence : json["sentences"]) texts.push_back(sentence["text"].get<int>());
    EXPECT_EQ(texts, model == "han" ? (std::vector<int>{0, 0, 1}) : (std::vector<int>{0, 1}));
    const std::string page = explain_classifier_file(seen, {}, "a.html");
    EXPECT_THAT(page, HasSubstr("second text"));
    EXPECT_EQ(page.find("The weights of the words of each text add up to 1.") != std::string::npos,
              model == "lstm");
  }
  const ClassifierExplanation one = explain_classifier(untrained_classifier(), "one two");
  EXPECT_FALSE(Json::parse(explain_classifier_file(one, {}, "a.json"))["sentences"][0].contains("text"));
  EXPECT_THAT(explain_classifier_file(one, {}, "a.html"), HasSubstr("The weights of all words add up to 1."));
}

TEST(ExplainClassifier, SaysWhereGlobalTokensAre) {
  const LoadedClassifier loaded = untrained_long_classifier(
      {{"self_attention", "scaled_dot / window(1,1)"}, {"global", "four"}, {"added_global", 2}});
  const ClassifierExplanation seen = explain_classifier(loaded, "one four six");
  const std::string text = explain_classifier_text(seen);
  EXPECT_THAT(text, HasSubstr("<s> one [four] six </s>"));
  EXPECT_THAT(text, HasSubstr("in front of the text, not shown: 2 learned global tokens"));
  EXPECT_THAT(explain_classifier_file(seen, {}, "a.html"), HasSubstr("In front of the text, not shown: 2"));
  const std::string map = explain_classifier_text(seen, {.kind = "encoder"});
  EXPECT_THAT(map, HasSubstr("[global 2]|"));
  EXPECT_THAT(map, HasSubstr("[four]|"));
  EXPECT_THAT(map, HasSubstr("in brackets: global tokens"));
  EXPECT_THAT(explain_classifier_file(seen, {.kind = "encoder"}, "a.svg"),
              HasSubstr("in brackets: global tokens"));
  const ClassifierExplanation plain = explain_classifier(untrained_long_classifier(), "one four six");
  EXPECT_THAT(explain_classifier_text(plain, {.kind = "encoder"}), testing::Not(HasSubstr("global")));
}

TEST(ExplainClassifier, SaysWhyAShortTextOfBigBirdHasNoGlobalTokens) {
  const TemporaryDirectory folder;
  models::BertConfig config = untrained_encoder_config("big_bird");
  config.max_position_embeddings = 200;
  config.block_size = 4;
  config.num_random_blocks = 1;
  Rng rng(5);
  models::save_bert(folder / "model", models::Bert(config, {.labels = 3}, rng));
  write_atomically(folder / "model" / "vocab.txt", encoder_vocabulary_file());
  const LoadedClassifier loaded = load_classifier(folder / "model");
  const std::string reason = "BigBird's attention is sparse from 29 tokens on";
  const ClassifierExplanation seen = explain_classifier(loaded, "one like food");
  // Lines end where the terminal does.
  EXPECT_THAT(explain_classifier_text(seen, {}, 400), HasSubstr(reason));
  EXPECT_THAT(explain_classifier_text(seen, {.kind = "encoder"}, 400), HasSubstr(reason));
  std::string text = "one";
  for (int i = 0; i < 30; ++i) text += " food";
  EXPECT_THAT(explain_classifier_text(explain_classifier(loaded, text), {}, 400),
              testing::Not(HasSubstr("sparse")));
}

TEST(Align, GivesNoPairsToAnEmptyLine) {
  const LoadedTranslator loaded = untrained_translator();
  const Alignment none = align(loaded, "", {});
  EXPECT_THAT(none.source, ElementsAre("</s>"));
  EXPECT_TRUE(aligned_pairs(none.weights).empty());
}

// A language of six words said backwards and forwards: what a trained model looks at is known.
TEST(Align, FindsWhichWordsATrainedModelTranslates) {
  const TemporaryDirectory folder;
  const char* words[][2] = {{"one", "eins"},  {"two", "zwei"}, {"three", "drei"},
                            {"four", "vier"}, {"red", "rot"},  {"blue", "blau"}};
  Rng rng(3);
  {
    std::ofstream source(folder / "s.txt"), target(folder / "t.txt");
    for (int i = 0; i < 300; ++i) {
      const auto a = rng.below(6), b = rng.below(6), c = rng.below(6);
      source << words[a][0] << ' ' << words[b][0] << ' ' << words[c][0] << '\n';
      target << words[c][1] << ' ' << words[b][1] << ' ' << words[a][1] << '\n';
    }
  }
  TranslateObserver observer;
  const std::filesystem::path out = folder / "model";
  train_translate({(folder / "s.txt").string(), (folder / "t.txt").string(), (folder / "s.txt").string(),
                   (folder / "t.txt").string(), out},
                  {.training = {.tokenizer = "words",
                                .vocabulary = 0,
                                .joint = false,
                                .batch_tokens = 256,
                                .learning_rate = 5e-3,
                                .warmup = 30,
                                .smoothing = 0,
                                .valid_sentences = 30,
                                .tokenize = "none"},
                   .options = {.steps = 400, .validate_every = 200, .save_every = 400, .seed = 2},
                   .model = {{"width", 32},
                             {"heads", 2},
                             {"hidden", 64},
                             {"encoder_layers", 1},
                             {"decoder_layers", 1},
                             {"dropout", 0.0},
                             {"tie", "output"}}},
                  "a test", observer, [] { return false; });
  const LoadedTranslator loaded = load_translation(out);
  const AttentionRecord record = explain_translation(loaded, "red two four", {}, {});
  EXPECT_EQ(record.target_text, "vier zwei rot");
  EXPECT_EQ(explain_file(record, {}, "a.txt"), "2-0 1-1 0-2\n");

  EXPECT_THAT(read_text(out / "curve.svg"), HasSubstr("<svg"));
  const LearningCurve curve = read_curve(read_text(out / "train.jsonl"));
  EXPECT_EQ(curve.score_name, "BLEU");
  EXPECT_EQ(curve.score.size(), 2u);
  EXPECT_EQ(curve.validation_loss.size(), 2u);
  ASSERT_GE(curve.training_loss.size(), 2u);
  EXPECT_LT(curve.training_loss.back().y, curve.training_loss.front().y);
}

}  // namespace
}  // namespace fovea::tasks
