#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "cli/command.h"
#include "io/file.h"
#include "io/json.h"
#include "io/temporary_directory.h"

namespace fovea {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using testing_cli::run;

class ClassifyVerb : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryDirectory;
    std::ofstream out(*folder_ / "train.tsv");
    out << "text\tlabel\n";
    for (int i = 0; i < 60; ++i)
      out << (i % 3 == 0 ? "a " : "the film is ") << (i % 2 ? "fine" : "dull") << (i % 5 ? " ." : "") << '\t'
          << (i % 2 ? "pos" : "neg") << '\n';
    out.close();
    trained_ =
        run("train classify --train " + file("train.tsv") + " --valid " + file("train.tsv") + " --out " +
            model() +
            " --tokenizer words --preset tiny --steps 60 --warmup 5 --learning-rate 0.01 --validate-every 30"
            " --save-every 30 --embedding 12 --width 8 --dropout 0");
  }
  static void TearDownTestSuite() { delete folder_; }
  static std::string model() { return (*folder_ / "model").string(); }
  static std::string file(const std::string& name) { return (*folder_ / name).string(); }
  static TemporaryDirectory* folder_;
  static testing_cli::Outcome trained_;
};
TemporaryDirectory* ClassifyVerb::folder_ = nullptr;
testing_cli::Outcome ClassifyVerb::trained_;

TEST_F(ClassifyVerb, TrainsWithProgressAndSaysWhatComesNext) {
  EXPECT_EQ(trained_.status, 0) << trained_.err;
  EXPECT_THAT(trained_.out,
              testing::ContainsRegex(
                  "^trained 60 steps; accuracy 100 %(; weights of step 30)?\nnext: fovea classify "));
  EXPECT_THAT(trained_.err, HasSubstr("accuracy 100"));
  for (const char* name : {"config.json", "model.safetensors", "vocab.txt", "README.md", "curve.svg"})
    EXPECT_TRUE(std::filesystem::exists(*folder_ / "model" / name)) << name;
}

TEST_F(ClassifyVerb, SaysWhichColumnsItReads) {
  EXPECT_THAT(trained_.err,
              HasSubstr("train.tsv: label is column 2 \"label\", text is column 1 \"text\"; first row is "
                        "a header"));
}

TEST_F(ClassifyVerb, TrainsOnWhatAnotherProgramWrites) {
  const std::string rest = " --tokenizer words --preset tiny --steps 2 --embedding 8 --width 8 --out ";
  const auto piped =
      run("train classify --train /dev/stdin" + rest + file("piped") + " < " + file("train.tsv"));
  EXPECT_EQ(piped.status, 0) << piped.err;
  const auto from_pipe =
      run("train classify --train /dev/stdin" + rest + file("piped2"), "cat " + file("train.tsv") + " |");
  EXPECT_EQ(from_pipe.status, 0) << from_pipe.err;
  EXPECT_EQ(read_text(file("piped/model.safetensors")), read_text(file("piped2/model.safetensors")));
  const auto zeros = run("train classify --train /dev/zero" + rest + file("none"));
  EXPECT_EQ(zeros.status, 2);
  EXPECT_EQ(zeros.err, "fovea: cannot read /dev/zero: a device, wanted a file or a pipe\n");
}

TEST_F(ClassifyVerb, WhatDumpConfigPrintsIsAConfigFile) {
  for (const std::string choice : {"--model han", "--from encoder"}) {
    const auto dumped = run("train classify --dump-config " + choice);
    ASSERT_EQ(dumped.status, 0) << dumped.err;
    write_atomically(file("config.json"), dumped.out);
    EXPECT_EQ(run("train classify --dump-config --config " + file("config.json")).out, dumped.out) << choice;
  }
}

TEST_F(ClassifyVerb, AnswersLineByLine) {
  const std::string input = " < " + file("lines.txt");
  std::ofstream(file("lines.txt")) << "the film is fine\n\na dull film\n";
  EXPECT_THAT(run("classify " + model() + input).out, testing::MatchesRegex("pos\n(pos|neg)\nneg\n"));
  EXPECT_THAT(run("classify " + model() + " --scores" + input).out,
              testing::MatchesRegex("[01]\\.[0-9]+\tpos\n[01]\\.[0-9]+\t(pos|neg)\n[01]\\.[0-9]+\tneg\n"));
  const std::string json = run("classify " + model() + " --weights" + input).out;
  const Json first = parse_json(json.substr(0, json.find('\n')), "out");
  EXPECT_EQ(first["label"], "pos");
  EXPECT_EQ(first["words"].size(), 5u);
  EXPECT_EQ(first["words"][3][0], "fine");
  EXPECT_THAT(json, HasSubstr("\"words\":[]}\n")) << "of the empty line";
}

TEST_F(ClassifyVerb, ScoresALabelledFile) {
  const auto outcome = run("classify " + model() + " --test " + file("train.tsv"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              StartsWith("accuracy 100.00 %, macro F1 100.00 %, 60 texts\nneg: precision 100.0"));
  EXPECT_EQ(
      parse_json(run("classify " + model() + " --json --test " + file("train.tsv")).out, "out")["texts"], 60);
}

TEST_F(ClassifyVerb, IsExplainedByTheSameVerbAsATranslator) {
  const auto shown = run("explain " + model() + " 'the film is fine'");
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_THAT(shown.out, StartsWith("pos, "));
  EXPECT_THAT(shown.out, HasSubstr("the film is fine </s>"));
  for (const auto& [name, start] : {std::pair{"a.png", "\x89PNG"}, std::pair{"a.html", "<!doctype html>"},
                                    std::pair{"a.json", "{\"text\":\"the film is fine\""}}) {
    EXPECT_EQ(run("explain " + model() + " 'the film is fine' --out " + file(name)).status, 0);
    EXPECT_THAT(read_text(file(name)), StartsWith(start));
  }
}

TEST_F(ClassifyVerb, RefusesWithOneLineAndStatusTwo) {
  const auto refused = [](const std::string& arguments) {
    const auto outcome = run(arguments + " < /dev/null");
    EXPECT_EQ(outcome.status, 2) << arguments;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    return outcome.err;
  };
  EXPECT_THAT(refused("classify /nowhere"), HasSubstr("does not exist"));
  EXPECT_THAT(refused("translate " + model()),
              HasSubstr("is a text classifier (lstm); translate needs a translator"));
  EXPECT_THAT(refused("explain " + model() + " fine --target x"), HasSubstr("--target needs a translator"));
  EXPECT_THAT(refused("explain " + model() + " fine --kind encoder --out a.png"),
              HasSubstr("no heads to show"));
  EXPECT_THAT(refused("explain " + model() + " ''"), HasSubstr("the text is empty"));
  EXPECT_THAT(refused("train classify --out x"), HasSubstr("--train and --out are needed"));
  EXPECT_THAT(refused("train classify --train a --out x --model han --layers 2"),
              HasSubstr("'layers' is an option of --model lstm or transformer; the model is han"));
  EXPECT_THAT(refused("train classify --train a --out x --minutes nan"),
              HasSubstr("--minutes: got 'nan', wanted a finite number"));
  EXPECT_THAT(refused("convert " + model() + " --to int8 --out " + model() + "8"),
              HasSubstr("--to int8 needs a translator; " + model() + " is a text classifier"));
  EXPECT_THAT(refused("train classify --train a --out x --preset huge"),
              HasSubstr("wanted tiny, small or base"));
}

}  // namespace
}  // namespace fovea
