// Optimiser rules by name and JSON, their steps over parameter groups, their state in checkpoints, and the norm of
// gradients.
#include "train/optimizer.h"

#include <array>
#include <cmath>
#include <cstring>
#include <set>
#include <type_traits>

#include "kernels/vector/optim.h"

namespace fovea::train {
namespace {

// Names of the states a rule keeps, in the order of the kernels; an empty name is a state it does without.
using StateNames = std::array<std::string_view, 3>;

StateNames state_names(const Rule& rule) {
  struct Names {
    StateNames operator()(const Sgd& r) const { return {r.momentum != 0 ? "momentum_buffer" : ""}; }
    StateNames operator()(const Adam&) const { return {"exp_avg", "exp_avg_sq"}; }
    StateNames operator()(const AdamW&) const { return {"exp_avg", "exp_avg_sq"}; }
    StateNames operator()(const AdaDelta&) const { return {"square_avg", "acc_delta"}; }
    StateNames operator()(const Adagrad&) const { return {"sum"}; }
    StateNames operator()(const RmsProp& r) const {
      return {"square_avg", r.momentum != 0 ? "momentum_buffer" : "", r.centered ? "grad_avg" : ""};
    }
  };
  return std::visit(Names{}, rule);
}

struct KernelStep {
  std::span<const kernels::OptimTensor> tensors;
  kernels::StepOptions options;

