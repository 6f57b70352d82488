#include "infer/class_scores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "infer/number_scores.h"

namespace fovea::infer {
namespace {

TEST(ClassScores, AreWhatTheConfusionSays) {
  const std::vector<int32_t> wanted{0, 0, 0, 1, 1, 2, 2, 2, 2, 0};
  const std::vector<int32_t> predictions{0, 1, 0, 1, 2, 2, 2, 0, 2, 0};
  const ClassScores scores = score_classes(predictions, wanted, 4);
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

// As scikit-learn's f1_score(average="micro" and "macro") of the same labels.
TEST(LabelSetScores, AreWhatTheDecisionsSay) {
  const std::vector<uint8_t> wanted{1, 0, 1, 0, 0, 0, 1, 1, 1, 0, 1, 0};
  const std::vector<uint8_t> predictions{1, 0, 0, 0, 1, 0, 1, 1, 1, 0, 1, 0};
  const LabelSetScores scores = score_label_sets(predictions, wanted, 3);
  EXPECT_DOUBLE_EQ(scores.micro_f1, 2.0 * 5 / (6 + 6));
  EXPECT_DOUBLE_EQ(scores.labels[0].f1, 1);
  EXPECT_DOUBLE_EQ(scores.labels[1].precision, 2.0 / 3);
  EXPECT_DOUBLE_EQ(scores.labels[2].recall, 0.5);
  EXPECT_DOUBLE_EQ(scores.macro_f1, (1 + 2 * 2.0 / 5 + 2 * 1.0 / 3) / 3);
  EXPECT_DOUBLE_EQ(scores.exact, 0.5);
  EXPECT_THROW(score_label_sets(predictions, wanted, 5), Error);
}

// Against scipy.stats.pearsonr and spearmanr.
TEST(NumberScores, EqualScipysCorrelations) {
  const std::vector<float> predictions{1.5f, 2.0f, 2.0f, 7.25f, -1.0f, 3.0f}, wanted{1, 3, 2, 5, 0, 5};
  const NumberScores scores = score_numbers(predictions, wanted);
  EXPECT_NEAR(scores.pearson, 0.8385706280359554, 1e-12);
  EXPECT_NEAR(scores.spearman, 0.9705882352941178, 1e-12);
  EXPECT_NEAR(scores.squared_error, (0.25 + 1 + 0 + 5.0625 + 1 + 4) / 6, 1e-12);
  EXPECT_NEAR(scores.absolute_error, (0.5 + 1 + 0 + 2.25 + 1 + 2) / 6, 1e-12);
  const std::vector<float> constant(6, 2.0f);
  EXPECT_EQ(score_numbers(constant, wanted).pearson, 0);
  EXPECT_EQ(score_numbers(constant, wanted).spearman, 0);
  EXPECT_THROW(score_numbers({}, {}), Error);
}

}  // namespace
}  // namespace fovea::infer
