#include "autograd/ops_attentive.h"

#include "autograd/gradient_check.h"
#include "autograd/ops.h"
#include "base/parallel.h"

namespace fovea {
namespace {

using testing::check_gradients;
using testing::random_tensor;

const std::vector<int64_t> kQueries{3, 0, 5, 2}, kKeys{4, 2, 3, 1};

KeyRuns some_runs(bool windows) {
  KeyRuns runs = KeyRuns::sentences(kQueries, kKeys);
  if (windows) {
    runs.first[1] += 1;
    runs.count[1] = 2;
    runs.count[4] = 0;
    runs.count[6] = 1;
    runs.measure();
  }
  return runs;
}

TEST(AttendRuns, GradientsMatchFiniteDifferences) {
  for (const bool windows : {false, true}) {
    const KeyRuns runs = some_runs(windows);
    for (const auto family : {kernels::ScoreFamily::dot, kernels::ScoreFamily::additive}) {
      for (const bool unit : {false, true}) {
        const bool additive = family == kernels::ScoreFamily::additive;
        if (additive && unit) continue;
        const auto f = [&](std::span<const Var> in) {
          return attend_runs(in[0], in[1], in[2], runs,
                             {.family = family,
                              .scale = 0.7f,
                              .unit_query = unit,
                              .vector = additive ? in[4] : Var()},
                             {.centre = windows ? in[3] : Var(), .sigma = 1.5f})
              .out;
        };
        check_gradients(f, {random_tensor({10, 5}, 1), random_tensor({10, 5}, 2), random_tensor({10, 3}, 3),
                            random_tensor({10}, 4), random_tensor({5}, 5)});
      }
    }
  }
}

TEST(AttendRuns, WeightsOfARunSumToOneAndAreZeroBeyond) {
  const SeenRuns seen = attend_runs(Var(random_tensor({10, 5}, 1)), Var(random_tensor({10, 5}, 2)),
                                    Var(random_tensor({10, 3}, 3)), some_runs(false), {}, {}, true);
  ASSERT_EQ(seen.weights.shape(), (Shape{10, 4}));
  for (int64_t i = 0; i < 10; ++i) {
    const int64_t count = i < 3 ? 4 : i < 8 ? 3 : 1;
    double sum = 0;
    for (int64_t j = 0; j < 4; ++j) {
      sum += seen.weights.data()[i * 4 + j];
      if (j >= count) {
        EXPECT_EQ(seen.weights.data()[i * 4 + j], 0);
      }
    }
    EXPECT_NEAR(sum, 1, 1e-6);
  }
}

// One step after the other, from the ops it is made of.
AttentiveStates by_steps(const AttentiveGru& p, const KeyRuns& runs) {
  const int64_t hidden = p.weight.size(1);
  std::vector<Var> states, contexts;
  const auto rows = [](const Var& x, int64_t begin, int64_t end) { return slice(x, 0, begin, end - begin); };
  for (size_t s = 0; s + 1 < runs.query_begin.size(); ++s) {
    Var state = rows(p.state, static_cast<int64_t>(s), static_cast<int64_t>(s) + 1);
    const Var keys = rows(p.keys, runs.key_begin[s], runs.key_begin[s + 1]);
    const Var values = rows(p.values, runs.key_begin[s], runs.key_begin[s + 1]);
    const KeyRuns one = KeyRuns::sentences(std::vector<int64_t>{1},
                                           std::vector<int64_t>{runs.key_begin[s + 1] - runs.key_begin[s]});
    for (int64_t t = runs.query_begin[s]; t < runs.query_begin[s + 1]; ++t) {
      const Var query = p.query_weight.defined() ? linear(state, p.query_weight, p.query_bias) : state;
      const Var seen = attend_runs(query, keys, values, one, p.score).out;
      const Var input = rows(p.products, t, t + 1) + slice(seen, 1, 0, 3 * hidden);
      const Var product = linear(state, p.weight, p.bias);
      const auto gate = [&](const Var& x, int64_t g) { return slice(x, 1, g * hidden, hidden); };
      const Var r = sigmoid(gate(input, 0) + gate(product, 0)),
                z = sigmoid(gate(input, 1) + gate(product, 1));
      const Var n = tanh(gate(input, 2) + r * gate(product, 2));
      state = (1.0f - z) * n + z * state;
      states.push_back(state);
      contexts.push_back(slice(seen, 1, 3 * hidden, seen.size(1) - 3 * hidden));
    }
  }
  return {concat(states, 0), concat(contexts, 0), {}};
}

struct Problem {
  std::vector<Tensor> inputs;
  bool additive, unit;

