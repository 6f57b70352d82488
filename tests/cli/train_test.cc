// `fovea train` as people meet it: help, refusals, resumed runs, two processes at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "cli/command.h"
#include "io/file.h"
#include "io/json.h"
#include "io/temporary_directory.h"
#include "tasks/pretrain.h"
#include "tasks/train_caption.h"
#include "tasks/train_classify.h"
#include "tasks/train_clip.h"
#include "tasks/train_glimpse.h"
#include "tasks/train_image.h"
#include "tasks/train_partition.h"
#include "tasks/train_series.h"
#include "tasks/train_translate.h"

namespace fovea {
namespace {

using testing::HasSubstr;
using testing_cli::run;

// The help of each option, by its name.
std::map<std::string, std::string> help_of(const std::string& arguments) {
  std::istringstream text(run(arguments + " --help").out);
  std::map<std::string, std::string> options;
  std::string* last = nullptr;
  for (std::string line; std::getline(text, line);) {
    const bool option = line.starts_with("  --"), more = line.starts_with("      ");
    if (option) last = &options[line.substr(2, line.find_first_of(" ,", 2) - 2)];
    if (!option && !more) last = nullptr;
    if (last != nullptr) *last += " " + line.substr(line.find_first_not_of(' '));
  }
  return options;
}

// Every model and preset of a task: "train clip --model lenet --preset tiny".
template <class Training>
void add_choices(const std::string& verb, std::vector<std::string>& choices) {
  std::vector<std::string> presets{"tiny", "small", "base"};
  if constexpr (requires { Training::kPresets; })
    presets.assign(Training::kPresets.begin(), Training::kPresets.end());
  choices.push_back(verb);
  Training::Models::for_each([&](const auto& entry) {
    for (const std::string& preset : presets)
      choices.push_back(verb + " --model " + entry.name + " --preset " + preset);
  });
}

// What follows "(default" in the help of an option, up to the bracket: " 256", ": from the size of the data".
std::string default_in(const std::string& help) {
  const size_t begin = help.find("(default");
  if (begin == std::string::npos) return {};
  return help.substr(begin + 8, help.rfind(')') - begin - 8);
}

TEST(TrainHelp, ShowsTheDefaultsThatDumpConfigPrintsForEveryModelAndPreset) {
  std::vector<std::string> choices{"train classify --from encoder"};
  add_choices<tasks::CaptionTraining>("train caption", choices);
  add_choices<tasks::ClassifyTraining>("train classify", choices);
  add_choices<tasks::ClipTraining>("train clip", choices);
  add_choices<tasks::GlimpseTraining>("train glimpse", choices);
  add_choices<tasks::ImageTraining>("train image", choices);
  add_choices<tasks::PartitionTraining>("train partition", choices);
  add_choices<tasks::SeriesTraining>("train series", choices);
  add_choices<tasks::TranslateTraining>("train translate", choices);
  add_choices<tasks::PretrainTraining>("pretrain", choices);
  for (const std::string& choice : choices) {
    SCOPED_TRACE(choice);
    const auto help = help_of(choice);
    const Json config = parse_json(run(choice + " --dump-config").out, "dumped");
    for (const auto& [name, value] : config.items()) {
      std::string flag = "--" + name;
      std::replace(flag.begin(), flag.end(), '_', '-');
      ASSERT_TRUE(help.contains(flag)) << flag;
      if (choice.find("from") != std::string::npos && name == "from") continue;
      const std::string shown = value.is_string() ? value.get<std::string>() : value.dump();
      const std::string said = default_in(help.at(flag));
      if (value.is_null() || shown.empty()) {
        // What is found later has a default in words, its own or one that all share: "(default 28)" beside a dumped
        // null would be a value that is known before.
        EXPECT_FALSE(said.empty() || Json::accept(said.substr(said.starts_with(":")))) << flag << said;
        EXPECT_TRUE(!value.is_null() || said.find(' ', 2) != std::string::npos) << flag << said;
      } else {
        EXPECT_EQ(said, " " + shown) << flag;
      }
      EXPECT_EQ(help.at(flag).find("(default"), help.at(flag).rfind("(default")) << flag << ": two defaults";
    }
  }
  EXPECT_THAT(help_of("train translate")["--width"], HasSubstr("(default 128)"));
  EXPECT_THAT(help_of("train translate")["--preset"], HasSubstr("(default tiny)"));
  EXPECT_THAT(help_of("train classify")["--preset"], HasSubstr("(default small)"));
  EXPECT_THAT(help_of("train translate --preset small")["--width"], HasSubstr("(default 256)"));
  EXPECT_THAT(help_of("train translate")["--vocabulary"], HasSubstr("(default: from the size of the data)"));
  EXPECT_THAT(help_of("train translate")["--activation-dropout"], HasSubstr("(default: as dropout)"));
  EXPECT_THAT(help_of("train translate --preset base")["--width"], HasSubstr("(default 512)"));
  EXPECT_FALSE(help_of("train translate").contains("--locality")) << "Luong's alone";
}

TEST(Train, SettingsAreRefusedBeforeAnythingIsRead) {
  const TemporaryDirectory directory;
  const std::string out = (directory / "model").string(), config = (directory / "config.json").string();
  const auto refusal = [&](const std::string& task, const std::string& flags) {
    const auto outcome = run("train " + task + " --train /nowhere --out " + out + " " + flags);
    EXPECT_EQ(outcome.status, 2) << flags;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_THAT(outcome.err, testing::Not(HasSubstr("/nowhere"))) << flags;
    EXPECT_FALSE(std::filesystem::exists(out)) << flags;
    return outcome.err;
  };
  EXPECT_THAT(refusal("classify", "--score bogus"), HasSubstr("bogus"));
  EXPECT_THAT(refusal("classify", "--model transformer --self-attention 'scaled_dot / nonsense'"),
              HasSubstr("nonsense"));
  EXPECT_THAT(refusal("translate", "--self-attention 'scaled_dot / nonsense'"), HasSubstr("nonsense"));
  EXPECT_THAT(refusal("translate", "--model luong --score bogus"), HasSubstr("bogus"));
  EXPECT_THAT(refusal("classify", "--steps -1"), HasSubstr("steps: got -1"));
  EXPECT_THAT(refusal("classify", "--steps 0"), HasSubstr("steps: got 0"));
  EXPECT_THAT(refusal("classify", "--steps many"), HasSubstr("--steps: got 'many', wanted a whole number"));
  EXPECT_THAT(refusal("classify", "--learning-rate 0"), HasSubstr("learning_rate: got 0"));
  EXPECT_THAT(refusal("image", "--learning-rate -1"), HasSubstr("learning_rate: got -1"));
  EXPECT_THAT(refusal("classify", "--dropout 2"), HasSubstr("dropout"));
  EXPECT_THAT(refusal("classify", "--dropout -1"), HasSubstr("dropout"));
  EXPECT_THAT(refusal("classify", "--smoothing 1"), HasSubstr("smoothing: got 1"));
  EXPECT_THAT(refusal("classify", "--word-dropout 1"), HasSubstr("word_dropout: got 1"));
  EXPECT_THAT(refusal("classify", "--warmup -2"), HasSubstr("warmup: got -2"));
  EXPECT_THAT(refusal("classify", "--batch-tokens 0"), HasSubstr("batch_tokens: got 0"));
  EXPECT_THAT(refusal("classify", "--tokenizer letters"), HasSubstr("wanted bpe, unigram or words"));
  EXPECT_THAT(refusal("translate", "--tokenize japanese"), HasSubstr("wanted 13a, zh, char or none"));
  EXPECT_THAT(refusal("translate", "--schedule linear"),
              HasSubstr("wanted budget, inverse_sqrt or constant"));
  EXPECT_THAT(refusal("image", "--gate sesame"), HasSubstr("sesame"));
  EXPECT_THAT(refusal("image", "--seed -1"), HasSubstr("seed: got -1"));
  EXPECT_THAT(refusal("classify", "--from /encoder --model lstm"),
              HasSubstr("a pretrained model brings its own model; leave out --model"));
  for (const auto& [text, part] :
       {std::pair{R"({"steps": -1})", "steps: got -1"}, std::pair{R"({"learning_rate": 0})", "learning_rate"},
        std::pair{R"({"stesp": 3})", "did you mean 'steps'"}, std::pair{R"({"steps": "x"})", "steps"},
        std::pair{R"([1])", "wanted an object"}}) {
    write_atomically(config, text);
    EXPECT_THAT(refusal("classify", "--config " + config), HasSubstr(part)) << text;
  }
}

class TrainVerb : public testing::Test {
 protected:
  TrainVerb() {
    std::ofstream out(directory_ / "train.tsv");
    for (int i = 0; i < 60; ++i)
      out << (i % 2 ? "pos" : "neg") << '\t' << (i % 3 == 0 ? "a " : "the film is ")
          << (i % 2 ? "fine" : "dull") << (i % 5 ? " ." : "") << '\n';
  }
  std::string command(const std::string& out, const std::string& more) const {
    const std::string file = (directory_ / "train.tsv").string();
    return "train classify --threads 1 --embedding 8 --width 8 --train " + file + " --valid " + file +
           " --out " + (directory_ / out).string() + " " + more;
  }
  TemporaryDirectory directory_;
};

TEST_F(TrainVerb, OneStepIsSaidSo) {
  EXPECT_THAT(run(command("one", "--steps 1")).out, testing::StartsWith("trained 1 step; accuracy "));
}

TEST_F(TrainVerb, MoreMinutesGoOnWithAFinishedRun) {
  EXPECT_EQ(run(command("m", "--steps 20")).status, 0);
  const auto again = run(command("m", "--steps 20"));
  EXPECT_THAT(again.out, HasSubstr("already trained"));
  EXPECT_THAT(again.out, HasSubstr("accuracy"));
  const auto more = run(command("m", "--minutes 0.02"));
  EXPECT_EQ(more.status, 0) << more.err;
  EXPECT_THAT(more.err, HasSubstr("resuming after step 20"));
  EXPECT_THAT(more.out, testing::StartsWith("trained "));
}

TEST_F(TrainVerb, ARunThatLearntNothingSaysSo) {
  const auto nothing = run(command("nothing", "--steps 8 --validations 4 --learning-rate 1e-12"));
  EXPECT_THAT(
      nothing.out,
      HasSubstr(
          "note: the run ended and its accuracy was the same at every validation: the model has not begun to "
          "learn; the same command with --steps 24 continues from here\n"));
  EXPECT_THAT(run(command("learnt", "--steps 60")).out, testing::Not(HasSubstr("has not begun")));
}

TEST_F(TrainVerb, ProgressHasAUnit) {
  EXPECT_THAT(run(command("unit", "--steps 5 --log-every 1")).err, HasSubstr(" texts/s "));
}

TEST_F(TrainVerb, DamagedStatesAreTheUsersToKnow) {
  EXPECT_EQ(run(command("damaged", "--steps 2")).status, 0);
  const auto state = std::filesystem::canonical(directory_ / "damaged/checkpoints/last") / "state.json";
  write_atomically(state, "{\"optimizer\": {\"name\": 3}, \"identity\": 1}");
  const auto outcome = run(command("damaged", "--steps 4"));
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, testing::Not(HasSubstr("internal")));
  write_atomically(directory_ / "damaged/run.json", "[]");
  EXPECT_THAT(run(command("damaged", "--steps 4")).err, HasSubstr("run.json: damaged"));
}

// The lock is taken before anything is written and kept until the last file is: of two processes one works,
// and the other is told so or finds a finished run.
TEST_F(TrainVerb, TwoProcessesInOneFolderNeverDisturbEachOther) {
  constexpr int kRounds = 30;
  int worked = 0;
  for (int round = 0; round < kRounds; ++round) {
    const std::string line =
        command("race" + std::to_string(round), "--steps 3 --tokenizer bpe --vocabulary 320");
    testing_cli::Outcome first, second;
    std::thread other([&] {
      // The second begins at any time of the first's run.
      std::this_thread::sleep_for(std::chrono::milliseconds(round * 7));
      second = run(line);
    });
    first = run(line);
    other.join();
    for (const auto& outcome : {first, second}) {
      const bool refused =
          outcome.status == 2 && outcome.err.find("another process is working in") != std::string::npos;
      EXPECT_TRUE(outcome.status == 0 || refused) << outcome.status << ": " << outcome.err;
      worked += outcome.status == 0;
    }
    EXPECT_TRUE(first.status == 0 || second.status == 0);
    const auto folder = directory_ / ("race" + std::to_string(round));
    for (const char* name : {"config.json", "model.safetensors", "tokenizer.model", "README.md", "curve.svg"})
      EXPECT_TRUE(std::filesystem::exists(folder / name)) << name;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
      EXPECT_THAT(entry.path().filename().string(), testing::Not(HasSubstr("fovea-tmp")));
  }
  EXPECT_GE(worked, kRounds);
}

}  // namespace
}  // namespace fovea
