// A folder opened whatever it holds: inputs are text or bytes, errors have kinds, threads share an object, calls can be
// stopped.
#include "tasks/open.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "base/error_kinds.h"
#include "base/error_of.h"
#include "base/parallel.h"
#include "base/stop_check.h"
#include "data/pictures.h"
#include "io/file.h"
#include "io/temporary_directory.h"
#include "tasks/untrained_classifiers.h"
#include "tasks/untrained_encoder.h"
#include "tasks/untrained_translator.h"

namespace fovea::tasks {
namespace {

using testing::HasSubstr;

class OpenTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryDirectory;
    save_translation(*folder_ / "translator", untrained_translator());
    save_classifier(*folder_ / "texts", untrained_classifier());
    save_image_classifier(*folder_ / "pictures", untrained_image_classifier());
    write_untrained_encoder(*folder_ / "encoder");
  }
  static void TearDownTestSuite() { delete folder_; }

  static ErrorKind kind(const std::function<void()>& call) {
    try {
      call();
    } catch (const std::exception& error) {
      return kind_of(error);
    }
    ADD_FAILURE() << "no error";
    return ErrorKind::internal;
  }
  static TemporaryDirectory* folder_;
};
TemporaryDirectory* OpenTest::folder_ = nullptr;

TEST_F(OpenTest, KnowsWhatAFolderHolds) {
  const auto holds = [&](const std::string& name) { return open(*folder_ / name)->contents().kind; };
  EXPECT_EQ(holds("translator"), FolderKind::translator);
  EXPECT_EQ(holds("texts"), FolderKind::text_classifier);
  EXPECT_EQ(holds("pictures"), FolderKind::image_classifier);
  EXPECT_EQ(holds("encoder"), FolderKind::encoder);
  EXPECT_EQ(look_into(*folder_ / "pictures").parameters,
            untrained_image_classifier().network->parameter_count());
  EXPECT_TRUE(look_into(*folder_ / "encoder").can(Ability::fill));
  EXPECT_FALSE(look_into(*folder_ / "texts").can(Ability::translate));
}

TEST_F(OpenTest, EachKindAnswersInItsJson) {
  const Input text{"one two"};
  const auto answer = [&](const std::string& name, const Input& input, const OpenOptions& how = {},
                          const AnswerOptions& options = {}) {
    const auto model = open(*folder_ / name, how);
    return model->to_json(input, model->answer({&input, 1}, options).at(0));
  };
  const Json translated = answer("translator", text, {}, {.alignment = "soft"});
  for (const char* name : {"text", "score", "source", "target", "weights"})
    EXPECT_TRUE(translated.contains(name)) << name;
  EXPECT_EQ(answer("translator", text, {}, {.translate = {.beam = 2, .n_best = 2}})["n_best"].size(), 2u);
  const Json labelled = answer("texts", text, {}, {.words = true});
  EXPECT_EQ(labelled["probabilities"].size(), 2u);
  EXPECT_EQ(labelled["words"].size(), 3u) << "one, two, </s>";
  const Input picture{data::png_bytes(20, 30, std::vector<uint8_t>(3 * 20 * 30, 200)), "a.png"};
  EXPECT_EQ(answer("pictures", picture)["file"], "a.png");
  EXPECT_EQ(answer("encoder", text)["embedding"].size(), 24u);
  EXPECT_EQ(answer("encoder", {"one [MASK]"}, {.purpose = Ability::fill}, {.top = 3})["masks"][0].size(), 3u);
}

