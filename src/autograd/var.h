// Var: a tensor that remembers how it was made, so that backward() can fill in gradients.
//
// An op computes its value, then calls record() with its parents and a function that, given the gradient of
// the value, adds to the gradients of the parents. Nodes are numbered as they are made; backward() visits
// them in falling order, so gradients are summed in the same order at every run.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "tensor/tensor.h"

namespace fovea {

// A gradient with few rows that are not zero, as an embedding table gets: values[i] belongs to row rows[i].
struct RowSparse {
  std::vector<int32_t> rows;  // ascending, each once
  Tensor values;              // [rows, d]
};

class Var {
 public:
  // No variable: defined() is false.
  Var() = default;
  // A leaf. With requires_grad, backward() leaves its gradient in grad().
  explicit Var(Tensor value, bool requires_grad = false);

  bool defined() const { return node_ != nullptr; }
  // True when both are one variable, not merely equal.
  bool is_same(const Var& other) const { return node_ == other.node_; }
  const Tensor& value() const;
  const Shape& shape() const { return value().shape(); }
  int rank() const { return value().rank(); }
  int64_t size(int i) const { return value().size(i); }
  int64_t count() const { return value().count(); }

  // True when backward() has something to do here: a leaf that requires it, or made from one while
  // recording.
  bool requires_grad() const;

  // The gradient so far; an undefined tensor when there is none. A row-sparse one is made dense.
  Tensor grad() const;
  // The row-sparse gradient, or null when the gradient is dense or absent.
  const RowSparse* sparse_grad() const;
  void clear_grad() const;
  // Replaces a leaf's value in place (same shape): optimisers and checkpoints.
  void set_value(const Tensor& value) const;

  // Adds to the gradient; does nothing when !requires_grad(). The memory may be shared: it is copied when
  // needed.
  void add_grad(const Tensor& gradient) const;
  void add_grad(RowSparse gradient) const;
  // A zero-filled (or already partly filled) dense gradient to add into in place: slices write their own part
  // only.
  Tensor grad_buffer() const;

  // Runs the tape backwards from this variable, seeded with `seed` (default: 1 for a single element).
  // Gradients reach leaves; everything between is freed.
  void backward(Tensor seed = {}) const;

  // The same value, cut off from the tape.
  Var detach() const;

  struct Node;

 private:
  friend Var record(Tensor, std::initializer_list<Var>, std::function<void(const Tensor&)>);
  friend std::vector<Var> record_many(std::vector<Tensor>, std::span<const Var>,
                                      std::function<void(std::span<const Tensor>)>);
  explicit Var(std::shared_ptr<Node> node) : node_(std::move(node)) {}
  std::shared_ptr<Node> node_;
};

// A Var with this value. `backward` gets the value's gradient (contiguous, unless the value is a strided
// view) and is kept only when a parent requires one.
Var record(Tensor value, std::initializer_list<Var> parents,
           std::function<void(const Tensor& grad)> backward);

// For ops with several results (or a varying number of parents). `backward` runs once, when all results'
// gradients are known; a result that got none is an undefined tensor.
std::vector<Var> record_many(std::vector<Tensor> values, std::span<const Var> parents,
                             std::function<void(std::span<const Tensor> grads)> backward);

// True when any parent requires a gradient and recording is on: ops ask before saving what only backward
// needs.
bool recording(std::initializer_list<Var> parents);
bool recording(std::span<const Var> parents);

// While one lives, this thread records nothing.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool before_;
};

}  // namespace fovea