  explicit Problem(bool is_additive, bool is_unit, int64_t h = 6, int64_t d = 5)
      : additive(is_additive), unit(is_unit) {
    if (!additive) d = h;
    inputs = {random_tensor({10, 3 * h}, 1),     random_tensor({4, h}, 2),     random_tensor({10, d}, 3),
              random_tensor({10, 3 * h + 4}, 4), random_tensor({3 * h, h}, 5), random_tensor({3 * h}, 6),
              random_tensor({d, h}, 7),          random_tensor({d}, 8),        random_tensor({d}, 9)};
  }
  AttentiveGru decoder(std::span<const Var> in) const {
    AttentiveGru p{
        .products = in[0], .state = in[1], .keys = in[2], .values = in[3], .weight = in[4], .bias = in[5]};
    if (additive) {
      p.query_weight = in[6];
      p.query_bias = in[7];
      p.score = {.family = kernels::ScoreFamily::additive, .vector = in[8]};
    } else {
      p.score = {.scale = 0.4f, .unit_query = unit};
    }
    return p;
  }
};

TEST(AttentiveGru, EqualsItsStepsForwardAndBackward) {
  const KeyRuns runs = KeyRuns::sentences(kQueries, kKeys);
  for (const auto& [additive, unit] : {std::pair{true, false}, {false, false}, {false, true}}) {
    const Problem problem(additive, unit, 37, 19);
    std::vector<std::vector<Tensor>> gradients;
    std::vector<Tensor> values;
    for (const bool fused : {true, false}) {
      std::vector<Var> leaves;
      for (const Tensor& t : problem.inputs) leaves.emplace_back(t, true);
      const AttentiveGru decoder = problem.decoder(leaves);
      const AttentiveStates y = fused ? attentive_gru(decoder, runs) : by_steps(decoder, runs);
      const Var joint = concat(std::vector<Var>{y.states, y.context}, 1);
      joint.backward(random_tensor(joint.shape(), 77));
      values.push_back(joint.value());
      gradients.emplace_back();
      for (const Var& leaf : leaves) gradients.back().push_back(leaf.grad());
    }
    for (int64_t i = 0; i < values[0].count(); ++i)
      ASSERT_NEAR(values[0].data()[i], values[1].data()[i], 1e-5);
    for (size_t k = 0; k < gradients[0].size(); ++k) {
      ASSERT_EQ(gradients[0][k].defined(), gradients[1][k].defined()) << "input " << k;
      for (int64_t i = 0; gradients[0][k].defined() && i < gradients[0][k].count(); ++i)
        ASSERT_NEAR(gradients[0][k].data()[i], gradients[1][k].data()[i],
                    1e-4 * (1 + std::fabs(gradients[1][k].data()[i])))
            << "input " << k << " element " << i;
    }
  }
}

TEST(AttentiveGru, GradientsMatchFiniteDifferences) {
  const KeyRuns runs = KeyRuns::sentences(kQueries, kKeys);
  for (const auto& [additive, unit] : {std::pair{true, false}, {false, true}}) {
    const Problem problem(additive, unit);
    check_gradients(
        [&](std::span<const Var> in) {
          const AttentiveStates y = attentive_gru(problem.decoder(in), runs);
          return concat(std::vector<Var>{y.states, y.context}, 1);
        },
        problem.inputs);
  }
}

TEST(AttentiveGru, BytesDoNotDependOnThreads) {
  std::vector<int64_t> steps, keys;
  for (int64_t s = 0; s < 40; ++s) {
    steps.push_back(1 + s % 7);
    keys.push_back(1 + s % 5);
  }
  const KeyRuns runs = KeyRuns::sentences(steps, keys);
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2, 3}) {
    set_num_threads(threads);
    const int64_t h = 33, d = 20;
    const AttentiveGru p{
        .products = Var(random_tensor({runs.queries(), 3 * h}, 1), true),
        .state = Var(random_tensor({40, h}, 2), true),
        .keys = Var(random_tensor({runs.keys(), d}, 3), true),
        .values = Var(random_tensor({runs.keys(), 3 * h + 8}, 4), true),
        .weight = Var(random_tensor({3 * h, h}, 5), true),
        .query_weight = Var(random_tensor({d, h}, 6), true),
        .score = {.family = kernels::ScoreFamily::additive, .vector = Var(random_tensor({d}, 7), true)}};
    const AttentiveStates y = attentive_gru(p, runs);
    y.states.backward(random_tensor(y.states.shape(), 8));
    std::vector<float> all = y.states.value().to_vector();
    for (const Var& v : {p.products, p.state, p.keys, p.values, p.weight, p.query_weight, p.score.vector}) {
      const std::vector<float> g = v.grad().to_vector();
      all.insert(all.end(), g.begin(), g.end());
    }
    results.push_back(all);
  }
  set_num_threads(0);
  EXPECT_EQ(results[1], results[0]);
  EXPECT_EQ(results[2], results[0]);
}