// Words that the vocabulary lacks are shown as they were written, in every form.
TEST_F(OpenTest, UnknownWordsAreShownAsTheyWereWritten) {
  for (const std::string model : {"lstm", "han", "transformer"}) {
    SCOPED_TRACE(model);
    const Json settings = model == "transformer"
                              ? Json{{"width", 8}, {"heads", 2}, {"hidden", 8}, {"layers", 1}}
                              : Json{{"embedding", 6}, {"width", 8}};
    save_classifier(*folder_ / "words", untrained_classifier(model, settings));
    const auto folder = open(*folder_ / "words");
    const Input text{"one plodding two . three dull。four"};
    const Json answer = folder->to_json(text, folder->answer({&text, 1}, {.words = true})[0]);
    std::vector<std::string> unknown;
    for (const Json& place : answer["unknown"])
      unknown.push_back(answer["words"][place.get<size_t>()][0].get<std::string>());
    // A model that reads sentences ends one at the ideographic full stop.
    const std::vector<std::string> wanted = model == "han"
                                                ? std::vector<std::string>{"plodding", ".", "dull。"}
                                                : std::vector<std::string>{"plodding", ".", "dull。four"};
    EXPECT_EQ(unknown, wanted);
    EXPECT_THAT(answer.dump(), testing::Not(HasSubstr("<unk>")));
    const std::string shown = folder->explain(text, {}, "").content;
    EXPECT_THAT(shown, HasSubstr("one ‹plodding› two"));
    EXPECT_THAT(shown, HasSubstr("words that the model does not know"));
    EXPECT_THAT(folder->explain({"one two"}, {}, "").content, testing::Not(HasSubstr("does not know")));
    const Json json = parse_json(folder->explain(text, {}, ".json").content, "json");
    EXPECT_EQ(json["sentences"][0]["words"][json["sentences"][0]["unknown"][0].get<size_t>()], "plodding");
    EXPECT_THAT(folder->explain(text, {}, ".txt").content,
                testing::ContainsRegex("plodding\t[0-9.e-]+\tunknown\n"));
    EXPECT_THAT(folder->explain(text, {}, ".html").content, HasSubstr(">‹plodding›</span>"));
    if (model == "transformer") {
      EXPECT_THAT(folder->explain(text, {.kind = "encoder"}, "").content, HasSubstr("‹plodding›"));
    }
  }
}

TEST_F(OpenTest, TextsOfAPairThatWereCutKeepTheirOwnUnknownWords) {
  LoadedClassifier loaded = untrained_classifier();
  loaded.config["pairs"] = true;
  Rng rng(7);
  loaded.network = models::make_model<models::Classifiers>("lstm", loaded.config, rng);
  loaded.encoding.max_tokens = 8;
  save_classifier(*folder_ / "pairs", loaded);
  const auto folder = open(*folder_ / "pairs");
  const Input text{"one alpha two beta gamma delta\tomega two psi"};
  const Json answer = folder->to_json(text, folder->answer({&text, 1}, {.words = true})[0]);
  std::vector<std::string> unknown;
  for (const Json& place : answer["unknown"])
    unknown.push_back(answer["words"][place.get<size_t>()][0].get<std::string>());
  EXPECT_EQ(unknown, (std::vector<std::string>{"alpha", "omega", "psi"})) << answer;
}

TEST_F(OpenTest, AnInputThatCannotBeUsedSpoilsNoOther) {
  const auto model = open(*folder_ / "texts");
  const Input inputs[] = {{"one"}, {"\xff", "line 2"}, {"two"}};
  const std::vector<Answer> answers = model->answer(inputs, {});
  EXPECT_EQ(answers[0].error, "");
  EXPECT_EQ(answers[1].error, "line 2 is not UTF-8");
  const Answer alone = model->answer({inputs + 2, 1}, {})[0];
  EXPECT_EQ(answers[2].prediction.label, alone.prediction.label);
  EXPECT_EQ(answers[2].prediction.probabilities, alone.prediction.probabilities);
  const Input broken{"no picture", "b.png"};
  EXPECT_THAT(open(*folder_ / "pictures")->answer({&broken, 1}, {})[0].error, HasSubstr("b.png"));
}

TEST_F(OpenTest, AnUnknownSettingIsReportedWithItsFolder) {
  const std::filesystem::path folder = *folder_ / "unknown";
  save_image_classifier(folder, untrained_image_classifier());
  Json config = load_json(folder / "config.json");
  config["settings"]["colour"] = 3;
  save_json(folder / "config.json", config);
  EXPECT_THAT(error_of([&] { open(folder); }), HasSubstr((folder / "config.json").string() + ":"));
}

TEST_F(OpenTest, ErrorsCanBeToldApart) {
  EXPECT_EQ(kind([&] { open(*folder_ / "nowhere"); }), ErrorKind::bad_file);
  EXPECT_EQ(kind([&] { read_input(*folder_ / "nowhere.png"); }), ErrorKind::bad_file);
  EXPECT_EQ(kind([&] { open(*folder_ / "texts", {.purpose = Ability::translate}); }), ErrorKind::bad_request);
  EXPECT_EQ(kind([&] { open(*folder_ / "translator", {.compute = "int4"}); }), ErrorKind::bad_request);
  EXPECT_EQ(kind([&] { open(*folder_ / "translator")->check({.alignment = "soggy"}); }),
            ErrorKind::bad_request);
  EXPECT_EQ(kind([&] { open(*folder_ / "texts")->evaluate({.paths = {"/nowhere"}}); }), ErrorKind::bad_file);
  save_classifier(*folder_ / "damaged", untrained_classifier());
  write_atomically(*folder_ / "damaged" / "model.safetensors", "x");
  EXPECT_EQ(kind([&] { open(*folder_ / "damaged"); }), ErrorKind::damaged_model);
  write_atomically(*folder_ / "damaged" / "config.json", "{");
  EXPECT_EQ(kind([&] { open(*folder_ / "damaged"); }), ErrorKind::damaged_model);
  EXPECT_EQ(kind([] { throw std::bad_alloc(); }), ErrorKind::out_of_memory);
  EXPECT_EQ(kind([] { throw std::runtime_error("a bug"); }), ErrorKind::internal);
}