  void operator()(const Sgd& r) const {
    optim_step(kernels::SgdRule{r.momentum, r.dampening, r.nesterov}, tensors, options);
  }
  void operator()(const Adam& r) const {
    optim_step(kernels::AdamRule{r.beta1, r.beta2, r.epsilon, false}, tensors, options);
  }
  void operator()(const AdamW& r) const {
    optim_step(kernels::AdamRule{r.beta1, r.beta2, r.epsilon, true, r.bias_correction}, tensors, options);
  }
  void operator()(const AdaDelta& r) const {
    optim_step(kernels::AdaDeltaRule{r.rho, r.epsilon}, tensors, options);
  }
  void operator()(const Adagrad& r) const {
    optim_step(kernels::AdagradRule{r.learning_rate_decay, r.epsilon}, tensors, options);
  }
  void operator()(const RmsProp& r) const {
    optim_step(kernels::RmspropRule{r.alpha, r.epsilon, r.momentum, r.centered}, tensors, options);
  }
};

void check_share(const char* rule, const char* field, double value) {
  require(value >= 0 && value < 1, rule, ": ", field, " is ", value, ", wanted at least 0 and below 1");
}

void check(const Rule& rule) {
  std::visit(
      [](const auto& r) {
        using R = std::decay_t<decltype(r)>;
        require(r.learning_rate >= 0 && std::isfinite(r.learning_rate), R::kName, ": learning_rate is ",
                r.learning_rate, ", wanted a finite number of at least 0");
        require(r.weight_decay >= 0, R::kName, ": weight_decay is ", r.weight_decay, ", wanted at least 0");
        if constexpr (requires { r.epsilon; })
          require(r.epsilon >= 0, R::kName, ": epsilon is ", r.epsilon, ", wanted at least 0");
        if constexpr (requires { r.momentum; })
          require(r.momentum >= 0, R::kName, ": momentum is ", r.momentum, ", wanted at least 0");
        if constexpr (requires { r.beta1; }) check_share(R::kName, "beta1", r.beta1);
        if constexpr (requires { r.beta2; }) check_share(R::kName, "beta2", r.beta2);
        if constexpr (requires { r.rho; }) check_share(R::kName, "rho", r.rho);
        if constexpr (requires { r.alpha; }) check_share(R::kName, "alpha", r.alpha);
        if constexpr (requires { r.nesterov; })
          require(!r.nesterov || (r.momentum > 0 && r.dampening == 0), R::kName,
                  ": nesterov wants a momentum and no dampening");
      },
      rule);
}

template <class Visit, size_t... I>
void for_each_rule(Visit&& visit, std::index_sequence<I...>) {
  (visit(std::variant_alternative_t<I, Rule>{}), ...);
}

}  // namespace

Rule rule_from_name(std::string_view name) {
  std::optional<Rule> found;
  std::vector<std::string_view> known;
  for_each_rule(
      [&](auto rule) {
        known.emplace_back(rule.kName);
        if (name == rule.kName) found = rule;
      },
      std::make_index_sequence<std::variant_size_v<Rule>>());
  if (!found) fail("unknown optimizer ", in_quotes(name), name_hint(name, known));
  return *found;
}

Json rule_to_json(const Rule& rule) {
  return std::visit(
      [](const auto& r) {
        Json json = {{"name", r.kName}};
        json.update(fields_to_json(r));
        return json;
      },
      rule);
}

Rule rule_from_json(const Json& json, const std::string& where) {
  require(json.is_object() && json.contains("name") && json["name"].is_string(), where,
          ": wanted an object with the optimizer's name");
  Rule rule = rule_from_name(json["name"].get_ref<const std::string&>());
  Json rest = json;
  rest.erase("name");
  std::visit([&](auto& r) { fields_from_json(rest, r, where); }, rule);
  check(rule);
  return rule;
}

double learning_rate_of(const Rule& rule) {
  return std::visit([](const auto& r) { return r.learning_rate; }, rule);
}

std::vector<ParameterGroup> without_decay_on_vectors(std::vector<nn::NamedParameter> parameters) {
  std::vector<ParameterGroup> groups(2);
  groups[1].weight_decay = 0;
  for (nn::NamedParameter& parameter : parameters)
    groups[parameter.value.rank() < 2].parameters.push_back(std::move(parameter));
  return groups;
}

Optimizer::Optimizer(std::vector<nn::NamedParameter> parameters, Rule rule)
    : Optimizer(std::vector<ParameterGroup>{{std::move(parameters), std::nullopt, 1}}, rule) {}

Optimizer::Optimizer(std::vector<ParameterGroup> groups, Rule rule) : rule_(rule) {
  check(rule);
  const double rule_decay = std::visit([](const auto& r) { return r.weight_decay; }, rule);
  std::set<std::string_view> names;
  for (const ParameterGroup& group : groups)
    for (const nn::NamedParameter& parameter : group.parameters) {
      require(names.insert(parameter.name).second, "two parameters named ", in_quotes(parameter.name),
              " in the optimizer's groups");
      require(parameter.value.defined(), "the optimizer's parameter ", in_quotes(parameter.name),
              " is undefined");
      parameters_.push_back(parameter);
      slots_.push_back({group.weight_decay.value_or(rule_decay), group.learning_rate_scale, 0, {}});
    }
}

void Optimizer::step(double learning_rate, float gradient_scale) {
  static constexpr int32_t kNoRows = 0;  // a row-sparse gradient of no rows still is one
  const StateNames names = state_names(rule_);
  std::vector<kernels::OptimTensor> tensors;
  std::vector<Tensor> gradients;  // kept alive while the kernels read them
  for (size_t i = 0; i < slots_.size(); ++i) {
    const Var& parameter = parameters_[i].value;
    const RowSparse* sparse = parameter.sparse_grad();
    const Tensor gradient = sparse ? sparse->values : parameter.grad();
    if (!gradient.defined()) continue;
    Slot& slot = slots_[i];
    for (size_t s = 0; s < names.size(); ++s)
      if (!names[s].empty() && !slot.state[s].defined()) slot.state[s] = new_state(i);
    kernels::OptimTensor tensor{.weight = parameter.value().data(),
                                .gradient = gradient.data(),
                                .count = parameter.count(),
                                .state = {},
                                .learning_rate = learning_rate * slot.learning_rate_scale,
                                .weight_decay = slot.weight_decay,
                                .step = ++slot.step};
    for (size_t s = 0; s < names.size(); ++s)
      if (slot.state[s].defined()) tensor.state[s] = slot.state[s].data();
    if (sparse) {
      tensor.row_ids = sparse->rows.empty() ? &kNoRows : sparse->rows.data();
      tensor.row_count = static_cast<int64_t>(sparse->rows.size());
      tensor.row_size = sparse->values.size(-1);
    }
    tensors.push_back(tensor);
    gradients.push_back(gradient);
  }
  std::visit(KernelStep{tensors, {.gradient_scale = gradient_scale}}, rule_);
}

void Optimizer::clear_grad() const {
  for (const nn::NamedParameter& parameter : parameters_) parameter.value.clear_grad();
}

std::vector<TensorToWrite> Optimizer::state() const {
  const StateNames names = state_names(rule_);
  std::vector<TensorToWrite> all;
  for (size_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    if (slot.step == 0) continue;
    const std::string prefix = parameters_[i].name + ".";
    all.push_back({prefix + "step", Dtype::i64, {}, std::as_bytes(std::span(&slot.step, 1))});
    for (size_t s = 0; s < names.size(); ++s)
      if (!names[s].empty())
        all.push_back(TensorToWrite::floats(prefix + std::string(names[s]), slot.state[s]));
  }
  return all;
}

// More than any run takes: what lies beyond is damage.
constexpr int64_t kMostSteps = int64_t{1} << 40;

void Optimizer::load_state(const SafetensorsView& file) {
  const StateNames names = state_names(rule_);
  std::vector<Slot> loaded = slots_;
  size_t used = 0;
  for (size_t i = 0; i < loaded.size(); ++i) {
    Slot& slot = loaded[i];
    const std::string prefix = parameters_[i].name + ".";
    slot.step = 0;
    for (Tensor& state : slot.state) state = {};
    if (!file.contains(prefix + "step")) continue;
    const TensorEntry& step = file.entry(prefix + "step");
    require(step.dtype == Dtype::i64 && step.shape == Shape{}, "the optimizer's state ", in_quotes(step.name),
            " is no single I64");
    std::memcpy(&slot.step, file.bytes(step).data(), sizeof slot.step);
    require(slot.step >= 0 && slot.step <= kMostSteps, "the optimizer's state ", in_quotes(step.name), " is ",
            slot.step, ", wanted 0 to ", kMostSteps);
    ++used;
    for (size_t s = 0; s < names.size(); ++s) {
      if (names[s].empty()) continue;
      slot.state[s] = file.tensor(prefix + std::string(names[s]));
      require(slot.state[s].shape() == parameters_[i].value.shape(), "the optimizer's state ",
              in_quotes(prefix + std::string(names[s])), " has shape ", slot.state[s].shape(), ", wanted ",
              parameters_[i].value.shape());
      ++used;
    }
  }
  require(used == file.entries().size(), "the optimizer's state contains ", file.entries().size() - used,
          " tensors that this model and optimizer do not have");
  slots_ = std::move(loaded);
}

GradientNorm gradient_norm(const std::vector<nn::NamedParameter>& parameters) {
  std::vector<kernels::ConstTensor> tensors;
  std::vector<Tensor> gradients;  // kept alive while the kernel reads them
  for (const nn::NamedParameter& parameter : parameters) {
    const RowSparse* sparse = parameter.value.sparse_grad();
    gradients.push_back(sparse ? sparse->values : parameter.value.grad());
    const Tensor& gradient = gradients.back();
    tensors.push_back(gradient.defined() ? kernels::ConstTensor{gradient.data(), gradient.count()}
                                         : kernels::ConstTensor{});
  }
  std::vector<double> sums(tensors.size());
  sums_of_squares(tensors, sums.data());
  GradientNorm result;
  double total = 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    if (!std::isfinite(sums[i]) && result.bad.empty()) result.bad = parameters[i].name;
    total += sums[i];
  }
  result.norm = std::sqrt(total);
  return result;
}

double clip_factor(double norm, double largest) {
  return std::min(1.0, largest / (norm + 1e-6));
}

}  // namespace fovea::train