// A stack of LSTMs that looks after each step, from the ops it is made of.
Var fed_by_steps(const AttentiveLstm& p, const KeyRuns& runs) {
  const int64_t hidden = p.combine.size(0);
  std::vector<Var> all;
  const auto rows = [](const Var& x, int64_t begin, int64_t count) { return slice(x, 0, begin, count); };
  const auto gate = [&](const Var& x, int64_t g) { return slice(x, 1, g * hidden, hidden); };
  for (size_t s = 0; s + 1 < runs.query_begin.size(); ++s) {
    const int64_t begin = runs.key_begin[s], size = runs.key_begin[s + 1] - begin;
    const Var keys = rows(p.keys, begin, size), values = rows(p.values, begin, size);
    std::vector<Var> h, c;
    for (size_t l = 0; l < p.layers.size(); ++l) {
      const auto first = [&](const Var& states) {
        const Var layer = rows(states, static_cast<int64_t>(l), 1);
        return reshape(slice(layer, 1, static_cast<int64_t>(s), 1), {1, hidden});
      };
      h.push_back(first(p.h));
      c.push_back(first(p.c));
    }
    Var seen(Tensor::zeros({1, hidden}));
    for (int64_t t = runs.query_begin[s]; t < runs.query_begin[s + 1]; ++t) {
      for (size_t l = 0; l < p.layers.size(); ++l) {
        const Var below = l == 0 ? seen : h[l - 1];
        Var gates = linear(below, p.layers[l].input) + linear(h[l], p.layers[l].state, p.layers[l].bias);
        if (l == 0) gates = gates + rows(p.products, t, 1);
        c[l] = sigmoid(gate(gates, 1)) * c[l] + sigmoid(gate(gates, 0)) * tanh(gate(gates, 2));
        h[l] = sigmoid(gate(gates, 3)) * tanh(c[l]);
      }
      KeyRuns one = KeyRuns::sentences(std::vector<int64_t>{1}, std::vector<int64_t>{size});
      RunGaussian gaussian;
      if (p.position_weight.defined()) {
        const Var shown = tanh(linear(h.back(), p.position_weight));
        gaussian = {reshape(sigmoid(linear(shown, reshape(p.position_vector, {1, -1}))), {1}) *
                        static_cast<float>(size),
                    p.sigma};
        const auto run = kernels::predicted_run(gaussian.centre.value().item(), p.window, size);
        one.first = {run.first};
        one.count = {run.count};
        one.measure();
      }
      const Var query = p.query_weight.defined() ? linear(h.back(), p.query_weight, p.query_bias) : h.back();
      const Var look = attend_runs(query, keys, values, one, p.score, gaussian).out;
      seen = tanh(look + linear(h.back(), p.combine));
      all.push_back(seen);
    }
  }
  return concat(all, 0);
}

