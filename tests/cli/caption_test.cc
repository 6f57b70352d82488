// Captions as a person makes them: trained, asked for, scored, shown; and what is said when something is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "cli/command.h"
#include "io/file.h"
#include "io/json.h"
#include "io/temporary_directory.h"
#include "models/captioned_pictures.h"

namespace fovea {
namespace {

using testing::HasSubstr;
using testing_cli::Outcome;
using testing_cli::run;

class Captions : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryDirectory;
    models::write_captioned_pictures(folder_->path(), 40);
    write_atomically(file("broken.png"), "no picture");
  }
  static void TearDownTestSuite() { delete folder_; }
  static std::string file(const std::string& name) { return (*folder_ / name).string(); }
  static std::string training(const std::string& out) {
    return "train caption --images " + file("images") + " --captions " + file("captions.txt") + " --split " +
           file("train.txt") + " " + file("valid.txt") + " --encoder " + file("encoder") +
           " --picture-size 32 --blocks 5 --min-count 1 --preset tiny --width 64 --embedding 32 --batch-words 160 "
           "--learning-rate 0.01 --save-every 5 --validate-every 30 --out " +
           out;
  }
  // "@name" stands for the path of a file or folder.
  static Outcome ask(std::string arguments) {
    for (size_t at; (at = arguments.find('@')) != std::string::npos;) arguments.replace(at, 1, file(""));
    return run(arguments);
  }
  // A model that was trained once for all tests.
  static std::string model() {
    static const std::string made = [] {
      const Outcome outcome = run(training(file("model")) + " --steps 300");
      EXPECT_EQ(outcome.status, 0) << outcome.err;
      EXPECT_THAT(outcome.out, HasSubstr("next: fovea caption " + file("model") + " picture.jpg"));
      EXPECT_THAT(outcome.err, HasSubstr("features of 40 pictures: 40 computed"));
      EXPECT_THAT(outcome.err, HasSubstr("  caption      "));
      return file("model");
    }();
    return made;
  }
  static TemporaryDirectory* folder_;
};
TemporaryDirectory* Captions::folder_ = nullptr;

TEST_F(Captions, AreWrittenOneALine) {
  model();
  const Outcome two = ask("caption @model @images/36.png @images/37.png");
  EXPECT_EQ(two.status, 0) << two.err;
  EXPECT_THAT(two.out, testing::MatchesRegex(file("images/36.png") + "\t[a-z ]*red[a-z ]*\n" +
                                             file("images/37.png") + "\t[a-z ]*blue[a-z ]*\n"));
  const Outcome listed = ask("caption @model --images @images --list @valid.txt --threads 1");
  EXPECT_EQ(std::count(listed.out.begin(), listed.out.end(), '\n'), 8);
  EXPECT_THAT(listed.out, HasSubstr("36.png\t"));
  const Outcome several = ask("caption @model @images/36.png --beam 4 --n-best 3");
  EXPECT_EQ(std::count(several.out.begin(), several.out.end(), '\n'), 3);
  const Json json = Json::parse(ask("caption @model @images/36.png --beam 4 --n-best 2 --json").out);
  EXPECT_EQ(json["n_best"].size(), 2u);
  EXPECT_EQ(json["caption"], json["n_best"][0]["caption"]);
  const Outcome bad = ask("caption @model @broken.png @images/36.png");
  EXPECT_EQ(bad.status, 2);
  EXPECT_THAT(bad.err, HasSubstr("broken.png"));
  EXPECT_EQ(std::count(bad.out.begin(), bad.out.end(), '\n'), 1);
  EXPECT_THAT(ask("info @model").out, HasSubstr("captioner (show_attend_tell)"));
}

TEST_F(Captions, AreWrittenWithInt8Too) {
  model();
  const Outcome exact = ask("caption @model @images/36.png"),
                rounded = ask("caption @model @images/36.png --compute int8");
  EXPECT_EQ(rounded.status, 0) << rounded.err;
  EXPECT_EQ(rounded.out, exact.out);
  EXPECT_EQ(ask("explain @model @images/36.png").status, 0);
}

