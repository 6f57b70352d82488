#include "cli/signals.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <thread>

namespace fovea::cli {
namespace {

using std::chrono::milliseconds;

// A forked process that runs `work` and can tell its parent that it came so far.
class Child {
 public:
  explicit Child(const std::function<void(Child&)>& work) {
    if (pipe(pipe_) != 0) std::abort();
    pid_ = fork();
    if (pid_ != 0) return;
    alarm(60);
    work(*this);
    _exit(0);
  }
  ~Child() {
    if (status() < 0) ::kill(pid_, SIGKILL);
    close(pipe_[0]);
    close(pipe_[1]);
  }

  void tell() {
    if (write(pipe_[1], "x", 1) != 1) _exit(9);
  }
  void listen() {
    char predictions = 0;
    ASSERT_EQ(read(pipe_[0], &predictions, 1), 1);
  }
  void kill(int signal) { ::kill(pid_, signal); }
  bool lives() { return status() < 0; }
  // The end, as waitpid() tells it.
  int end() {
    while (status() < 0) std::this_thread::sleep_for(milliseconds(1));
    return status_;
  }

 private:
  int status() {
    int status = 0;
    if (status_ < 0 && waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
    return status_;
  }

  int pipe_[2];
  pid_t pid_ = -1;
  int status_ = -1;
};

void wait_for_signal() {
  while (StopSignals::received() == 0) std::this_thread::sleep_for(milliseconds(1));
}

TEST(StopSignals, RememberWhichSignalCame) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    Child child([](Child& self) {
      const StopSignals signals;
      self.tell();
      wait_for_signal();
      _exit(interrupted_status(StopSignals::received()));
    });
    child.listen();
    child.kill(signal);
    const int status = child.end();
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 128 + signal);
  }
}

TEST(StopSignals, ASecondSignalEndsTheProcessButNotWithinHalfASecond) {
  for (const int signal : {SIGINT, SIGHUP}) {
    Child child([](Child& self) {
      const StopSignals signals;
      self.tell();
      wait_for_signal();
      self.tell();
      for (;;) pause();  // work that does not look
    });
    child.listen();
    child.kill(signal);
    child.listen();
    child.kill(signal);
    std::this_thread::sleep_for(milliseconds(100));
    EXPECT_TRUE(child.lives()) << "the same request, sent twice";
    std::this_thread::sleep_for(milliseconds(600));
    child.kill(signal);
    const int status = child.end();
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(WTERMSIG(status), signal);
  }
}

TEST(StopSignals, WhatWasIgnoredStaysIgnored) {
  Child child([](Child& self) {
    std::signal(SIGHUP, SIG_IGN);  // as nohup does
    const StopSignals signals;
    self.tell();
    wait_for_signal();
    _exit(interrupted_status(StopSignals::received()));
  });
  child.listen();
  child.kill(SIGHUP);
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_TRUE(child.lives());
  child.kill(SIGTERM);
  EXPECT_EQ(WEXITSTATUS(child.end()), 143);
}

TEST(StopSignals, AfterwardsASignalEndsTheProcessAsUsual) {
  Child child([](Child& self) {
    for (int round = 0; round < 3; ++round) const StopSignals signals;
    self.tell();
    for (;;) pause();
  });
  child.listen();
  child.kill(SIGINT);
  const int status = child.end();
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGINT);
}

// What keeps the frame of a handler from this thread's stack.
TEST(StopSignals, AreNeverDeliveredToTheThreadThatWorks) {
  const StopSignals signals;
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    EXPECT_TRUE(sigismember(&mask, signal));
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    EXPECT_EQ(action.sa_handler, SIG_DFL);
  }
}

}  // namespace
}  // namespace fovea::cli
