#include "nn/runs.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace fovea::nn {
namespace {

TEST(Runs, AScoreThatIsNotKnownIsRefusedInsteadOfTakenForDot) {
  const Var vector(Tensor::zeros({4}));
  EXPECT_EQ(run_score(dot(), 4, vector).scale, 1);
  EXPECT_EQ(run_score(bilinear(), 4, vector).scale, 1);
  EXPECT_EQ(run_score(scaled_dot(), 4, vector).scale, 0.5f);
  EXPECT_TRUE(run_score(cosine(0.1f), 4, vector).unit_query);
  EXPECT_TRUE(run_score(additive(), 4, vector).vector.defined());
  EXPECT_EQ(run_score(location(), 4, vector).scale, 1);
  EXPECT_TRUE(run_score(concat(), 4, vector).vector.defined());
  EXPECT_THROW(run_score({static_cast<ScoreKind>(99)}, 4, vector), Error);
}

}  // namespace
}  // namespace fovea::nn
