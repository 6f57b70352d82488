#include "infer/class_scores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace fovea::infer {
namespace {

TEST(ClassScores, AreWhatTheConfusionSays) {
  const std::vector<int32_t> wanted{0, 0, 0, 1, 1, 2, 2, 2, 2, 0};
  const std::vector<int32_t> told{0, 1, 0, 1, 2, 2, 2, 0, 2, 0};
  const ClassScores scores = score_classes(told, wanted, 4);
  EXPECT_DOUBLE_EQ(scores.accuracy, 0.7);
  EXPECT_THAT(scores.confusion, testing::ElementsAre(3, 1, 0, 0, 0, 1, 1, 0, 1, 0, 3, 0, 0, 0, 0, 0));
  EXPECT_EQ(scores.classes[1].count, 2);
  EXPECT_DOUBLE_EQ(scores.classes[0].precision, 3.0 / 4);
  EXPECT_DOUBLE_EQ(scores.classes[0].recall, 3.0 / 4);
  EXPECT_DOUBLE_EQ(scores.classes[1].f1, 0.5);
  EXPECT_DOUBLE_EQ(scores.classes[2].precision, 3.0 / 4);
  EXPECT_DOUBLE_EQ(scores.classes[3].f1, 0) << "a class that never occurs";
  EXPECT_DOUBLE_EQ(scores.macro_f1, (0.75 + 0.5 + 0.75 + 0) / 4);
}

TEST(ClassScores, RefuseUnequalNumbers) {
  EXPECT_THROW(score_classes(std::vector<int32_t>{0}, std::vector<int32_t>{0, 1}, 2), Error);
  EXPECT_THROW(score_classes({}, {}, 2), Error);
}

}  // namespace
}  // namespace fovea::infer
