// Module: something that owns parameters, and finds them by name so that weights map to files.
//
// A layer registers its parameters, buffers and children in its constructor. Full names join with dots, as in
// PyTorch: "encoder.layers.0.linear1.weight". A buffer belongs to the weights of a module as a parameter
// does, but no optimiser trains it: the running mean of a batch norm.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autograd/var.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "nn/prepared_linear.h"

namespace fovea::nn {

// Choices that a layer drew in training (hard attention). A draw has no derivative: the loss has to weigh their
// log-probability by how well each example went; see nn/choices.h.
struct DrawnChoices {
  Var log_probability;
  std::vector<int32_t> example;  // of each element, in row-major order
};

// What a forward pass needs to know besides its input. Passed down by reference: layers hold parameters, no
// mode.
struct Context {
  bool training = false;  // dropout and random choices act only then
  Rng rng{0};             // its state belongs to a checkpoint
  // How many rows of the next layer each example of the batch has, one example after the other. Set by models
  // whose loss is known example by example; where it is empty, layers refuse to draw hard choices.
  std::vector<int64_t> rows_of_example = {};
  std::vector<DrawnChoices> choices = {};  // of this pass
  // The seed of the next random op: one draw a layer and call, in the order of the calls.
  uint64_t next_seed() { return rng.bits64(); }
  // A layer's dropout probability in this pass.
  float rate(float dropout) const { return training ? dropout : 0; }
};

class Projection;

struct NamedParameter {
  std::string name;
  Var value;
};

class Module {
 public:
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // All parameters of this module and its children, in the order of registration. A parameter that two
  // children share (tied embeddings) appears once, under its first name.
  std::vector<NamedParameter> parameters() const;
  int64_t parameter_count() const;
  // All buffers, and parameters and buffers together: what files, averages and checkpoints hold.
  std::vector<NamedParameter> buffers() const;
  std::vector<NamedParameter> state() const;

  // Drops all gradients.
  void clear_grad() const;

  // Prepares the weights of every layer as they are now, for use without the tape (nn/projection.h), and drops
  // what was prepared. Use Prepared. prepare() throws Error, and leaves nothing prepared, when a weight is not
  // finite.
  void prepare(std::optional<Compute> compute) const;
  // The same for a module that is only used from now on, and neither trained nor saved: layer by layer, and a layer's
  // matrices that prepared forms alone read have no value any more once it is prepared, so that memory holds them
  // once. `before` is called with each such layer before it is prepared, and last with this module.
  void prepare_for_use(std::optional<Compute> compute, FunctionRef<void(const Module&)> before) const;
  void release_prepared() const;

 protected:
  Module() = default;
  // Registers and returns a trainable parameter.
  Var add_parameter(std::string name, Tensor value);
  // Registers a parameter owned elsewhere (tied weights).
  void share_parameter(std::string name, const Var& value);
  // Registers and returns what is kept with the parameters, and changed in place by the layer itself.
  Var add_buffer(std::string name, Tensor value);
  // Registers a child that is a member of this object (or owned by it) and lives as long.
  void add_child(std::string name, Module& child);
  // Registers what prepare() prepares: a member of this object.
  void add_projection(Projection& projection);
  // Registers a parameter of this module or of a child that, while the module is in use, its projections alone read.
  void add_prepared_matrix(const Var& parameter);

 private:
  using List = std::vector<NamedParameter> Module::*;
  void collect(const std::string& prefix, std::initializer_list<List> lists,
               std::vector<NamedParameter>& all) const;
  void collect_projections(std::vector<Projection*>& all) const;
  // The outermost modules with prepared matrices, and the projections outside of them.
  void collect_layers(std::vector<const Module*>& layers, std::vector<Projection*>& outside) const;
  void drop_prepared_matrices() const;

  std::vector<NamedParameter> own_, own_buffers_;
  std::vector<std::pair<std::string, Module*>> children_;
  std::vector<Projection*> projections_;
  std::vector<Var> prepared_matrices_;
};

// A model in use: while one lives, the model's weights are prepared and must not change.
class Prepared {
 public:
  Prepared() = default;
  // The module must outlive this object. Without a kind of product: as the module is prepared already, or
  // else float32. Throws Error when it is prepared already with another kind.
  explicit Prepared(const Module& module, std::optional<Compute> compute = {}) {
    module.prepare(compute);
    module_ = &module;
  }
  // For use alone: Module::prepare_for_use().
  Prepared(const Module& module, Compute compute, FunctionRef<void(const Module&)> before) {
    module.prepare_for_use(compute, before);
    module_ = &module;
  }
  Prepared(Prepared&& other) noexcept : module_(std::exchange(other.module_, nullptr)) {}
  Prepared& operator=(Prepared&& other) noexcept {
    std::swap(module_, other.module_);
    return *this;
  }
  ~Prepared() {
    if (module_ != nullptr) module_->release_prepared();
  }

 private:
  const Module* module_ = nullptr;
};

// Copies values into the parameters and buffers of the same names; `find` returns an undefined tensor for a
// name it lacks. Throws, naming the parameter, when one is missing or has another shape; nothing is changed
// then.
using FindTensor = std::function<Tensor(std::string_view name)>;
void load_parameters(const Module& module, const FindTensor& find);
// The same without copies: the tensors found become the values.
void take_parameters(const Module& module, const FindTensor& find);

}  // namespace fovea::nn
