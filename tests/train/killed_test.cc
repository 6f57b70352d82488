// Runs that die: killed at random moments, a run resumes every time and ends with the bytes of an undisturbed
// one.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <thread>

#include "base/parallel.h"
#include "io/temporary_directory.h"
#include "train/toy_run.h"

namespace fovea::train {
namespace {

constexpr int kKills = 20;

ToyRun child_run() {
  return ToyRun({.steps = 400, .clip_norm = 1, .log_every = 1, .validate_every = 20, .save_every = 5});
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

TEST(KilledRun, ResumesEveryTimeAndEndsWithTheSameBytes) {
  const TemporaryDirectory undisturbed, disturbed;
  const auto started = std::chrono::steady_clock::now();
  ASSERT_EQ(exit_status(start_child(undisturbed.path(), 2)), 0);
  const auto whole =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - started);

  // Moments spread so that twenty of them fall inside the run: each run gets about a fifteenth of it further.
  std::mt19937 random(5);
  std::uniform_int_distribution<int64_t> moment(0, whole.count() / 7);
  int killed = 0;
  while (killed < kKills) {
    const pid_t child = start_child(disturbed.path(), 1 + killed % 3);
    std::this_thread::sleep_for(std::chrono::microseconds(moment(random)));
    kill(child, SIGKILL);
    const int status = exit_status(child);
    ASSERT_TRUE(WIFSIGNALED(status) || status == 0)
        << "the run failed to resume after " << killed << " kills";
    if (!WIFSIGNALED(status)) break;
    ++killed;
  }
  EXPECT_GE(killed, kKills) << "the run ended before it was killed often enough";
  ASSERT_EQ(exit_status(start_child(disturbed.path(), 2)), 0);
  EXPECT_EQ(last_bytes(disturbed.path()), last_bytes(undisturbed.path()));
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
