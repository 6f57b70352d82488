// Attention of recurrent decoders beyond the fused kernels: held to the naive reference, and, where the kernels
// can do it too, to the kernels.
#include "nn/attentive_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "attention/reference.h"
#include "autograd/ops.h"
#include "base/error.h"
#include "base/error_of.h"
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

void add_to(reference::Array& sum, size_t at, const double* values, size_t count) {
  for (size_t i = 0; i < count; ++i) sum[at + i] += values[i];
}

void expect_near(const Var& leaf, const reference::Array& wanted, const std::string& what) {
  ASSERT_TRUE(leaf.grad().defined()) << what;
  const std::vector<float> got = leaf.grad().contiguous().to_vector();
  ASSERT_EQ(got.size(), wanted.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], wanted[i], 3e-5) << what << ' ' << i;
}

// Each token is held to the row of its place in a problem of as many queries as its sentence has keys.
TEST(DecoderAttention, AnyPatternAndTermEqualsTheNaiveReferenceWithItsGradient) {
  const std::vector<int64_t> queries{3, 0, 7}, keys{5, 2, 9}, more_queries_than_keys{4, 12};
  for (const char* text : {"scaled_dot / causal",
                           "dot / window(1,1,2)",
                           "dot / strided(3)",
                           "dot / strided(2,top_left)",
                           "dot / fixed(4,1)",
                           "scaled_dot / block_window(2,1,0)",
                           "dot / window(1,0) | global(0,3)",
                           "dot / global_keys(1) | strided(4)",
                           "dot / random_blocks(2,2,5) | window(0,0)",
                           "dot / causal & strided(2)",
                           "dot + alibi",
                           "dot + alibi / window(2,1)",
                           "dot + relative(8,16)",
                           "scaled_dot + relative(4,12) / window(2,0)",
                           "dot + soft_cap(0.8)",
                           "dot + sink",
                           "dot + soft_cap(2) + alibi + relative(8,16) + sink / window(1,1,2) | global(0)",
                           "scaled_dot + sink / strided(2) / top_k(2)",
                           "dot + relative(8,16) / causal / sparsemax",
                           "dot + alibi / fixed(3,1) / sigmoid"})
    for (const std::vector<int64_t>& lengths : {queries, more_queries_than_keys}) {
      Rng rng(3);
      const AttentionSpec spec = parse_spec(text);
      const DecoderAttention layer({.query_width = 6, .key_width = 6, .spec = spec}, rng);
      EXPECT_FALSE(layer.fused({})) << text;
      const std::vector<int64_t> sources = lengths.size() == 3 ? keys : std::vector<int64_t>{6, 5};
      const int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), int64_t{0}),
                    all_keys = std::accumulate(sources.begin(), sources.end(), int64_t{0});
      const Var states(normal({tokens, 6}, 0, 1, rng), true), memory(normal({all_keys, 6}, 0, 1, rng), true),
          values(normal({all_keys, 4}, 0, 1, rng), true);
      const Var relative = parameter(layer, "relative"), sink = parameter(layer, "sink");
      for (const Var& p : {relative, sink})
        if (p.defined()) p.set_value(normal(p.shape(), 0, 1, rng));
      Context context{.training = true};
      const Var out =
          layer(states, layer.keys(memory, sources), values, layer.runs(lengths, sources), context);
      const Tensor gradient = normal(out.shape(), 0, 1, rng);
      out.backward(gradient);

      reference::Array d_states(static_cast<size_t>(tokens * 6)), d_memory(static_cast<size_t>(all_keys * 6)),
          d_values(static_cast<size_t>(all_keys * 4)), d_relative, d_sink;
      const reference::Array k = numbers(memory), v = numbers(values), q = numbers(states);
      int64_t token = 0, begin = 0;
      for (size_t s = 0; s < lengths.size(); begin += sources[s++])
        for (int64_t t = 0; t < lengths[s]; ++t, ++token) {
          const int64_t count = sources[s], place = std::min(t, count - 1);
          reference::Inputs in{.queries = count, .keys = count, .d = 6, .dk = 6, .dv = 4};
          for (int64_t i = 0; i < count; ++i) in.q.insert(in.q.end(), &q[token * 6], &q[token * 6] + 6);
          in.k.assign(&k[begin * 6], &k[begin * 6] + count * 6);
          in.v.assign(&v[begin * 4], &v[begin * 4] + count * 4);
          if (spec.terms.alibi) in.slopes = reference::default_slopes(1);
          if (relative.defined()) in.table = numbers(relative);
          if (sink.defined()) in.sink = numbers(sink);
          const reference::Results wanted = reference::forward(spec, in);
          reference::ResultGradients d{.out = reference::Array(static_cast<size_t>(count * 4))};
          for (int64_t i = 0; i < 4; ++i) {
            ASSERT_NEAR(out.value().contiguous().data()[token * 4 + i], wanted.out[place * 4 + i], 2e-5)
                << text << ", token " << t << " of sentence " << s;
            d.out[place * 4 + i] = gradient.data()[token * 4 + i];
          }
          const reference::Inputs grad = reference::backward(spec, in, d);
          add_to(d_states, token * 6, &grad.q[place * 6], 6);
          add_to(d_memory, begin * 6, grad.k.data(), grad.k.size());
          add_to(d_values, begin * 4, grad.v.data(), grad.v.size());
          d_relative.resize(grad.table.size());
          d_sink.resize(grad.sink.size());
          add_to(d_relative, 0, grad.table.data(), grad.table.size());
          add_to(d_sink, 0, grad.sink.data(), grad.sink.size());
        }
      expect_near(states, d_states, text + std::string(", states"));
      expect_near(memory, d_memory, text + std::string(", memory"));
      expect_near(values, d_values, text + std::string(", values"));
      if (relative.defined()) expect_near(relative, d_relative, text + std::string(", relative"));
      if (sink.defined()) expect_near(sink, d_sink, text + std::string(", sink"));
    }
}

TEST(DecoderAttention, APatternThatIsNotOfEverySentenceIsRefused) {
  for (const char* text :
       {"dot + bias", "dot / lengths(3,4)", "dot / documents(3;4)", "dot / layout(2;11,01)",
        "dot / heads(causal; full)", "dot + gaussian(2)", "dot + gaussian(2) / window(1,2)",
        "dot + sink / full / sparsemax", "dot / full / argmax"}) {
    Rng rng(3);
    EXPECT_THROW(DecoderAttention({.query_width = 6, .key_width = 6, .spec = parse_spec(text)}, rng), Error)
        << text;
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

TEST(AttentiveSteps, PatternsWithoutAMeaningInEverySentenceAreRefusedByTheirText) {
  const auto refusal = [](const Pattern& pattern) {
    Rng rng(1);
    return error_of([&] {
      const DecoderAttention layer(
          {.query_width = 4, .key_width = 4, .spec = {.score = dot(), .pattern = pattern}}, rng);
    });
  };
  for (const Pattern& pattern : {lengths({3}), documents({2, 3}), heads({full(), causal()})})
    EXPECT_THAT(refusal(pattern), testing::AllOf(testing::HasSubstr(to_string(pattern)),
                                                 testing::HasSubstr("counts positions alone")));
  EXPECT_EQ(refusal(causal() & strided(2)), "no error");
}

}  // namespace
}  // namespace fovea::nn