struct FedProblem {
  std::vector<Tensor> inputs;
  bool additive, predicts;

  FedProblem(bool is_additive, bool is_predicting, int64_t h, int64_t d)
      : additive(is_additive), predicts(is_predicting) {
    if (!additive) d = h;
    inputs = {random_tensor({10, 4 * h}, 1), random_tensor({2, 4, h}, 2), random_tensor({2, 4, h}, 3),
              random_tensor({10, d}, 4),     random_tensor({10, h}, 5),   random_tensor({h, h}, 6),
              random_tensor({d, h}, 7),      random_tensor({d}, 8),       random_tensor({d}, 9),
              random_tensor({3, h}, 10),     random_tensor({3}, 11)};
    for (uint64_t l = 0; l < 2; ++l)
      for (const Shape& shape : {Shape{4 * h, h}, Shape{4 * h, h}, Shape{4 * h}})
        inputs.push_back(random_tensor(shape, 12 + inputs.size() + l));
    for (Tensor& t : inputs)
      for (float& x : t.span()) x *= 0.5f;
  }
  AttentiveLstm decoder(std::span<const Var> in) const {
    AttentiveLstm p{.products = in[0],
                    .layers = {{in[11], in[12], in[13]}, {in[14], in[15], in[16]}},
                    .h = in[1],
                    .c = in[2],
                    .keys = in[3],
                    .values = in[4],
                    .combine = in[5]};
    if (additive) {
      p.query_weight = in[6];
      p.query_bias = in[7];
      p.score = {.family = kernels::ScoreFamily::additive, .vector = in[8]};
    }
    if (predicts) {
      p.position_weight = in[9];
      p.position_vector = in[10];
      p.window = 1;
      p.sigma = 0.5f;
    }
    return p;
  }
};

TEST(AttentiveLstm, EqualsItsStepsForwardAndBackward) {
  for (const bool additive : {true, false}) {
    for (const bool predicts : {true, false}) {
      const FedProblem problem(additive, predicts, 21, 13);
      std::vector<std::vector<Tensor>> gradients;
      std::vector<Tensor> values;
      for (const bool fused : {true, false}) {
        std::vector<Var> leaves;
        for (const Tensor& t : problem.inputs) leaves.emplace_back(t, true);
        KeyRuns runs = KeyRuns::sentences(kQueries, kKeys);
        const AttentiveLstm decoder = problem.decoder(leaves);
        const Var y = fused ? attentive_lstm(decoder, runs).states : fed_by_steps(decoder, runs);
        y.backward(random_tensor(y.shape(), 77));
        values.push_back(y.value());
        gradients.emplace_back();
        for (const Var& leaf : leaves) gradients.back().push_back(leaf.grad());
      }
      for (int64_t i = 0; i < values[0].count(); ++i)
        ASSERT_NEAR(values[0].data()[i], values[1].data()[i], 1e-5);
      for (size_t k = 0; k < gradients[0].size(); ++k) {
        ASSERT_EQ(gradients[0][k].defined(), gradients[1][k].defined()) << "input " << k;
        for (int64_t i = 0; gradients[0][k].defined() && i < gradients[0][k].count(); ++i)
          ASSERT_NEAR(gradients[0][k].data()[i], gradients[1][k].data()[i],
                      1e-4 * (1 + std::fabs(gradients[1][k].data()[i])))
              << "input " << k << " element " << i << (additive ? " additive" : " dot") << predicts;
      }
    }
  }
}

TEST(AttentiveLstm, GradientsMatchFiniteDifferencesAlsoUnderDropout) {
  const FedProblem problem(true, false, 4, 3);
  check_gradients(
      [&](std::span<const Var> in) {
        AttentiveLstm decoder = problem.decoder(in);
        decoder.dropout = 0.4f;
        decoder.layers[1].seed = 5;
        KeyRuns runs = KeyRuns::sentences(kQueries, kKeys);
        return attentive_lstm(decoder, runs).states;
      },
      problem.inputs);
}

}  // namespace
}  // namespace fovea
