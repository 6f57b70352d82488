// fovea train series, predict and explain: tables and cases, from files to forecasts, labels and pictures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "cli/command.h"
#include "io/file.h"
#include "io/json.h"
#include "io/temporary_directory.h"

namespace fovea {
namespace {

using testing::HasSubstr;
using testing_cli::Outcome;
using testing_cli::run;

constexpr const char* kSmall =
    " --preset tiny --width 8 --heads 2 --hidden 16 --layers 1 --batch 8 --steps 60 --log-every 10 --threads 1 --validations 3";

class SeriesCommands : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryDirectory;
    std::ofstream table(file("table.csv")), train(file("train.ts")), test(file("test.ts"));
    table << "date,wave,drift\n";
    for (int i = 0; i < 200; ++i)
      table << "2020-01-" << (i / 24 < 9 ? "0" : "") << 1 + i / 24 << (i % 24 < 10 ? " 0" : " ") << i % 24
            << ":00," << std::sin(i * 0.5) << "," << 0.01 * i << "\n";
    for (std::ofstream* out : {&train, &test}) {
      *out << "@dimensions 2\n@classLabel true up down\n@data\n";
      for (int i = 0; i < 24; ++i) {
        const int sign = i % 2 ? 1 : -1, steps = 5 + i % 4;
        for (int f = 0; f < 2; ++f)
          for (int t = 0; t < steps; ++t) *out << (f == 0 ? sign * t : i) << (t + 1 < steps ? "," : ":");
        *out << (sign > 0 ? "up" : "down") << "\n";
      }
    }
  }
  static void TearDownTestSuite() { delete folder_; }
  static std::string file(const std::string& name) { return (*folder_ / name).string(); }
  // A forecaster and a classifier, trained once.
  static std::string forecaster() {
    return trained("forecaster",
                   "table.csv --split 120/40/40 --steps-in 24 --horizon 6 --patch 4 --time-features hour");
  }
  static std::string classifier() {
    return trained("classifier", "train.ts --valid " + file("test.ts") + " --learning-rate 0.01");
  }
  static std::string trained(const std::string& name, const std::string& arguments) {
    const std::string out = file(name);
    if (!path_exists(out)) {
      const Outcome outcome = run("train series --train " + file("") + arguments + kSmall + " --out " + out);
      EXPECT_EQ(outcome.status, 0) << outcome.err;
      said_[name] = outcome.out;
    }
    return out;
  }
  static TemporaryDirectory* folder_;
  static std::map<std::string, std::string> said_;
};
TemporaryDirectory* SeriesCommands::folder_ = nullptr;
std::map<std::string, std::string> SeriesCommands::said_;

TEST_F(SeriesCommands, AForecasterPrintsTheNextStepsWithTheirTimes) {
  const std::string model = forecaster();
  EXPECT_THAT(said_["forecaster"], HasSubstr("test part: MSE "));
  EXPECT_THAT(said_["forecaster"], HasSubstr("next: fovea predict "));
  EXPECT_THAT(run("info " + model).out, HasSubstr("fovea predict " + model + " < rows.csv"));
  const Outcome outcome = run("predict " + model + " < " + file("table.csv"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::StartsWith("date,wave,drift\n2020-01-09 08:00:00,"));
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 7);
  EXPECT_EQ(run("predict " + model + " " + file("table.csv")).out, outcome.out);
  const Json json = parse_json(run("predict " + model + " " + file("table.csv") + " --json").out, "out");
  EXPECT_EQ(json["steps"].size(), 6u);
  const Outcome test = run("predict " + model + " --test " + file("table.csv") + " --split 120/40/40");
  EXPECT_THAT(said_["forecaster"], HasSubstr(test.out.substr(0, test.out.size() - 1)))
      << "the same scores again";
}

TEST_F(SeriesCommands, AClassifierLearnsAndLabelsEachLine) {
  const std::string model = classifier();
  EXPECT_THAT(said_["classifier"], HasSubstr("accuracy 100 %"));
  EXPECT_THAT(run("info " + model).out, HasSubstr("fovea predict " + model + " < cases.ts"));
  const Outcome outcome = run("predict " + model + " --scores < " + file("test.ts"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::MatchesRegex("[01]\\.[0-9]{4}\tdown\n(.|\n)*[01]\\.[0-9]{4}\tup\n"));
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 24);
  EXPECT_THAT(run("predict " + model + " --test " + file("test.ts")).out, HasSubstr("accuracy 100.00 %"));
  const std::string last = "tail -n 1 " + file("test.ts") + " | sed 's/:up$//' |";
  EXPECT_EQ(run("predict " + model, last).out, "up\n");
  EXPECT_EQ(parse_json(run("predict " + model + " --json", last).out, "out")["label"], "up");
}

