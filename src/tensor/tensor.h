// Tensor: a float32 array with shape and strides; a handle, cheap to copy, sharing its memory with its views.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "base/shape.h"

namespace fovea {

class Tensor {
 public:
  // No tensor at all: defined() is false, and nothing else may be called.
  Tensor() = default;
  // Uninitialised, contiguous, row-major.
  explicit Tensor(const Shape& shape);

  static Tensor zeros(const Shape& shape) { return full(shape, 0); }
  static Tensor full(const Shape& shape, float value);
  static Tensor scalar(float value) { return full({}, value); }
  // A copy of `values`, row-major; throws when their number is not the shape's.
  static Tensor from(std::span<const float> values, const Shape& shape);
  static Tensor from(std::initializer_list<float> values, const Shape& shape) {
    return from(std::span(values.begin(), values.size()), shape);
  }
  // Uninitialised, of this shape, with the axes in memory in the same order as `pattern` has them.
  static Tensor laid_out_like(const Tensor& pattern);
  // Memory owned by someone else (a mapped file), kept alive by `owner`.
  static Tensor wrap(std::shared_ptr<float[]> owner, float* data, const Shape& shape);

  bool defined() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  // Size of dimension i; negative i counts from the end.
  int64_t size(int i) const { return shape_[i]; }
  int64_t count() const { return count_; }
  // Elements between neighbours along dimension i.
  int64_t stride(int i) const { return strides_[shape_.axis(i)]; }
  bool is_contiguous() const { return contiguous_; }
  // True when no other tensor shares this memory: it may then be overwritten.
  bool is_sole_owner() const { return storage_.use_count() == 1; }

  // First element. For a tensor that is not contiguous, walk it by stride().
  float* data() const { return data_; }
  // All elements of a contiguous tensor.
  std::span<float> span() const;
  // The only element.
  float item() const;

  // Views: the same memory, seen otherwise.
  // One size may be -1: whatever is left. Copies only when this tensor is not contiguous.
  Tensor reshape(const Shape& shape) const;
  Tensor reshape(std::initializer_list<int64_t> sizes) const;
  Tensor transpose(int a, int b) const;
  Tensor permute(std::span<const int> axes) const;
  Tensor permute(std::initializer_list<int> axes) const {
    return permute(std::span(axes.begin(), axes.size()));
  }
  // Elements [begin, begin + count) along one axis.
  Tensor narrow(int axis, int64_t begin, int64_t count) const;

  // This tensor, or a contiguous copy of it.
  Tensor contiguous() const { return contiguous_ ? *this : clone(); }
  // A contiguous copy.
  Tensor clone() const;
  // Overwrites all elements; shapes must agree.
  void copy_from(const Tensor& source) const;
  void fill(float value) const;
  std::vector<float> to_vector() const;

 private:
  void find_contiguous();

  std::shared_ptr<float[]> storage_;
  float* data_ = nullptr;
  Shape shape_;
  std::array<int64_t, Shape::kMaxRank> strides_{};
  int64_t count_ = 0;
  bool contiguous_ = true;
};

// Works out a size of -1 from the others; throws when it cannot be.
Shape resolve_shape(std::initializer_list<int64_t> sizes, int64_t count);

}  // namespace fovea