TEST_F(Captions, AreShownWordByWord) {
  model();
  for (const char* ending : {"png", "svg", "pdf", "html", "json", "txt"}) {
    const Outcome outcome = ask(std::string("explain @model @images/36.png --out @words.") + ending);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("red"));
    EXPECT_GT(read_text(file(std::string("words.") + ending)).size(), 100u) << ending;
  }
  const std::string grid = read_text(file("words.png"));
  EXPECT_EQ(ask("explain @model @images/36.png --smooth --out @words.png").status, 0);
  EXPECT_NE(read_text(file("words.png")), grid);
  EXPECT_THAT(ask("explain @model @images/36.png --target 'a blue picture'").out,
              HasSubstr("a blue picture\n"));
}

TEST_F(Captions, AreScoredAgainstSeveralReferences) {
  write_atomically(file("hyp"), "A dog runs .\na man on a bench\n");
  write_atomically(file("ref0"), "a dog runs\na man sits on a bench\n");
  write_atomically(file("ref1"), "The dog runs .\nsomeone on a bench\n");
  const Outcome text = ask("score --captions --ref @ref0 --ref @ref1 --hyp @hyp");
  EXPECT_THAT(text.out, testing::StartsWith("BLEU-1 = 100.0 (without brevity penalty 100.0)\nBLEU-2 = "));
  EXPECT_THAT(text.out, HasSubstr("\nCIDEr = "));
  EXPECT_THAT(text.out, HasSubstr("2 references, words: caption\n"));
  const Json json = Json::parse(ask("score --captions --ref @ref0 --ref @ref1 --hyp @hyp --json").out);
  EXPECT_EQ(json["bleu"].size(), 4u);
  EXPECT_GT(json["cider"].get<double>(), 1);
  const Outcome both = ask("score --captions --chrf --ref @ref0 --hyp @hyp");
  EXPECT_EQ(both.status, 2);
  EXPECT_THAT(both.err, HasSubstr("--chrf, --chrf++ and --by-length do not apply"));
}

TEST_F(Captions, WhatDoesNotApplyIsRefusedInOneLine) {
  model();
  struct Refused {
    const char* arguments;
    const char* said;
  };
  const Refused table[] = {
      {"caption @model", "is a captioner: name pictures"},
      {"caption @model --images @images", "--images and --list belong together"},
      {"caption @model @images/1.png --images @images --list @valid.txt", "wanted one of the two"},
      {"caption @model @images/1.png --beam 2 --n-best 3", "--n-best: got 3, wanted 1 to the beam's 2"},
      {"caption @model @images/1.png --max-length 0", "--max-length: got 0"},
      {"caption @images @images/1.png", "no config.json"},
      {"caption @model @images", "is a folder; wanted a picture file"},
      {"explain @model @images", "is a folder; wanted a picture file"},
      {"classify @model @images/1.png", "is a captioner (show_attend_tell); classify needs a classifier"},
      {"translate @model", "translate needs a translator"},
      {"explain @model @images/1.png --head 1", "--head does not apply: "},
      {"explain @model @images/1.png --smooth", "--smooth applies to pictures and pages only"},
      {"explain @model @images/1.png --target 'a b' --beam 2", "--beam does not apply with --target"},
      {"explain @model @broken.png", "broken.png"},
      {"train caption --images @images --out @new", "--captions is needed"},
      {"train caption --images @images --captions @captions.txt --out @new",
       "--encoder is needed: the weights of a MobileNet"},
      {"train caption --captions @captions.txt --encoder @encoder --out @new",
       "--images and --out are needed"},
      {"train caption --images @images --captions @captions.txt --encoder @encoder --attention argmax --out @new",
       "argmax"},
      {"train caption --images @images --captions @images/1.png --encoder @encoder --blocks 5 --picture-size 32 --out @new",
       "1.png"},
  };
  for (const Refused& one : table) {
    SCOPED_TRACE(one.arguments);
    const Outcome outcome = ask(one.arguments);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr(one.said));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
}

}  // namespace
}  // namespace fovea
