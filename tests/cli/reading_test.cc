// Pairs, numbers and several labels as a person meets them: training, answers, scores, refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "cli/command.h"
#include "io/file.h"
#include "io/json.h"
#include "io/temporary_directory.h"

namespace fovea {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing_cli::run;

class ReadingVerbs : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryDirectory;
    std::ofstream pairs(*folder_ / "pairs.csv"), tags(*folder_ / "tags.tsv");
    tags << "labels\ttext\n";
    for (int i = 0; i < 60; ++i) {
      const char* const words[] = {"red", "blue"};
      const char *a = words[i % 2], *b = words[i / 2 % 2];
      pairs << "\"the " << a << " car, here\",a " << b << " car," << (a == b ? "4.5" : "1.0") << '\n';
      tags << (i % 2 ? "x" : "") << (i / 2 % 2 ? (i % 2 ? "|y" : "y") : "") << "\tthe " << a << " car " << b
           << " car\n";
    }
    pairs.close();
    tags.close();
    const std::string sizes =
        " --tokenizer words --preset tiny --steps 80 --warmup 5 --learning-rate 0.01 --validate-every 40 --dropout 0 "
        "--threads 1";
    similar_ = run("train classify --pairs --task regression --train " + file("pairs.csv") + " --valid " +
                   file("pairs.csv") + " --out " + file("similar") + " --embedding 12 --width 8" + sizes);
    tagger_ =
        run("train classify --task multi_label --label-separator '|' --train " + file("tags.tsv") +
            " --valid " + file("tags.tsv") + " --out " + file("tagger") +
            " --model transformer --width 16 --heads 2 --hidden 32 --added-global 1 --global 'first car'"
            " --self-attention 'scaled_dot / heads(window(2,2); strided(2))'" +
            sizes);
  }
  static void TearDownTestSuite() { delete folder_; }
  static std::string file(const std::string& name) { return (*folder_ / name).string(); }
  static TemporaryDirectory* folder_;
  static testing_cli::Outcome similar_, tagger_;
};
TemporaryDirectory* ReadingVerbs::folder_ = nullptr;
testing_cli::Outcome ReadingVerbs::similar_, ReadingVerbs::tagger_;

TEST_F(ReadingVerbs, NumbersOfPairsAreTrainedPrintedAndScored) {
  EXPECT_EQ(similar_.status, 0) << similar_.err;
  EXPECT_THAT(similar_.out, HasSubstr("Pearson correlation x 100 "));
  EXPECT_THAT(similar_.err, HasSubstr("label is column 3, texts are column 1 and column 2; no header row"));
  const auto answers =
      run("classify " + file("similar"), "printf 'the red car\\ta red car\\nthe red car\\ta blue car\\n' |");
  EXPECT_EQ(answers.status, 0) << answers.err;
  EXPECT_THAT(answers.out, MatchesRegex("[34567]\\.?[0-9]*\n-?[012]\\.?[0-9]*\n"));
  const Json json =
      parse_json(run("classify " + file("similar") + " --json", "printf 'a red\\ta red' |").out, "out");
  EXPECT_TRUE(json["value"].is_number());
  const auto tested = run("classify " + file("similar") + " --test " + file("pairs.csv"));
  EXPECT_EQ(tested.status, 0) << tested.err;
  EXPECT_THAT(
      tested.out,
      MatchesRegex("Pearson 0\\.[0-9]+, Spearman 0\\.[0-9]+, mean squared error [0-9.]+, mean absolute "
                   "error [0-9.]+, 60 pairs\n90 % of the attention weight is on [0-9.]+ % of the words\n"));
  const Json scores =
      parse_json(run("classify " + file("similar") + " --json --test " + file("pairs.csv")).out, "out");
  EXPECT_GT(scores["pearson"].get<double>(), 0.9);
  EXPECT_GT(scores["words_for_90_percent"].get<double>(), 0);
}

TEST_F(ReadingVerbs, LinesThatAreNoPairsAreRefusedWithTheirNumber) {
  const auto refused = run("classify " + file("similar"), "printf 'a red\\tred\\nno pair\\n' |");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err,
              HasSubstr("standard input, line 2: got no tab; the model reads pairs of texts: wanted a "
                        "text, a tab and a text"));
  EXPECT_THAT(run("classify " + file("similar") + " --on-error skip", "printf 'a\\tb\\tc\\n' |").err,
              HasSubstr("standard input, line 1: got several tabs"));
  const auto skipped =
      run("classify " + file("similar") + " --on-error empty", "printf 'no pair\\na red\\tred\\n' |");
  EXPECT_EQ(skipped.status, 0) << skipped.err;
  EXPECT_THAT(skipped.out, MatchesRegex("\n[0-9.-]+\n"));
  EXPECT_THAT(run("classify " + file("similar") + " --scores < /dev/null").err,
              HasSubstr("--scores needs a model of labels"));
  EXPECT_THAT(run("classify " + file("tagger") + " --pair-column 2 --test " + file("tags.tsv")).err,
              HasSubstr("--pair-column needs a model of pairs"));
}

