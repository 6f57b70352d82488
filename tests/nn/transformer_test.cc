// Attention layers against PyTorch's, weights loaded from its state dict: forward and every gradient.
#include "nn/transformer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "io/safetensors.h"
#include "nn/attention.h"
#include "nn/init.h"
#include "nn/positions.h"

namespace fovea::nn {
namespace {

// Differences are measured against the size of the whole result, as rounding is.
constexpr double kTolerance = 2e-5;

void expect_close(const Tensor& got, const Tensor& wanted, const std::string& what) {
  ASSERT_TRUE(got.defined()) << what;
  ASSERT_EQ(got.shape(), wanted.shape()) << what;
  const auto a = got.to_vector(), b = wanted.to_vector();
  double largest = 0, difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(double{b[i]}));
    difference = std::max(difference, std::abs(double{a[i]} - b[i]));
    ASSERT_FALSE(std::isnan(a[i])) << what;
  }
  EXPECT_LE(difference, kTolerance * std::max(largest, 1e-3)) << what << ", largest " << largest;
}

class Golden {
 public:
  explicit Golden(const std::string& name) : file_(std::string(FOVEA_GOLDEN) + "/" + name + ".safetensors") {}
  void load(const Module& module, const std::string& prefix = "") const {
    load_parameters(module, [&](std::string_view name) {
      const std::string full = "weight." + prefix + std::string(name);
      return file_->contains(full) ? file_->tensor(full) : Tensor();
    });
  }
  Var input(const std::string& name) const { return Var(file_->tensor("input." + name), true); }
  void check_output(const Var& output) const {
    expect_close(output.value(), file_->tensor("output"), "output");
    output.backward(file_->tensor("output_grad"));
  }
  void check_input(const Var& input, const std::string& name) const {
    expect_close(input.grad(), file_->tensor("input_grad." + name), "gradient of " + name);
  }
  void check_gradients(const Module& module, const std::string& prefix = "") const {
    for (const auto& [name, parameter] : module.parameters()) {
      const Tensor wanted = file_->tensor("grad." + prefix + name);
      ASSERT_TRUE(parameter.grad().defined()) << name;
      Tensor got = parameter.grad();
      if (got.size(0) != wanted.size(0)) got = got.narrow(0, 0, wanted.size(0));
      expect_close(got, wanted, "gradient of " + prefix + name);
    }
  }

 private:
  SafetensorsFile file_;
};

TEST(MultiHeadAttention, CrossAttentionOverPaddedKeysEqualsPyTorch) {
  const Golden golden("multihead_cross");
  Rng rng(1);
  const MultiHeadAttention layer({.width = 24, .heads = 3}, rng);
  golden.load(layer);
  Context context;
  const Var query = golden.input("query"), key = golden.input("key"), value = golden.input("value");
  golden.check_output(layer.cross(query, key, value, context, {.pattern = lengths({7, 4})}));
  golden.check_input(query, "query");
  golden.check_input(key, "key");
  golden.check_input(value, "value");
  golden.check_gradients(layer);
}

TEST(MultiHeadAttention, CausalSelfAttentionEqualsPyTorch) {
  const Golden golden("multihead_causal");
  Rng rng(1);
  const MultiHeadAttention layer({.width = 24, .heads = 4, .spec = {.pattern = causal()}}, rng);
  golden.load(layer);
  Context context;
  const Var x = golden.input("x");
  golden.check_output(layer(x, context));
  golden.check_input(x, "x");
  golden.check_gradients(layer);
}

TEST(TransformerEncoderLayer, PostNormEqualsPyTorch) {
  const Golden golden("encoder_layer_post");
  Rng rng(1);
  const TransformerEncoderLayer layer({.width = 36, .heads = 6}, rng);
  golden.load(layer);
  Context context;
  const Var x = golden.input("x");
  golden.check_output(layer(x, context));
  golden.check_input(x, "x");
  golden.check_gradients(layer);
}

TEST(TransformerEncoderLayer, PreNormWithGeluEqualsPyTorch) {
  const Golden golden("encoder_layer_pre");
  Rng rng(1);
  const TransformerEncoderLayer layer(
      {.width = 36, .heads = 6, .hidden = 64, .activation = Activation::gelu, .norm_first = true}, rng);
  golden.load(layer);
  Context context;
  const Var x = golden.input("x");
  golden.check_output(layer(x, context));
  golden.check_input(x, "x");
  golden.check_gradients(layer);
}

struct EncoderDecoder : Module {
  EncoderDecoder(const TransformerOptions& options, Rng& rng)
      : encoder(options, 2, true, rng), decoder(options, 2, true, rng) {
    add_child("encoder", encoder);
    add_child("decoder", decoder);
  }
  TransformerEncoder encoder;
  TransformerDecoder decoder;
};

