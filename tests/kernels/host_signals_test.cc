// A host with a signal handler of its own: products are right and the handler runs on its thread's stack,
// however often and at whatever moment signals come.
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "base/parallel.h"
#include "base/rng.h"
#include "kernels/gemm.h"

namespace fovea::kernels {
namespace {

thread_local const char* t_stack_begin = nullptr;
thread_local const char* t_stack_end = nullptr;
std::atomic<int> g_handled{0}, g_elsewhere{0};

// No alternate stack: the frame lies wherever the stack register points.
void handle(int) {
  const char here = 0;
  ++g_handled;
  if (&here < t_stack_begin || &here >= t_stack_end) ++g_elsewhere;
}

void note_stack() {
  pthread_attr_t attributes;
  void* begin = nullptr;
  size_t size = 0;
  ASSERT_EQ(pthread_getattr_np(pthread_self(), &attributes), 0);
  pthread_attr_getstack(&attributes, &begin, &size);
  pthread_attr_destroy(&attributes);
  t_stack_begin = static_cast<const char*>(begin);
  t_stack_end = t_stack_begin + size;
}

struct Product {
  int64_t m, n, k;
  bool transpose_a, transpose_b;
};

std::vector<float> compute(const Product& x, const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> c(static_cast<size_t>(x.m * x.n));
  gemm({.transpose_a = x.transpose_a,
        .transpose_b = x.transpose_b,
        .m = x.m,
        .n = x.n,
        .k = x.k,
        .a = a.data(),
        .lda = x.transpose_a ? x.m : x.k,
        .b = b.data(),
        .ldb = x.transpose_b ? x.k : x.n,
        .c = c.data(),
        .ldc = x.n});
  return c;
}

std::vector<float> random_floats(int64_t count, uint64_t seed) {
  Rng rng(seed);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = rng.normal();
  return values;
}

constexpr int kSignals = 2000;

// Products over and over until enough signals have come.
void work(std::atomic<int>& wrong) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  do {
    for (const Product& x : {Product{64, 300, 256, false, true},
                             {300, 128, 200, false, false},
                             {96, 96, 500, true, false},
                             {1, 512, 256, false, true}}) {
      const auto a = random_floats(x.m * x.k, 1), b = random_floats(x.n * x.k, 2);
      const auto first = compute(x, a, b);
      for (int round = 0; round < 50; ++round)
        wrong += std::memcmp(compute(x, a, b).data(), first.data(), first.size() * sizeof(float)) != 0;
    }
  } while (g_handled < kSignals && std::chrono::steady_clock::now() < end);
}

TEST(HostSignals, NeverMeetAProductOnAnotherStack) {
  struct sigaction action {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;
  struct sigaction before {};
  sigaction(SIGUSR1, &action, &before);
  set_num_threads(2);
  std::atomic<int> wrong{0}, begun{0}, ended{0};
  std::vector<std::thread> hosts;
  for (int i = 0; i < 2; ++i)
    hosts.emplace_back([&] {
      note_stack();
      ++begun;
      work(wrong);
      ++ended;
    });
  while (begun < 2) std::this_thread::yield();
  while (ended < 2) {
    for (std::thread& host : hosts) pthread_kill(host.native_handle(), SIGUSR1);
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  for (std::thread& host : hosts) host.join();
  set_num_threads(0);
  sigaction(SIGUSR1, &before, nullptr);
  EXPECT_GE(g_handled, kSignals);
  EXPECT_EQ(g_elsewhere, 0) << "handlers ran on something that is not the thread's stack";
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace fovea::kernels
