// MarianMT folders as translators: translated with, explained, stored as integers, trained on, saved as they came.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error_kinds.h"
#include "io/safetensors.h"
#include "io/temporary_directory.h"
#include "tasks/convert.h"
#include "tasks/language_notice.h"
#include "tasks/open.h"
#include "tasks/train_settings.h"
#include "tasks/train_translate.h"
#include "tasks/untrained_marian.h"
#include "tensor/allocator.h"

namespace fovea::tasks {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class MarianFolder : public ::testing::Test {
 protected:
  MarianFolder() {
    write_untrained_marian(folder_ / "m");
    write_atomically(folder_ / "m/generation_config.json", "{\"num_beams\": 4}\n");
    std::ofstream(folder_ / "s.txt")
        << "the quick brown fox\na small green house\nthe lazy dog and the fox\n";
    std::ofstream(folder_ / "t.txt")
        << "der schnelle braune Fuchs\nein kleines Haus\nder faule Hund und der Fuchs\n";
  }
  std::vector<std::string> translations(const fs::path& folder, std::span<const std::string> lines,
                                        const AnswerOptions& options = {}, const std::string& compute = "") {
    const auto model = open(folder, {.compute = compute});
    std::vector<Input> inputs;
    for (const std::string& line : lines) inputs.push_back({line});
    std::vector<std::string> texts;
    for (const Answer& answer : model->answer(inputs, options))
      texts.push_back(message(answer.translations.at(0).translation.text, '|',
                              answer.translations.at(0).translation.score));
    return texts;
  }
  TrainingOutcome train(
      const fs::path& out, const std::function<bool()>& stop = [] { return false; }) {
    TranslateObserver observer;
    const TranslateFiles files{(folder_ / "s.txt").string(), (folder_ / "t.txt").string(),
                               (folder_ / "s.txt").string(), (folder_ / "t.txt").string(), out};
    const auto settings = settle<TranslateTraining>(
        {.values = {
             {"from", (folder_ / "m").string()}, {"learning_rate", 3e-3}, {"steps", 12}, {"seed", 5}}});
    train::TrainOptions options = settings.options;
    options.save_every = 4;
    options.validate_every = 6;
    return train_translate(files, {settings.training, options, settings.model}, "a test", observer, stop);
  }
  TemporaryDirectory folder_;
};

// Opened for use, the weights of layers are in memory once: packed. Read to be trained or saved, beside what they were
// packed from.
TEST_F(MarianFolder, OpenedForUseHoldsTheWeightsOfItsLayersOnce) {
  constexpr int64_t kWidth = 128;
  write_untrained_marian(folder_ / "wide", kWidth);
  const std::vector<std::string> lines{"the quick brown fox", "a small green house"};
  const int64_t before = memory_use().live_bytes;
  const auto translate = [&](const LoadedTranslator& loaded, int64_t& bytes) {
    bytes = memory_use().live_bytes - before;
    std::vector<std::string> texts;
    for (const auto& found :
         Translator(*loaded.network, loaded.tokenizers, loaded.compute).translate(lines, {}))
      texts.push_back(message(found.at(0).text, '|', found.at(0).score));
    return texts;
  };
  for (const std::string compute : {"float32", "int8"}) {
    int64_t once = 0, twice = 0;
    std::vector<std::string> expected;
    {
      LoadedTranslator loaded = read_translation(folder_ / "wide", compute);
      loaded.prepared = nn::Prepared(*loaded.network, loaded.compute);
      expected = translate(loaded, twice);
    }
    EXPECT_EQ(translate(load_translation(folder_ / "wide", compute), once), expected) << compute;
    // Queries, keys and values are joined: they are a copy, unlike what is read in place.
    EXPECT_GE(twice, once + 2 * (3 + 6) * kWidth * kWidth * 4) << compute;
  }
}

TEST_F(MarianFolder, TranslatesALineTheSameAloneInABatchAndOnAnyNumberOfThreads) {
  const std::vector<std::string> lines{"the quick brown fox", "", ">>fra<< a small green house 我喜欢", "fox",
                                       "the river where children play every morning"};
  const auto together = translations(folder_ / "m", lines, {.threads = 1});
  EXPECT_EQ(translations(folder_ / "m", lines, {.threads = 3}), together);
  for (size_t i = 0; i < lines.size(); ++i)
    EXPECT_EQ(translations(folder_ / "m", {&lines[i], 1}), std::vector{together[i]});
  EXPECT_THAT(together[1], ::testing::StartsWith("|")) << "an empty line";
  for (const std::string line : {"", " ", "\t "})
    for (const int64_t beam : {1, 4}) {
      const Input input{line};
      const AnswerOptions options{.translate = {.beam = beam}};
      const Answer answer = open(folder_ / "m")->answer({&input, 1}, options)[0];
      EXPECT_EQ(answer.translations.at(0).translation.text, "") << "nothing to translate";
      EXPECT_TRUE(answer.translations.at(0).translation.tokens.empty());
    }
  for (const std::string& line : together) EXPECT_THAT(line, ::testing::Not(HasSubstr("<pad>")));
}

TEST_F(MarianFolder, ContentsSayWhatItHoldsCanDoAndLacks) {
  FolderContents contents = look_into(folder_ / "m");
  EXPECT_EQ(contents.kind, FolderKind::translator);
  EXPECT_EQ(contents.model, "marian");
  EXPECT_THAT(contents.abilities, ElementsAre(Ability::translate, Ability::explain));
  EXPECT_THAT(contents.languages, ElementsAre(">>deu<<", ">>fra<<", ">>cmn_Hans<<"));
  EXPECT_TRUE(contents.lacks.empty());
  fs::remove(folder_ / "m/source.spm");
  contents = look_into(folder_ / "m");
  EXPECT_TRUE(contents.abilities.empty());
  ASSERT_EQ(contents.lacks.size(), 1u);
  EXPECT_THAT(contents.lacks[0], HasSubstr("source.spm"));
  EXPECT_THROW(open(folder_ / "m"), Error);
}

TEST_F(MarianFolder, LinesInALanguageThatTheVocabularyLacksAreNoticed) {
  convert_translation(folder_ / "m", "int8", folder_ / "i");
  for (const char* name : {"m", "i"}) {
    LanguageNotice notice(look_into(folder_ / name));
    for (const char* line : {"", "the fox", ">>fra<< the fox", ">>deu<<", ">> x", "fox >>xyz<<"})
      notice.count(line);
    EXPECT_EQ(notice.text(), "");
    notice.count(">>xyz<< the fox");
    EXPECT_EQ(
        notice.text(),
        "1 line begins with a language that the model does not know: '>>xyz<<', which is read as <unk>; the model "
        "has >>deu<<, >>fra<<, >>cmn_Hans<<");
    notice.count(">>fr<<");
    EXPECT_THAT(notice.text(),
                ::testing::StartsWith(
                    "2 lines begin with languages that the model does not know: the first is '>>xyz<<'"));
  }
  FolderContents contents = look_into(folder_ / "m");
  for (const char* more : {">>a<<", ">>b<<", ">>c<<", ">>d<<", ">>e<<"})
    contents.languages.emplace_back(more);
  LanguageNotice many(contents);
  many.count(">>xyz<<");
  EXPECT_THAT(many.text(),
              ::testing::EndsWith(">>cmn_Hans<<, >>a<<, >>b<<, >>c<< and 2 more, which `fovea info` lists"));
  contents.languages.clear();
  LanguageNotice none(contents);
  none.count(">>" + std::string(3000, 'x') + "<<");
  EXPECT_THAT(none.text(), ::testing::EndsWith("the model has no target languages"));
  EXPECT_LT(none.text().size(), 200u);
}

TEST_F(MarianFolder, IsExplainedAndAlignedAsOurOwn) {
  const auto model = open(folder_ / "m", {.purpose = Ability::explain});
  const Explanation shown = model->explain({"the quick brown fox"}, {.target = "der Fuchs"}, ".json");
  const Json json = Json::parse(shown.content);
  EXPECT_THAT(json.dump(), HasSubstr("quick"));
  EXPECT_FALSE(model->explain({"the quick brown fox"}, {.kind = "all"}, ".png").content.empty());
  const Input line{"the quick brown fox"};
  const Answer answer = model->answer({&line, 1}, {.alignment = "soft"})[0];
  ASSERT_TRUE(answer.translations[0].alignment);
  // The small vocabulary lacks u and o.
  EXPECT_THAT(answer.translations[0].alignment->source,
              ElementsAre("the", "q ⁇ ick", "br ⁇ wn", "fox", "</s>"));
}

TEST_F(MarianFolder, BecomesIntegersAndBack) {
  const std::vector<std::string> lines{"the quick brown fox", "a small green house"};
  convert_translation(folder_ / "m", "int8", folder_ / "i");
  EXPECT_EQ(look_into(folder_ / "i").compute, "int8");
  EXPECT_EQ(translations(folder_ / "i", lines), translations(folder_ / "m", lines, {}, "int8"));
  convert_translation(folder_ / "i", "float32", folder_ / "f");
  EXPECT_EQ(load_json(folder_ / "f/config.json")["model_type"], "marian");
  EXPECT_EQ(translations(folder_ / "f", lines, {}, "int8"), translations(folder_ / "i", lines));
}

TEST_F(MarianFolder, IsTrainedOnAndSavedAsItCame) {
  const TrainingOutcome outcome = train(folder_ / "out");
  EXPECT_EQ(outcome.outcome, train::Outcome::finished);
  const Json before = load_json(folder_ / "m/config.json"), after = load_json(folder_ / "out/config.json");
  for (const auto& item : before.items()) EXPECT_EQ(after[item.key()], item.value()) << item.key();
  for (const char* name : {"vocab.json", "source.spm", "target.spm", "generation_config.json"})
    EXPECT_EQ(read_text(folder_ / "out" / name), read_text(folder_ / "m" / name)) << name;
  const SafetensorsFile old_weights(folder_ / "m/model.safetensors"),
      new_weights(folder_ / "out/model.safetensors");
  ASSERT_EQ((*old_weights).entries().size(), (*new_weights).entries().size());
  int moved = 0;
  for (const TensorEntry& entry : (*old_weights).entries()) {
    ASSERT_TRUE((*new_weights).contains(entry.name)) << entry.name;
    moved += (*old_weights).tensor(entry.name).to_vector() != (*new_weights).tensor(entry.name).to_vector();
  }
  EXPECT_EQ(moved, static_cast<int>((*old_weights).entries().size()));
  const std::vector<std::string> lines{"the quick brown fox"};
  EXPECT_EQ(translations(folder_ / "out", lines).size(), 1u);
}

TEST_F(MarianFolder, AnInterruptedRunEndsWithTheSameBytes) {
  train(folder_ / "whole");
  int left = 7;
  EXPECT_EQ(train(folder_ / "twice", [&] { return --left == 0; }).outcome, train::Outcome::interrupted);
  const std::vector<std::string> lines{"the quick brown fox"};
  EXPECT_EQ(translations(folder_ / "twice/checkpoints/last", lines).size(), 1u)
      << "checkpoints are model folders";
  EXPECT_EQ(train(folder_ / "twice").outcome, train::Outcome::finished);
  EXPECT_EQ(read_text(folder_ / "twice/model.safetensors"), read_text(folder_ / "whole/model.safetensors"));
}

TEST_F(MarianFolder, OptionsThatItBringsItselfAreRefused) {
  const auto complaint = [&](const Json& values) {
    try {
      settle<TranslateTraining>({.values = values});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const std::string from = (folder_ / "m").string();
  EXPECT_EQ(complaint({{"from", from}, {"lowercase", true}}), "no error") << "of BLEU";
  EXPECT_THAT(complaint({{"from", from}, {"vocabulary", 100}}), HasSubstr("leave out --vocabulary"));
  EXPECT_THAT(complaint({{"from", from}, {"joint", false}}), HasSubstr("leave out --joint"));
  EXPECT_THAT(complaint({{"from", from}, {"width", 64}}), HasSubstr("the model keeps its own sizes"));
}

TEST_F(MarianFolder, VocabulariesOfAnotherModelAreRefused) {
  Json vocabulary = load_json(folder_ / "m/vocab.json");
  vocabulary["extra"] = vocabulary.size();
  write_atomically(folder_ / "m/vocab.json", vocabulary.dump());
  try {
    open(folder_ / "m");
    ADD_FAILURE() << "opened";
  } catch (const ModelError& error) {
    EXPECT_THAT(error.what(), HasSubstr("but config.json says"));
  }
}

}  // namespace
}  // namespace fovea::tasks
