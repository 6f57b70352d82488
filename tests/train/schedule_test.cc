#include "train/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "io/safetensors.h"
#include "train/early_stopping.h"

namespace fovea::train {
namespace {

using ::testing::HasSubstr;

void expect_golden(const std::string& name, Schedule schedule) {
  const SafetensorsFile golden(FOVEA_GOLDEN "/schedules.safetensors");
  const std::vector<float> wanted = golden->read(name);
  const std::vector<float> metrics = golden->read("plateau.metrics");
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_NEAR(schedule.factor(static_cast<int64_t>(i) + 1), wanted[i], 1e-6) << name << " step " << i + 1;
    schedule.observe(metrics[i]);
  }
}

TEST(Schedule, EqualsPyTorch) {
  expect_golden("cosine", Schedule({.name = "cosine", .steps = 29, .minimum = 0.05}));
  expect_golden("step", Schedule({.name = "step", .factor = 0.3, .every = 7}));
  expect_golden("milestones", Schedule({.name = "step", .factor = 0.5, .milestones = {5, 6, 20}}));
  expect_golden("plateau", Schedule({.name = "plateau", .factor = 0.5, .patience = 2, .cooldown = 1}));
}

// PyTorch counts its shares from the first step to the last: of 30 steps, the peak is number 9.
TEST(Schedule, OneCycleEqualsPyTorch) {
  const SafetensorsFile golden(FOVEA_GOLDEN "/schedules.safetensors");
  const std::vector<float> wanted = golden->read("one_cycle");
  const Schedule schedule({.name = "one_cycle", .warmup_share = 8.0 / 29});
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR(schedule.factor(static_cast<int64_t>(i) + 1, static_cast<double>(i) / 29), wanted[i], 1e-6)
        << i;
  EXPECT_NEAR(Schedule({.name = "one_cycle"}).factor(1, 0), 1, 1e-12) << "no warm-up: only the fall";
  EXPECT_NEAR(Schedule({.name = "one_cycle", .warmup_share = 1}).factor(1, 1), 1, 1e-12) << "only the rise";
}

TEST(Schedule, NoamRisesToTheWarmUpAndFallsWithTheRoot) {
  const Schedule noam({.name = "noam", .warmup = 4000, .model_size = 512});
  const double peak = 1 / std::sqrt(512.0) / std::sqrt(4000.0);
  EXPECT_NEAR(noam.factor(4000), peak, 1e-12);
  EXPECT_NEAR(noam.factor(1), peak / 4000, 1e-12);
  EXPECT_NEAR(noam.factor(16000), peak / 2, 1e-12);
}

TEST(Schedule, InverseSqrtIsFairseqs) {
  const Schedule schedule({.name = "inverse_sqrt", .warmup = 100, .warmup_start = 0.1});
  EXPECT_NEAR(schedule.factor(50), 0.1 + 0.9 * 0.5, 1e-12);
  EXPECT_NEAR(schedule.factor(100), 1, 1e-12);
  EXPECT_NEAR(schedule.factor(400), 0.5, 1e-12);
  EXPECT_NEAR(Schedule({.name = "inverse_sqrt"}).factor(4), 0.5, 1e-12);
}

TEST(Schedule, CosineAfterAWarmUpReachesTheMinimumAndStaysThere) {
  const Schedule schedule({.name = "cosine", .warmup = 10, .steps = 110, .minimum = 0.1});
  EXPECT_NEAR(schedule.factor(5), 0.5, 1e-12);
  EXPECT_NEAR(schedule.factor(10), 1, 1e-12);
  EXPECT_NEAR(schedule.factor(61), 0.55, 1e-12);
  EXPECT_NEAR(schedule.factor(111), 0.1, 1e-12);
  EXPECT_NEAR(schedule.factor(1000), 0.1, 1e-12);
}

TEST(Schedule, ConstantMayWarmUp) {
  EXPECT_EQ(Schedule({}).factor(1), 1);
  EXPECT_EQ(Schedule({.warmup = 4}).factor(1), 0.25);
  EXPECT_EQ(Schedule({.warmup = 4}).factor(9), 1);
}

TEST(Schedule, PlateauStateContinues) {
  Schedule straight({.name = "plateau", .patience = 1}), resumed({.name = "plateau", .patience = 1});
  const std::vector<double> values = {3, 2, 2, 2, 2, 2, 1, 1, 1, 1};
  for (size_t i = 0; i < values.size(); ++i) {
    if (i == 4) resumed.load_state(parse_json(straight.state().dump(), "x"), "x");
    straight.observe(values[i]);
    if (i >= 4) resumed.observe(values[i]);
  }
  EXPECT_EQ(straight.state(), resumed.state());
  EXPECT_LT(straight.factor(1), 1);
}

std::string error_of(ScheduleOptions options) {
  try {
    Schedule schedule(std::move(options));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Schedule, NonsenseIsRefused) {
  EXPECT_THAT(error_of({.name = "cosin"}), HasSubstr("did you mean 'cosine'?"));
  EXPECT_THAT(error_of({.name = "cosine", .warmup = 5, .steps = 5}),
              HasSubstr("wanted more than the warmup of 5"));
  EXPECT_THAT(error_of({.name = "noam"}), HasSubstr("wanted both above 0"));
  EXPECT_THAT(error_of({.name = "step"}), HasSubstr("wanted every above 0, or milestones"));
  EXPECT_THAT(error_of({.warmup = -1}), HasSubstr("warmup is -1"));
}

TEST(EarlyStopping, StopsAfterPatienceValidationsWithoutProgress) {
  EarlyStopping stopping(2, 0.1, false);
  EXPECT_TRUE(stopping.observe(1.0, 10));
  EXPECT_FALSE(stopping.observe(0.95, 20));
  EXPECT_FALSE(stopping.should_stop());
  EXPECT_TRUE(stopping.observe(0.8, 30));
  EXPECT_FALSE(stopping.observe(0.75, 40));
  EXPECT_FALSE(stopping.observe(NAN, 50));
  EXPECT_TRUE(stopping.should_stop());
  EXPECT_EQ(stopping.state.best_step, 30);
}

TEST(EarlyStopping, OfEqualResultsTheLastIsKeptAndIsNoProgress) {
  EarlyStopping stopping(3, 0, true);
  EXPECT_TRUE(stopping.observe(0, 10));
  EXPECT_TRUE(stopping.observe(0, 20));
  EXPECT_TRUE(stopping.observe(0, 30));
  EXPECT_EQ(stopping.state.best_step, 30);
  EXPECT_FALSE(stopping.should_stop());
  EXPECT_TRUE(stopping.observe(0, 40));
  EXPECT_TRUE(stopping.should_stop()) << "three validations without progress";
  EXPECT_FALSE(stopping.observe(-1, 50));
  EXPECT_EQ(stopping.state.best_step, 40);
}

TEST(EarlyStopping, HigherMayBeBetterAndPatienceZeroNeverStops) {
  EarlyStopping stopping(0, 0, true);
  EXPECT_FALSE(stopping.observe(NAN, 1));
  EXPECT_TRUE(stopping.observe(0.5, 2));
  EXPECT_TRUE(stopping.observe(0.6, 3));
  for (int step = 4; step < 100; ++step) stopping.observe(0.1, step);
  EXPECT_FALSE(stopping.should_stop());
}

TEST(Schedule, ABudgetRisesOverItsFirstShareAndFallsToItsMinimum) {
  const Schedule share({.name = "budget", .warmup_share = 0.2, .minimum = 0.1});
  EXPECT_NEAR(share.factor(1, 0), 0, 1e-12);
  EXPECT_NEAR(share.factor(1, 0.1), 0.5 * (0.1 + 0.9 * (1 + std::cos(0.1 * M_PI)) / 2), 1e-12);
  EXPECT_NEAR(share.factor(1, 0.5), 0.55, 1e-12);
  EXPECT_NEAR(share.factor(1, 1), 0.1, 1e-12);
  const Schedule steps({.name = "budget", .warmup = 100});
  EXPECT_NEAR(steps.factor(50, 0), 0.5, 1e-12);
  EXPECT_NEAR(steps.factor(200, 0.5), 0.5, 1e-12);
  EXPECT_THROW(Schedule({.name = "budget", .warmup_share = 2}), Error);
}

}  // namespace
}  // namespace fovea::train
