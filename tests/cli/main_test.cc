#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "attention/spec_records.h"
#include "cli/command.h"

namespace fovea {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using testing_cli::Outcome;
using testing_cli::run;

// A user's mistake: one line on standard error that holds `part`, nothing on standard output, status 2.
void expect_complaint(const Outcome& outcome, const std::string& part) {
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, StartsWith("fovea: "));
  EXPECT_THAT(outcome.err, HasSubstr(part));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

TEST(CommandLine, WithoutArgumentsTeaches) {
  const Outcome outcome = run("");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.out, HasSubstr("fovea demo"));
  EXPECT_THAT(outcome.out, HasSubstr("bench"));
}

TEST(CommandLine, VersionIsOneLine) {
  const Outcome outcome = run("--version");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out, "fovea " FOVEA_VERSION "\n");
}

TEST(CommandLine, UnknownVerbNamesTheNearest) {
  expect_complaint(run("inof"), "did you mean info?");
}
TEST(CommandLine, UnknownVerbFarFromAllPointsAtHelp) {
  expect_complaint(run("xyzzyplugh"), "fovea --help");
}
TEST(CommandLine, UnknownVerbUnderBenchNamesTheNearest) {
  expect_complaint(run("bench peek"), "did you mean peak?");
}
TEST(CommandLine, UnknownFlagNamesTheNearest) {
  expect_complaint(run("info --thread 2"), "did you mean --threads?");
}
TEST(CommandLine, UnknownFlagWithValueNamesTheNearest) {
  expect_complaint(run("info --treads=2"), "did you mean --threads?");
}
TEST(CommandLine, StrayArgumentIsAnError) {
  expect_complaint(run("info now"), "'now'");
}
TEST(CommandLine, WordForANumberIsAnError) {
  expect_complaint(run("info --threads two"), "two");
}
TEST(CommandLine, NegativeThreadsAreAnError) {
  expect_complaint(run("info --threads -3"), "-3");
}
TEST(CommandLine, WholeNumbersAreDecimalAndFitOrAreRefused) {
  for (const char* number : {"010", "0x10", "99999999999999999999", "1e3", "-", "+1"})
    expect_complaint(run("pattern causal --n '" + std::string(number) + "'"), number);
  expect_complaint(run("scene 99999999999999999999 --out x.png"),
                   "number: got '99999999999999999999', wanted a whole");
  expect_complaint(run("demo --seed -1 --out x"), "-1");
  EXPECT_EQ(run("pattern causal --n 10").status, 0);
  EXPECT_EQ(run("pattern causal --n 8").out, run("pattern causal --n=8").out);
}
TEST(CommandLine, WrongCountsAndWordsForNumbersAreSaidPlainly) {
  expect_complaint(run("train translate --train a b c --out x"), "--train: got 3 values, wanted at most 2;");
  expect_complaint(run("translate x --length-penalty much"),
                   "--length-penalty: got 'much', wanted a number;");
}
TEST(CommandLine, FlagGivenTwiceIsAnError) {
  expect_complaint(run("info --threads 1 --threads 2"), "--threads");
}
TEST(CommandLine, BenchAloneAsksForASubcommand) {
  expect_complaint(run("bench"), "fovea bench --help");
}

// The names under "Subcommands:" of a help text.
std::vector<std::string> subcommands_of(const std::string& help) {
  std::istringstream lines(help);
  std::vector<std::string> names;
  bool listed = false;
  for (std::string line; std::getline(lines, line);) {
    if (listed && line.starts_with("  ")) names.push_back(line.substr(2, line.find(' ', 2) - 2));
    listed = line == "Subcommands:" || (listed && line.starts_with("  "));
  }
  return names;
}

// Every verb, those below `train` and `bench` among them.
std::vector<std::string> verbs() {
  std::vector<std::string> all;
  for (const std::string& verb : subcommands_of(run("--help").out)) {
    const std::vector<std::string> below = subcommands_of(run(verb + " --help").out);
    for (const std::string& name : below) all.push_back(verb + " " + name);
    if (below.empty()) all.push_back(verb);
  }
  return all;
}

TEST(Help, OfEveryVerbShowsAnExampleOfItWithOptionsThatExist) {
  const std::vector<std::string> all = verbs();
  ASSERT_GE(all.size(), 30u);
  std::map<std::string, std::string> helps;
  for (const std::string& verb : all) helps[verb] = run(verb + " --help").out;
  for (const std::string& verb : all) {
    SCOPED_TRACE(verb);
    EXPECT_THAT(helps[verb], HasSubstr("\n  fovea " + verb)) << "no example";
    std::istringstream lines(helps[verb]);
    for (std::string line; std::getline(lines, line);) {
      const size_t start = line.find("fovea ");
      if (!line.starts_with("  ") || line.starts_with("   ") || start == std::string::npos ||
          line.starts_with("  -"))
        continue;
      for (std::string more; line.ends_with('\\') && std::getline(lines, more);)
        line = line.substr(0, line.size() - 1) + more;
      // A command, and those that it is piped into.
      std::string of_command;
      std::istringstream words(line);
      std::string before;
      for (std::string word; words >> word; before = word) {
        if (before == "fovea") of_command = word;
        if (before == "train" || before == "bench")
          if (of_command == before) of_command += " " + word;
        if (!word.starts_with("--")) continue;
        ASSERT_TRUE(helps.contains(of_command)) << of_command << " in: " << line;
        // An option of a model is shown in the help for that model.
        std::string help = helps[of_command];
        if (const size_t model = line.find("--model "); model != std::string::npos)
          help +=
              run(of_command + " " + line.substr(model, line.find(' ', model + 8) - model) + " --help").out;
        EXPECT_THAT(help, HasSubstr("  " + word + " ")) << line;
      }
    }
  }
}