TEST(Transformer, PaddedEncoderDecoderEqualsPyTorch) {
  const Golden golden("transformer");
  Rng rng(1);
  const EncoderDecoder model({.width = 16, .heads = 2, .hidden = 24}, rng);
  golden.load(model);
  Context context;
  const Var source = golden.input("source"), target = golden.input("target");
  const Pattern real = lengths({6, 4});
  const Var memory = model.encoder(source, context, {.self = real});
  golden.check_output(model.decoder(target, memory, context, {.self = causal(), .cross = real}));
  golden.check_input(source, "source");
  golden.check_input(target, "target");
  golden.check_gradients(model);
}

// The same weights on packed tokens: no padding anywhere, and the same numbers where there are tokens.
TEST(Transformer, PackedDocumentsEqualPaddedBatch) {
  for (const bool norm_first : {false, true}) {
    Rng rng(3);
    const EncoderDecoder model({.width = 16, .heads = 2, .hidden = 24, .norm_first = norm_first}, rng);
    Context context;
    const std::vector<int64_t> source_lengths{6, 4}, target_lengths{5, 5};
    Tensor source(Shape{2, 6, 16}), target(Shape{2, 5, 16});
    for (float& x : source.span()) x = rng.normal();
    for (float& x : target.span()) x = rng.normal();
    const NoGrad no_grad;
    const Var padded =
        model.decoder(Var(target), model.encoder(Var(source), context, {.self = lengths({6, 4})}), context,
                      {.self = causal(), .cross = lengths({6, 4})});
    const Tensor packed_source = source.reshape({1, 12, 16}).narrow(1, 0, 10);
    const Var memory = model.encoder(Var(packed_source), context, {.self = documents(source_lengths)});
    const Var packed = model.decoder(
        Var(target.reshape({1, 10, 16})), memory, context,
        {.self = documents(target_lengths) & causal(), .cross = documents(target_lengths, source_lengths)});
    expect_close(packed.value().reshape({2, 5, 16}), padded.value(), "packed");
  }
}

TEST(Transformer, PreNormStackEqualsItsLayersOneByOne) {
  Rng rng(5);
  const TransformerEncoder stack({.width = 8, .heads = 2, .hidden = 12, .norm_first = true}, 3, true, rng);
  Tensor x(Shape{2, 5, 8});
  for (float& value : x.span()) value = rng.normal();
  Context context;
  Var by_hand(x);
  for (const auto& layer : stack.layers) by_hand = (*layer)(by_hand, context);
  expect_close(stack(Var(x), context).value(), (*stack.norm)(by_hand).value(), "stack");
}

TEST(MultiHeadAttention, CachedKeysAndValuesGiveTheSame) {
  Rng rng(6);
  const MultiHeadAttention layer({.width = 12, .heads = 4, .kv_heads = 2}, rng);
  Tensor x(Shape{1, 3, 12}), source(Shape{1, 7, 12});
  for (float& value : x.span()) value = rng.normal();
  for (float& value : source.span()) value = rng.normal();
  Context context;
  const Var queries(x), memory(source);
  const auto cache = layer.project_keys_values(memory, memory);
  expect_close(layer.attend_to(layer.project_query(queries), cache, context, {}).value(),
               layer.cross(queries, memory, context, {}).value(), "cached");
}

TEST(MultiHeadAttention, ScoresWithMatricesOfTheirOwnComputeWhatTheAlgebraSays) {
  for (const char* text :
       {"bilinear / causal / soft", "additive / window(2,1) / soft", "concat / full / sparsemax"}) {
    Rng rng(5);
    const AttentionSpec spec = parse_spec(text);
    const MultiHeadAttention layer({.width = 12, .heads = 3, .spec = spec}, rng);
    const Var x(normal({2, 7, 12}, 0, 1, rng));
    std::map<std::string, Var> own;
    for (const auto& [name, parameter] : layer.parameters()) own[name] = parameter;
    const MultiHeadAttention::KeysValues source = layer.project_keys_values(x, x);
    const Var heads =
        attention(layer.project_query(x), source.k, source.v, spec,
                  {.W = own["score.W"], .U = own["score.U"], .b = own["score.b"], .v = own["score.v"]});
    const Var wanted = linear(reshape(permute(heads, {0, 2, 1, 3}), {2, 7, 12}), own["out_proj.weight"],
                              own["out_proj.bias"]);
    Context context;
    expect_close(layer(x, context).value(), wanted.value(), text);
    const NoGrad no_grad;
    const Prepared prepared(layer);
    expect_close(layer(x, context).value(), wanted.value(), std::string(text) + ", prepared");
  }
}

