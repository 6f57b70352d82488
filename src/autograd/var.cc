// The tape: nodes of recorded ops, their order, and backward() over them.
#include "autograd/var.h"

#include <algorithm>
#include <atomic>
#include <queue>

#include "autograd/tape.h"
#include "base/parallel.h"
#include "kernels/vector/elementwise.h"

namespace fovea {

struct Var::Node {
  Tensor value;
  Tensor grad;
  std::unique_ptr<RowSparse> sparse;
  std::vector<Var> parents;
  std::function<void(const Tensor&)> backward;
  uint64_t id = 0;
  bool requires_grad = false;
  bool queued = false;
  bool spent = false;  // backward() has run through it: its function and parents are gone

  // A chain of a million steps must not be freed by a million nested destructors: parents are kept alive
  // until the functions that captured them are gone, then freed one by one.
  ~Node() {
    std::vector<Var> pending = std::move(parents);
    backward = nullptr;
    while (!pending.empty()) {
      const Var last = std::move(pending.back());
      pending.pop_back();
      if (last.node_.use_count() > 1) continue;
      std::vector<Var> next = std::move(last.node_->parents);
      last.node_->backward = nullptr;
      for (Var& parent : next) pending.push_back(std::move(parent));
    }
  }
};

namespace {

thread_local bool t_recording = true;
std::atomic<uint64_t> g_next_id{1};

void add_into(const Tensor& target, const Tensor& source) {
  kernels::axpy(1, source.contiguous().data(), target.data(), target.count());
}

void add_rows(const Tensor& target, const RowSparse& source) {
  const int64_t d = source.values.size(-1);
  parallel_for(static_cast<int64_t>(source.rows.size()),
               std::max<int64_t>(1, 65536 / std::max<int64_t>(1, d)), [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   float* to = target.data() + source.rows[i] * d;
                   const float* from = source.values.data() + i * d;
                   for (int64_t c = 0; c < d; ++c) to[c] += from[c];
                 }
               });
}

RowSparse merge_rows(const RowSparse& a, const RowSparse& b) {
  RowSparse sum;
  std::set_union(a.rows.begin(), a.rows.end(), b.rows.begin(), b.rows.end(), std::back_inserter(sum.rows));
  const int64_t d = a.values.size(-1);
  sum.values = Tensor::zeros({static_cast<int64_t>(sum.rows.size()), d});
  for (const RowSparse* part : {&a, &b}) {
    size_t place = 0;
    for (size_t i = 0; i < part->rows.size(); ++i) {
      while (sum.rows[place] != part->rows[i]) ++place;
      float* to = sum.values.data() + static_cast<int64_t>(place) * d;
      const float* from = part->values.data() + static_cast<int64_t>(i) * d;
      for (int64_t c = 0; c < d; ++c) to[c] += from[c];
    }
  }
  return sum;
}

Var::Node& defined_node(const std::shared_ptr<Var::Node>& node) {
  require(node != nullptr, "got an undefined Var, wanted one with a value: make it of a Tensor");
  return *node;
}

}  // namespace

Var::Var(Tensor value, bool requires_grad) : node_(std::make_shared<Node>()) {
  require(value.defined(), "a Var of an undefined Tensor, wanted one with a shape");
  node_->value = std::move(value);
  node_->requires_grad = requires_grad;
}

const Tensor& Var::value() const {
  return defined_node(node_).value;
}

bool Var::requires_grad() const {
  return node_ != nullptr && node_->requires_grad;
}

Tensor Var::grad() const {
  const Node& node = defined_node(node_);
  return node.sparse ? grad_buffer() : node.grad;
}

const RowSparse* Var::sparse_grad() const {
  return defined_node(node_).sparse.get();
}

void Var::clear_grad() const {
  Node& node = defined_node(node_);
  node.grad = {};
  node.sparse.reset();
}

void Var::set_value(const Tensor& value) const {
  defined_node(node_).value.copy_from(value);
}

void Var::add_grad(const Tensor& gradient) const {
  if (!requires_grad()) return;
  require(gradient.defined() && gradient.shape() == shape(), "add_grad: got a gradient of shape ",
          gradient.shape(), ", wanted ", shape());
  Node& node = *node_;
  if (node.sparse) grad_buffer();
  // Views pass strided gradients on as they are; an op that made a contiguous value is promised a contiguous
  // gradient.
  if (!node.grad.defined()) {
    node.grad = node.value.is_contiguous() ? gradient.contiguous() : gradient;
    return;
  }
  if (!node.grad.is_sole_owner() || !node.grad.is_contiguous()) node.grad = node.grad.clone();
  add_into(node.grad, gradient);
}

void Var::add_grad(RowSparse gradient) const {
  if (!requires_grad()) return;
  const auto count = static_cast<int64_t>(gradient.rows.size());
  require(rank() == 2 && gradient.values.defined() && gradient.values.shape() == Shape{count, size(1)},
          "add_grad: got a gradient of ", count, " rows with values of shape ",
          gradient.values.defined() ? gradient.values.shape() : Shape{}, ", wanted a row of ", shape(),
          " for each");
  for (size_t i = 0; i < gradient.rows.size(); ++i)
    require(gradient.rows[i] >= 0 && gradient.rows[i] < size(0) &&
                (i == 0 || gradient.rows[i - 1] < gradient.rows[i]),
            "add_grad: got row ", gradient.rows[i], ", wanted rising rows below ", size(0));
  Node& node = *node_;
  if (node.grad.defined()) {
    add_rows(grad_buffer(), gradient);
  } else if (node.sparse) {
    *node.sparse = merge_rows(*node.sparse, gradient);
  } else {
    node.sparse = std::make_unique<RowSparse>(std::move(gradient));
  }
}

