// Optimisers: how gradients change weights, by PyTorch's formulas and with PyTorch's defaults.
//
// A rule is a plain struct; an Optimizer joins a rule with the parameters it moves and the state it keeps of
// them. State belongs to a checkpoint under the parameter's name: "encoder.weight.exp_avg".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "base/fields.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "nn/module.h"

namespace fovea::train {

struct Sgd {
  double learning_rate = 1e-3, weight_decay = 0;
  double momentum = 0, dampening = 0;
  bool nesterov = false;
  static constexpr const char* kName = "sgd";
  static constexpr auto fields() {
    return std::tuple{Field{"learning_rate", &Sgd::learning_rate, "size of a step"},
                      Field{"weight_decay", &Sgd::weight_decay, "L2 penalty"},
                      Field{"momentum", &Sgd::momentum, "share of the last update that is kept"},
                      Field{"dampening", &Sgd::dampening, "share of the gradient that momentum leaves out"},
                      Field{"nesterov", &Sgd::nesterov, "look ahead along the momentum"}};
  }
};

struct Adam {
  double learning_rate = 1e-3, weight_decay = 0;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  static constexpr const char* kName = "adam";
  static constexpr auto fields() {
    return std::tuple{Field{"learning_rate", &Adam::learning_rate, "size of a step"},
                      Field{"weight_decay", &Adam::weight_decay, "L2 penalty, through the gradient"},
                      Field{"beta1", &Adam::beta1, "memory of the mean gradient"},
                      Field{"beta2", &Adam::beta2, "memory of the mean square"},
                      Field{"epsilon", &Adam::epsilon, "added to the root of the mean square"}};
  }
};

struct AdamW {
  double learning_rate = 1e-3, weight_decay = 1e-2;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  bool bias_correction = true;
  static constexpr const char* kName = "adamw";
  static constexpr auto fields() {
    return std::tuple{
        Field{"learning_rate", &AdamW::learning_rate, "size of a step"},
        Field{"weight_decay", &AdamW::weight_decay, "share of the weights lost, times the rate"},
        Field{"beta1", &AdamW::beta1, "memory of the mean gradient"},
        Field{"beta2", &AdamW::beta2, "memory of the mean square"},
        Field{"epsilon", &AdamW::epsilon, "added to the root of the mean square"},
        Field{"bias_correction", &AdamW::bias_correction,
              "divide the means by the share of steps that they have seen; BERT was trained without"}};
  }
};

struct AdaDelta {
  double learning_rate = 1, weight_decay = 0;
  double rho = 0.9, epsilon = 1e-6;
  static constexpr const char* kName = "adadelta";
  static constexpr auto fields() {
    return std::tuple{Field{"learning_rate", &AdaDelta::learning_rate, "size of a step"},
                      Field{"weight_decay", &AdaDelta::weight_decay, "L2 penalty"},
                      Field{"rho", &AdaDelta::rho, "memory of the mean squares"},
                      Field{"epsilon", &AdaDelta::epsilon, "added under both roots"}};
  }
};

struct Adagrad {
  double learning_rate = 1e-2, weight_decay = 0;
  double learning_rate_decay = 0, epsilon = 1e-10;
  static constexpr const char* kName = "adagrad";
  static constexpr auto fields() {
    return std::tuple{
        Field{"learning_rate", &Adagrad::learning_rate, "size of a step"},
        Field{"weight_decay", &Adagrad::weight_decay, "L2 penalty"},
        Field{"learning_rate_decay", &Adagrad::learning_rate_decay, "how the rate falls with the steps"},
        Field{"epsilon", &Adagrad::epsilon, "added to the root of the sum of squares"}};
  }
};

struct RmsProp {
  double learning_rate = 1e-2, weight_decay = 0;
  double alpha = 0.99, epsilon = 1e-8, momentum = 0;
  bool centered = false;
  static constexpr const char* kName = "rmsprop";
  static constexpr auto fields() {
    return std::tuple{
        Field{"learning_rate", &RmsProp::learning_rate, "size of a step"},
        Field{"weight_decay", &RmsProp::weight_decay, "L2 penalty"},
        Field{"alpha", &RmsProp::alpha, "memory of the mean square"},
        Field{"epsilon", &RmsProp::epsilon, "added to the root of the mean square"},
        Field{"momentum", &RmsProp::momentum, "share of the last update that is kept"},
        Field{"centered", &RmsProp::centered, "divide by the deviation instead of the mean square"}};
  }
};

using Rule = std::variant<Sgd, Adam, AdamW, AdaDelta, Adagrad, RmsProp>;

// A rule with its defaults, by name; throws Error with the nearest match.
Rule rule_from_name(std::string_view name);
// {"name": "adam", "learning_rate": 0.001, ...}; what is not named keeps its default.
Json rule_to_json(const Rule& rule);
Rule rule_from_json(const Json& json, const std::string& where);
double learning_rate_of(const Rule& rule);

// Parameters that share a weight decay and a factor on the learning rate.
struct ParameterGroup {
  std::vector<nn::NamedParameter> parameters;
  std::optional<double> weight_decay = {};  // absent: the rule's
  double learning_rate_scale = 1;
};

// Two groups: matrices decay as the rule says; vectors (biases, norms) and what else has fewer than two
// dimensions do not.
std::vector<ParameterGroup> without_decay_on_vectors(std::vector<nn::NamedParameter> parameters);

class Optimizer {
 public:
  // Keeps handles on the parameters. Throws Error on settings that make no sense.
  Optimizer(std::vector<nn::NamedParameter> parameters, Rule rule);
  Optimizer(std::vector<ParameterGroup> groups, Rule rule);

  // One update from the gradients that backward() left, each multiplied by `gradient_scale`. A parameter
  // without a gradient stays as it is; of a row-sparse gradient the rows not named count as zero, as in
  // PyTorch.
  void step(double learning_rate, float gradient_scale = 1);
  void step() { step(learning_rate_of(rule_)); }
  void clear_grad() const;

  const Rule& rule() const { return rule_; }
  // All parameters, group after group.
  const std::vector<nn::NamedParameter>& parameters() const { return parameters_; }

  // What a checkpoint keeps: "<parameter>.<state>" and "<parameter>.step". Views of this object's memory.
  std::vector<TensorToWrite> state() const;
  // Replaces the state; throws Error, leaving it unchanged, when a name, shape or the rule does not fit.
  void load_state(const SafetensorsView& file);

 private:
  struct Slot {
    double weight_decay = 0, learning_rate_scale = 1;
    int64_t step = 0;
    Tensor state[3];  // undefined until the first gradient
  };
  Tensor new_state(size_t parameter) const { return Tensor::zeros(parameters_[parameter].value.shape()); }

  Rule rule_;
  std::vector<nn::NamedParameter> parameters_;
  std::vector<Slot> slots_;
};

// The gradients' joint length: sqrt of the sum of squares of them all, in double and in fixed order.
// `bad` names the first parameter whose gradient holds a NaN or Inf, and is empty when none does.
struct GradientNorm {
  double norm = 0;
  std::string bad;
};
GradientNorm gradient_norm(const std::vector<nn::NamedParameter>& parameters);

// The factor that brings a norm down to `largest`, at most 1: largest / (norm + 1e-6), as PyTorch clips.
double clip_factor(double norm, double largest);

}  // namespace fovea::train
