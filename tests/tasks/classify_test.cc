// From a file of labelled texts to a model folder, and from the folder to labels and what they rest on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/parallel.h"
#include "base/rng.h"
#include "io/file.h"
#include "tasks/evaluation.h"
#include "tasks/explain_classifier.h"
#include "tasks/train_classify.h"
#include "tasks/untrained_encoder.h"

namespace fovea::tasks {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// What a run says of itself.
class Notes : public RunObserver {
 public:
  void on_note(const std::string& text) override { all += text + "\n"; }
  std::string all;
};

TEST(Evaluation, LargeErrorsAreWrittenWithAnExponentAndNegativeCorrelationsAreKept) {
  Evaluation evaluation;
  evaluation.unit = "texts";
  evaluation.count = 2;
  evaluation.form = data::LabelForm::number;
  evaluation.numbers = {
      .pearson = -0.5, .spearman = 0.25, .squared_error = 1.5e60, .absolute_error = 123456.25};
  EXPECT_EQ(
      to_text(evaluation),
      "Pearson -0.5000, Spearman 0.2500, mean squared error 1.5e+60, mean absolute error 123456.2500, 2 "
      "texts\n");
  const data::Targets wanted{.form = data::LabelForm::number, .labels = {}, .values = {1, 2, 3}};
  const std::vector<Prediction> found{{.form = data::LabelForm::number, .number = 3},
                                      {.form = data::LabelForm::number, .number = 2},
                                      {.form = data::LabelForm::number, .number = 1}};
  EXPECT_NEAR(validation_of(found, wanted).value, -100, 1e-9);
}

class ClassifyTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("fovea-classify-" + std::to_string(getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    write_texts("train.tsv", 400, 1);
    write_texts("valid.tsv", 60, 2);
    files_ = {(folder_ / "train.tsv").string(), (folder_ / "valid.tsv").string(), folder_ / "model"};
    training_ = {.tokenizer = "words",
                 .vocabulary = 0,
                 .batch_tokens = 256,
                 .learning_rate = 1e-2,
                 .warmup = 10,
                 .word_dropout = 0.0f};
    options_ = {
        .steps = 120, .clip_norm = 1, .average = 2, .validate_every = 40, .save_every = 20, .seed = 3};
    settings_ = {{"embedding", 12}, {"width", 8}, {"dropout", 0.1}};
  }
  void TearDown() override { fs::remove_all(folder_); }

  // One word of a text says what it is; the others say nothing.
  void write_texts(const std::string& name, int count, uint64_t seed) {
    const char* const fillers[] = {"the", "film", "was", "seen", "on", "monday", "."};
    const char* const tellers[] = {"dull", "fine"};
    Rng rng(seed);
    std::ofstream out(folder_ / name);
    for (int i = 0; i < count; ++i) {
      const auto length = 3 + rng.below(12), place = rng.below(length), label = rng.below(2);
      out << (label == 0 ? "neg" : "pos") << '\t';
      for (int64_t w = 0; w < length; ++w)
        out << (w == place ? tellers[label] : fillers[rng.below(7)]) << ' ';
      out << '\n';
    }
  }

  TrainingOutcome train(const std::function<bool()>& stop = [] { return false; }) {
    RunObserver observer;
    return train_classify(files_, {training_, options_, settings_}, "a test", observer, stop);
  }
  std::string complaint() {
    try {
      train();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  fs::path folder_;
  ClassifyFiles files_;
  ClassifyTraining training_;
  train::TrainOptions options_;
  Json settings_;
};

TEST_F(ClassifyTest, EveryModelLearnsAndTellsWhatWordsWeigh) {
  for (const std::string model : {"lstm", "han", "transformer"}) {
    SCOPED_TRACE(model);
    training_.model = model;
    files_.out = folder_ / model;
    if (model == "transformer") settings_ = {{"width", 16}, {"heads", 2}, {"hidden", 32}, {"dropout", 0.0}};
    const TrainingOutcome outcome = train();
    EXPECT_EQ(outcome.outcome, train::Outcome::finished);
    EXPECT_GT(outcome.best, 97);
    const LoadedClassifier loaded = load_classifier(files_.out);
    EXPECT_THAT(loaded.labels, testing::ElementsAre("neg", "pos"));
    const std::vector<std::string> texts{"the film was fine", "", "Dull was the film on monday ."};
    const std::vector<Prediction> found = classify(loaded, texts);
    ASSERT_EQ(found.size(), 3u);
    EXPECT_EQ(found[0].label, 1);
    EXPECT_EQ(found[2].label, 0);
    for (const Prediction& one : found) EXPECT_NEAR(one.probabilities[0] + one.probabilities[1], 1, 1e-6);

    const ClassifierExplanation seen = explain_classifier(loaded, "the film was fine on monday");
    std::string words;
    float sum = 0;
    for (const WeighedSentence& sentence : seen.words.sentences)
      for (const WeighedWord& word : sentence.words) {
        EXPECT_GE(word.weight, 0);
        sum += sentence.weight * word.weight;
        words += word.text + " ";
      }
    EXPECT_NEAR(sum, 1, 1e-5);
    EXPECT_THAT(words, HasSubstr("the film was fine on monday </s>"));
    for (const char* name : {"a.png", "a.svg", "a.pdf", "a.html", "a.json", "a.txt"})
      EXPECT_FALSE(explain_classifier_file(seen, {}, name).empty()) << name;
    EXPECT_EQ(seen.record.layers.empty(), model != "transformer");
    const std::string page = explain_classifier_file(seen, {}, "a.html");
    EXPECT_THAT(page, HasSubstr("<b>Fovea</b>"));
    EXPECT_THAT(page, HasSubstr("<span class=\"model\">" + model + "</span>"));
    EXPECT_EQ(page.find("also carries the words around it") != std::string::npos, model != "transformer");
  }
}

// Pairs of texts that share a word or do not: label, number and labels follow from it.
class ReadingTest : public ClassifyTest {
 protected:
  void SetUp() override {
    ClassifyTest::SetUp();
    write_pairs("train.tsv", 500, 1);
    write_pairs("valid.tsv", 80, 2);
    options_.steps = 200;
    training_.batch_tokens = 512;
  }
  void write_pairs(const std::string& name, int count, uint64_t seed) {
    const char* const words[] = {"red", "blue", "green"};
    const char* const fillers[] = {"the", "car", "is", "and", "."};
    Rng rng(seed);
    std::ofstream out(folder_ / name);
    out << "label\tscore\ttags\tsentence1\tsentence2\n";
    for (int i = 0; i < count; ++i) {
      const auto a = rng.below(3), b = rng.below(3);
      const auto filled = [&](int64_t word) {
        std::string text;
        const auto before = rng.below(4), after = rng.below(4);
        for (int64_t w = 0; w < before; ++w) text += std::string(fillers[rng.below(5)]) + " ";
        text += words[word];
        for (int64_t w = 0; w < after; ++w) text += std::string(" ") + fillers[rng.below(5)];
        return text;
      };
      std::string tags;
      if (a == 0) tags += "warm";
      if (b == 0) tags += std::string(tags.empty() ? "" : ",") + "second";
      out << (a == b ? "same" : "other") << '\t' << 10 * a + 2.5 << '\t' << tags << '\t' << filled(a) << '\t'
          << filled(b) << '\n';
    }
  }
};

TEST_F(ReadingTest, EveryModelComparesTheTextsOfAPair) {
  training_.pairs = true;
  for (const std::string model : {"lstm", "han", "transformer"}) {
    SCOPED_TRACE(model);
    training_.model = model;
    training_.label_column = "label";
    files_.out = folder_ / model;
    settings_ = {{"embedding", 12}, {"width", 12}, {"dropout", 0.0}};
    if (model == "transformer") settings_ = {{"width", 24}, {"heads", 2}, {"hidden", 48}, {"dropout", 0.0}};
    EXPECT_GT(train().best, 95);
    const LoadedClassifier loaded = load_classifier(files_.out);
    EXPECT_TRUE(loaded.encoding.pairs);
    const std::vector<std::string> pairs{"the red car\tis red", "the red car\tis blue"};
    const std::vector<Prediction> found = classify(loaded, pairs);
    EXPECT_EQ(loaded.labels[static_cast<size_t>(found[0].label)], "same");
    EXPECT_EQ(loaded.labels[static_cast<size_t>(found[1].label)], "other");
    // LSTM and HAN weigh each text of a pair by itself.
    const ClassifierExplanation seen = explain_classifier(loaded, pairs[0]);
    EXPECT_EQ(seen.words.sentences.size(), model == "transformer" ? 1u : 2u);
    float sum = 0;
    for (const WeighedSentence& sentence : seen.words.sentences)
      for (const WeighedWord& word : sentence.words) sum += sentence.weight * word.weight;
    EXPECT_NEAR(sum, model == "transformer" ? 1 : 2, 1e-5);
    EXPECT_GT(seen.words_for_90, 0);
    EXPECT_LE(seen.words_for_90, 1);
    for (const char* name : {"a.png", "a.html", "a.json"})
      EXPECT_FALSE(explain_classifier_file(seen, {}, name).empty()) << name;
  }
}

TEST_F(ReadingTest, NumbersArePredictedInTheirOwnUnits) {
  training_.task = "regression";
  training_.text_column = "sentence1";
  const TrainingOutcome outcome = train();
  EXPECT_GT(outcome.best, 97);
  const LoadedClassifier loaded = load_classifier(files_.out);
  EXPECT_EQ(loaded.form, data::LabelForm::number);
  const std::vector<std::string> texts{"the red car", "green is"};
  const std::vector<Prediction> found = classify(loaded, texts);
  EXPECT_NEAR(found[0].number, 2.5, 3);
  EXPECT_NEAR(found[1].number, 22.5, 3);
  EXPECT_THAT(read_text(files_.out / "README.md"), HasSubstr("Pearson correlation x 100 on"));
}

TEST_F(ReadingTest, SeveralLabelsAreToldAtOnce) {
  training_.task = "multi_label";
  training_.pairs = true;
  training_.label_column = "tags";
  training_.model = "transformer";
  settings_ = {{"width", 24},
               {"heads", 2},
               {"hidden", 48},
               {"dropout", 0.0},
               {"added_global", 1},
               {"global", "[SEP]"},
               {"self_attention", "scaled_dot / heads(window(2,2); window(1,0))"}};
  EXPECT_GT(train().best, 95);
  const LoadedClassifier loaded = load_classifier(files_.out);
  EXPECT_THAT(loaded.labels, testing::ElementsAre("second", "warm"));
  const std::vector<std::string> texts{"the red car\tred is", "blue\tgreen", "the red\tblue"};
  const std::vector<Prediction> found = classify(loaded, texts);
  EXPECT_EQ(prediction_line(found[0], loaded.labels), "second,warm");
  EXPECT_EQ(prediction_line(found[1], loaded.labels), "");
  EXPECT_EQ(prediction_line(found[2], loaded.labels), "warm");
  const ClassifierExplanation seen = explain_classifier(loaded, texts[0]);
  EXPECT_EQ(seen.added, 1);
  // <s> the red car </s> red is </s> behind one added token.
  EXPECT_THAT(seen.global, testing::ElementsAre(0, 5, 8));
  EXPECT_TRUE(seen.words.has_global());
  EXPECT_THAT(explain_classifier_text(seen), HasSubstr("[</s>]"));
  ASSERT_FALSE(seen.record.layers.empty());
  EXPECT_EQ(seen.record.source.tokens.size(), 9u);
  EXPECT_EQ(seen.record.layers[0].heads[0].columns, 9);
}

TEST_F(ReadingTest, EverySelectionTrainsAndTellsHowFewWordsItNeeds) {
  training_.text_column = "sentence1";
  training_.label_column = "score";
  double soft = 0;
  for (const std::string selection :
       {"soft", "hard", "gumbel(1)", "sparsemax", "top_k(2)", "sigmoid", "identity"}) {
    SCOPED_TRACE(selection);
    files_.out = folder_ / ("s" + selection);
    settings_ = {
        {"embedding", 12}, {"width", 8}, {"dropout", 0.0}, {"selection", selection}, {"score", "gated"}};
    EXPECT_GT(train().best, 80);
    const LoadedClassifier loaded = load_classifier(files_.out);
    const std::vector<std::string> texts{"the red car is", "and blue . the", "green"};
    const WeighedPredictions found =
        classify_weighed(loaded, data::encode_texts(texts, *loaded.tokenizer, loaded.encoding), 8);
    ASSERT_TRUE(found.words_for_90.has_value());
    double alone = 0;
    for (const std::string& text : texts) alone += explain_classifier(loaded, text).words_for_90 / 3;
    EXPECT_NEAR(*found.words_for_90, alone, 1e-9);
    if (selection == "soft") soft = *found.words_for_90;
    // One word of five, five and two.
    if (selection == "hard") {
      EXPECT_NEAR(*found.words_for_90, (0.2 + 0.2 + 0.5) / 3, 1e-9);
    }
  }
  EXPECT_GT(soft, 0);
}

TEST_F(ReadingTest, AnInterruptedRunOnPairsAndNumbersGoesOnToTheSameBytesWithAnyThreads) {
  training_.task = "regression";
  training_.pairs = true;
  settings_["selection"] = "hard";
  options_.steps = 60;
  train();
  const std::string whole = read_text(files_.out / "model.safetensors");
  files_.out = folder_ / "again";
  int steps = 0;
  EXPECT_EQ(train([&] { return ++steps == 33; }).outcome, train::Outcome::interrupted);
  const int before = num_threads();
  set_num_threads(before == 1 ? 2 : 1);
  train();
  set_num_threads(before);
  EXPECT_EQ(read_text(files_.out / "model.safetensors"), whole);
}

TEST_F(ReadingTest, ABertFolderLearnsNumbersOfPairsAndIsReadAgain) {
  write_untrained_encoder(folder_ / "encoder");
  training_ = {
      .from = (folder_ / "encoder").string(), .learning_rate = 1e-3, .task = "regression", .pairs = true};
  settings_ = Json::object();
  options_.steps = 12;
  EXPECT_FALSE(std::isnan(train().best));
  const LoadedClassifier loaded = load_classifier(files_.out);
  EXPECT_EQ(loaded.form, data::LabelForm::number);
  EXPECT_TRUE(loaded.encoding.pairs);
  const Json config = load_json(files_.out / "config.json");
  EXPECT_EQ(config["problem_type"], "regression");
  EXPECT_EQ(config["id2label"].size(), 1u);
  // Predictions are near the numbers' mean from the start: the scale is within the head's weights.
  const std::vector<std::string> pairs{"the red car\tis red"};
  EXPECT_NEAR(classify(loaded, pairs)[0].number, 12.5, 12);
}

TEST_F(ReadingTest, OptionsThatDoNotApplyAreRefused) {
  training_.task = "regression";
  training_.smoothing = 0.1f;
  EXPECT_THAT(complaint(), HasSubstr("smoothing: label smoothing is for one label a text"));
  training_.smoothing = 0;
  training_.label_separator = ";";
  EXPECT_THAT(complaint(), HasSubstr("label_separator: only --task multi_label"));
  training_.label_separator.reset();
  training_.task = "regresion";
  EXPECT_THAT(complaint(), HasSubstr("task"));
  training_.task = "classification";
  training_.label_column = "label";
  training_.text_column = "sentence1";
  options_.patience = 2;
  const std::string valid = std::exchange(files_.valid, "");
  EXPECT_THAT(complaint(), HasSubstr("patience: got 2, but there is no validation data"));
  EXPECT_FALSE(fs::exists(files_.out));
  options_.patience = 0;
  files_.valid = valid;
  training_.model = "transformer";
  settings_ = {{"width", 8}, {"heads", 2}, {"hidden", 8}, {"global", "punctuation"}};
  EXPECT_THAT(complaint(), HasSubstr("--global has no effect where every token sees every other"));
  settings_["self_attention"] = "scaled_dot / window(1,1)";
  settings_["global"] = "nowhere";
  EXPECT_THAT(complaint(), HasSubstr("global: the vocabulary has no token 'nowhere'"));
  EXPECT_FALSE(fs::exists(files_.out)) << "a run that never began leaves no folder";
  fs::create_directories(files_.out);
  std::ofstream(files_.out / "mine.txt") << "kept";
  EXPECT_THAT(complaint(), HasSubstr("global: the vocabulary has no token 'nowhere'"));
  EXPECT_EQ(read_text(files_.out / "mine.txt"), "kept") << "a folder that was there before stays";
  settings_["global"] = "";
  settings_["self_attention"] = "scaled_dot / heads(full; causal; window(1,1))";
  EXPECT_THAT(complaint(), HasSubstr("got 3 patterns for 2 heads"));
}

TEST_F(ClassifyTest, AnInterruptedTrainingGoesOnToTheSameBytesWithAnyThreads) {
  train();
  const std::string whole = read_text(files_.out / "model.safetensors");
  files_.out = folder_ / "again";
  int steps = 0;
  EXPECT_EQ(train([&] { return ++steps == 50; }).outcome, train::Outcome::interrupted);
  EXPECT_FALSE(fs::exists(files_.out / "config.json"));
  const int before = num_threads();
  set_num_threads(before == 1 ? 2 : 1);
  train();
  set_num_threads(before);
  EXPECT_EQ(read_text(files_.out / "model.safetensors"), whole);
}

TEST_F(ClassifyTest, TheCardNamesTheStepOfTheWeightsAndTheirScore) {
  options_ = {.steps = 30, .clip_norm = 1, .validate_every = 10, .seed = 3};
  const TrainingOutcome outcome = train();
  EXPECT_THAT(read_text(files_.out / "README.md"),
              testing::AllOf(HasSubstr(message("The weights are those of step ", outcome.weights_step, ".")),
                             HasSubstr(message("accuracy on `", files_.valid, "`: ", outcome.best, " %."))));
  const LoadedClassifier loaded = load_classifier(files_.out);
  const data::LabelledText valid = data::read_labelled(files_.valid);
  const auto found = classify(loaded, valid.texts);
  double right = 0;
  for (size_t i = 0; i < found.size(); ++i)
    right += loaded.labels[static_cast<size_t>(found[i].label)] == valid.labels[i];
  EXPECT_NEAR(100 * right / static_cast<double>(found.size()), outcome.best, 1e-9);
}

TEST_F(ClassifyTest, AScoreIsGivenHoweverFewStepsFitInTheTime) {
  options_ = {.minutes = 0.02 / 60, .validate_every = 100'000, .seed = 3};
  const TrainingOutcome outcome = train();
  EXPECT_EQ(outcome.outcome, train::Outcome::out_of_time);
  EXPECT_GE(outcome.best, 0);
  EXPECT_EQ(outcome.weights_step, outcome.step);
}

TEST_F(ClassifyTest, ARunTrainedWithoutValidationIsScoredWhenAsked) {
  options_.steps = 5;
  const std::string valid = files_.valid;
  files_.valid.clear();
  EXPECT_TRUE(std::isnan(train().best));
  files_.valid = valid;
  const TrainingOutcome outcome = train();
  EXPECT_EQ(outcome.outcome, train::Outcome::already_finished);
  EXPECT_GE(outcome.best, 0);
}

TEST_F(ClassifyTest, AResumedRunNamesTheOneSettingThatCannotChangeAndAppliesTheOthers) {
  options_.steps = 5;
  train();
  const auto with = [&](const std::function<void()>& change) {
    const auto training = training_;
    const auto settings = settings_;
    const auto options = options_;
    const auto files = files_;
    change();
    const std::string error = complaint();
    training_ = training;
    settings_ = settings;
    options_ = options;
    files_ = files;
    return error;
  };
  EXPECT_THAT(with([&] { training_.vocabulary = 9; }),
              HasSubstr("contains a run with vocabulary '0'; got '9'; choose another folder"));
  EXPECT_THAT(with([&] { training_.batch_tokens = 99; }), HasSubstr("with batch_tokens '256'; got '99'"));
  EXPECT_THAT(with([&] { training_.tokenizer = "bpe", training_.vocabulary = 300; }),
              HasSubstr("with tokenizer 'words'; got 'bpe'"));
  EXPECT_THAT(with([&] { training_.lowercase = false; }), HasSubstr("with lowercase 'true'; got 'false'"));
  EXPECT_THAT(with([&] { settings_["width"] = 16; }), HasSubstr("with width '8'; got '16'"));
  EXPECT_THAT(with([&] { options_.seed = 8; }), HasSubstr("with seed '3'; got '8'"));
  EXPECT_THAT(with([&] {
                training_.model = "han";
                settings_ = Json::object();
              }),
              HasSubstr("with model 'lstm'; got 'han'"));
  EXPECT_THAT(with([&] { files_.train = files_.valid; }),
              HasSubstr("contains a run on other training data ('400 texts'); got 60 texts"));
  Notes notes;
  training_.learning_rate = 2e-2;
  settings_["dropout"] = 0.2;
  options_.steps = 8;
  EXPECT_EQ(
      train_classify(files_, {training_, options_, settings_}, "a test", notes, [] { return false; }).step,
      8);
  EXPECT_THAT(notes.all, HasSubstr("learning_rate was '0.01' so far; the run continues with '0.02'"));
  EXPECT_THAT(notes.all, HasSubstr("dropout was '0.1' so far; the run continues with '0.2'"));
}

TEST_F(ClassifyTest, DefaultsFollowFromTheSizeOfTheData) {
  Notes notes;
  options_.steps = 2;
  training_ = {};
  train_classify(files_, {training_, options_, settings_}, "a test", notes, [] { return false; });
  const Json run = load_json(files_.out / "run.json")["settings"];
  EXPECT_EQ(run["tokenizer"], "words");
  EXPECT_EQ(run["batch_tokens"], 512);
  EXPECT_GT(run["word_dropout"], 0);
  EXPECT_THAT(notes.all, HasSubstr("batches of at most 512 tokens"));
}

TEST_F(ClassifyTest, WithTimeLeftARunOnFewTextsEndsAfterFifteenPasses) {
  options_.steps.reset();
  options_.minutes = 600;
  training_.batch_tokens = 64;  // a pass of 20 to 80 steps
  Notes notes;
  const TrainingOutcome outcome =
      train_classify(files_, {training_, options_, settings_}, "a test", notes, [] { return false; });
  EXPECT_THAT(notes.all, HasSubstr("steps, or as many as fit in the time"));
  EXPECT_EQ(outcome.outcome, train::Outcome::finished);
  EXPECT_GE(outcome.step, 300);
  EXPECT_LE(outcome.step, 15 * 80);
}

TEST_F(ClassifyTest, ARunThatItsStepsEndedTooSoonGoesOnWithTheStepsAdvised) {
  options_.steps = 5;
  training_.warmup = 100;
  const TrainingOutcome ended = train();
  EXPECT_THAT(ended.advice,
              HasSubstr("still in its warm-up of 100 steps; the same command with --steps 15 "));
  options_.steps = 15;
  EXPECT_EQ(train().step, 15);
}

TEST_F(ClassifyTest, APretrainedEncoderIsTrainedOnAndStaysAFolderOfItsKind) {
  write_untrained_encoder(folder_ / "encoder");
  std::ofstream out(folder_ / "train.tsv");
  for (int i = 0; i < 80; ++i)
    out << (i % 2 ? "pos" : "neg") << "\tthe " << (i % 2 ? "food" : "paris") << " is one\n";
  out.close();
  files_.valid = files_.train;
  training_ = {.from = (folder_ / "encoder").string(),
               .max_length = 8,
               .batch_tokens = 64,
               .learning_rate = 3e-3,
               .warmup = 5};
  options_.steps = 40;
  settings_ = Json::object();
  EXPECT_GT(train().best, 97);
  for (const fs::path& folder : {files_.out, files_.out / "checkpoints" / "last"}) {
    const LoadedClassifier loaded = load_classifier(folder);
    EXPECT_THAT(loaded.labels, testing::ElementsAre("neg", "pos"));
    const std::vector<std::string> texts{"The food is one", "the paris is one"};
    const std::vector<Prediction> found = classify(loaded, texts);
    EXPECT_EQ(found[0].label, 1);
    EXPECT_EQ(found[1].label, 0);
    EXPECT_EQ(explain_classifier(loaded, texts[0]).record.layers.size(), 2u);
  }
  EXPECT_EQ(load_json(files_.out / "config.json")["architectures"][0], "BertForSequenceClassification");
  EXPECT_TRUE(fs::exists(files_.out / "vocab.txt"));
  settings_ = {{"width", 8}};
  EXPECT_THAT(complaint(), HasSubstr("unknown option 'width'"));
  try {
    load_classifier(folder_ / "encoder");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("saved without a head for labels"));
  }
}

TEST_F(ClassifyTest, RefusesWithOneLine) {
  training_.model = "ltsm";
  EXPECT_THAT(complaint(), HasSubstr("unknown model 'ltsm', did you mean 'lstm'?"));
  training_.model = "lstm";
  training_.max_length = 3;
  EXPECT_THAT(complaint(), HasSubstr("max_length: got 3"));
  training_.max_length = 0;
  std::ofstream(folder_ / "valid.tsv") << "maybe\tthe film\n";
  EXPECT_THAT(complaint(), HasSubstr("the label 'maybe' is not among the training text's"));
  files_.train = (folder_ / "absent.tsv").string();
  EXPECT_THAT(complaint(), HasSubstr("absent.tsv"));
}

TEST_F(ClassifyTest, DamagedFoldersAreRefusedNamingTheFile) {
  options_.steps = 5;
  train();
  const auto complaint_of = [&] {
    try {
      load_classifier(files_.out);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const std::string config = read_text(files_.out / "config.json");
  const auto with = [&](const char* name, const Json& value) {
    Json json = parse_json(config, "config");
    json[name] = value;
    save_json(files_.out / "config.json", json);
    return complaint_of();
  };
  EXPECT_THAT(with("task", "translate"), HasSubstr("a model for the task 'translate', wanted 'classify'"));
  EXPECT_THAT(with("labels", {"a"}), HasSubstr("1 labels for 2 classes"));
  EXPECT_THAT(with("labels", 3), HasSubstr("labels: got"));
  write_atomically(files_.out / "config.json", config);
  const std::string weights = read_text(files_.out / "model.safetensors");
  write_atomically(files_.out / "model.safetensors", weights.substr(0, weights.size() / 2));
  EXPECT_THAT(complaint_of(), HasSubstr("model.safetensors"));
}

}  // namespace
}  // namespace fovea::tasks
