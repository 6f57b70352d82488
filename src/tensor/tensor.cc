// Makes tensors and views of them, and copies between layouts.
#include "tensor/tensor.h"

#include <algorithm>
#include <cstring>

#include "base/parallel.h"
#include "kernels/vector/rows.h"
#include "tensor/allocator.h"

namespace fovea {
namespace {

void copy_strided(const Tensor& from, const Tensor& to) {
  const Shape& shape = from.shape();
  std::array<int64_t, Shape::kMaxRank> from_strides{}, to_strides{};
  for (int i = 0; i < shape.rank(); ++i) {
    from_strides[i] = from.stride(i);
    to_strides[i] = to.stride(i);
  }
  kernels::copy_strided(
      {{shape.begin(), shape.end()}, from.data(), from_strides.data(), to.data(), to_strides.data()});
}

}  // namespace

Tensor::Tensor(const Shape& shape)
    : storage_(allocate_floats(shape.count())), shape_(shape), count_(shape.count()) {
  data_ = storage_.get();
  int64_t stride = 1;
  for (int i = shape_.rank() - 1; i >= 0; --i) {
    strides_[i] = stride;
    stride *= std::max<int64_t>(1, shape_[i]);
  }
}

Tensor Tensor::full(const Shape& shape, float value) {
  Tensor result(shape);
  result.fill(value);
  return result;
}

Tensor Tensor::from(std::span<const float> values, const Shape& shape) {
  require(static_cast<int64_t>(values.size()) == shape.count(), "got ", values.size(), " values for shape ",
          shape, ", wanted ", shape.count());
  Tensor result(shape);
  std::copy(values.begin(), values.end(), result.data_);
  return result;
}

Tensor Tensor::laid_out_like(const Tensor& pattern) {
  std::array<int, Shape::kMaxRank> order{}, inverse{};
  const int rank = pattern.rank();
  for (int i = 0; i < rank; ++i) order[i] = i;
  std::stable_sort(order.begin(), order.begin() + rank,
                   [&](int a, int b) { return pattern.strides_[a] > pattern.strides_[b]; });
  Shape shape;
  for (int i = 0; i < rank; ++i) {
    shape.push_back(pattern.size(order[i]));
    inverse[order[i]] = i;
  }
  return Tensor(shape).permute(std::span<const int>(inverse.data(), static_cast<size_t>(rank)));
}

Tensor Tensor::wrap(std::shared_ptr<float[]> owner, float* data, const Shape& shape) {
  Tensor result;
  result.storage_ = std::move(owner);
  result.data_ = data;
  result.shape_ = shape;
  result.count_ = shape.count();
  int64_t stride = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    result.strides_[i] = stride;
    stride *= std::max<int64_t>(1, shape[i]);
  }
  return result;
}

void Tensor::find_contiguous() {
  int64_t wanted = 1;
  contiguous_ = true;
  for (int i = shape_.rank() - 1; i >= 0; --i) {
    if (shape_[i] == 0) {
      contiguous_ = true;
      return;
    }
    if (shape_[i] != 1 && strides_[i] != wanted) contiguous_ = false;
    wanted *= shape_[i];
  }
}

std::span<float> Tensor::span() const {
  require(contiguous_, "span() of a strided view of shape ", shape_,
          ", wanted a contiguous tensor: contiguous()");
  return {data_, static_cast<size_t>(count_)};
}

float Tensor::item() const {
  require(count_ == 1, "item() of a tensor of shape ", shape_, ", wanted one element");
  return *data_;
}

Tensor Tensor::reshape(const Shape& shape) const {
  require(shape.count() == count_, "cannot see shape ", shape_, " as ", shape, ": ", count_,
          " elements against ", shape.count());
  if (!contiguous_) return clone().reshape(shape);
  return wrap(storage_, data_, shape);
}

Tensor Tensor::reshape(std::initializer_list<int64_t> sizes) const {
  return reshape(resolve_shape(sizes, count_));
}

Tensor Tensor::transpose(int a, int b) const {
  Tensor view = *this;
  a = shape_.axis(a);
  b = shape_.axis(b);
  std::swap(view.strides_[a], view.strides_[b]);
  view.shape_.set(a, shape_[b]);
  view.shape_.set(b, shape_[a]);
  view.find_contiguous();
  return view;
}

Tensor Tensor::permute(std::span<const int> axes) const {
  require(static_cast<int>(axes.size()) == rank(), "permute: got ", axes.size(), " axes for shape ", shape_);
  Tensor view = *this;
  unsigned seen = 0;
  for (int i = 0; i < rank(); ++i) {
    const int from = shape_.axis(axes[i]);
    require((seen >> from & 1u) == 0, "permute: axis ", from, " is named twice");
    seen |= 1u << from;
    view.shape_.set(i, shape_[from]);
    view.strides_[i] = strides_[from];
  }
  view.find_contiguous();
  return view;
}

Tensor Tensor::narrow(int axis, int64_t begin, int64_t count) const {
  axis = shape_.axis(axis);
  require(begin >= 0 && count >= 0 && count <= shape_[axis] - begin, count, " elements from ", begin,
          " of dimension ", axis, " of shape ", shape_, ", which has ", shape_[axis]);
  Tensor view = *this;
  view.shape_.set(axis, count);
  view.count_ = view.shape_.count();
  view.data_ += begin * strides_[axis];
  view.find_contiguous();
  return view;
}

Tensor Tensor::clone() const {
  Tensor copy(shape_);
  copy.copy_from(*this);
  return copy;
}

void Tensor::copy_from(const Tensor& source) const {
  require(source.defined() && defined(), "cannot copy from or to an undefined tensor");
  require(source.shape_ == shape_, "cannot copy shape ", source.shape_, " into shape ", shape_);
  if (contiguous_ && source.contiguous_) {
    parallel_for(count_, 1 << 18, [&](int64_t begin, int64_t end) {
      std::memcpy(data_ + begin, source.data_ + begin, static_cast<size_t>(end - begin) * sizeof(float));
    });
  } else {
    copy_strided(source, *this);
  }
}

void Tensor::fill(float value) const {
  require(contiguous_, "fill() of a strided view of shape ", shape_, ", wanted a contiguous tensor");
  parallel_for(count_, 1 << 18,
               [&](int64_t begin, int64_t end) { std::fill(data_ + begin, data_ + end, value); });
}

std::vector<float> Tensor::to_vector() const {
  const Tensor dense = contiguous();
  return {dense.data_, dense.data_ + dense.count_};
}

Shape resolve_shape(std::initializer_list<int64_t> sizes, int64_t count) {
  int64_t known = 1, open = -1;
  int64_t place = 0;
  for (const int64_t size : sizes) {
    if (size == -1) {
      require(open < 0, "reshape: two sizes are -1, wanted at most one");
      open = place;
    } else {
      known = checked_product(known, size);
    }
    ++place;
  }
  if (open < 0) return Shape(sizes);
  require(known > 0 && count % known == 0, "reshape: ", count, " elements do not divide into rows of ",
          known);
  std::vector<int64_t> resolved(sizes);
  resolved[static_cast<size_t>(open)] = count / known;
  return Shape(std::span<const int64_t>(resolved));
}

}  // namespace fovea