TEST_F(ReadingVerbs, SeveralLabelsArePrintedBetweenTheSeparator) {
  EXPECT_EQ(tagger_.status, 0) << tagger_.err;
  EXPECT_THAT(tagger_.out, HasSubstr("micro F1 "));
  const auto answers =
      run("classify " + file("tagger"),
          "printf 'the blue car blue car\\nthe red car red car\\nthe blue car red car\\n' |");
  EXPECT_EQ(answers.out, "x|y\n\nx\n") << answers.err;
  EXPECT_THAT(run("classify " + file("tagger") + " --scores", "echo 'the blue car blue car' |").out,
              MatchesRegex("[01]\\.[0-9]+\tx\t[01]\\.[0-9]+\ty\n"));
  EXPECT_THAT(run("classify " + file("tagger") + " --test " + file("tags.tsv")).out,
              testing::StartsWith(
                  "micro F1 100.00 %, macro F1 100.00 %, all labels right 100.00 %, 60 texts\nx: precision"));
}

TEST_F(ReadingVerbs, TextsInWhichNoWordOccursTwiceAreLearnt) {
  std::ofstream(file("few.tsv")) << "one\ttwo\t1.5\nthree\tfour\t2.5\n";
  const auto trained = run("train classify --pairs --task regression --train " + file("few.tsv") +
                           " --preset tiny --steps 1 --threads 1 --out " + file("few"));
  EXPECT_EQ(trained.status, 0) << trained.err;
}

TEST_F(ReadingVerbs, ASeparatorThatIsNeverFoundIsNamed) {
  const auto trained = run("train classify --task multi_label --train " + file("tags.tsv") +
                           " --tokenizer words --preset tiny --steps 1 --threads 1 --out " + file("comma"));
  EXPECT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.err, HasSubstr("note: no text has more than one label; --label-separator is ','"));
  EXPECT_THAT(tagger_.err, testing::Not(HasSubstr("more than one label")));
}

TEST_F(ReadingVerbs, TheModelCardHasTheCommandAsAShellReadsIt) {
  EXPECT_THAT(read_text(file("tagger") + "/README.md"),
              testing::AllOf(HasSubstr("--label-separator '|'"), HasSubstr("--global 'first car'"),
                             HasSubstr("--self-attention 'scaled_dot / heads(window(2,2); strided(2))'")));
  EXPECT_THAT(similar_.out, HasSubstr("next: fovea classify " + file("similar") + " < pairs.tsv"));
}

TEST_F(ReadingVerbs, TheHelpOfTrainingShowsOneDefaultForAnOption) {
  for (const char* task : {"classify", "translate", "image", "series", "caption"}) {
    std::istringstream help(run(message("train ", task, " --help")).out);
    for (std::string line; std::getline(help, line);)
      EXPECT_EQ(line.find("(default"), line.rfind("(default")) << task << ": " << line;
  }
}

TEST_F(ReadingVerbs, ExplainMarksGlobalTokens) {
  const auto shown = run("explain " + file("tagger") + " 'the blue car red car'");
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("[<s>] the blue [car] red [car] </s>"));
  EXPECT_THAT(shown.out, HasSubstr("in brackets: global tokens"));
  EXPECT_EQ(run("explain " + file("tagger") + " 'the blue car red car' --out " + file("a.json")).status, 0);
  const Json json = parse_json(read_text(file("a.json")), "out");
  EXPECT_EQ(json["global"], Json::parse("[0, 1, 4, 6]"));
  EXPECT_EQ(json["added_global"], 1);
  EXPECT_EQ(run("explain " + file("tagger") + " 'the blue car' --kind encoder --units tokens --out " +
                file("h.png"))
                .status,
            0);
}

TEST_F(ReadingVerbs, BadRowsAreNamedAndOptionsRefusedBeforeDataIsRead) {
  std::ofstream(file("bad.csv")) << "a b,c d,1\ne f,g h,five\ni,j,2\n";
  const auto bad =
      run("train classify --pairs --task regression --out " + file("n") + " --train " + file("bad.csv"));
  EXPECT_EQ(bad.status, 2);
  EXPECT_THAT(bad.err, HasSubstr("bad.csv, line 2: the label 'five' is not a number"));
  EXPECT_FALSE(std::filesystem::exists(file("n")));
  for (const auto& [options, message] :
       {std::pair{"--task ranking", "task"},
        {"--task regression --smoothing 0.1", "label smoothing is for one label"},
        {"--label-separator ';'", "only --task multi_label"},
        {"--model transformer --global punctuation", "--global has no effect"},
        {"--model transformer --self-attention 'scaled_dot / heads(full; causal; full)'",
         "3 patterns for 4 heads"},
        {"--model lstm --added-global 2", "added"}}) {
    const auto refused =
        run(std::string("train classify --train missing.tsv --out ") + file("n") + " " + options);
    EXPECT_EQ(refused.status, 2) << options;
    EXPECT_THAT(refused.err, HasSubstr(message)) << options;
    EXPECT_THAT(refused.err, testing::Not(HasSubstr("missing.tsv"))) << options;
  }
  const auto teacher =
      run("train translate --train missing.tsv --out " + file("n") + " --teacher-forcing 0.5");
  EXPECT_EQ(teacher.status, 2);
  EXPECT_THAT(teacher.err, HasSubstr("choose --model bahdanau, luong or rnn"));
}

}  // namespace
}  // namespace fovea
