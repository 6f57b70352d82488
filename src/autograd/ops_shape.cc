#include "autograd/ops_shape.h"

#include "kernels/vector/elementwise.h"

namespace fovea {
namespace {

// target += source for views of one shape, run by run of what is adjacent in the target.
void add_strided(const Tensor& target, const Tensor& source) {
  const Tensor from = source.contiguous();
  int outer = target.rank();  // axes before the runs
  int64_t run = 1;
  while (outer > 0 && (target.size(outer - 1) == 1 || target.stride(outer - 1) == run))
    run *= target.size(--outer);
  if (target.count() == 0) return;
  std::vector<int64_t> index(static_cast<size_t>(outer));
  float* to = target.data();
  for (int64_t done = 0; done < target.count(); done += run) {
    kernels::axpy(1, from.data() + done, to, run);
    for (int axis = outer - 1; axis >= 0; --axis) {
      to += target.stride(axis);
      if (++index[axis] < target.size(axis)) break;
      to -= target.stride(axis) * target.size(axis);
      index[axis] = 0;
    }
  }
}

}  // namespace

Var reshape(const Var& x, const Shape& shape) {
  if (!recording({x})) return Var(x.value().reshape(shape));
  return record(x.value().reshape(shape), {x},
                [x](const Tensor& grad) { x.add_grad(grad.reshape(x.shape())); });
}

Var reshape(const Var& x, std::initializer_list<int64_t> sizes) {
  return reshape(x, resolve_shape(sizes, x.count()));
}

Var transpose(const Var& x, int a, int b) {
  return record(x.value().transpose(a, b), {x},
                [x, a, b](const Tensor& grad) { x.add_grad(grad.transpose(a, b)); });
}

Var permute(const Var& x, std::initializer_list<int> axes) {
  std::vector<int> inverse(axes.size());
  int place = 0;
  Tensor value = x.value().permute(axes);
  for (const int axis : axes) inverse[static_cast<size_t>(x.shape().axis(axis))] = place++;
  return record(std::move(value), {x},
                [x, inverse](const Tensor& grad) { x.add_grad(grad.permute(inverse)); });
}

Var slice(const Var& x, int axis, int64_t begin, int64_t count) {
  return record(x.value().narrow(axis, begin, count), {x}, [x, axis, begin, count](const Tensor& grad) {
    add_strided(x.grad_buffer().narrow(axis, begin, count), grad);
  });
}

std::vector<Var> split(const Var& x, int axis, std::span<const int64_t> counts) {
  std::vector<Tensor> parts;
  int64_t begin = 0;
  for (const int64_t count : counts) {
    parts.push_back(x.value().narrow(axis, begin, count));
    begin += count;
  }
  require(begin == x.size(axis), "split: the parts add up to ", begin, ", wanted ", x.size(axis));
  const std::vector<int64_t> sizes(counts.begin(), counts.end());
  return record_many(std::move(parts), {&x, 1}, [x, axis, sizes](std::span<const Tensor> grads) {
    const Tensor whole = Tensor::laid_out_like(x.value());
    int64_t place = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      const Tensor part = whole.narrow(axis, place, sizes[i]);
      part.copy_from(grads[i].defined() ? grads[i] : Tensor::zeros(part.shape()));
      place += sizes[i];
    }
    x.add_grad(whole);
  });
}

Var concat(std::span<const Var> parts, int axis) {
  require(!parts.empty(), "concat: no parts");
  Shape shape = parts[0].shape();
  axis = shape.axis(axis);
  int64_t total = 0;
  for (const Var& part : parts) {
    Shape other = part.shape();
    require(other.rank() == shape.rank(), "concat: shapes ", parts[0].shape(), " and ", other,
            " differ in rank");
    total += other[axis];
    other.set(axis, shape[axis]);
    require(other == shape, "concat along ", axis, ": got shapes ", parts[0].shape(), " and ", part.shape());
  }
  shape.set(axis, total);
  Tensor joined(shape);
  int64_t begin = 0;
  for (const Var& part : parts) {
    joined.narrow(axis, begin, part.size(axis)).copy_from(part.value());
    begin += part.size(axis);
  }
  const std::vector<Var> sources(parts.begin(), parts.end());
  return record_many({joined}, parts, [sources, axis](std::span<const Tensor> grads) {
    int64_t place = 0;
    for (const Var& source : sources) {
      source.add_grad(grads[0].narrow(axis, place, source.size(axis)));
      place += source.size(axis);
    }
  })[0];
}

}  // namespace fovea
