#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "cli/command.h"
#include "cli/conversation.h"
#include "io/json.h"
#include "io/temporary_directory.h"
#include "tasks/untrained_translator.h"

namespace fovea {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing_cli::Conversation;
using testing_cli::run;

class TranslateVerb : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryDirectory;
    tasks::save_translation(*folder_ / "model", tasks::untrained_translator());
  }
  static void TearDownTestSuite() { delete folder_; }
  static std::string model() { return (*folder_ / "model").string(); }

  // Quick: an untrained model does not know when to stop.
  static std::vector<std::string> quick() {
    return {"translate", model(), "--beam", "1", "--max-length-factor", "0.01", "--threads", "1"};
  }
  static std::vector<std::string> lines(const std::string& text) {
    std::vector<std::string> found;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) found.push_back(line);
    return found;
  }
  static TemporaryDirectory* folder_;
};
TemporaryDirectory* TranslateVerb::folder_ = nullptr;

TEST_F(TranslateVerb, AnswersALineAtOnceAndKeepsTheOrder) {
  Conversation talk({"translate", model(), "--beam", "1"});
  ASSERT_TRUE(talk.say("one two\n"));
  const std::string first = talk.hear();
  EXPECT_NE(first, "") << "the first line is answered while the input is still open";
  ASSERT_TRUE(talk.say("three\nfour fi"));
  const std::string second = talk.hear();
  EXPECT_NE(second, "") << "a whole line is answered while half of the next is still coming";
  EXPECT_TRUE(talk.silent());
  ASSERT_TRUE(talk.say("ve\none two\n"));
  const std::string third = talk.hear(), fourth = talk.hear();
  EXPECT_EQ(fourth, first);
  EXPECT_EQ(talk.end(), 0);
  EXPECT_EQ(talk.complaint, "");

  const auto all =
      run("translate " + model() + " --beam 1", "printf 'one two\\nthree\\nfour five\\none two' |");
  EXPECT_EQ(lines(all.out), (std::vector<std::string>{first, second, third, first}));
}

TEST_F(TranslateVerb, MemoryDoesNotGrowWithTheInput) {
  const auto peak = [&](int count) {
    Conversation talk(quick());
    std::thread writer([&] {
      for (int i = 0; i < count; ++i) talk.say("one two three four five six one two three\n");
      talk.hang_up();
    });
    int heard = 0;
    while (talk.hear() != "") ++heard;
    writer.join();
    EXPECT_EQ(heard, count);
    EXPECT_EQ(talk.end(), 0);
    return talk.peak_kilobytes;
  };
  // The address sanitizer would keep freed memory aside, up to this much.
  setenv("ASAN_OPTIONS", "quarantine_size_mb=4", 0);
  const long few = peak(2'000), many = peak(20'000);
  EXPECT_LT(many, few + few / 4 + 8'192);
}

TEST_F(TranslateVerb, AReaderThatGoesAwayEndsItQuietly) {
  Conversation talk(quick());
  ASSERT_TRUE(talk.say("one\n"));
  EXPECT_NE(talk.hear(), "");
  talk.stop_listening();
  while (talk.say("one two three\n")) {
  }
  EXPECT_EQ(talk.end(), 128 + SIGPIPE);
  EXPECT_EQ(talk.complaint, "");
}

TEST_F(TranslateVerb, CtrlCEndsItQuietlyBetweenLines) {
  Conversation talk(quick());
  ASSERT_TRUE(talk.say("one\n"));
  EXPECT_NE(talk.hear(), "");
  talk.kill(SIGINT);
  EXPECT_EQ(talk.end(), 128 + SIGINT);
  EXPECT_EQ(talk.complaint, "");
}

TEST_F(TranslateVerb, LinesBeforeABadOneAreAnswered) {
  const auto outcome = run("translate " + model() + " --beam 1", "printf 'one\\ntwo\\n\\377\\nthree\\n' |");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(lines(outcome.out).size(), 2u);
  EXPECT_THAT(outcome.err, HasSubstr("standard input, line 3: not UTF-8"));
}

TEST_F(TranslateVerb, PrintsScoresListsAndAlignments) {
  const auto ask = [&](const std::string& flags) {
    const auto outcome = run("translate " + model() + " --max-length-factor 0.01 " + flags,
                             "printf 'one two\\n\\nthree\\n' |");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return lines(outcome.out);
  };
  const auto plain = ask("--beam 3");
  ASSERT_EQ(plain.size(), 3u);
  EXPECT_EQ(plain[1], "");

  const auto scored = ask("--beam 3 --scores");
  EXPECT_THAT(scored[0], MatchesRegex("-?[0-9]+\\.[0-9][0-9][0-9][0-9]\t.*"));
  EXPECT_EQ(scored[0].substr(scored[0].find('\t') + 1), plain[0]);

  const auto listed = ask("--beam 3 --n-best 2");
  EXPECT_THAT(listed[0], testing::StartsWith("0 ||| " + plain[0] + " ||| -"));
  EXPECT_THAT(listed[1], testing::StartsWith("0 ||| "));
  EXPECT_THAT(listed.back(), testing::StartsWith("2 ||| "));

  const auto hard = ask("--beam 3 --alignment hard");
  EXPECT_THAT(hard[0], testing::StartsWith(plain[0] + " ||| "));
  EXPECT_THAT(hard[0], MatchesRegex(".* \\|\\|\\| [01]-0( [01]-[0-9]+)*"));
  EXPECT_EQ(hard[1], " ||| ");
  EXPECT_THAT(ask("--beam 3 --n-best 2 --alignment hard")[0],
              MatchesRegex("0 \\|\\|\\| .* \\|\\|\\| -[0-9.]+ \\|\\|\\| [01]-0.*"));

  const Json soft = parse_json(ask("--beam 3 --alignment soft")[0], "soft");
  EXPECT_EQ(soft["text"], plain[0]);
  EXPECT_EQ(soft["source"], Json::parse(R"(["one", "two", "</s>"])"));
  ASSERT_EQ(soft["weights"].size(), soft["target"].size());
  for (const Json& row : soft["weights"]) {
    double sum = 0;
    for (const Json& weight : row) sum += weight.get<double>();
    EXPECT_NEAR(sum, 1, 1e-5);
  }
}

TEST_F(TranslateVerb, RefusesWhatItDoesNotKnow) {
  const auto alignment = run("translate " + model() + " --alignment soggy", "echo one |");
  EXPECT_EQ(alignment.status, 2);
  EXPECT_THAT(alignment.err, HasSubstr("soggy"));
  const auto list = run("translate " + model() + " --beam 2 --n-best 3", "echo one |");
  EXPECT_EQ(list.status, 2);
  EXPECT_THAT(list.err, HasSubstr("n-best: got 3"));
}

}  // namespace
}  // namespace fovea
