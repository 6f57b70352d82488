#include "train/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/error_of.h"
#include "io/temporary_directory.h"

namespace fovea::train {
namespace {

using ::testing::HasSubstr;

constexpr int kSteps = 20;

const SafetensorsFile& golden() {
  static const SafetensorsFile file(FOVEA_GOLDEN "/optimizers.safetensors");
  return file;
}

const std::map<std::string, Rule>& rules() {
  static const std::map<std::string, Rule> all = {
      {"sgd", Sgd{.learning_rate = 0.1}},
      {"sgd_momentum", Sgd{.learning_rate = 0.1, .weight_decay = 0.01, .momentum = 0.9, .dampening = 0.2}},
      {"sgd_nesterov", Sgd{.learning_rate = 0.1, .momentum = 0.9, .nesterov = true}},
      {"adam", Adam{.learning_rate = 0.01}},
      {"adam_decay",
       Adam{.learning_rate = 0.01, .weight_decay = 0.1, .beta1 = 0.8, .beta2 = 0.98, .epsilon = 1e-9}},
      {"adamw", AdamW{.learning_rate = 0.01}},
      {"adamw_decay", AdamW{.learning_rate = 0.01, .weight_decay = 0.3}},
      {"adadelta", AdaDelta{}},
      {"adadelta_decay", AdaDelta{.learning_rate = 0.5, .weight_decay = 0.1, .rho = 0.8, .epsilon = 1e-4}},
      {"adagrad", Adagrad{}},
      {"adagrad_decay", Adagrad{.learning_rate = 0.1, .weight_decay = 0.1, .learning_rate_decay = 0.1}},
      {"rmsprop", RmsProp{}},
      {"rmsprop_momentum", RmsProp{.learning_rate = 0.003, .weight_decay = 0.1, .momentum = 0.9}},
      {"rmsprop_centered", RmsProp{.learning_rate = 0.003, .alpha = 0.9, .momentum = 0.5, .centered = true}}};
  return all;
}

// The golden parameters: a matrix [3, 5] and a vector [8], one after the other in the file.
struct Parameters {
  Parameters() {
    const std::vector<float> start = golden()->read("start");
    matrix = Var(Tensor::from(std::span(start).first(15), {3, 5}), true);
    vector = Var(Tensor::from(std::span(start).subspan(15), {8}), true);
  }
  std::vector<nn::NamedParameter> named() const { return {{"matrix", matrix}, {"vector", vector}}; }
  void set_gradients(int step, bool sparse = false) const {
    const std::vector<float> all = golden()->read("gradients");
    const std::span<const float> row = std::span(all).subspan(static_cast<size_t>(step) * 23, 23);
    const Tensor gradient = Tensor::from(row.first(15), {3, 5});
    matrix.clear_grad();
    vector.clear_grad();
    if (sparse) {
      matrix.add_grad(RowSparse{{0, 1, 2}, gradient});
    } else {
      matrix.add_grad(gradient);
    }
    vector.add_grad(Tensor::from(row.subspan(15), {8}));
  }
  std::vector<float> weights() const {
    std::vector<float> all = matrix.value().to_vector();
    const std::vector<float> rest = vector.value().to_vector();
    all.insert(all.end(), rest.begin(), rest.end());
    return all;
  }
  Var matrix, vector;
};

// Largest difference from PyTorch, as a share of the weight or of 1, whichever is larger.
float difference(const std::vector<float>& got, const std::vector<float>& wanted, size_t offset) {
  float largest = 0;
  for (size_t i = 0; i < got.size(); ++i)
    largest = std::max(largest,
                       std::abs(got[i] - wanted[offset + i]) / std::max(1.f, std::abs(wanted[offset + i])));
  return largest;
}

class Golden : public ::testing::TestWithParam<std::string> {};

TEST_P(Golden, TwentyStepsEqualPyTorch) {
  for (const bool sparse : {false, true}) {
    const Parameters parameters;
    Optimizer optimizer(parameters.named(), rules().at(GetParam()));
    const std::vector<float> wanted = golden()->read("weights." + GetParam());
    for (int step = 0; step < kSteps; ++step) {
      parameters.set_gradients(step, sparse);
      optimizer.step();
      ASSERT_LT(difference(parameters.weights(), wanted, static_cast<size_t>(step) * 23), 2e-6f)
          << "step " << step + 1 << (sparse ? " row-sparse" : "");
    }
  }
}

TEST_P(Golden, ContinuesBitIdenticallyFromItsSavedState) {
  const TemporaryDirectory directory;
  const Rule rule = rules().at(GetParam());
  const Parameters straight, resumed;
  Optimizer first(straight.named(), rule);
  for (int step = 0; step < 7; ++step) {
    straight.set_gradients(step);
    first.step();
  }
  save_safetensors(directory / "state", first.state());
  resumed.matrix.set_value(straight.matrix.value());
  resumed.vector.set_value(straight.vector.value());
  Optimizer second(resumed.named(), rule_from_json(rule_to_json(rule), "rule"));
  second.load_state(*SafetensorsFile(directory / "state"));
  for (int step = 7; step < kSteps; ++step) {
    straight.set_gradients(step);
    first.step();
    resumed.set_gradients(step);
    second.step();
  }
  EXPECT_EQ(straight.weights(), resumed.weights());
}

std::vector<std::string> rule_names() {
  std::vector<std::string> names;
  for (const auto& [name, rule] : rules()) names.push_back(name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Optimizers, Golden, ::testing::ValuesIn(rule_names()),
                         [](const auto& test) { return test.param; });

TEST(Clipping, EqualsPyTorch) {
  const std::vector<float> start = golden()->read("start"), gradients = golden()->read("gradients"),
                           norms = golden()->read("clip.norms"), weights = golden()->read("clip.weights");
  const Var parameter(Tensor::from(start, {23}), true);
  const std::vector<nn::NamedParameter> named = {{"p", parameter}};
  Optimizer optimizer(named, Sgd{.learning_rate = 1});
  for (size_t step = 0; step < kSteps; ++step) {
    std::vector<float> gradient(gradients.begin() + static_cast<std::ptrdiff_t>(step * 23),
                                gradients.begin() + static_cast<std::ptrdiff_t>(step * 23 + 23));
    if (step % 2)
      for (float& g : gradient) g *= 0.01f;
    parameter.clear_grad();
    parameter.add_grad(Tensor::from(gradient, {23}));
    const GradientNorm norm = gradient_norm(named);
    EXPECT_NEAR(norm.norm, norms[step], 1e-6 * norms[step]);
    EXPECT_EQ(norm.bad, "");
    optimizer.step(1, static_cast<float>(clip_factor(norm.norm, 1.5)));
    ASSERT_LT(difference(parameter.value().to_vector(), weights, step * 23), 2e-6f) << step;
  }
}

TEST(GradientNorm, NamesTheFirstParameterThatIsNotFinite) {
  const Var fine(Tensor::zeros({2}), true), infinite(Tensor::zeros({2}), true), nan(Tensor::zeros({2}), true);
  fine.add_grad(Tensor::from({1, 2}, {2}));
  infinite.add_grad(Tensor::from({1, INFINITY}, {2}));
  nan.add_grad(Tensor::from({NAN, 0}, {2}));
  EXPECT_EQ(gradient_norm({{"fine", fine}, {"infinite", infinite}, {"nan", nan}}).bad, "infinite");
  EXPECT_EQ(gradient_norm({{"fine", fine}, {"nan", nan}}).bad, "nan");
}

TEST(GradientNorm, HugeGradientsAreNotTakenForInfinite) {
  const Var huge(Tensor::zeros({2}), true);
  huge.add_grad(Tensor::from({3e38f, 3e38f}, {2}));
  EXPECT_EQ(gradient_norm({{"huge", huge}}).bad, "");
}

TEST(Optimizer, RowsWithoutGradientCountAsZero) {
  const auto run = [](bool sparse) {
    const Var table(Tensor::full({4, 3}, 1), true);
    Optimizer optimizer({{"table", table}}, Adam{.weight_decay = 0.1});
    for (int step = 0; step < 3; ++step) {
      const Tensor rows = Tensor::from({1, 2, 3, 4, 5, 6}, {2, 3});
      Tensor dense = Tensor::zeros({4, 3});
      dense.narrow(0, 1, 1).copy_from(rows.narrow(0, 0, 1));
      dense.narrow(0, 3, 1).copy_from(rows.narrow(0, 1, 1));
      table.clear_grad();
      if (sparse) {
        table.add_grad(RowSparse{{1, 3}, rows});
      } else {
        table.add_grad(dense);
      }
      optimizer.step();
    }
    table.clear_grad();
    if (sparse) {
      table.add_grad(RowSparse{{}, Tensor(Shape{0, 3})});
    } else {
      table.add_grad(Tensor::zeros({4, 3}));
    }
    optimizer.step();
    return table.value().to_vector();
  };
  EXPECT_EQ(run(true), run(false));
}

TEST(Optimizer, ParameterWithoutGradientStaysAsItIs) {
  const Parameters parameters;
  Optimizer optimizer(parameters.named(), AdamW{});
  parameters.set_gradients(0);
  parameters.vector.clear_grad();
  const std::vector<float> before = parameters.vector.value().to_vector();
  optimizer.step();
  EXPECT_EQ(parameters.vector.value().to_vector(), before);
  EXPECT_EQ(optimizer.state().size(), 3u);
}

TEST(Optimizer, GroupsHaveTheirOwnDecayAndRate) {
  const Parameters parameters;
  auto groups = without_decay_on_vectors(parameters.named());
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].parameters[0].name, "matrix");
  EXPECT_EQ(groups[1].parameters[0].name, "vector");
  groups[0].learning_rate_scale = 0.5;
  Optimizer optimizer(groups, Sgd{.learning_rate = 0.1, .weight_decay = 0.5});
  const std::vector<float> matrix = parameters.matrix.value().to_vector(),
                           vector = parameters.vector.value().to_vector();
  parameters.matrix.add_grad(Tensor::zeros({3, 5}));
  parameters.vector.add_grad(Tensor::zeros({8}));
  optimizer.step();
  EXPECT_FLOAT_EQ(parameters.matrix.value().data()[0], matrix[0] * (1 - 0.05f * 0.5f));
  EXPECT_EQ(parameters.vector.value().to_vector(), vector);
}

TEST(Optimizer, NonsenseIsRefused) {
  EXPECT_THAT(error_of([] { rule_from_name("adm"); }), HasSubstr("did you mean 'adam'?"));
  EXPECT_THAT(error_of([] { Optimizer(std::vector<nn::NamedParameter>{}, Adam{.beta1 = 1}); }),
              HasSubstr("adam: beta1 is 1, wanted at least 0 and below 1"));
  EXPECT_THAT(error_of([] { Optimizer(std::vector<nn::NamedParameter>{}, Sgd{.learning_rate = -1}); }),
              HasSubstr("learning_rate is -1"));
  EXPECT_THAT(error_of([] { Optimizer(std::vector<nn::NamedParameter>{}, Sgd{.nesterov = true}); }),
              HasSubstr("nesterov wants a momentum"));
  EXPECT_THAT(error_of([] { rule_from_json(parse_json(R"({"name":"sgd","momentun":1})", "x"), "x"); }),
              HasSubstr("did you mean 'momentum'?"));
}

TEST(Optimizer, StateOfAnotherRuleOrModelIsRefusedAndNothingChanges) {
  const TemporaryDirectory directory;
  const Parameters parameters;
  Optimizer adam(parameters.named(), Adam{}), sgd(parameters.named(), Sgd{.momentum = 0.9});
  parameters.set_gradients(0);
  adam.step();
  save_safetensors(directory / "adam", adam.state());
  const SafetensorsFile file(directory / "adam");
  EXPECT_THAT(error_of([&] { sgd.load_state(*file); }), HasSubstr("no tensor 'matrix.momentum_buffer'"));
  Optimizer smaller({{"matrix", parameters.matrix}}, Adam{});
  EXPECT_THAT(error_of([&] { smaller.load_state(*file); }), HasSubstr("3 tensors that this model"));
  const Var other(Tensor::zeros({2}), true);
  Optimizer different({{"matrix", other}}, Adam{});
  EXPECT_THAT(error_of([&] { different.load_state(*file); }), HasSubstr("has shape [3, 5], wanted [2]"));
  EXPECT_TRUE(different.state().empty());
}

}  // namespace
}  // namespace fovea::train
