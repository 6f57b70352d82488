#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/command.h"
#include "io/file.h"
#include "io/json.h"
#include "io/temporary_directory.h"
#include "tasks/untrained_translator.h"

namespace fovea {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using testing_cli::run;

class ExplainVerb : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryDirectory;
    tasks::save_translation(*folder_ / "model", tasks::untrained_translator());
  }
  static void TearDownTestSuite() { delete folder_; }

  static std::string model() { return (*folder_ / "model").string(); }
  static std::string file(const std::string& name) { return (*folder_ / name).string(); }
  static TemporaryDirectory* folder_;
};
TemporaryDirectory* ExplainVerb::folder_ = nullptr;

TEST_F(ExplainVerb, PrintsShadedBlocksWithoutAFile) {
  const auto outcome = run("explain " + model() + " 'one 食物' --target 'two three'");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("one 食物\ntwo three\n\ncross, layer 0, average of heads\n"));
  EXPECT_THAT(outcome.out, HasSubstr("\nthree|"));
  EXPECT_THAT(outcome.out, HasSubstr("1 one  2 食物  3 </s>\n"));
}

TEST_F(ExplainVerb, ShowsWordsUnlessTokensAreAskedFor) {
  tasks::save_translation(*folder_ / "bpe", tasks::untrained_translator("bpe"));
  const std::string command = "explain " + file("bpe") + " 'one threefold' --target two";
  EXPECT_THAT(run(command).out, HasSubstr("1 one  2 threefold  3 </s>\n"));
  EXPECT_THAT(run(command + " --units tokens").out, HasSubstr("1 ▁one  2 ▁t  3 hree  4 f"));
  const auto refused = run(command + " --units letters");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("wanted words or tokens"));
}

TEST_F(ExplainVerb, WritesTheFileItsEndingAsksFor) {
  for (const auto& [name, start] :
       {std::pair{"a.png", "\x89PNG"}, std::pair{"a.svg", "<?xml"}, std::pair{"a.pdf", "%PDF"},
        std::pair{"a.html", "<!DOCTYPE html>"}, std::pair{"a.json", "{\"format\":\"fovea attention 1\""}}) {
    const auto outcome = run("explain " + model() + " 'one two' --target three --out " + file(name));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "three\n");
    EXPECT_THAT(read_text(file(name)), StartsWith(start));
  }
  ASSERT_EQ(run("explain " + model() + " 'one two' --target 'three four' --out " + file("a.txt")).status, 0);
  EXPECT_THAT(read_text(file("a.txt")), testing::MatchesRegex("[01]-0 [01]-1\n"));
}

TEST_F(ExplainVerb, RefusesWhatItCannotDoWithOneLine) {
  const auto refused = [&](const std::string& arguments) {
    const auto outcome = run("explain " + model() + " " + arguments);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
    return outcome.err;
  };
  EXPECT_THAT(refused("one --out a.gif"), HasSubstr("wanted .png, .svg, .pdf, .html, .json or .txt"));
  EXPECT_THAT(refused("one --out picture"), HasSubstr("got no ending"));
  EXPECT_THAT(refused("''"), HasSubstr("the sentence is empty"));
  EXPECT_THAT(refused("one --layer 9"), HasSubstr("has 0 to 1, and rollout"));
  EXPECT_THAT(refused("one --kind sideways"), HasSubstr("wanted cross, encoder, decoder or all"));
  EXPECT_THAT(refused("one --out /nowhere/a.png"), HasSubstr("/nowhere"));
  EXPECT_THAT(run("explain /nowhere one").err, HasSubstr("does not exist"));
}

}  // namespace
}  // namespace fovea