TEST_F(SeriesCommands, ANumberIsLearntFromTargets) {
  std::ofstream out(file("numbers.ts"));
  out << "@univariate true\n@targetLabel true\n@data\n";
  for (int i = 0; i < 40; ++i) out << i << "," << i + 1 << ":" << 3 * i << "\n";
  out.close();
  const std::string model =
      trained("numbers", "numbers.ts --valid " + file("numbers.ts") + " --learning-rate 0.01");
  EXPECT_THAT(said_["numbers"], HasSubstr("RMSE "));
  EXPECT_THAT(run("info " + model).out, HasSubstr("fovea predict " + model + " < cases.ts"));
  const Outcome test = run("predict " + model + " --test " + file("numbers.ts") + " --json");
  const Json scores = parse_json(test.out, "out");
  EXPECT_LT(scores["rmse"].get<double>(), 0.5 * scores["naive_rmse"].get<double>());
}

TEST_F(SeriesCommands, ExplainDrawsEveryForm) {
  for (const std::string& model : {forecaster(), classifier()}) {
    const std::string input = model == forecaster() ? file("table.csv") : file("test.ts");
    const Outcome text = run("explain " + model + " " + input);
    EXPECT_EQ(text.status, 0) << text.err;
    EXPECT_THAT(text.out, HasSubstr(" %\n"));
    for (const char* ending : {".png", ".svg", ".pdf", ".html", ".json", ".txt"}) {
      const std::string out = file(std::string("map") + ending);
      const Outcome outcome = run("explain " + model + " " + input + " --out " + out);
      EXPECT_EQ(outcome.status, 0) << ending << outcome.err;
      EXPECT_GT(read_text(out).size(), 100u);
    }
    double sum = 0;
    const Json json = load_json(file("map.json"));
    for (const Json& feature : json["features"])
      for (const Json& weight : feature["weights"]) sum += weight.get<double>();
    EXPECT_NEAR(sum, 1, 1e-4);
  }
}

// What cannot be read because of its length is one bad line; the others are answered.
TEST_F(SeriesCommands, ACaseThatIsTooLongIsNamedAndSpoilsNoOther) {
  const auto two = [](int steps) {
    std::string one = "1";
    for (int i = 1; i < steps; ++i) one += ",1";
    return one + ":" + one + "\n";
  };
  std::ofstream(file("long.ts")) << two(5) + two(65'537) + two(6);
  const std::string model = classifier();
  const Outcome skipped = run("predict " + model + " --on-error skip " + file("long.ts"));
  EXPECT_EQ(skipped.status, 0) << skipped.err;
  EXPECT_EQ(std::count(skipped.out.begin(), skipped.out.end(), '\n'), 2);
  EXPECT_THAT(skipped.err,
              HasSubstr("long.ts, line 2: a series of 65537 steps is 65537 tokens, but the model reads "
                        "at most 65536; cut it, or train with a larger --patch"));
  const Outcome stopped = run("predict " + model + " " + file("long.ts"));
  EXPECT_EQ(stopped.status, 2);
  EXPECT_EQ(std::count(stopped.out.begin(), stopped.out.end(), '\n'), 1) << "the line before it is answered";
  std::ofstream(file("long-train.ts")) << "@dimensions 2\n@classLabel true up down\n@data\n1:2:up\n"
                                       << two(65'537).substr(0, two(65'537).size() - 1) << ":down\n";
  const Outcome training =
      run("train series --train " + file("long-train.ts") + kSmall + " --out " + file("no"));
  EXPECT_EQ(training.status, 2);
  EXPECT_THAT(training.err, HasSubstr("long-train.ts, case 2: a series of 65537 steps"));
  EXPECT_FALSE(path_exists(file("no")));

  // Learned positions, and states side by side, have bounds of their own.
  const std::string places = trained("places", "train.ts --positions learned --max-positions 8");
  std::ofstream(file("nine.ts")) << two(9) + two(8);
  const Outcome nine = run("predict " + places + " --on-error skip " + file("nine.ts"));
  EXPECT_EQ(nine.status, 0) << nine.err;
  EXPECT_EQ(std::count(nine.out.begin(), nine.out.end(), '\n'), 1);
  EXPECT_THAT(nine.err,
              HasSubstr("nine.ts, line 1: a series of 9 steps is 9 tokens, but the model reads at most 8"));
  std::ofstream(file("equal.ts"))
      << "@dimensions 1\n@classLabel true up down\n@data\n1,2,3:up\n3,2,1:down\n2,3,4:up\n";
  const std::string flat = trained("flat", "equal.ts --pooling flatten");
  std::ofstream(file("four.ts")) << "1,2,3,4\n1,2,3\n";
  const Outcome four = run("predict " + flat + " --on-error empty " + file("four.ts"));
  EXPECT_EQ(four.status, 0) << four.err;
  EXPECT_THAT(four.out, testing::MatchesRegex("\n(up|down)\n"));
  EXPECT_THAT(four.err, HasSubstr("four.ts, line 1: a series of 4 steps, but the model reads 3 steps"));
  std::ofstream(file("3000.ts")) << two(3000);
  const Outcome shown = run("explain " + model + " " + file("3000.ts") + " --out " + file("long.svg"));
  EXPECT_EQ(shown.status, 2);
  EXPECT_THAT(shown.err, HasSubstr("a series of 3000 tokens; attention can be shown of at most 2048"));
}