Tensor Var::grad_buffer() const {
  Node& node = defined_node(node_);
  if (!node.grad.defined()) {
    node.grad = Tensor::zeros(shape());
  } else if (!node.grad.is_sole_owner() || !node.grad.is_contiguous()) {
    node.grad = node.grad.clone();
  }
  if (node.sparse) {
    add_rows(node.grad, *node.sparse);
    node.sparse.reset();
  }
  return node.grad;
}

void Var::backward(Tensor seed) const {
  require(requires_grad(), "backward: this value does not depend on anything that requires a gradient");
  if (!seed.defined()) {
    require(count() == 1, "backward: got a value of shape ", shape(),
            ", wanted one element, or a seed gradient");
    seed = Tensor::full(shape(), 1);
  }
  require(seed.shape() == shape(), "backward: got a seed of shape ", seed.shape(), ", wanted ", shape());
  const NoGrad no_grad;
  add_grad(seed);

  const auto older = [](const std::shared_ptr<Node>& a, const std::shared_ptr<Node>& b) {
    return a->id < b->id;
  };
  std::priority_queue<std::shared_ptr<Node>, std::vector<std::shared_ptr<Node>>, decltype(older)> queue(
      older);
  const auto enqueue = [&](const std::shared_ptr<Node>& node) {
    require(
        !node->spent,
        "backward: an earlier backward() went through a part of this graph, which frees it; add the losses and "
        "call backward() once");
    if (node->queued || !node->backward) return;
    node->queued = true;
    queue.push(node);
  };
  enqueue(node_);
  while (!queue.empty()) {
    const std::shared_ptr<Node> node = queue.top();
    queue.pop();
    for (const Var& parent : node->parents)
      if (parent.requires_grad()) enqueue(parent.node_);
    const auto step = std::move(node->backward);
    node->backward = nullptr;
    node->spent = true;
    Tensor grad = node->sparse ? Var(node).grad_buffer() : std::move(node->grad);
    node->grad = {};
    // The joint node of a many-valued op has no value, hence no gradient of its own.
    if (grad.defined() || !node->value.defined()) step(grad);
    node->parents.clear();
    node->queued = false;
  }
}

Var Var::detach() const {
  return Var(value());
}

bool recording(std::span<const Var> parents) {
  return t_recording &&
         std::any_of(parents.begin(), parents.end(), [](const Var& v) { return v.requires_grad(); });
}
bool recording(std::initializer_list<Var> parents) {
  return recording(std::span<const Var>(parents.begin(), parents.size()));
}

Var record(Tensor value, std::initializer_list<Var> parents, std::function<void(const Tensor&)> backward) {
  Var result(std::make_shared<Var::Node>());
  Var::Node& node = *result.node_;
  node.value = std::move(value);
  if (!recording(parents)) return result;
  node.id = g_next_id.fetch_add(1, std::memory_order_relaxed);
  node.requires_grad = true;
  for (const Var& parent : parents)
    if (parent.requires_grad()) node.parents.push_back(parent);
  node.backward = std::move(backward);
  return result;
}

std::vector<Var> record_many(std::vector<Tensor> values, std::span<const Var> parents,
                             std::function<void(std::span<const Tensor>)> backward) {
  std::vector<Var> results;
  results.reserve(values.size());
  if (!recording(parents)) {
    for (Tensor& value : values) results.push_back(record(std::move(value), {}, {}));
    return results;
  }
  // The joint node is older than its results, so their gradients are all in when its turn comes.
  auto grads = std::make_shared<std::vector<Tensor>>(values.size());
  const auto joint = std::make_shared<Var::Node>();
  joint->id = g_next_id.fetch_add(1, std::memory_order_relaxed);
  joint->requires_grad = true;
  for (const Var& parent : parents)
    if (parent.requires_grad()) joint->parents.push_back(parent);
  joint->backward = [grads, backward = std::move(backward)](const Tensor&) { backward(*grads); };
  for (size_t i = 0; i < values.size(); ++i) {
    results.push_back(
        record(std::move(values[i]), {Var(joint)}, [grads, i](const Tensor& grad) { (*grads)[i] = grad; }));
  }
  return results;
}

bool tape_is_on() {
  return t_recording;
}

void take_value(const Var& leaf, Tensor value) {
  FOVEA_ASSERT(value.shape() == leaf.shape() && value.is_contiguous());
  const_cast<Tensor&>(leaf.value()) = std::move(value);  // the node's own, which is not const
}

void drop_value(const Var& leaf) {
  const_cast<Tensor&>(leaf.value()) = Tensor();
}

NoGrad::NoGrad() : before_(t_recording) {
  t_recording = false;
}
NoGrad::~NoGrad() {
  t_recording = before_;
}

}  // namespace fovea
