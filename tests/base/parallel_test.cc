#include "base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <vector>

#include "base/error.h"

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

TEST(SetNumThreads, RefusesNegativeCounts) {
  EXPECT_THROW(set_num_threads(-1), Error);
}

}  // namespace
}  // namespace fovea
