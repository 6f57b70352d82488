#include "autograd/ops_recurrent.h"

#include <gtest/gtest.h>

#include "autograd/gradient_check.h"
#include "autograd/ops.h"

namespace fovea {
namespace {

using testing::random_tensor;

struct Case {
  RecurrentCell cell;
  int64_t input, hidden, directions;
  std::vector<int64_t> lengths;
  bool bias = true;
};

// All results side by side in one row, so that one weighting sees every gradient path.
Var joined(const RecurrentOutput& y) {
  std::vector<Var> parts{reshape(y.out, {1, -1}), reshape(y.h, {1, -1})};
  if (y.c.defined()) parts.push_back(reshape(y.c, {1, -1}));
  return concat(parts, 1);
}

void check(const Case& x) {
  const int64_t outputs = kernels::recurrent_gates(x.cell) * x.hidden;
  const int64_t sequences = static_cast<int64_t>(x.lengths.size());
  int64_t tokens = 0;
  for (const int64_t length : x.lengths) tokens += length;
  const bool lstm = x.cell == RecurrentCell::lstm;
  std::vector<Tensor> inputs{random_tensor({tokens, x.input}, 1),
                             random_tensor({x.directions, sequences, x.hidden}, 2)};
  if (lstm) inputs.push_back(random_tensor({x.directions, sequences, x.hidden}, 3));
  for (int64_t i = 0; i < x.directions; ++i) {
    inputs.push_back(random_tensor({outputs, x.input}, 10 + i));
    inputs.push_back(random_tensor({outputs, x.hidden}, 20 + i));
    if (!x.bias) continue;
    inputs.push_back(random_tensor({outputs}, 30 + i));
    inputs.push_back(random_tensor({outputs}, 40 + i));
  }
  // Half-size weights keep the gates away from where they are flat.
  for (size_t i = 2; i < inputs.size(); ++i)
    for (float& value : inputs[i].span()) value *= 0.5f;
  testing::check_gradients(
      [&](std::span<const Var> in) {
        size_t next = lstm ? 3 : 2;
        std::vector<RecurrentParameters> directions;
        for (int64_t i = 0; i < x.directions; ++i) {
          RecurrentParameters& p = directions.emplace_back();
          p.weight_ih = in[next++];
          p.weight_hh = in[next++];
          if (!x.bias) continue;
          p.bias_ih = in[next++];
          p.bias_hh = in[next++];
        }
        return joined(recurrent_layer(x.cell, in[0], x.lengths, directions, in[1], lstm ? in[2] : Var()));
      },
      inputs);
}

TEST(RecurrentGradients, EqualFiniteDifferences) {
  for (const RecurrentCell cell : {RecurrentCell::lstm, RecurrentCell::gru}) {
    check({cell, 1, 1, 1, {1}});
    check({cell, 3, 2, 1, {3, 1, 2}});
    check({cell, 2, 3, 2, {2, 0, 4}});
    check({cell, 2, 3, 1, {1, 1, 1}});
    check({cell, 2, 5, 1, {2}, false});
  }
}

TEST(RecurrentGradients, OfCellsEqualFiniteDifferences) {
  const std::vector<Tensor> states{random_tensor({3, 2}, 1), random_tensor({3, 4}, 2),
                                   random_tensor({3, 4}, 3)};
  for (const int64_t gates : {4, 3}) {
    std::vector<Tensor> inputs = states;
    inputs.push_back(random_tensor({gates * 4, 2}, 4));
    inputs.push_back(random_tensor({gates * 4, 4}, 5));
    testing::check_gradients(
        [&](std::span<const Var> in) {
          const RecurrentParameters p{.weight_ih = in[3], .weight_hh = in[4]};
          if (gates == 3) return gru_cell(in[0], in[1], p);
          const LstmState y = lstm_cell(in[0], {in[1], in[2]}, p);
          const std::vector<Var> both{y.h, y.c};
          return concat(both, 1);
        },
        inputs);
  }
}

TEST(Recurrent, OnlyTheLastStateMayBeUsed) {
  const RecurrentParameters p{.weight_ih = Var(random_tensor({9, 2}, 1), true),
                              .weight_hh = Var(random_tensor({9, 3}, 2), true)};
  const std::vector<int64_t> lengths{2, 3};
  const RecurrentOutput y =
      recurrent_layer(RecurrentCell::gru, Var(random_tensor({5, 2}, 3)), lengths, {&p, 1});
  y.h.backward(Tensor::full({1, 2, 3}, 1));
  EXPECT_TRUE(p.weight_hh.grad().defined());
}

TEST(Recurrent, ASequenceGivesTheSameBytesAloneAndInABatch) {
  const RecurrentParameters p{.weight_ih = Var(random_tensor({40, 6}, 1)),
                              .weight_hh = Var(random_tensor({40, 10}, 2))};
  const Tensor x = random_tensor({12, 6}, 3);
  const std::vector<int64_t> lengths{4, 2, 6}, alone{6};
  const Tensor batch = recurrent_layer(RecurrentCell::lstm, Var(x), lengths, {&p, 1}).out.value();
  const Tensor last =
      recurrent_layer(RecurrentCell::lstm, Var(x.narrow(0, 6, 6)), alone, {&p, 1}).out.value();
  EXPECT_EQ(batch.narrow(0, 6, 6).to_vector(), last.to_vector());
}

}  // namespace
}  // namespace fovea