TEST(MultiHeadAttention, RefusesHeadsThatDoNotDivide) {
  Rng rng(1);
  EXPECT_THROW(MultiHeadAttention({.width = 10, .heads = 3}, rng), Error);
  EXPECT_THROW(MultiHeadAttention({.width = 12, .heads = 4, .kv_heads = 3}, rng), Error);
  Context context;
  const MultiHeadAttention layer({.width = 12, .heads = 4}, rng);
  EXPECT_THROW(layer(Var(Tensor::zeros({2, 3, 10})), context), Error);
}

// Global tokens through projections of their own, against attention computed densely by hand; and what an
// observer is shown.
TEST(MultiHeadAttention, GlobalRowsSeeAllThroughProjectionsOfTheirOwn) {
  Rng rng(8);
  const int64_t n = 11, width = 6, heads = 2, d = 3;
  const MultiHeadAttention layer({.width = width, .heads = heads, .global_projections = true}, rng);
  const auto parameter = [&](const std::string& name) {
    for (const auto& [own, value] : layer.parameters())
      if (own == name) return value.value().to_vector();
    return std::vector<float>();
  };
  Tensor x(Shape{1, n, width});
  for (float& value : x.span()) value = rng.normal();
  const GlobalRows global{{0, 4, 5}, {3}, {n}};
  const auto is_global = [&](int64_t i) {
    return std::find(global.rows.begin(), global.rows.end(), i) != global.rows.end();
  };
  const auto project = [&](const std::string& prefix, int64_t part, int64_t token) {
    const auto weight = parameter(prefix + "in_proj_weight"), bias = parameter(prefix + "in_proj_bias");
    std::vector<double> y(static_cast<size_t>(width));
    for (int64_t o = 0; o < width; ++o) {
      const int64_t row = part * width + o;
      y[o] = bias[row];
      for (int64_t c = 0; c < width; ++c)
        y[o] += double{weight[row * width + c]} * x.data()[token * width + c];
    }
    return y;
  };
  class Observer : public AttentionObserver {
   public:
    Capture capture(const Call&) override { return {{0, 1}, {0, 3, 5, 6}}; }
    void observe(const Call& call, const Capture&, const Captured& captured) override {
      EXPECT_EQ(call.name, "layer");
      EXPECT_FALSE(weights.defined()) << "shown twice";
      weights = captured.weights;
    }
    Tensor weights;
  } observer;
  Context context;
  Tensor out;
  {
    const ObserveAttention observe(observer);
    out = layer(Var(x), context,
                {.pattern = window(2, 2) | global_keys({{0, 0}, {4, 5}}), .name = "layer", .global = &global})
              .value()
              .contiguous();
  }
  const auto out_weight = parameter("out_proj.weight"), out_bias = parameter("out_proj.bias");
  for (int64_t i = 0; i < n; ++i) {
    const std::string prefix = is_global(i) ? "global_" : "";
    const auto q = project(prefix, 0, i);
    std::vector<double> joined(static_cast<size_t>(width));
    for (int64_t h = 0; h < heads; ++h) {
      double total = 0;
      std::vector<double> sum(static_cast<size_t>(d)), weights(static_cast<size_t>(n));
      for (int64_t j = 0; j < n; ++j) {
        if (!is_global(i) && !is_global(j) && std::abs(i - j) > 2) continue;
        const auto k = project(prefix, 1, j), v = project(prefix, 2, j);
        double score = 0;
        for (int64_t c = 0; c < d; ++c) score += q[h * d + c] * k[h * d + c];
        weights[j] = std::exp(score / std::sqrt(static_cast<double>(d)));
        total += weights[j];
        for (int64_t c = 0; c < d; ++c) sum[c] += weights[j] * v[h * d + c];
      }
      for (int64_t c = 0; c < d; ++c) joined[h * d + c] = sum[c] / total;
      const std::vector<int64_t> shown{0, 3, 5, 6};
      const auto place = std::find(shown.begin(), shown.end(), i) - shown.begin();
      for (int64_t j = 0; j < n && place < 4; ++j)
        EXPECT_NEAR(observer.weights.data()[(h * 4 + place) * n + j], weights[j] / total, 1e-5)
            << i << ' ' << j;
    }
    for (int64_t o = 0; o < width; ++o) {
      double y = out_bias[o];
      for (int64_t c = 0; c < width; ++c) y += double{out_weight[o * width + c]} * joined[c];
      EXPECT_NEAR(out.data()[i * width + o], y, 1e-5);
    }
  }
}

TEST(Sinusoid, IsThePublishedTable) {
  const int32_t positions[] = {0, 3};
  const Tensor table = sinusoid(positions, 4);
  const auto values = table.to_vector();
  EXPECT_EQ(values[0], 0);
  EXPECT_EQ(values[1], 1);
  EXPECT_NEAR(values[4], std::sin(3.0), 1e-6);
  EXPECT_NEAR(values[7], std::cos(0.03), 1e-6);
}

}  // namespace
}  // namespace fovea::nn