// A value that no network can take in is one bad line too.
TEST_F(SeriesCommands, AnAbsurdValueIsNamedAndSpoilsNoOther) {
  const std::string up = "0,1,2,3,4:1,1,1,1,1", down = "0,-1,-2,-3,-4:2,2,2,2,2",
                    far = "0,1,3e38,3,4:1,1,1,1,1";
  const char* said = "got 3e+38, more than 1000000 standard deviations from the ";
  write_atomically(file("far.ts"), up + "\n" + far + "\n" + down + "\n");
  write_atomically(file("far-labelled.ts"), "@dimensions 2\n@classLabel true up down\n@data\n" + up +
                                                ":up\n" + far + ":up\n" + down + ":down\n");
  const std::string model = classifier();
  const Outcome skipped = run("predict " + model + " --on-error skip " + file("far.ts"));
  EXPECT_EQ(skipped.status, 0) << skipped.err;
  EXPECT_EQ(std::count(skipped.out.begin(), skipped.out.end(), '\n'), 2);
  EXPECT_THAT(skipped.err, HasSubstr(message("far.ts, line 2, feature 1, step 3: ", said)));
  const Outcome stopped = run("predict " + model + " " + file("far.ts"));
  EXPECT_EQ(stopped.status, 2);
  EXPECT_EQ(std::count(stopped.out.begin(), stopped.out.end(), '\n'), 1) << "the line before it is answered";
  const Outcome test = run("predict " + model + " --test " + file("far-labelled.ts"));
  EXPECT_EQ(test.status, 2);
  EXPECT_THAT(test.err, HasSubstr(message("far-labelled.ts, line 5, feature 1, step 3: ", said)));
  const Outcome training =
      run("train series --train " + file("far-labelled.ts") + kSmall + " --out " + file("no"));
  EXPECT_EQ(training.status, 2);
  EXPECT_THAT(training.err, HasSubstr(message("far-labelled.ts, line 5, feature 1, step 3: ", said)));
  EXPECT_FALSE(path_exists(file("no")));

  write_atomically(file("far.csv"), read_text(file("table.csv")) + "2020-01-09 08:00,3e38,2\n");
  const Outcome table = run("predict " + forecaster() + " " + file("far.csv"));
  EXPECT_EQ(table.status, 2);
  EXPECT_THAT(table.err, HasSubstr(message("far.csv, line 202, column 'wave': ", said)));
  for (const char* split : {"", " --split 150/51"})
    EXPECT_THAT(run("train series --train " + file("far.csv") + split + kSmall + " --out " + file("no")).err,
                HasSubstr(message("far.csv, line 202, column 'wave': ", said)))
        << split;
}

TEST_F(SeriesCommands, AValidationFileMayListItsLabelsInAnotherOrder) {
  std::string cases = read_text(file("test.ts"));
  cases.replace(cases.find("up down"), 7, "down up");
  write_atomically(file("turned.ts"), cases);
  trained("turned", "train.ts --valid " + file("turned.ts") + " --learning-rate 0.01");
  EXPECT_THAT(said_["turned"], HasSubstr("accuracy 100 %"));
  cases.replace(cases.find("down up"), 7, "left up");
  write_atomically(file("other.ts"), cases.substr(0, cases.find("@data")) + "@data\n1:2:up\n1:2:left\n");
  EXPECT_THAT(run("train series --train " + file("train.ts") + " --valid " + file("other.ts") + kSmall +
                  " --out " + file("no"))
                  .err,
              HasSubstr("other.ts: the label 'left' is not among those of the training file"));
}

