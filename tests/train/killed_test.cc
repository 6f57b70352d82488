// Runs that die: killed at random moments, a run resumes every time and ends with the bytes of an undisturbed
// one.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <random>
#include <thread>

#include "base/parallel.h"
#include "io/temporary_directory.h"
#include "train/toy_run.h"

namespace fovea::train {
namespace {

constexpr int kKills = 20;
constexpr int64_t kSteps = 1000;

ToyRun child_run() {
  return ToyRun(
      {.steps = kSteps, .clip_norm = 1, .average = 3, .log_every = 1, .validate_every = 20, .save_every = 3});
}

// This program again, as a process that only trains.
pid_t start_child(const std::filesystem::path& directory, int threads) {
  const std::string count = std::to_string(threads);
  const pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", "killed_test", "--train", directory.c_str(), count.c_str(), nullptr);
    _exit(127);
  }
  return child;
}

int exit_status(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

// The last step that the run's log tells of.
int64_t steps_logged(const std::filesystem::path& directory) {
  std::ifstream log(directory / "train.jsonl");
  int64_t last = 0;
  for (std::string line; std::getline(log, line);) {
    const Json json = Json::parse(line, nullptr, false);
    if (json.is_object()) last = json.value("step", last);
  }
  return last;
}

TEST(KilledRun, ResumesEveryTimeAndEndsWithTheSameBytes) {
  const TemporaryDirectory undisturbed, disturbed;
  ASSERT_EQ(exit_status(start_child(undisturbed.path(), 2)), 0);

  std::mt19937 random(5);
  std::uniform_int_distribution<int64_t> microseconds(0, 20'000);
  for (int killed = 0; killed < kKills; ++killed) {
    const pid_t child = start_child(disturbed.path(), 1 + killed % 3);
    // Most die somewhere in the loop, further each time; some while they start and read the checkpoint.
    while (killed % 4 != 0 && steps_logged(disturbed.path()) < kSteps * killed / (kKills + 1)) {
      int status;
      ASSERT_EQ(waitpid(child, &status, WNOHANG), 0)
          << "the run ended by itself after " << killed << " kills";
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds(random)));
    kill(child, SIGKILL);
    ASSERT_TRUE(WIFSIGNALED(exit_status(child))) << "the run ended by itself after " << killed << " kills";
  }
  ASSERT_EQ(exit_status(start_child(disturbed.path(), 2)), 0);
  EXPECT_EQ(last_bytes(disturbed.path()), last_bytes(undisturbed.path()));
  EXPECT_EQ(steps_logged(disturbed.path()), kSteps);
  EXPECT_EQ(entry_count(disturbed / "checkpoints"), entry_count(undisturbed / "checkpoints"));
}

TEST(TwoProcesses, GiveTheSameBytes) {
  const TemporaryDirectory one, two, three;
  ASSERT_EQ(exit_status(start_child(one.path(), 1)), 0);
  ASSERT_EQ(exit_status(start_child(two.path(), 2)), 0);
  ASSERT_EQ(exit_status(start_child(three.path(), 3)), 0);
  EXPECT_EQ(last_bytes(one.path()), last_bytes(two.path()));
  EXPECT_EQ(last_bytes(one.path()), last_bytes(three.path()));
}

}  // namespace
}  // namespace fovea::train

int main(int argc, char** argv) {
  if (argc == 4 && std::string(argv[1]) == "--train") {
    fovea::set_num_threads(std::atoi(argv[3]));
    fovea::train::ToyRun run = fovea::train::child_run();
    run.run(argv[2]);
    return 0;
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
