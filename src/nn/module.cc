// Finds parameters by name, prepares modules for use, and fills them from named tensors.
#include "nn/module.h"

#include <algorithm>

#include "autograd/tape.h"
#include "base/parallel.h"
#include "io/safetensors.h"
#include "nn/projection.h"

namespace fovea::nn {

Var Module::add_parameter(std::string name, Tensor value) {
  Var parameter(std::move(value), true);
  share_parameter(std::move(name), parameter);
  return parameter;
}

void Module::share_parameter(std::string name, const Var& value) {
  own_.push_back({std::move(name), value});
}

Var Module::add_buffer(std::string name, Tensor value) {
  const Var buffer(std::move(value));
  own_buffers_.push_back({std::move(name), buffer});
  return buffer;
}

void Module::add_child(std::string name, Module& child) {
  children_.emplace_back(std::move(name), &child);
}

void Module::add_projection(Projection& projection) {
  projections_.push_back(&projection);
}

void Module::collect_projections(std::vector<Projection*>& all) const {
  all.insert(all.end(), projections_.begin(), projections_.end());
  for (const auto& [name, child] : children_) child->collect_projections(all);
}

void Module::add_prepared_matrix(const Var& parameter) {
  if (parameter.defined()) prepared_matrices_.push_back(parameter);
}

void Module::collect_layers(std::vector<const Module*>& layers, std::vector<Projection*>& outside) const {
  if (!prepared_matrices_.empty()) return layers.push_back(this);
  outside.insert(outside.end(), projections_.begin(), projections_.end());
  for (const auto& [name, child] : children_) child->collect_layers(layers, outside);
}

void Module::drop_prepared_matrices() const {
  for (const Var& matrix : prepared_matrices_) drop_value(matrix);
  for (const auto& [name, child] : children_) child->drop_prepared_matrices();
}

namespace {

void prepare_all(const std::vector<Projection*>& all, std::optional<Compute> compute) {
  std::vector<uint8_t> done(all.size());
  try {
    parallel_for(static_cast<int64_t>(all.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        all[static_cast<size_t>(i)]->prepare(compute);
        done[static_cast<size_t>(i)] = 1;
      }
    });
  } catch (...) {
    for (size_t i = 0; i < all.size(); ++i)
      if (done[i]) all[i]->release();
    throw;
  }
}

}  // namespace

void Module::prepare(std::optional<Compute> compute) const {
  std::vector<Projection*> all;
  collect_projections(all);
  prepare_all(all, compute);
}

void Module::prepare_for_use(std::optional<Compute> compute, FunctionRef<void(const Module&)> before) const {
  std::vector<const Module*> layers;
  std::vector<Projection*> outside;
  collect_layers(layers, outside);
  size_t done = 0;
  try {
    for (; done < layers.size(); ++done) {
      before(*layers[done]);
      layers[done]->prepare(compute);
      layers[done]->drop_prepared_matrices();
    }
    before(*this);
    prepare_all(outside, compute);
  } catch (...) {
    for (size_t i = 0; i < done; ++i) layers[i]->release_prepared();
    throw;
  }
}

void Module::release_prepared() const {
  std::vector<Projection*> all;
  collect_projections(all);
  for (Projection* projection : all) projection->release();
}

void Module::collect(const std::string& prefix, std::initializer_list<List> lists,
                     std::vector<NamedParameter>& all) const {
  for (const List list : lists)
    for (const NamedParameter& own : this->*list) {
      const bool known = std::any_of(all.begin(), all.end(), [&](const NamedParameter& other) {
        return other.value.is_same(own.value);
      });
      if (!known) all.push_back({prefix + own.name, own.value});
    }
  for (const auto& [name, child] : children_) child->collect(prefix + name + ".", lists, all);
}

std::vector<NamedParameter> Module::parameters() const {
  std::vector<NamedParameter> all;
  collect("", {&Module::own_}, all);
  return all;
}

std::vector<NamedParameter> Module::buffers() const {
  std::vector<NamedParameter> all;
  collect("", {&Module::own_buffers_}, all);
  return all;
}

std::vector<NamedParameter> Module::state() const {
  std::vector<NamedParameter> all;
  collect("", {&Module::own_, &Module::own_buffers_}, all);
  return all;
}

int64_t Module::parameter_count() const {
  int64_t count = 0;
  for (const NamedParameter& parameter : parameters()) count += parameter.value.count();
  return count;
}

void Module::clear_grad() const {
  for (const NamedParameter& parameter : parameters()) parameter.value.clear_grad();
}

namespace {

// The values of state(), in its order.
std::vector<Tensor> find_all(const std::vector<NamedParameter>& state, const FindTensor& find) {
  std::vector<Tensor> values;
  values.reserve(state.size());
  for (const auto& [name, parameter] : state) {
    Tensor value = find(name);
    require(value.defined(), "weights: '", name, "' of shape ", parameter.shape(), " is missing");
    require(value.shape() == parameter.shape(), "weights: '", name, "' has shape ", value.shape(),
            ", wanted ", parameter.shape());
    require_finite(value, name, "weights");  // else it would answer nonsense
    values.push_back(std::move(value));
  }
  return values;
}

}  // namespace

void load_parameters(const Module& module, const FindTensor& find) {
  const std::vector<NamedParameter> state = module.state();
  const std::vector<Tensor> values = find_all(state, find);
  for (size_t i = 0; i < values.size(); ++i) state[i].value.set_value(values[i]);
}

void take_parameters(const Module& module, const FindTensor& find) {
  const std::vector<NamedParameter> state = module.state();
  const std::vector<Tensor> values = find_all(state, find);
  for (size_t i = 0; i < values.size(); ++i) take_value(state[i].value, values[i].contiguous());
}

}  // namespace fovea::nn