TEST_F(SeriesCommands, WhatDoesNotApplyOrIsWrongIsRefusedInOneLine) {
  write_atomically(file("bad.csv"), "date,wave\n2020-01-01,1\n2020-01-02,x\n");
  write_atomically(file("alike.ts"), "@univariate true\n@classLabel true a b\n@data\n1,2:b\n2,3:b\n");
  write_atomically(file("level.ts"), "@univariate true\n@targetLabel true\n@data\n1,2:0.5\n2,3:0.5\n");
  write_atomically(file("empty.ts"), "\n");
  write_atomically(file("short.csv"), "date,wave,drift\n2020-01-01,1,2\n2020-01-02,2,3\n");
  const std::string table = "train series --out " + file("no") + " --train " + file("table.csv"),
                    cases = "train series --out " + file("no") + " --train " + file("train.ts");
  const std::pair<std::string, const char*> rows[] = {
      {table + " --split 1/2", "rows to train on"},
      {table + " --split 100/100/100", "needs 300 rows; the file has 200"},
      {table + " --split 150/48/2 --steps-in 8 --horizon 3", "test part: no window of 8 + 3 steps fits"},
      {table + " --split 150/2/48 --steps-in 8 --horizon 3",
       "validation part: no window of 8 + 3 steps fits"},
      {table + " --split 0.5/0.6", "add up to"},
      {table + " --split half", "split: got 'half'"},
      {table + " --split 100/50 --valid " + file("table.csv"), "leave out --valid"},
      {table + " --target wav", "did you mean 'wave'"},
      {table + " --inputs wave", "need --channels mixed and --target"},
      {table + " --time-features hours", "did you mean 'hour'"},
      {table + " --steps-in 8 --patch 9", "more than the --steps-in 8"},
      {table + " --smoothing 0.1", "smoothing applies to classes"},
      {table + " --score dot", "--score does not apply: forecasts read the states of all steps"},
      {table + " --pooling mean --selection hard", "--selection does not apply with --pooling mean"},
      {table + " --channels both", "channels 'both'"},
      {table + " --valid " + file("test.ts"), "wanted the form of"},
      {cases + " --horizon 3", "--horizon applies to tables"},
      {cases + " --split 10/5", "--split applies to tables"},
      {cases + " --pooling flatten", "equal length"},
      {"train series --out " + file("no") + " --train " + file("bad.csv"),
       "bad.csv, line 3, column 'wave': got 'x'"},
      {"train series --out " + file("no") + " --train " + file("alike.ts"),
       "every case has the label 'b', wanted at least two"},
      {"train series --out " + file("no") + " --train " + file("level.ts"),
       "every case has the number 0.5, wanted different ones"},
      {"predict " + forecaster() + " --scores < " + file("table.csv"),
       "--scores does not apply to a forecast"},
      {"predict " + forecaster() + " " + file("bad.csv"), "no column 'drift'"},
      {"predict " + forecaster() + " --test " + file("short.csv"),
       "short.csv: no window of 24 + 6 steps fits; wanted more rows\n"},
      {"predict " + forecaster() + " --split 1/2", "--split describes the file of --test"},
      {"predict " + classifier() + " --test " + file("test.ts") + " --split 1/2",
       "--split applies to forecasts only"},
      {"predict " + classifier() + " --test " + file("test.ts") + " --scores", "does not apply with --test"},
      {"classify " + classifier(), "is a model of number sequences (transformer); classify needs"},
      {"explain " + classifier() + " " + file("test.ts") + " --kind encoder", "--kind does not apply"},
      {"explain " + classifier() + " " + file("empty.ts"), "empty.ts is empty, wanted a .ts file"},
  };
  for (const auto& [arguments, said] : rows) {
    SCOPED_TRACE(arguments);
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr(said));
    EXPECT_FALSE(path_exists(file("no") + "/config.json"));
  }
  const Outcome line = run("predict " + classifier(), "printf '0,1:1,1\\n1:2:3:4\\n' |");
  EXPECT_EQ(line.status, 2);
  EXPECT_EQ(std::count(line.out.begin(), line.out.end(), '\n'), 1);
  EXPECT_THAT(line.err, HasSubstr("standard input, line 2: 4 parts"));
}

TEST_F(SeriesCommands, ARunIsTheSameOnAnyThreadsAndAfterItWasKilled) {
  const std::string command =
      "train series --train " + file("train.ts") + kSmall + " --save-every 5 --dropout 0.3 --out ";
  const auto weights = [&](const std::string& name) { return read_text(file(name) + "/model.safetensors"); };
  ASSERT_EQ(run(command + file("whole")).status, 0);
  std::string two = command + file("threads");
  two.replace(two.find("--threads 1"), 11, "--threads 2");
  ASSERT_EQ(run(two).status, 0);
  EXPECT_EQ(weights("whole"), weights("threads"));
  // Killed as soon as a checkpoint is there, at whatever step.
  const std::string out = file("killed");
  std::system(("sh -c '" FOVEA_PROGRAM " " + command + out +
               " >/dev/null 2>&1 & pid=$!; for i in $(seq 500); do [ -e " + out +
               "/checkpoints/last ] && break; sleep 0.01; done; kill -9 $pid' 2>/dev/null")
                  .c_str());
  ASSERT_EQ(run(command + out).status, 0);
  EXPECT_EQ(weights("whole"), weights("killed"));
}

}  // namespace
}  // namespace fovea