TEST(Help, OfEveryVerbShowsDefaultsInOneForm) {
  for (const std::string& verb : verbs()) {
    SCOPED_TRACE(verb);
    std::istringstream lines(run(verb + " --help").out);
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("  -")) {
        EXPECT_THAT(line.substr(0, 30),
                    Not(AnyOf(HasSubstr("="), HasSubstr("{false}"), HasSubstr("{true}"))));
      }
  }
}

TEST(CommandLine, ReaderThatLeavesIsNoError) {
  EXPECT_EQ(run("--help | true").err, "");
  EXPECT_EQ(run("info --json | head -c 1").out, "{");
}

TEST(CommandLine, FullDiskIsAnError) {
  const Outcome outcome = run("info >/dev/full");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("standard output"));
}

TEST(Info, NamesWhatIsInUse) {
  const auto info = nlohmann::json::parse(run("info --threads 3 --json").out);
  EXPECT_EQ(info["threads"], 3);
  EXPECT_EQ(info["fovea"], FOVEA_VERSION);
  for (const char* key : {"cpu", "level", "highway", "compiler"}) EXPECT_NE(info[key], "") << key;
  EXPECT_THAT(info["highway"].get<std::string>(), testing::MatchesRegex("[0-9]+[.][0-9]+[.][0-9]+"));
}

TEST(Info, EveryAvailableLevelCanBeForced) {
  const auto levels = nlohmann::json::parse(run("info --json").out)["levels"];
  for (const std::string level : levels) {
    const auto info = nlohmann::json::parse(run("info --json", "FOVEA_ISA=" + level).out);
    EXPECT_EQ(info["level"], level);
  }
}

TEST(Info, ForcedLevelTheCpuLacksFailsLoudly) {
  expect_complaint(run("info", "FOVEA_ISA=avx1024"), "FOVEA_ISA is 'avx1024'");
}

TEST(BenchTranslate, TellsItsWorkAndItsRate) {
  const auto line = nlohmann::json::parse(
      run("bench translate --batch 2 --sentences 3 --length 2 --beam 2 --seconds 0.01 --threads 2 --json")
          .out);
  EXPECT_EQ(line["sentences"], 3);
  EXPECT_EQ(line["beam"], 2);
  for (const char* name : {"seconds", "tokens_per_second", "gflops", "fraction", "peak_bytes"})
    EXPECT_GT(line[name], 0) << name;
  EXPECT_NEAR(line["tokens_per_second"].get<double>() * line["seconds"].get<double>(), 6, 1e-6);
  expect_complaint(run("bench translate --preset huge"), "wanted tiny, base or marian");
  expect_complaint(run("bench train --model perceptron"), "perceptron");
}

TEST(BenchAttention, MeasuresEveryScore) {
  for (const auto& score : specs::kScores) {
    const auto line = nlohmann::json::parse(run("bench attention --spec " + std::string(score.name) +
                                                " --n 8 --nk 12 --d 4 --heads 2 --direction both "
                                                "--seconds 0.01 --threads 1 --json")
                                                .out);
    EXPECT_GT(line["seconds"], 0) << score.name;
  }
}

TEST(BenchPeak, GivesPositiveRates) {
  const auto peak = nlohmann::json::parse(run("bench peak --threads 1 --json").out);
  EXPECT_GT(peak["peak_gflops"], 0);
  EXPECT_GT(peak["read_gbps"], 0);
  EXPECT_GT(peak["triad_gbps"], 0);
}

TEST(Train, TruthValuesStandAloneOrAreSaid) {
  const auto config = [](const std::string& flags) {
    return nlohmann::json::parse(run("train translate --dump-config " + flags).out);
  };
  EXPECT_EQ(config("--skip-bad")["skip_bad"], true);
  EXPECT_EQ(config("--joint false --skip-bad")["joint"], false);
  EXPECT_EQ(config("")["skip_bad"], false);
  const auto odd = run("train translate --dump-config --joint maybe");
  EXPECT_EQ(odd.status, 2);
  EXPECT_EQ(odd.err, "fovea: --joint: got 'maybe', wanted true or false\n");
}

}  // namespace
}  // namespace fovea
