// What must not happen: NaN from a masked key, overflow, N x N memory, a message that does not help.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <limits>

#include "attention/fused.h"
#include "attention/problem.h"
#include "autograd/ops_linear.h"
#include "base/error.h"
#include "base/parallel.h"

namespace fovea {
namespace {

using reference::Inputs;
using test::MemoryLayout;
using test::ProblemSizes;
using test::random_inputs;
using testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

const char* const kSelections[] = {"soft",     "hard",      "gumbel(0.5)", "argmax",
                                   "top_k(2)", "sparsemax", "sigmoid"};

Tensor random_tensor(const Shape& shape, uint64_t seed) {
  Rng rng(seed);
  const Tensor t(shape);
  for (float& x : t.span()) x = rng.normal();
  return t;
}

TEST(Edge, ProjectedQueriesAndKeysGiveWhatTheirProjectionGives) {
  const AttentionSpec spec = parse_spec("additive / full / soft");
  const Var q(random_tensor({2, 1, 3, 5}, 1)), k(random_tensor({2, 1, 7, 6}, 2)),
      v(random_tensor({2, 1, 7, 4}, 3));
  AttentionParameters p{.W = Var(random_tensor({8, 6}, 4)),
                        .U = Var(random_tensor({8, 5}, 5)),
                        .b = Var(random_tensor({8}, 6)),
                        .v = Var(random_tensor({8}, 7))};
  const Var queries = linear(q, p.U, p.b), keys = linear(k, p.W);
  const auto wanted = attention(q, k, v, spec, p).value().to_vector();
  EXPECT_THAT([&] { attend(queries, keys, v, spec, {.parameters = p, .projected = true}); },
              testing::ThrowsMessage<Error>(HasSubstr("parameter W, U or b is given")));
  p.W = p.U = p.b = {};
  EXPECT_THAT([&] { attend(q, k, v, spec, {.parameters = p, .projected = true}); },
              testing::ThrowsMessage<Error>(HasSubstr("5 and 6 features, wanted 8")));
  EXPECT_THAT([&] { attend(q, q, q, {}, {.projected = true}); },
              testing::ThrowsMessage<Error>(HasSubstr("bilinear, additive or concat score, got scaled_dot")));
  EXPECT_EQ(attend(queries, keys, v, spec, {.parameters = p, .projected = true}).output.value().to_vector(),
            wanted);
}

TEST(Edge, BilinearWithProjectedKeysIsTheBilinearForm) {
  const AttentionSpec spec = parse_spec("bilinear / full / soft");
  const Var q(random_tensor({2, 1, 3, 5}, 1)), k(random_tensor({2, 1, 7, 6}, 2)), W(random_tensor({5, 6}, 4));
  const auto wanted = attention(q, k, k, spec, {.W = W}).value().to_vector();
  const auto got = attend(q, linear(k, W), k, spec, {.projected = true}).output.value().to_vector();
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-5);
}

TEST(Edge, FullyMaskedRowGivesZero) {
  for (const char* selection : kSelections)
    for (const char* score : {"scaled_dot", "cosine", "dot + sink"}) {
      if (std::string(score) == "dot + sink" && std::string(selection) != "soft") continue;
      const AttentionSpec spec = parse_spec(std::string(score) + " / lengths(0,3) / " + selection);
      Rng rng(1);
      const Inputs in = random_inputs(spec, {.batch = 2, .queries = 5, .keys = 3, .d = 4, .dv = 3}, rng);
      const auto run =
          test::run_fused(spec, in, {.out = reference::Array(2 * 5 * 3, 1)}, MemoryLayout::dense);
      const Tensor out = run.result.output.value().contiguous();
      for (int64_t n = 0; n < 15; ++n) EXPECT_EQ(out.data()[n], 0) << spec;
      for (int64_t n = 0; n < 5; ++n)
        EXPECT_EQ(run.result.lse.data()[n], spec.terms.sink ? static_cast<float>(in.sink[0]) : -kInfinity)
            << spec;
      for (size_t n = 0; n < 5 * 4; ++n) EXPECT_EQ(run.grad.q[n], 0) << spec;
      for (size_t n = 0; n < 3 * 4; ++n) EXPECT_EQ(run.grad.k[n], 0) << spec;
      for (size_t n = 0; n < 3 * 3; ++n) EXPECT_EQ(run.grad.v[n], 0) << spec;
    }
}

// Keys that hold NaN or Inf behind a mask of every kind: results and gradients are those without them.
TEST(Edge, NaNInMaskedKeysNeverLeaks) {
  for (const char* score : {"scaled_dot", "cosine"})
    for (const char* selection : kSelections)
      for (const char* pattern : {"lengths(7)", "window(0,2) & lengths(7)", "documents(9,0;7,4)",
                                  "global(1) & lengths(7)", "strided(2) & lengths(7)"}) {
        const AttentionSpec spec = parse_spec(message(score, " / ", pattern, " / ", selection));
        Rng rng(2);
        Inputs in =
            random_inputs(spec, {.heads = 2, .kv_heads = 1, .queries = 9, .keys = 11, .d = 5, .dv = 3}, rng);
        const reference::ResultGradients d{.out = reference::Array(2 * 9 * 3, 0.5)};
        const auto clean = test::run_fused(spec, in, d, MemoryLayout::dense);
        for (size_t n = 7 * 5; n < 11 * 5; ++n) in.k[n] = n % 2 ? NAN : INFINITY;
        for (size_t n = 7 * 3; n < 11 * 3; ++n) in.v[n] = n % 2 ? NAN : -INFINITY;
        const auto poisoned = test::run_fused(spec, in, d, MemoryLayout::dense);
        EXPECT_EQ(clean.result.output.value().to_vector(), poisoned.result.output.value().to_vector())
            << spec;
        EXPECT_EQ(clean.grad.q, poisoned.grad.q) << spec;
        EXPECT_EQ(clean.grad.k, poisoned.grad.k) << spec;
        EXPECT_EQ(clean.grad.v, poisoned.grad.v) << spec;
      }
}

TEST(Edge, HugeScoresStayRight) {
  for (const double size : {1e4, 1e30})
    for (const char* selection : {"soft", "hard", "argmax", "top_k(2)", "sparsemax", "sigmoid"}) {
      const AttentionSpec spec = parse_spec(std::string("dot / full / ") + selection);
      Inputs in{.queries = 2, .keys = 4, .d = 1, .dk = 1, .dv = 1, .seed = 3};
      in.q = {1, -1};
      in.k = {size, -size, 0, size / 2};
      for (double& k : in.k) k = static_cast<float>(k);
      in.v = {1, 2, 3, 4};
      const auto run = test::run_fused(spec, in, {.out = {1, 1}}, MemoryLayout::dense);
      const auto wanted = reference::forward(spec, in);
      const std::vector<float> out = run.result.output.value().to_vector();
      for (size_t n = 0; n < 2; ++n) {
        EXPECT_NEAR(out[n], wanted.out[n], 1e-5) << spec << size;
        EXPECT_NEAR(run.result.lse.data()[n] / wanted.lse[n], 1, 1e-6) << spec << size;
      }
      for (const double g : run.grad.q) EXPECT_TRUE(std::isfinite(g)) << spec << size;
      for (const double g : run.grad.k) EXPECT_TRUE(std::isfinite(g)) << spec << size;
    }
}

TEST(Edge, EqualHugeScoresShareTheWeight) {
  for (const float size : {1e4f, 1e30f, -1e30f}) {
    const Var q(Tensor::full({1, 1, 1, 1}, 1)), k(Tensor::full({1, 1, 4, 1}, size));
    const Var v(Tensor::from({1, 2, 3, 4}, {1, 1, 4, 1}));
    EXPECT_NEAR(attention(q, k, v, {.score = dot()}).value().data()[0], 2.5, 1e-6) << size;
  }
}

TEST(Edge, ABiasOfMinusInfinityIsAMask) {
  const Var q(random_tensor({1, 1, 2, 3}, 1), true), k(random_tensor({1, 1, 2, 3}, 2), true);
  const Var v(Tensor::from({1, 2}, {1, 1, 2, 1}), true);
  const Var bias(Tensor::from({0, -kInfinity, -kInfinity, -kInfinity}, {2, 2}), true);
  const Var out = attention(q, k, v, {.terms = {.bias = true}}, {.bias = bias});
  EXPECT_EQ(out.value().to_vector(), (std::vector<float>{1, 0}));
  out.backward(Tensor::full(out.shape(), 1));
  for (const Var& each : {q, k, v, bias})
    for (const float g : each.grad().to_vector()) EXPECT_TRUE(std::isfinite(g));
}

TEST(Edge, EmptySequencesWork) {
  for (const char* selection : kSelections)
    for (const char* score : {"dot", "cosine"})
      for (const auto& [queries, keys] : {std::pair<int64_t, int64_t>{0, 0}, {0, 3}, {3, 0}}) {
        const AttentionSpec spec = parse_spec(std::string(score) + " / causal / " + selection);
        Rng rng(1);
        const Inputs in = random_inputs(
            spec, {.batch = 2, .heads = 2, .kv_heads = 1, .queries = queries, .keys = keys, .d = 3, .dv = 2},
            rng);
        const auto run =
            test::run_fused(spec, in, {.out = reference::Array(static_cast<size_t>(2 * 2 * queries * 2), 1)},
                            MemoryLayout::dense);
        EXPECT_EQ(run.result.output.shape(), (Shape{2, 2, queries, 2})) << spec;
        for (const float x : run.result.output.value().to_vector()) EXPECT_EQ(x, 0) << spec;
      }
}

std::string error_of(const Shape& q, const Shape& k, const Shape& v, const std::string& spec = "scaled_dot",
                     const AttentionParameters& parameters = {}) {
  try {
    attention(Var(Tensor::zeros(q)), Var(Tensor::zeros(k)), Var(Tensor::zeros(v)), parse_spec(spec),
              parameters);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Edge, WrongShapesAreOneErrorEach) {
  const Shape q{2, 4, 5, 8}, k{2, 2, 7, 8}, v{2, 2, 7, 6};
  EXPECT_EQ(error_of(q, k, v), "no error");
  EXPECT_THAT(error_of({4, 5, 8}, k, v), HasSubstr("got q [4, 5, 8]"));
  EXPECT_THAT(error_of(q, {1, 2, 7, 8}, v), HasSubstr("batches differ"));
  EXPECT_THAT(error_of(q, k, {2, 2, 6, 6}), HasSubstr("wanted the same heads and tokens"));
  EXPECT_THAT(error_of(q, {2, 3, 7, 8}, {2, 3, 7, 6}), HasSubstr("4 query heads cannot share 3 key heads"));
  EXPECT_THAT(error_of(q, {2, 2, 7, 9}, v), HasSubstr("q has 8 features and k has 9"));
  EXPECT_THAT(error_of(q, k, v, "additive"), HasSubstr("parameter W is not given"));
  EXPECT_THAT(error_of(q, k, v, "dot + bias", {.bias = Var(Tensor::zeros({5, 6}))}),
              HasSubstr("bias has shape [5, 6], wanted one that broadcasts to [2, 4, 5, 7]"));
  EXPECT_THAT(error_of(q, k, v, "dot", {.sink = Var(Tensor::zeros({4}))}), HasSubstr("sink is given, but"));
  EXPECT_THAT(error_of(q, k, v, "dot + sink", {.sink = Var(Tensor::zeros({3}))}), HasSubstr("wanted [4]"));
  EXPECT_THAT(error_of(q, k, v, "dot / lengths(1,2,3)"), HasSubstr("got 3 for a batch of 2"));
  EXPECT_THAT(error_of(q, k, v, "dot / heads(full; causal; full)"), HasSubstr("got 3 patterns for 4 heads"));
}

int64_t peak_rss_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (int64_t kib = 0; word == "VmHWM:" && status >> kib) return kib;
  return 0;
}

// A sanitizer's shadow of the memory is resident too.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int64_t kResidentLimitKib = 256 * 1024;
#else
constexpr int64_t kResidentLimitKib = 64 * 1024;
#endif

// 16384 x 16384 floats are 1 GiB; q, k, v, out and their gradients at D = 8 are 4 MiB together.
TEST(Edge, MemoryAtSixteenThousandTokensIsLinear) {
  const int64_t n = 16384;
  const int64_t before = peak_rss_kib();
  for (const char* text : {"scaled_dot / causal / soft", "scaled_dot / window(64,64) / sparsemax",
                           "scaled_dot + bias / window(64,64) | global(0) / soft(0.1)"}) {
    const AttentionSpec spec = parse_spec(text);
    const Var q(random_tensor({1, 1, n, 8}, 1), true), k(random_tensor({1, 1, n, 8}, 2), true);
    const Var v(random_tensor({1, 1, n, 8}, 3), true);
    AttentionParameters parameters;
    if (spec.terms.bias) parameters.bias = Var(random_tensor({1, n}, 4), true);
    const Var out = attention(q, k, v, spec, parameters);
    out.backward(Tensor::full(out.shape(), 1));
  }
  EXPECT_LT(peak_rss_kib() - before, kResidentLimitKib);
}

TEST(Edge, WeightsOfNamedHeadsAreThoseOfAllRows) {
  const Var q(random_tensor({2, 3, 4, 3}, 1)), k(random_tensor({2, 3, 5, 3}, 2));
  const Tensor all = attend(q, k, k, {}, {.weight_heads = {0, 1, 2}, .weight_rows = {0, 1, 2, 3}}).weights;
  const AttentionResult heads = attend(q, k, k, {}, {.weight_heads = {1}});
  ASSERT_EQ(heads.weights.shape(), (Shape{2, 1, 4, 5}));
  EXPECT_EQ(heads.weights.to_vector(), all.narrow(1, 1, 1).to_vector());
  const AttentionResult rows = attend(q, k, k, {}, {.weight_rows = {3}});
  ASSERT_EQ(rows.weights.shape(), (Shape{2, 3, 1, 5}));
  EXPECT_EQ(rows.weights.to_vector(), all.narrow(2, 3, 1).to_vector());
}

TEST(Edge, AnUndefinedVariableIsOneError) {
  const Var x(random_tensor({1, 1, 4, 3}, 1));
  const auto refused = [](const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(refused([&] { attention({}, x, x); }), HasSubstr("undefined Var"));
  EXPECT_THAT(refused([&] { attention(x, {}, x); }), HasSubstr("undefined Var"));
  EXPECT_THAT(refused([&] { attention(x, x, {}); }), HasSubstr("undefined Var"));
  EXPECT_THAT(refused([&] { reinforce_loss({}, Tensor::scalar(1), Tensor::scalar(0)); }),
              HasSubstr("undefined Var"));
}

class Recorder : public AttentionObserver {
 public:
  Capture capture(const Call& call) override {
    names.emplace_back(call.name);
    return {{0}, {1, 2}};
  }
  void observe(const Call&, const Capture&, const Captured& captured) override { sights.push_back(captured); }
  std::vector<std::string> names;
  std::vector<Captured> sights;
};

TEST(Observer, SeesTheChosenWeightsAndTheLse) {
  const Var q(random_tensor({1, 2, 4, 3}, 1)), k(random_tensor({1, 2, 5, 3}, 2)),
      v(random_tensor({1, 2, 5, 3}, 3));
  Recorder recorder;
  {
    const ObserveAttention watching(recorder);
    attend(q, k, v, {}, {.name = "encoder.0"});
  }
  attend(q, k, v, {}, {.name = "unseen"});
  ASSERT_EQ(recorder.names, (std::vector<std::string>{"encoder.0"}));
  EXPECT_EQ(recorder.sights[0].weights.shape(), (Shape{1, 1, 2, 5}));
  EXPECT_EQ(recorder.sights[0].lse.shape(), (Shape{1, 2, 4}));
  double sum = 0;
  for (const float w : recorder.sights[0].weights.to_vector()) sum += w;
  EXPECT_NEAR(sum, 2, 1e-5);
}

}  // namespace
}  // namespace fovea
