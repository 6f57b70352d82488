#include "kernels/vector/optim.h"

#include <cmath>
#include <functional>
#include <limits>

#include "base/parallel.h"
#include "kernels/kernel_check.h"

namespace fovea::kernels {
namespace {

using testing::Guarded;

struct Case {
  std::string name;
  std::function<void(std::span<const OptimTensor>, const StepOptions&, const OptimKernels&)> step;
};

template <class Rule>
Case make_case(std::string name, Rule rule) {
  return {std::move(name),
          [rule](std::span<const OptimTensor> tensors, const StepOptions& options,
                 const OptimKernels& kernels) { optim_step(rule, tensors, options, kernels); }};
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      make_case("sgd", SgdRule{}),
      make_case("momentum", SgdRule{.momentum = 0.9, .dampening = 0.3}),
      make_case("nesterov", SgdRule{.momentum = 0.9, .nesterov = true}),
      make_case("adam", AdamRule{}),
      make_case("adamw", AdamRule{.decoupled = true}),
      make_case("adadelta", AdaDeltaRule{}),
      make_case("adagrad", AdagradRule{.learning_rate_decay = 0.1}),
      make_case("rmsprop", RmspropRule{}),
      make_case("rmsprop momentum", RmspropRule{.momentum = 0.9}),
      make_case("rmsprop centered", RmspropRule{.centered = true}),
      make_case("rmsprop both", RmspropRule{.momentum = 0.9, .centered = true}),
  };
  return all;
}

// One parameter with its states.
struct Parameter {
  explicit Parameter(int64_t count, uint64_t seed) : weight(Guarded::random(count, seed)) {
    for (int s = 0; s < 3; ++s) state.emplace_back(count);
  }
  OptimTensor tensor(const float* gradient, int64_t step) {
    return {.weight = weight.data(),
            .gradient = gradient,
            .count = weight.size(),
            .state = {state[0].data(), state[1].data(), state[2].data()},
            .learning_rate = 0.01,
            .weight_decay = 0.1,
            .step = step};
  }
  Guarded weight;
  std::vector<Guarded> state;
};

TEST(OptimStep, EveryLevelEqualsTheReference) {
  for (const Level level : testing::vector_levels())
    for (const Case& c : cases())
      for (const int64_t count : testing::odd_sizes()) {
        Parameter got(count, 1), wanted(count, 1);
        for (int64_t step = 1; step <= 3; ++step) {
          const Guarded gradient = Guarded::random(count, 10 + step);
          const OptimTensor tensors[2] = {got.tensor(gradient.data(), step),
                                          wanted.tensor(gradient.data(), step)};
          c.step({tensors, 1}, {.gradient_scale = 0.5f}, optim_kernels(level));
          c.step({tensors + 1, 1}, {.gradient_scale = 0.5f}, optim_kernels(Level::scalar));
        }
        const std::string what = c.name + " " + std::string(level_name(level)) + " " + std::to_string(count);
        testing::expect_close(got.weight, wanted.weight, 1e-5f, what);
        for (int s = 0; s < 3; ++s) testing::expect_close(got.state[s], wanted.state[s], 1e-5f, what);
      }
}

// Gradient rows 2, 3 and 6 of 9, as row-sparse and as the dense tensor they stand for.
struct SparseGradient {
  static constexpr int64_t kRows = 9, kRowSize = 37;
  std::vector<int32_t> ids{2, 3, 6};
  Guarded values = Guarded::random(3 * kRowSize, 5);
  Guarded dense() const {
    Guarded result(kRows * kRowSize);
    for (size_t r = 0; r < ids.size(); ++r)
      for (int64_t j = 0; j < kRowSize; ++j) result[ids[r] * kRowSize + j] = values[r * kRowSize + j];
    return result;
  }
  OptimTensor apply(OptimTensor t) const {
    t.gradient = values.data();
    t.row_ids = ids.data();
    t.row_count = static_cast<int64_t>(ids.size());
    t.row_size = kRowSize;
    return t;
  }
};

TEST(OptimStep, RowSparseGradientEqualsTheDenseOneBitForBit) {
  const SparseGradient gradient;
  const Guarded dense_gradient = gradient.dense(), other = Guarded::random(gradient.dense().size(), 8);
  for (const Level level : available_levels())
    for (const Case& c : cases()) {
      Parameter sparse(dense_gradient.size(), 1), dense(dense_gradient.size(), 1);
      for (Parameter* p : {&sparse, &dense}) {  // a dense step first, so that every state is in motion
        const OptimTensor t = p->tensor(other.data(), 1);
        c.step({&t, 1}, {}, optim_kernels(level));
      }
      const OptimTensor s = gradient.apply(sparse.tensor(nullptr, 2)),
                        t = dense.tensor(dense_gradient.data(), 2);
      c.step({&s, 1}, {}, optim_kernels(level));
      c.step({&t, 1}, {}, optim_kernels(level));
      const std::string what = c.name + " " + std::string(level_name(level));
      testing::expect_same_bits(sparse.weight, dense.weight, what);
      for (int i = 0; i < 3; ++i) testing::expect_same_bits(sparse.state[i], dense.state[i], what);
    }
}

TEST(OptimStep, LazyRowsLeavesAbsentRowsUntouched) {
  const SparseGradient gradient;
  const Parameter before(SparseGradient::kRows * SparseGradient::kRowSize, 1);
  Parameter after = before;
  const OptimTensor t = gradient.apply(after.tensor(nullptr, 1));
  optim_step(AdamRule{.decoupled = true}, {&t, 1}, {.lazy_rows = true});
  for (int64_t row = 0; row < SparseGradient::kRows; ++row) {
    const bool named = row == 2 || row == 3 || row == 6;
    EXPECT_EQ(after.weight[row * SparseGradient::kRowSize] != before.weight[row * SparseGradient::kRowSize],
              named);
  }
}

TEST(OptimStep, ManyTensorsInOneCallEqualOneByOne) {
  std::vector<Parameter> together, alone;
  std::vector<Guarded> gradients;
  std::vector<OptimTensor> list;
  for (const int64_t count : {int64_t{5}, int64_t{0}, int64_t{40000}, int64_t{16384}, int64_t{17}}) {
    together.emplace_back(count, 3), alone.emplace_back(count, 3);
    gradients.push_back(Guarded::random(count, 4));
  }
  for (size_t i = 0; i < together.size(); ++i) list.push_back(together[i].tensor(gradients[i].data(), 1));
  set_num_threads(3);
  optim_step(AdamRule{}, list);
  set_num_threads(1);
  for (size_t i = 0; i < alone.size(); ++i) {
    const OptimTensor t = alone[i].tensor(gradients[i].data(), 1);
    optim_step(AdamRule{}, {&t, 1});
    testing::expect_same_bits(together[i].weight, alone[i].weight, "tensor " + std::to_string(i));
  }
  set_num_threads(0);
}

TEST(EmaUpdate, MovesTheAverageTowardsTheWeights) {
  for (const Level level : available_levels())
    for (const int64_t count : testing::odd_sizes()) {
      const Guarded weight = Guarded::random(count, 1);
      Guarded average = Guarded::random(count, 2), wanted = average;
      for (int64_t i = 0; i < count; ++i) wanted[i] = 0.9f * wanted[i] + 0.1f * weight[i];
      const EmaTensor t{average.data(), weight.data(), count};
      ema_update({&t, 1}, 0.9, optim_kernels(level));
      testing::expect_close(average, wanted, 1e-6f, std::string(level_name(level)));
    }
}

TEST(SumsOfSquares, MatchesAndDoesNotDependOnThreads) {
  for (const Level level : available_levels())
    for (const int64_t count : {int64_t{0}, int64_t{1}, int64_t{37}, int64_t{1023}, int64_t{50001}}) {
      const Guarded values = Guarded::random(count, 3);
      double wanted = 0;
      for (int64_t i = 0; i < count; ++i) wanted += static_cast<double>(values[i]) * values[i];
      const ConstTensor t{values.data(), count};
      double one = -1, three = -1;
      set_num_threads(1);
      sums_of_squares({&t, 1}, &one, optim_kernels(level));
      set_num_threads(3);
      sums_of_squares({&t, 1}, &three, optim_kernels(level));
      set_num_threads(0);
      EXPECT_NEAR(one, wanted, 1e-12 * (1 + wanted));
      EXPECT_EQ(one, three);
    }
}

TEST(SumsOfSquares, IsFiniteForLargeGradientsAndNotForInf) {
  Guarded values(100, 1e30f);
  const ConstTensor t{values.data(), values.size()};
  double sum = 0;
  sums_of_squares({&t, 1}, &sum);
  EXPECT_NEAR(sum, 1e62, 1e56);
  values[99] = std::numeric_limits<float>::infinity();
  sums_of_squares({&t, 1}, &sum);
  EXPECT_FALSE(std::isfinite(sum));
}

}  // namespace
}  // namespace fovea::kernels