TEST_F(OpenTest, ACallCanBeStoppedAndTheObjectUsedAgain) {
  for (const std::string name : {"translator", "texts", "encoder", "pictures"}) {
    const auto model = open(*folder_ / name);
    const Input picture{data::png_bytes(20, 30, std::vector<uint8_t>(3 * 20 * 30, 200)), "a.png"};
    const std::vector<Input> inputs(40, name == "pictures" ? picture : Input{"one two three"});
    const std::thread::id caller = std::this_thread::get_id();
    int calls = 0;
    AnswerOptions options{.should_stop = [&] {
      EXPECT_EQ(std::this_thread::get_id(), caller);
      return ++calls == 1;
    }};
    EXPECT_EQ(kind([&] { model->answer(inputs, options); }), ErrorKind::interrupted) << name;
    EXPECT_EQ(model->answer(inputs, options).size(), inputs.size()) << name;
    EXPECT_GE(calls, 2) << name;
  }
}

TEST_F(OpenTest, ReadingOfTestDataCanBeStopped) {
  // No label of these is the model's, which would be an error after the last row.
  std::string rows = "label\ttext\n";
  for (int i = 0; i < 5000; ++i) rows += i % 2 ? "unknown\tone two\n" : "other\tthree\n";
  write_atomically(*folder_ / "rows.tsv", rows);
  const auto model = open(*folder_ / "texts");
  const TestFiles files{.paths = {(*folder_ / "rows.tsv").string()}};
  EXPECT_EQ(kind([&] { model->evaluate(files); }), ErrorKind::bad_file);
  const StopCheck stop([] { return true; });
  EXPECT_EQ(kind([&] { model->evaluate(files); }), ErrorKind::interrupted);
}

TEST_F(OpenTest, SeveralThreadsMayUseOneObject) {
  for (const std::string name : {"translator", "texts", "encoder"}) {
    const auto model = open(*folder_ / name);
    std::vector<Input> inputs;
    for (int i = 0; i < 12; ++i) inputs.push_back({i % 2 ? "one two three" : "four five six one two"});
    AnswerOptions options{.translate = {.beam = 2, .max_length_factor = 0.5}};
    const auto answers = [&] {
      std::string all;
      const std::vector<Answer> found = model->answer(inputs, options);
      for (size_t i = 0; i < found.size(); ++i) all += model->to_json(inputs[i], found[i]).dump() + "\n";
      return all;
    };
    const std::string alone = answers();
    options.threads = 1;
    EXPECT_EQ(answers(), alone) << name << " on one thread";
    std::vector<std::string> together(4);
    std::vector<std::thread> threads;
    for (std::string& one : together) threads.emplace_back([&] { one = answers(); });
    for (std::thread& thread : threads) thread.join();
    for (const std::string& one : together) EXPECT_EQ(one, alone) << name;
  }
}

TEST_F(OpenTest, ExplainsFromTextOrBytes) {
  const auto texts = open(*folder_ / "texts");
  EXPECT_THAT(texts->explain({"one two"}, {}, "").content, HasSubstr("one two"));
  EXPECT_EQ(parse_json(texts->explain({"one two"}, {}, ".json").content, "json")["text"], "one two");
  const Input picture{data::png_bytes(20, 30, std::vector<uint8_t>(3 * 20 * 30, 200)), "a.png"};
  EXPECT_THAT(open(*folder_ / "pictures")->explain(picture, {}, ".json").content, HasSubstr("\"gates\""));
  EXPECT_EQ(kind([&] { texts->explain({"one"}, {.layer = "0"}, ""); }), ErrorKind::bad_request);
  EXPECT_EQ(kind([&] { open(*folder_ / "encoder")->explain({"one"}, {}, ""); }), ErrorKind::bad_request);
}

}  // namespace
}  // namespace fovea::tasks
