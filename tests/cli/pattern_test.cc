#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cli/command.h"

namespace fovea {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using testing_cli::run;

TEST(PatternVerb, DrawsInTheTerminal) {
  const auto outcome = run("pattern causal --n 4");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out,
            "█▄··\n"
            "███▄\n"
            "causal: 10 of 16 pairs (62.5 %), in 1 tiles and 1 segments\n");
}

TEST(PatternVerb, ReadsAWholeSpecAndShowsHeadsThatDiffer) {
  const auto outcome = run("pattern 'dot / heads(causal; full) / soft' --n 2 --heads 4");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.out, StartsWith("head 0, 2\n█▄\nhead 1, 3\n██\n"));
}

TEST(PatternVerb, WritesPictures) {
  const std::filesystem::path directory = testing::TempDir();
  for (const auto& [name, start] : {std::pair{"p.svg", "<svg"}, std::pair{"p.png", "\x89PNG"}}) {
    const std::string path = directory / name;
    ASSERT_EQ(run("pattern 'window(2,2) | global(0)' --n 16 --out " + path).status, 0);
    std::ifstream file(path, std::ios::binary);
    EXPECT_THAT(std::string(std::istreambuf_iterator<char>(file), {}), StartsWith(start));
    std::filesystem::remove(path);
  }
}

TEST(PatternVerb, AWrongPatternIsOneLineThatPointsAtTheColumn) {
  const auto outcome = run("pattern 'causal & widow(1,2)'");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.err,
            "fovea: attention: unknown pattern \"widow\" at column 10: did you mean \"window\"?\n");
  EXPECT_EQ(run("pattern causal --n 4 --out p.jpg").status, 2);
  EXPECT_EQ(run("pattern causal --n 0").status, 2);
}

}  // namespace
}  // namespace fovea
