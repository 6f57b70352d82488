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

TEST(Demo, LearnsToLookAndShowsIt) {
  const TemporaryDirectory directory;
  const auto first = run(demo(directory.path(), "--threads 2"));
  ASSERT_EQ(first.status, 0) << first.err;
  const size_t place = first.out.find("accuracy ");
  ASSERT_NE(place, std::string::npos);
  EXPECT_GT(std::stod(first.out.substr(place + 9)), 99) << first.out;
  EXPECT_THAT(first.out, HasSubstr("██"));
  EXPECT_THAT(first.err, HasSubstr("step 400/400  loss 0.0"));
  EXPECT_EQ(first.err.find('\r'), std::string::npos) << "plain lines where there is no terminal";
  for (const char* file : {"config.json", "model.safetensors", "train.jsonl", "attention.svg"})
    EXPECT_TRUE(std::filesystem::exists(directory / file)) << file;

  const auto again = run(demo(directory.path(), ""));
  EXPECT_EQ(again.status, 0);
  EXPECT_THAT(again.out, HasSubstr("already trained"));
  const auto more = run(demo(directory.path(), "--steps 420"));
  EXPECT_EQ(more.status, 0);
  EXPECT_THAT(more.err, HasSubstr("resuming after step 400"));
}

TEST(Demo, InterruptedItSavesAndGoesOnToTheSameBytes) {
  for (const auto& [signal, status] : {std::pair{"INT", 130}, std::pair{"TERM", 143}}) {
    const TemporaryDirectory stopped, straight;
    const auto cut = run(demo(stopped.path(), "--steps 1000000000"),
                         std::string("timeout --preserve-status -s ") + signal + " 0.4");
    EXPECT_EQ(cut.status, status);
    EXPECT_NE(cut.err.find("stopped after step"), std::string::npos);
    const std::string steps = "--steps " + std::to_string(step_of(stopped.path()) + 10);
    EXPECT_EQ(run(demo(stopped.path(), steps + " --threads 1")).status, 0);
    EXPECT_EQ(run(demo(straight.path(), steps + " --threads 3")).status, 0);
    EXPECT_TRUE(weights(stopped.path()) == weights(straight.path()));
  }
}

TEST(Demo, FullDiskIsOneLine) {
  const TemporaryDirectory directory;
  const auto outcome = run(demo(directory.path(), ""), "ulimit -f 8;");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("fovea: cannot write"));
}

TEST(Demo, MistakesAreOneLine) {
  const TemporaryDirectory directory;
  ASSERT_EQ(run(demo(directory.path(), "--steps 2")).status, 0);
  const auto other = run(demo(directory.path(), "--steps 2 --seed 2"));
  EXPECT_EQ(other.status, 2);
  EXPECT_THAT(other.err, HasSubstr("holds another run: its seed is '1', wanted '2'"));
  const auto nowhere = run("demo --out /proc/nowhere");
  EXPECT_EQ(nowhere.status, 2);
  EXPECT_THAT(nowhere.err, HasSubstr("cannot make the directory /proc/nowhere"));
  EXPECT_EQ(run("demo --steps many").status, 2);
}

}  // namespace
}  // namespace fovea
