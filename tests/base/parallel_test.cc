#include "base/parallel.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/host_threads.h"
#include "base/thread_limit.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define FOVEA_SANITIZED
#elif defined(__has_feature)  // clang
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FOVEA_SANITIZED
#endif
#endif

namespace fovea {
namespace {

TEST(ParallelFor, VisitsEveryIndexOnceForAnyThreadCount) {
  for (const int threads : {1, 2, 3, 7}) {
    set_num_threads(threads);
    std::vector<std::atomic<int>> seen(1001);
    parallel_for(1001, 10, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++seen[i];
    });
    for (const auto& count : seen) EXPECT_EQ(count, 1);
  }
  set_num_threads(0);
}

TEST(ParallelFor, CutsByGrainNotByThreads) {
  for (const int threads : {1, 3}) {
    set_num_threads(threads);
    std::vector<int64_t> ends(4);
    parallel_for(10, 3, [&](int64_t begin, int64_t end) { ends[begin / 3] = end; });
    EXPECT_EQ(ends, (std::vector<int64_t>{3, 6, 9, 10}));
  }
  set_num_threads(0);
}

TEST(ParallelFor, NestedCallsRunSeriallyAndFinish) {
  set_num_threads(2);
  std::atomic<int> total{0};
  parallel_for(4, 1, [&](int64_t, int64_t) { parallel_for(5, 1, [&](int64_t, int64_t) { ++total; }); });
  EXPECT_EQ(total, 20);
  set_num_threads(0);
}

TEST(ParallelFor, ExceptionReachesTheCaller) {
  set_num_threads(2);
  EXPECT_THROW(parallel_for(8, 1, [](int64_t begin, int64_t) { require(begin != 5, "five"); }), Error);
  set_num_threads(0);
}

TEST(ParallelFor, WorksAgainAfterAnException) {
  set_num_threads(3);
  for (int round = 0; round < 100; ++round) {
    EXPECT_THROW(parallel_for(8, 1, [](int64_t begin, int64_t) { require(begin != 2, "two"); }), Error);
    std::atomic<int> total{0};
    parallel_for(8, 1, [&](int64_t, int64_t) { ++total; });
    ASSERT_EQ(total, 8);
  }
  set_num_threads(0);
}

// Many short jobs, with pauses in which workers fall asleep: no chunk is lost or done twice, no call hangs.
TEST(ParallelFor, RunsManyShortJobsInARow) {
  for (const int threads : {2, 5}) {
    set_num_threads(threads);
    for (int round = 0; round < 20'000; ++round) {
      if (round % 500 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      std::atomic<int64_t> sum{0};
      const int64_t chunks = 2 + round % 7;
      parallel_chunks(chunks, [&](int64_t chunk) { sum += chunk + 1; });
      ASSERT_EQ(sum, chunks * (chunks + 1) / 2);
    }
  }
  set_num_threads(0);
}

TEST(ParallelFor, NumbersThreadsFromZeroAndNeverTwoAlike) {
  set_num_threads(4);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::atomic<int>> inside(4);
    parallel_chunks(16, [&](int64_t) {
      const int index = thread_index();
      ASSERT_GE(index, 0);
      ASSERT_LT(index, 4);
      ASSERT_EQ(inside[index]++, 0);
      for (int i = 0; i < 1000; ++i) ASSERT_EQ(inside[index].load(), 1);
      --inside[index];
    });
  }
  EXPECT_EQ(thread_index(), 0);
  set_num_threads(0);
}

// A chunk that waits for another to begin ends only if a second thread takes part.
TEST(ParallelFor, RunsChunksAtTheSameTime) {
  set_num_threads(2);
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(round % 2));  // the worker sleeps, or spins
    std::atomic<int> begun{0};
    parallel_chunks(2, [&](int64_t) {
      ++begun;
      while (begun < 2) std::this_thread::yield();
    });
  }
  set_num_threads(0);
}

TEST(ParallelFor, ServesSeveralThreadsOfTheHost) {
  set_num_threads(3);
  std::vector<std::thread> hosts;
  std::atomic<int64_t> total{0};
  for (int i = 0; i < 4; ++i)
    hosts.emplace_back([&] {
      for (int round = 0; round < 500; ++round)
        parallel_for(100, 7, [&](int64_t begin, int64_t end) { total += end - begin; });
    });
  for (std::thread& host : hosts) host.join();
  EXPECT_EQ(total, 4 * 500 * 100);
  set_num_threads(0);
}

TEST(ParallelFor, RunsWithManyMoreThreadsThanCores) {
  set_num_threads(64);
  std::atomic<int64_t> total{0};
  for (int round = 0; round < 50; ++round)
    parallel_for(1000, 3, [&](int64_t begin, int64_t end) { total += end - begin; });
  EXPECT_EQ(total, 50 * 1000);
  set_num_threads(0);
}

