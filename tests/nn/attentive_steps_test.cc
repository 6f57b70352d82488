// Attention of recurrent decoders beyond the fused kernels: held to the naive reference, and, where the kernels
// can do it too, to the kernels.
#include "nn/attentive_steps.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "attention/reference.h"
#include "autograd/ops.h"
#include "base/error.h"
#include "nn/choices.h"
#include "nn/init.h"

namespace fovea::nn {
namespace {

constexpr const char* kScores[] = {"additive",    "dot",      "scaled_dot", "scaled_dot(3)",
                                   "cosine(0.3)", "bilinear", "concat",     "location"};
const std::vector<int64_t> kQueries{3, 0, 4}, kKeys{5, 2, 9};

reference::Array numbers(const Var& x) {
  const std::vector<float> values = x.value().contiguous().to_vector();
  return {values.begin(), values.end()};
}

Var parameter(const Module& module, const std::string& name) {
  for (const NamedParameter& p : module.parameters())
    if (p.name == name) return p.value;
  return {};
}

// The layer as a point of the algebra: q are the states, k the memory itself.
reference::Results by_reference(const DecoderAttention& layer, const Selection& selection, const Var& states,
                                const Var& memory, const Var& values, KeyRuns runs) {
  AttentionSpec spec{.selection = selection};
  const bool by_place = layer.options().spec.score == location();
  spec.score = by_place ? dot() : layer.options().spec.score;
  reference::Inputs in{.queries = states.size(0), .keys = memory.size(0), .d = states.size(1)};
  in.q = numbers(states);
  in.k = numbers(by_place ? layer.keys(memory, kKeys) : memory);
  in.v = numbers(values);
  in.dk = by_place ? in.d : memory.size(1);
  in.dv = values.size(1);
  const auto array = [&](const char* parameter_name) {
    const Var p = parameter(layer, parameter_name);
    return p.defined() ? numbers(p) : reference::Array{};
  };
  in.w = array("W");
  in.u = array("U");
  in.b = array("b");
  in.score_vector = array("v");
  in.hidden = static_cast<int64_t>(in.score_vector.size());
  if (layer.predicts()) {
    const RunGaussian gaussian = layer.predict(states, runs);
    spec.terms.gaussian = gaussian.sigma;
    in.centre = numbers(gaussian.centre);
  }
  spec.pattern = predicate("runs", [runs](int64_t, int64_t i, int64_t j) {
    const auto at = static_cast<size_t>(i);
    return j >= runs.first[at] && j < runs.first[at] + runs.count[at];
  });
  return reference::forward(spec, in);
}

TEST(DecoderAttention, AnyScoreAndSelectionEqualsTheNaiveReference) {
  Rng rng(3);
  const Var states(normal({7, 6}, 0, 1, rng)), memory(normal({16, 6}, 0, 1, rng)),
      values(normal({16, 4}, 0, 1, rng));
  for (const char* locality : {"global", "local_m", "local_p"})
    for (const char* score : kScores)
      for (const char* selection : {"soft", "hard", "gumbel(0.7)", "sparsemax", "top_k(2)", "sigmoid"}) {
        const DecoderAttention layer({.query_width = 6,
                                      .key_width = 6,
                                      .spec = alignment_spec({score, locality, 2, selection}),
                                      .max_positions = 8},
                                     rng);
        const std::string what = std::string(score) + " / " + selection;
        const KeyRuns runs = layer.runs(kQueries, kKeys);
        const Var got = layer(states, layer.keys(memory, kKeys), values, runs);
        // At use hard and gumbel take the largest score.
        Selection at_use = parse_selection(selection);
        if (at_use.kind == SelectionKind::hard || at_use.kind == SelectionKind::gumbel) at_use = argmax();
        const reference::Results wanted = by_reference(layer, at_use, states, memory, values, runs);
        for (size_t i = 0; i < wanted.out.size(); ++i)
          ASSERT_NEAR(got.value().contiguous().data()[i], wanted.out[i], 2e-5) << what << ' ' << i;
      }
}

// Runs f twice over the same leaves and holds results and gradients of the second against the first.
void expect_same(const std::vector<Var>& leaves, const std::function<Var()>& fused,
                 const std::function<Var()>& steps, const std::string& what) {
  std::vector<float> results[2];
  std::vector<std::vector<float>> gradients[2];
  for (const int way : {0, 1}) {
    for (const Var& leaf : leaves) leaf.clear_grad();
    const Var out = way == 0 ? fused() : steps();
    results[way] = out.value().contiguous().to_vector();
    Rng rng(8);
    out.backward(normal(out.shape(), 0, 1, rng));
    for (const Var& leaf : leaves)
      gradients[way].push_back(leaf.grad().defined() ? leaf.grad().contiguous().to_vector()
                                                     : std::vector<float>{});
  }
  for (size_t i = 0; i < results[0].size(); ++i) ASSERT_NEAR(results[1][i], results[0][i], 1e-5) << what;
  for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    ASSERT_EQ(gradients[1][leaf].size(), gradients[0][leaf].size()) << what << ", leaf " << leaf;
    for (size_t i = 0; i < gradients[0][leaf].size(); ++i)
      ASSERT_NEAR(gradients[1][leaf][i], gradients[0][leaf][i], 5e-5) << what << ", leaf " << leaf;
  }
}

TEST(AttentiveSteps, OfAGruEqualTheFusedKernel) {
  for (const char* score : {"additive", "dot", "cosine(0.3)"}) {
    Rng rng(4);
    const DecoderAttention layer({.query_width = 5, .key_width = 5, .spec = alignment_spec({score})}, rng);
    const Var products(normal({7, 15}, 0, 1, rng), true), state(normal({3, 5}, 0, 1, rng), true),
        memory(normal({16, 5}, 0, 1, rng), true), values(normal({16, 17}, 0, 1, rng), true),
        weight(normal({15, 5}, 0, 0.5f, rng), true), bias(normal({15}, 0, 1, rng), true);
    std::vector<Var> leaves{products, state, memory, values, weight, bias};
    for (const NamedParameter& p : layer.parameters()) leaves.push_back(p.value);
    const KeyRuns runs = layer.runs(kQueries, kKeys);
    const auto decoder = [&] {
      return AttentiveGru{.products = products,
                          .state = state,
                          .keys = layer.keys(memory, kKeys),
                          .values = values,
                          .weight = weight,
                          .bias = bias,
                          .query_weight = layer.query_weight(),
                          .query_bias = layer.query_bias(),
                          .score = layer.score()};
    };
    const auto joined = [](const AttentiveStates& y) {
      return concat(std::vector<Var>{y.states, y.context}, 1);
    };
    Context context{.training = true};
    expect_same(
        leaves, [&] { return joined(attentive_gru(decoder(), runs)); },
        [&] { return joined(attentive_gru_by_steps(decoder(), runs, layer, context)); }, score);
  }
}

TEST(AttentiveSteps, OfStackedLstmsEqualTheFusedKernel) {
  for (const char* score : {"additive", "bilinear"})
    for (const char* locality : {"global", "local_m", "local_p"}) {
      Rng rng(4);
      const DecoderAttention layer(
          {.query_width = 5, .key_width = 5, .spec = alignment_spec({score, locality, 3})}, rng);
      const Var products(normal({7, 20}, 0, 1, rng), true), h(normal({2, 3, 5}, 0, 1, rng), true),
          c(normal({2, 3, 5}, 0, 1, rng), true), memory(normal({16, 5}, 0, 1, rng), true),
          values(normal({16, 5}, 0, 1, rng), true), combine(normal({5, 5}, 0, 0.5f, rng), true),
          bias(normal({20}, 0, 1, rng), true);
      std::vector<Var> weights;
      for (int i = 0; i < 4; ++i) weights.emplace_back(normal({20, 5}, 0, 0.5f, rng), true);
      std::vector<Var> leaves{products, h, c, memory, values, combine, bias};
      leaves.insert(leaves.end(), weights.begin(), weights.end());
      for (const NamedParameter& p : layer.parameters()) leaves.push_back(p.value);
      const auto decoder = [&] {
        AttentiveLstm d{.products = products,
                        .layers = {{.input = weights[0], .state = weights[1]},
                                   {.input = weights[2], .state = weights[3], .bias = bias}},
                        .h = h,
                        .c = c,
                        .keys = layer.keys(memory, kKeys),
                        .values = values,
                        .combine = combine,
                        .query_weight = layer.query_weight(),
                        .query_bias = layer.query_bias(),
                        .score = layer.score()};
        if (layer.predicts()) {
          d.position_weight = layer.position_weight();
          d.position_vector = layer.position_vector();
          d.window = layer.window();
          d.sigma = layer.sigma();
        }
        return d;
      };
      Context context{.training = true};
      expect_same(
          leaves,
          [&] {
            KeyRuns runs = layer.runs(kQueries, kKeys);
            return attentive_lstm(decoder(), runs).states;
          },
          [&] {
            KeyRuns runs = layer.runs(kQueries, kKeys);
            return attentive_lstm_by_steps(decoder(), runs, layer, context).states;
          },
          score);
    }
}

TEST(AttentiveSteps, HardChoicesOfAStepBelongToTheirSentences) {
  Rng rng(6);
  const DecoderAttention layer(
      {.query_width = 5, .key_width = 5, .spec = {.score = dot(), .selection = hard()}}, rng);
  const AttentiveGru decoder{.products = Var(normal({7, 15}, 0, 1, rng)),
                             .state = Var(normal({3, 5}, 0, 1, rng), true),
                             .keys = Var(normal({16, 5}, 0, 1, rng), true),
                             .values = Var(normal({16, 15}, 0, 1, rng)),
                             .weight = Var(normal({15, 5}, 0, 1, rng)),
                             .score = layer.score()};
  const KeyRuns runs = layer.runs(kQueries, kKeys);
  Context context{.training = true, .rng = Rng(2)};
  EXPECT_THROW(attentive_gru_by_steps(decoder, runs, layer, context), Error) << "nobody rewards it";
  context.rows_of_example = {1, 1, 1};
  attentive_gru_by_steps(decoder, runs, layer, context);
  ASSERT_EQ(context.choices.size(), 4u);  // one for each step
  EXPECT_EQ(context.choices[0].example, (std::vector<int32_t>{0, 2}));
  EXPECT_EQ(context.choices[3].example, (std::vector<int32_t>{2}));
  choices_loss(context, std::vector<float>{1, 2, 4}).backward();
  EXPECT_TRUE(decoder.keys.grad().defined());
}

}  // namespace
}  // namespace fovea::nn
