#include "nn/module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "autograd/var.h"
#include "nn/init.h"
#include "nn/int8_weights.h"
#include "nn/layers.h"
#include "nn/transformer.h"

namespace fovea::nn {
namespace {

struct Pair : Module {
  explicit Pair(Rng& rng) : first(2, 3, rng), second(3, 2, rng, false) {
    add_child("first", first);
    add_child("second", second);
    share_parameter("tied", first.weight);
  }
  Linear first, second;
};

TEST(Module, NamesJoinWithDotsAndTiedWeightsStandOnce) {
  Rng rng(1);
  const Pair pair(rng);
  std::vector<std::string> names;
  for (const auto& parameter : pair.parameters()) names.push_back(parameter.name);
  EXPECT_THAT(names, testing::ElementsAre("tied", "first.bias", "second.weight"));
  EXPECT_EQ(pair.parameter_count(), 6 + 3 + 6);
}

// What a bilinear score and relative positions add is read by more than projections, and stays.
TEST(PrepareForUse, DropsWhatOnlyPreparedFormsReadAndChangesNoAnswer) {
  for (const Compute compute : {Compute::float32, Compute::int8})
    for (const char* const text : {"scaled_dot", "bilinear", "concat", "scaled_dot + relative(8,16)"}) {
      const TransformerOptions options{.width = 32, .heads = 4, .hidden = 48, .spec = parse_spec(text)};
      Rng rng(5);
      const TransformerEncoder encoder(options, 2, true, rng);
      const Var x(normal({1, 7, 32}, 0, 1, rng));
      Context context;
      const NoGrad no_grad;
      if (compute == Compute::int8) round_to_int8(encoder, "test");
      std::vector<float> wanted;
      {
        const Prepared prepared(encoder, compute);
        wanted = encoder(x, context).value().to_vector();
      }
      std::vector<std::string> parts;
      const Prepared prepared(encoder, compute,
                              [&](const Module& part) { parts.push_back(part.parameters().front().name); });
      EXPECT_THAT(parts, testing::ElementsAre("self_attn.in_proj_weight", "self_attn.in_proj_weight",
                                              "layers.0.self_attn.in_proj_weight"));
      for (const NamedParameter& parameter : encoder.parameters()) {
        const bool dropped = parameter.name.ends_with("in_proj_weight") ||
                             parameter.name.ends_with("out_proj.weight") ||
                             parameter.name.find("linear") != std::string::npos;
        EXPECT_EQ(parameter.value.value().defined(), !dropped || parameter.name.ends_with("bias"))
            << text << " " << parameter.name;
      }
      EXPECT_EQ(encoder(x, context).value().to_vector(), wanted) << text;
    }
}

TEST(LoadParameters, RefusesMissingAndMisshapenWeightsAndChangesNothing) {
  Rng rng(1);
  const Linear layer(2, 3, rng);
  const auto before = layer.weight.value().to_vector();
  const auto only_weight = [](std::string_view name) {
    return name == "weight" ? Tensor::zeros({3, 2}) : Tensor();
  };
  EXPECT_THROW(load_parameters(layer, only_weight), Error);
  EXPECT_EQ(layer.weight.value().to_vector(), before);
  EXPECT_THROW(load_parameters(layer, [](std::string_view) { return Tensor::zeros({2, 3}); }), Error);
}

TEST(Init, VariancesAreThePublishedOnes) {
  Rng rng(5);
  const auto deviation = [](const Tensor& t) {
    double squares = 0;
    for (const float x : t.span()) squares += double{x} * x;
    return std::sqrt(squares / static_cast<double>(t.count()));
  };
  const Shape shape{300, 200};
  EXPECT_NEAR(deviation(xavier_uniform(shape, rng)), std::sqrt(2.0 / 500), 0.001);
  EXPECT_NEAR(deviation(xavier_normal(shape, rng)), std::sqrt(2.0 / 500), 0.001);
  EXPECT_NEAR(deviation(kaiming_uniform(shape, rng)), std::sqrt(2.0 / 200), 0.002);
  EXPECT_NEAR(deviation(kaiming_normal(shape, rng)), std::sqrt(2.0 / 200), 0.002);
}

TEST(Init, OrthogonalRowsOrColumnsAreOrthonormal) {
  Rng rng(6);
  for (const Shape& shape : {Shape{5, 9}, Shape{9, 5}, Shape{4, 4}}) {
    const Tensor w = orthogonal(shape, rng, 2);
    const Tensor u = shape[0] <= shape[1] ? w : w.transpose(0, 1).contiguous();
    for (int64_t i = 0; i < u.size(0); ++i)
      for (int64_t j = 0; j < u.size(0); ++j) {
        double dot = 0;
        for (int64_t c = 0; c < u.size(1); ++c)
          dot += u.data()[i * u.size(1) + c] * u.data()[j * u.size(1) + c];
        EXPECT_NEAR(dot, i == j ? 4 : 0, 1e-5);
      }
  }
}

}  // namespace
}  // namespace fovea::nn
