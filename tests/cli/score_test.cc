#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "data/files.h"

namespace fovea {
namespace {

using testing_cli::Outcome;
using testing_cli::run;

class Score : public testing::Test {
 protected:
  void SetUp() override {
    folder_.write("hyp", "The cat sat.\n\n我喜欢\n");
    folder_.write("ref", "The cat sits.\nx\n我爱吃\n");
    folder_.write("short", "The cat sits.\n");
    folder_.write("bad", "The cat sits.\nx\n\xFF\n");
    folder_.write("none", "");
  }
  // {} stands for the folder.
  Outcome score(std::string flags, const std::string& hypotheses = "hyp") {
    for (size_t at; (at = flags.find("{}")) != std::string::npos;) flags.replace(at, 2, folder_.path(""));
    Outcome outcome = run("score " + flags + " < " + folder_.path(hypotheses));
    for (size_t at; (at = outcome.err.find(folder_.path(""))) != std::string::npos;)
      outcome.err.erase(at, folder_.path("").size());
    return outcome;
  }

  data::TestFolder folder_;
};

// The lines sacreBLEU prints for these files.
TEST_F(Score, PrintsWhatSacreBleuPrints) {
  EXPECT_EQ(score("--ref {}ref").out,
            "BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0 = 27.4 60.0/33.3/25.0/25.0 "
            "(BP = 0.819 ratio = 0.833 hyp_len = 5 ref_len = 6)\n");
  EXPECT_EQ(score("--ref {}ref --tokenize zh --lowercase --chrf").out,
            "BLEU|nrefs:1|case:lc|eff:no|tok:zh|smooth:exp|version:2.6.0 = 22.8 57.1/20.0/16.7/25.0 "
            "(BP = 0.867 ratio = 0.875 hyp_len = 7 ref_len = 8)\n"
            "chrF2|nrefs:1|case:lc|eff:yes|nc:6|nw:0|space:no|version:2.6.0 = 50.0\n");
  EXPECT_THAT(score("--ref {}ref --ref {}hyp --width 2").out,
              testing::HasSubstr("nrefs:2|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0 = 100.00 "));
}

TEST_F(Score, JsonIsNotRounded) {
  const auto bleu = nlohmann::json::parse(score("--ref {}ref --json").out);
  EXPECT_NEAR(bleu["score"].get<double>(), 27.37591267534727, 1e-9);
  EXPECT_EQ(bleu["signature"], "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0");
  const auto both = nlohmann::json::parse(score("--ref {}ref --json --chrf").out);
  EXPECT_EQ(both[0]["name"], "BLEU");
  EXPECT_EQ(both[1]["name"], "chrF2");
}

TEST_F(Score, ExplainsMistakesInOneLine) {
  const auto complaint = [&](const std::string& flags, const std::string& hypotheses = "hyp") {
    const Outcome outcome = score(flags, hypotheses);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    return outcome.err;
  };
  EXPECT_EQ(complaint("--ref {}short"),
            "fovea: standard input has 3 lines and short has 1, wanted one translation per reference\n");
  EXPECT_EQ(complaint("--ref {}absent"), "fovea: cannot open absent: No such file or directory\n");
  EXPECT_EQ(complaint("--ref {}bad"), "fovea: bad, line 3: not UTF-8 at byte 1 (0xff)\n");
  EXPECT_EQ(complaint("--ref {}none", "none"),
            "fovea: standard input has no lines, wanted translations to score\n");
  EXPECT_THAT(complaint("--ref {}ref --tokenize 14a"), testing::HasSubstr("13a"));
  EXPECT_THAT(complaint(""), testing::HasSubstr("--ref"));
}

}  // namespace
}  // namespace fovea
