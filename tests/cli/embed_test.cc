// The verbs that read with an encoder: embed and fill.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "cli/command.h"
#include "cli/conversation.h"
#include "io/json.h"
#include "io/temporary_directory.h"
#include "tasks/untrained_encoder.h"

namespace fovea {
namespace {

using testing::HasSubstr;
using testing_cli::Conversation;
using testing_cli::run;

class EncoderVerbs : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryDirectory;
    tasks::write_untrained_encoder(*folder_ / "model");
  }
  static void TearDownTestSuite() { delete folder_; }
  static std::string model() { return (*folder_ / "model").string(); }
  static std::vector<std::string> lines(const std::string& text) {
    std::vector<std::string> found;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) found.push_back(line);
    return found;
  }
  static std::vector<float> numbers(const std::string& line) {
    std::istringstream stream(line);
    std::vector<float> found;
    for (std::string word; stream >> word;) found.push_back(std::stof(word));
    return found;
  }
  static TemporaryDirectory* folder_;
};
TemporaryDirectory* EncoderVerbs::folder_ = nullptr;

constexpr const char* kInput = "printf 'one two\\n\\nsixteen like food , the paris .\\none two\\n' |";

TEST_F(EncoderVerbs, EmbedGivesOneVectorALineInEveryForm) {
  const auto text = run("embed " + model(), kInput);
  ASSERT_EQ(text.status, 0) << text.err;
  EXPECT_EQ(text.err, "");
  const auto rows = lines(text.out);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0], rows[3]);
  EXPECT_NE(rows[0], rows[1]);
  EXPECT_EQ(numbers(rows[1]).size(), 24u) << "an empty line has a vector too";

  const auto json = run("embed " + model() + " --format jsonl", kInput);
  ASSERT_EQ(lines(json.out).size(), 4u);
  const Json third = parse_json(lines(json.out)[2], "third");
  EXPECT_EQ(third["text"], "sixteen like food , the paris .");
  EXPECT_EQ(third["embedding"].get<std::vector<float>>(), numbers(rows[2]));

  const auto npy = run("embed " + model() + " --format npy", kInput);
  ASSERT_EQ(npy.status, 0) << npy.err;
  ASSERT_GT(npy.out.size(), 10u);
  EXPECT_EQ(npy.out.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  const size_t begin =
      10 + static_cast<unsigned char>(npy.out[8]) + 256u * static_cast<unsigned char>(npy.out[9]);
  EXPECT_EQ(begin % 64, 0u);
  EXPECT_EQ(npy.out[begin - 1], '\n');
  EXPECT_THAT(npy.out.substr(10, begin - 10),
              testing::StartsWith("{'descr': '<f4', 'fortran_order': False, 'shape': (4, 24), }"));
  ASSERT_EQ(npy.out.size(), begin + 4 * 24 * sizeof(float));
  std::vector<float> all(4 * 24), wanted;
  std::memcpy(all.data(), npy.out.data() + begin, all.size() * sizeof(float));
  for (const std::string& row : rows)
    for (const float x : numbers(row)) wanted.push_back(x);
  EXPECT_EQ(all, wanted) << "text reads back as the same numbers";
}

TEST_F(EncoderVerbs, EmbedIsTheSameForAnyNumberOfThreads) {
  const std::string input = "seq 1 300 | sed 's/1/one /g; s/2/two sixteen /g; s/3/food . /g' |";
  const auto one = run("embed " + model() + " --threads 1", input);
  EXPECT_EQ(lines(one.out).size(), 300u);
  EXPECT_EQ(run("embed " + model() + " --threads 3", input).out, one.out);
  EXPECT_EQ(run("embed " + model() + " --threads 2 --batch-tokens 7", input).out, one.out);
}

TEST_F(EncoderVerbs, EmbedAnswersALineAtOnce) {
  Conversation talk({"embed", model(), "--threads", "1"});
  ASSERT_TRUE(talk.say("one two\n"));
  const std::string first = talk.hear();
  EXPECT_NE(first, "") << "the first line is answered while the input is still open";
  ASSERT_TRUE(talk.say("three\none two\n"));
  EXPECT_NE(talk.hear(), first);
  EXPECT_EQ(talk.hear(), first);
  EXPECT_EQ(talk.end(), 0);
}

TEST_F(EncoderVerbs, EmbedSaysWhatItCut) {
  const auto cut = run("embed " + model() + " --max-tokens 3", "printf 'one two\\none\\n' |");
  EXPECT_EQ(cut.status, 0);
  EXPECT_EQ(cut.err, "fovea: 1 line was cut to 3 tokens\n");
  EXPECT_EQ(lines(cut.out)[0], lines(cut.out)[1]);
}

TEST_F(EncoderVerbs, LinesBeforeABadOneAreAnswered) {
  const auto bad = run("embed " + model(), "printf 'one\\n\\377\\ntwo\\n' |");
  EXPECT_EQ(bad.status, 2);
  EXPECT_EQ(lines(bad.out).size(), 1u);
  EXPECT_THAT(bad.err, HasSubstr("standard input, line 2: not UTF-8"));
  const auto npy = run("embed " + model() + " --format npy", "printf 'one\\n\\377\\ntwo\\n' |");
  EXPECT_EQ(npy.status, 2);
  EXPECT_EQ(npy.out, "") << "no array that looks whole";
}

TEST_F(EncoderVerbs, FillPrintsCandidates) {
  const auto one = run("fill " + model() + " 'paris is the [MASK] .' --top 3");
  ASSERT_EQ(one.status, 0) << one.err;
  ASSERT_EQ(lines(one.out).size(), 3u);
  EXPECT_THAT(lines(one.out)[0], testing::MatchesRegex("[01]\\.[0-9][0-9][0-9][0-9]\t.+"));
  const auto two = run("fill " + model() + " '[MASK] is the [MASK] .' --top 2");
  ASSERT_EQ(lines(two.out).size(), 4u);
  EXPECT_THAT(lines(two.out)[0], testing::StartsWith("0\t0."));
  EXPECT_THAT(lines(two.out)[3], testing::StartsWith("1\t0."));
  const Json json =
      parse_json(run("fill " + model() + " 'paris is the [MASK] .' --top 3 --json").out, "json");
  ASSERT_EQ(json["masks"].size(), 1u);
  EXPECT_EQ(lines(one.out)[0].substr(7), json["masks"][0][0]["token"].get<std::string>());
}

TEST_F(EncoderVerbs, ComplainInOneLine) {
  const auto complain = [&](const std::string& arguments) {
    const auto outcome = run(arguments, "echo one |");
    EXPECT_EQ(outcome.status, 2) << arguments;
    EXPECT_EQ(lines(outcome.err).size(), 1u) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  };
  EXPECT_THAT(complain("embed /nowhere"), HasSubstr("model folder '/nowhere' does not exist"));
  EXPECT_THAT(complain("embed " + model() + " --pooling sum"), HasSubstr("wanted mean, cls or max"));
  EXPECT_THAT(complain("embed " + model() + " --format csv"), HasSubstr("csv"));
  EXPECT_THAT(complain("fill " + model() + " 'no mask here'"), HasSubstr("no [MASK] in the text"));
  EXPECT_THAT(complain("fill " + model() + " '[MASK]' --top 0"), HasSubstr("top: got 0"));
  tasks::write_untrained_encoder(*folder_ / "headless", {});
  EXPECT_THAT(complain("fill " + (*folder_ / "headless").string() + " '[MASK]'"),
              HasSubstr("without a head for masked tokens"));
}

}  // namespace
}  // namespace fovea
