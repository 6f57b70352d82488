// Attention on raw memory, against attend().
#include "attention/strided.h"

#include <gtest/gtest.h>

#include "attention/attention.h"
#include "base/error.h"

namespace fovea {
namespace {

StridedInput input_of(const Tensor& t) {
  StridedInput in{.data = t.data(), .rank = t.rank(), .present = true};
  for (int i = 0; i < t.rank(); ++i) {
    in.sizes[i] = t.size(i);
    in.strides[i] = t.stride(i);
  }
  return in;
}
StridedOutput output_of(const Tensor& t) {
  const StridedInput in = input_of(t);
  return {t.data(), in.rank, in.sizes, in.strides, true};
}

Tensor random_tensor(const Shape& shape, uint64_t seed) {
  const Tensor t(shape);
  for (int64_t i = 0; i < t.count(); ++i)
    t.data()[i] = static_cast<float>((i * 7919 + static_cast<int64_t>(seed) * 104729) % 2003) / 1001.5f - 1;
  return t;
}

// attention/attention.h says what is right, on the same numbers.
class AgainstAttend : public testing::TestWithParam<const char*> {};

TEST_P(AgainstAttend, ForwardAndGradientsAreTheSameBits) {
  const AttentionSpec spec = parse_spec(GetParam());
  const int64_t batch = 2, heads = 4, queries = 33, keys = 47, d = 8;
  // Heads beside each other in memory: strided views.
  const Tensor q = random_tensor({batch, queries, heads, d}, 1).transpose(1, 2);
  const Tensor k = random_tensor({batch, keys, 2, d}, 2).transpose(1, 2);
  const Tensor v = random_tensor({batch, keys, 2, 6}, 3).transpose(1, 2);
  const Tensor bias = random_tensor({heads, 1, keys}, 4), sink = random_tensor({heads}, 5);
  const Tensor relative = random_tensor({8, heads}, 6), W = random_tensor({d, d}, 7);
  const bool bilinear = spec.score.kind == ScoreKind::bilinear;
  const auto optional = [](bool wanted, const Tensor& t) { return wanted ? Var(t, true) : Var(); };
  const AttentionParameters parameters{.W = optional(bilinear, W),
                                       .bias = optional(spec.terms.bias, bias),
                                       .relative = optional(spec.terms.relative.buckets != 0, relative),
                                       .sink = optional(spec.terms.sink, sink)};
  const Var vq(q, true), vk(k, true), vv(v, true);
  const AttentionResult wanted =
      attend(vq, vk, vv, spec, {.parameters = parameters, .training = true, .seed = 9, .lse = true});
  const Tensor d_out = random_tensor({batch, heads, queries, 6}, 8);
  wanted.output.backward(d_out);

  StridedInputs in{.q = input_of(q), .k = input_of(k), .v = input_of(v)};
  StridedGradients to;
  const auto give = [](const Var& var, StridedInput& input, StridedOutput& gradient, const Tensor& memory) {
    if (!var.defined()) return;
    input = input_of(var.value());
    gradient = output_of(memory);
  };
  const Tensor d_bias(bias.shape()), d_sink(sink.shape()), d_relative(relative.shape()), d_W(W.shape());
  give(parameters.bias, in.bias, to.bias, d_bias);
  give(parameters.sink, in.sink, to.sink, d_sink);
  give(parameters.relative, in.relative, to.relative, d_relative);
  give(parameters.W, in.W, to.W, d_W);
  const Tensor dq = Tensor::laid_out_like(q), dk = Tensor::laid_out_like(k), dv = Tensor::laid_out_like(v);
  to.q = output_of(dq);
  to.k = output_of(dk);
  to.v = output_of(dv);
  PreparedCache cache(2);
  const AttentionText text{.spec = GetParam(), .training = true};
  const auto prepared = cache.prepare(text, attention_sizes(in.q, in.k, in.v));
  EXPECT_EQ(prepared, cache.prepare(text, attention_sizes(in.q, in.k, in.v)));
  const Tensor out({batch, heads, queries, 6}), lse({batch, heads, queries});
  const StridedResults results{.out = output_of(out), .lse = lse.data()};
  prepared->forward(in, results, 9);
  prepared->backward(in, results, input_of(d_out), to, 9);
  EXPECT_EQ(out.to_vector(), wanted.output.value().to_vector());
  EXPECT_EQ(lse.to_vector(), wanted.lse.to_vector());
  EXPECT_EQ(dq.to_vector(), vq.grad().to_vector());
  EXPECT_EQ(dk.to_vector(), vk.grad().to_vector());
  EXPECT_EQ(dv.to_vector(), vv.grad().to_vector());
  const auto same = [](const Var& parameter, const Tensor& gradient) {
    return !parameter.defined() || gradient.to_vector() == parameter.grad().to_vector();
  };
  EXPECT_TRUE(same(parameters.bias, d_bias));
  EXPECT_TRUE(same(parameters.sink, d_sink));
  EXPECT_TRUE(same(parameters.relative, d_relative));
  EXPECT_TRUE(same(parameters.W, d_W));
}

INSTANTIATE_TEST_SUITE_P(
    Strided, AgainstAttend,
    testing::Values("scaled_dot / causal / soft", "dot + soft_cap(5) + bias + sink / window(9,2) / soft(0.2)",
                    "scaled_dot + alibi / strided(3) / soft", "scaled_dot + relative(8,20) / full / soft",
                    "scaled_dot + relative(8,20) + bias / causal / soft", "scaled_dot / full / top_k(5)",
                    "scaled_dot / full / sparsemax", "cosine(0.3) / causal / soft", "bilinear / full / soft",
                    "scaled_dot / causal / gumbel(0.5)"));

TEST(Strided, PreparedForOtherSizesIsRefused) {
  const Tensor q = random_tensor({1, 2, 3, 4}, 1), longer = random_tensor({1, 2, 5, 4}, 1);
  PreparedCache cache(2);
  const auto prepared =
      cache.prepare({.spec = "dot"}, attention_sizes(input_of(q), input_of(q), input_of(q)));
  const Tensor out(q.shape());
  EXPECT_THROW(
      prepared->forward({.q = input_of(longer), .k = input_of(q), .v = input_of(q)}, {.out = output_of(out)}),
      Error);
  EXPECT_THROW(cache.prepare({.spec = "dot", .lengths = {9}}, prepared->sizes()), Error);
}

}  // namespace
}  // namespace fovea
