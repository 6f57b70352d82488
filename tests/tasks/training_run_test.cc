// What trainings share: defaults that follow from the data, and what is said of a run that ended too soon.
#include "tasks/training_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tasks/learning_curve.h"
#include "tasks/text_size.h"

namespace fovea::tasks {
namespace {

TEST(TextSize, TellsReadyTokenizedTextFromOrdinaryTextAndFromTextWithoutSpaces) {
  const std::vector<std::string> tokenized(10, "what is the film , if not dull ?"),
      ordinary(10, "What is the film, if not dull? It is fine."),
      chinese(10, "他们正在公园里打篮球所以今天不在家");
  EXPECT_TRUE(text_size(tokenized).ready_tokenized);
  EXPECT_FALSE(text_size(ordinary).ready_tokenized);
  EXPECT_FALSE(text_size(chinese).ready_tokenized);
  EXPECT_EQ(text_size(tokenized).tokens, 100);
  EXPECT_EQ(text_size(tokenized, 4).tokens, 40) << "what is not read does not count";
  EXPECT_EQ(text_size(tokenized).repeated_words, 9);
  EXPECT_GT(text_size(chinese).tokens, 100);
}

TEST(TextSize, AVocabularyGrowsWithTheTextAndHoldsEveryCharacter) {
  EXPECT_EQ(vocabulary_for({.tokens = 10'000'000, .characters = 100}, 8000), 8000);
  EXPECT_LT(vocabulary_for({.tokens = 60'000, .characters = 100}, 8000), 5000);
  EXPECT_GE(vocabulary_for({.tokens = 1000, .characters = 3000}, 8000), 3256);
}

TEST(Defaults, APassHasAboutAHundredStepsBetweenTheBounds) {
  EXPECT_EQ(batch_for(60'000, 512, 4096), 600);
  EXPECT_EQ(batch_for(10, 512, 4096), 512);
  EXPECT_EQ(batch_for(10'000'000, 512, 4096), 4096);
}

TEST(Defaults, AWarmUpIsAShareOfTheRunOrANumberOfSteps) {
  EXPECT_EQ(schedule_of("budget", 0.1).warmup_share, 0.1);
  EXPECT_EQ(schedule_of("budget", 0.1).warmup, 0);
  EXPECT_EQ(schedule_of("inverse_sqrt", 2000).warmup, 2000);
}

TEST(LearningCurve, KnowsARunThatWasStillImproving) {
  const auto curve = [](std::vector<double> scores) {
    LearningCurve made;
    for (size_t i = 0; i < scores.size(); ++i)
      made.score.push_back({100.0 * static_cast<double>(i + 1), scores[i]});
    return made;
  };
  EXPECT_TRUE(still_improving(curve({0, 1, 2, 4, 6, 9})));
  EXPECT_FALSE(still_improving(curve({70, 80, 85, 88, 88.5, 88.6})));
  EXPECT_FALSE(still_improving(curve({1, 2, 9, 5, 6, 7}))) << "the best is long past";
  EXPECT_FALSE(still_improving(curve({1, 9}))) << "too few to tell";
}

}  // namespace
}  // namespace fovea::tasks
