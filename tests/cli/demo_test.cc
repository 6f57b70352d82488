#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "io/file.h"
#include "io/temporary_directory.h"

namespace fovea {
namespace {

using ::testing::HasSubstr;
using testing_cli::run;

std::string demo(const std::filesystem::path& out, const std::string& rest) {
  return "demo --out " + out.string() + " " + rest;
}
std::string weights(const std::filesystem::path& out) {
  return read_text(out / "checkpoints/last/model.safetensors") +
         read_text(out / "checkpoints/last/optimizer.safetensors");
}
int64_t step_of(const std::filesystem::path& out) {
  return nlohmann::json::parse(read_text(out / "checkpoints/last/state.json"))["step"];
}

// The first number behind a row's name: BLEU of all sentences.
double bleu_of(const std::string& out, const std::string& title) {
  const size_t place = out.find("\n" + title);
  return place == std::string::npos ? -1 : std::stod(out.substr(place + 1 + title.size()));
}

// A part of the way is enough to tell the three apart.
TEST(Demo, AttentionLearnsWhatTheOtherCannot) {
  const TemporaryDirectory directory;
  const auto first = run(demo(directory.path(), "--steps 300 --threads 1"));
  ASSERT_EQ(first.status, 0) << first.err;
  const double transformer = bleu_of(first.out, "Transformer"),
               with = bleu_of(first.out, "recurrent, with attention"),
               without = bleu_of(first.out, "recurrent, without attention");
  EXPECT_GT(transformer, 20) << first.out;
  EXPECT_GT(with, without + 5) << first.out;
  EXPECT_THAT(first.out, HasSubstr("我喜欢食物"));
  EXPECT_THAT(first.err, HasSubstr("step 300/300  loss "));
  EXPECT_EQ(first.err.find('\r'), std::string::npos) << "plain lines where there is no terminal";
  for (const char* file :
       {"data/train.zh", "data/test.en", "transformer/model.safetensors", "alignment.png",
        "bahdanau/curve.svg", "rnn/README.md", "lengths.svg", "curves.svg", "attention.html", "index.html"})
    EXPECT_TRUE(std::filesystem::exists(directory / file)) << file;
  const std::string page = read_text(directory / "index.html");
  for (const char* part : {"我喜欢食物", "i like food", "data:image/svg+xml;base64,", "attention.html"})
    EXPECT_THAT(page, HasSubstr(part));

  const auto again = run(demo(directory.path(), "--steps 300 --threads 1"));
  EXPECT_EQ(again.status, 0);
  EXPECT_THAT(again.out, HasSubstr("already trained"));
  EXPECT_EQ(bleu_of(again.out, "Transformer"), transformer);
  const auto more = run(demo(directory.path(), "--steps 301 --threads 1"));
  EXPECT_EQ(more.status, 0);
  EXPECT_THAT(more.err, HasSubstr("resuming after step 300"));
}

TEST(Demo, InterruptedItSavesAndGoesOnToTheSameBytes) {
  const TemporaryDirectory stopped, straight;
  const auto cut =
      run(demo(stopped.path(), "--steps 1000000 --threads 1"), "timeout --preserve-status -s TERM 2");
  EXPECT_EQ(cut.status, 143);
  ASSERT_THAT(cut.err, HasSubstr("stopped after step"));
  const std::string steps = "--steps " + std::to_string(step_of(stopped / "transformer") + 2);
  EXPECT_EQ(run(demo(stopped.path(), steps + " --threads 1")).status, 0);
  EXPECT_EQ(run(demo(straight.path(), steps + " --threads 2")).status, 0);
  for (const char* model : {"transformer", "bahdanau", "rnn"})
    EXPECT_TRUE(weights(stopped / model) == weights(straight / model)) << model;
}

TEST(Demo, FullDiskIsOneLine) {
  const TemporaryDirectory directory;
  const auto outcome = run(demo(directory.path(), ""), "ulimit -f 8;");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("fovea: cannot write"));
}

TEST(Demo, MistakesAreOneLine) {
  const TemporaryDirectory directory;
  ASSERT_EQ(run(demo(directory.path(), "--steps 2 --threads 1")).status, 0);
  const auto other = run(demo(directory.path(), "--steps 2 --seed 2"));
  EXPECT_EQ(other.status, 2);
  EXPECT_THAT(other.err, HasSubstr("contains a run with seed '1'; got '2'"));
  const auto nowhere = run("demo --out /proc/nowhere");
  EXPECT_EQ(nowhere.status, 2);
  EXPECT_THAT(nowhere.err, HasSubstr("/proc/nowhere"));
  EXPECT_EQ(run("demo --steps many").status, 2);
  const std::string out = (directory / "none").string();
  const auto zero = run("demo --steps 0 --out " + out);
  EXPECT_EQ(zero.status, 2);
  EXPECT_EQ(zero.out, "");
  EXPECT_EQ(zero.err, "fovea: steps: got 0, wanted 1 to 1000000\n");
  EXPECT_FALSE(std::filesystem::exists(out));
  EXPECT_EQ(run("demo --seed -1").status, 2);
}

}  // namespace
}  // namespace fovea