TEST(Workers, ReceiveNoSignalsFromOutside) {
  set_num_threads(2);
  std::atomic<int> begun{0}, received{0};
  parallel_chunks(2, [&](int64_t) {
    ++begun;
    while (begun < 2) std::this_thread::yield();
    if (thread_index() == 0) return;
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGALRM, SIGUSR1, SIGCHLD, SIGPROF})
      received += !sigismember(&mask, signal);
    EXPECT_FALSE(sigismember(&mask, SIGSEGV));
  });
  EXPECT_EQ(received, 0);
  set_num_threads(0);
}

TEST(Workers, AreMadeAnewInAForkedChild) {
#ifdef FOVEA_SANITIZED
  // Seen with clang 14's address sanitizer: its allocator has no fork handlers, unlike the C library's.
  GTEST_SKIP() << "a sanitizer's locks may stay taken in a forked child, which then cannot start threads";
#endif
  set_num_threads(3);
  const auto work = [] {
    std::atomic<int> begun{0};
    parallel_chunks(3, [&](int64_t) {
      ++begun;
      while (begun < 3) std::this_thread::yield();
    });
    return begun.load();
  };
  ASSERT_EQ(work(), 3);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(work() == 3 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(work(), 3);
  set_num_threads(0);
}

TEST(SetNumThreads, RefusesNegativeCounts) {
  EXPECT_THROW(set_num_threads(-1), Error);
}

std::atomic<int> host_runs{0};

// A host whose team is made for each run; every thread comes, whether there is work or not.
void run_on_new_threads(int threads, FunctionRef<void(int)> part) {
  ++host_runs;
  std::vector<std::thread> team;
  for (int i = 1; i < threads; ++i) team.emplace_back([&part, i] { part(i); });
  part(0);
  for (std::thread& member : team) member.join();
}

TEST(HostThreads, DoTheWorkOfThisThreadWhileTheGuardLives) {
  host_runs = 0;
  const ThreadLimit limit(3);
  std::vector<std::atomic<int>> seen(100);
  const auto work = [&] {
    parallel_chunks(100, [&](int64_t chunk) {
      EXPECT_LT(thread_index(), 3);
      ++seen[chunk];
      parallel_chunks(3, [](int64_t) {});  // nested: serial
    });
  };
  {
    const HostThreads host(run_on_new_threads), unchanged(nullptr);
    work();
    EXPECT_EQ(host_runs, 1);
    parallel_chunks(2, [](int64_t) {});  // fewer chunks than threads
    EXPECT_EQ(host_runs, 2);
    parallel_chunks(1, [](int64_t) {});  // nothing to share
    EXPECT_EQ(host_runs, 2);
    std::thread([&] {  // another thread has its own
      const ThreadLimit same(3);
      work();
    })
        .join();
    EXPECT_EQ(host_runs, 2);
  }
  work();
  EXPECT_EQ(host_runs, 2);
  for (const auto& count : seen) EXPECT_EQ(count, 3);
}

TEST(HostThreads, ExceptionReachesTheCallerAndTheHostStaysUsable) {
  const ThreadLimit limit(3);
  const HostThreads host(run_on_new_threads);
  for (int round = 0; round < 20; ++round) {
    EXPECT_THROW(parallel_chunks(8, [](int64_t chunk) { require(chunk != 5, "five"); }), Error);
    std::atomic<int> total{0};
    parallel_chunks(8, [&](int64_t) { ++total; });
    ASSERT_EQ(total, 8);
  }
}

TEST(ThreadLimit, HoldsForTheCallsOfThisThreadAlone) {
  set_num_threads(3);
  {
    const ThreadLimit limit(2);
    EXPECT_EQ(num_threads(), 2);
    // Scratch memory of threads is counted by num_threads(), so inside the work it must say the same.
    parallel_chunks(64, [](int64_t) {
      EXPECT_EQ(num_threads(), 2);
      EXPECT_LT(thread_index(), 2);
    });
    int elsewhere = 0;
    std::thread([&] { elsewhere = num_threads(); }).join();
    EXPECT_EQ(elsewhere, 3);
    {
      const ThreadLimit more(5), unchanged(0);
      EXPECT_EQ(num_threads(), 5);
      parallel_chunks(64, [](int64_t) { EXPECT_LT(thread_index(), num_threads()); });
    }
    EXPECT_EQ(num_threads(), 2);
  }
  EXPECT_EQ(num_threads(), 3);
  EXPECT_THROW(ThreadLimit(-1), Error);
  set_num_threads(0);
}

}  // namespace
}  // namespace fovea
