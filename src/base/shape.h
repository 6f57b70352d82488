// A tensor's shape: up to eight sizes, held in place.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <span>

#include "base/error.h"

namespace fovea {

// a * b; throws Error where the product does not fit (sizes may come from files).
inline int64_t checked_product(int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product)) fail("size overflow: ", a, " x ", b);
  return product;
}

class Shape {
 public:
  static constexpr int kMaxRank = 8;

  Shape() = default;
  Shape(std::initializer_list<int64_t> sizes) : Shape(std::span(sizes.begin(), sizes.size())) {}
  // Throws on a negative size, more than kMaxRank sizes, or an element count that overflows.
  explicit Shape(std::span<const int64_t> sizes) {
    require(sizes.size() <= kMaxRank, "a shape of ", sizes.size(), " dimensions, wanted at most ", kMaxRank);
    rank_ = static_cast<int>(sizes.size());
    for (int i = 0; i < rank_; ++i) sizes_[i] = sizes[i];
    count();
  }

  int rank() const { return rank_; }
  // Size of dimension i; negative i counts from the end.
  int64_t operator[](int i) const { return sizes_[axis(i)]; }
  void set(int i, int64_t size) { sizes_[axis(i)] = size; }
  void push_back(int64_t size) {
    require(rank_ < kMaxRank, "a shape of ", rank_ + 1, " dimensions, wanted at most ", kMaxRank);
    sizes_[rank_++] = size;
  }
  // Turns a negative axis into its place from the front; throws when there is no such axis.
  int axis(int i) const {
    const int place = i < 0 ? i + rank_ : i;
    require(place >= 0 && place < rank_, "no dimension ", i, " in a shape of ", rank_, " dimensions");
    return place;
  }
  // Product of all sizes: 1 for a scalar, 0 when any size is 0.
  int64_t count() const {
    int64_t product = 1;
    for (int i = 0; i < rank_; ++i) {
      require(sizes_[i] >= 0, "negative size ", sizes_[i], " in dimension ", i);
      product = checked_product(product, sizes_[i]);
    }
    return product;
  }
  // Product of the sizes of dimensions [begin, end).
  int64_t count(int begin, int end) const {
    int64_t product = 1;
    for (int i = begin; i < end; ++i) product *= sizes_[i];
    return product;
  }
  const int64_t* begin() const { return sizes_.data(); }
  const int64_t* end() const { return sizes_.data() + rank_; }

  friend bool operator==(const Shape& a, const Shape& b) {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i)
      if (a.sizes_[i] != b.sizes_[i]) return false;
    return true;
  }
  friend std::ostream& operator<<(std::ostream& out, const Shape& shape) {
    out << '[';
    for (int i = 0; i < shape.rank_; ++i) out << (i ? ", " : "") << shape.sizes_[i];
    return out << ']';
  }

 private:
  std::array<int64_t, kMaxRank> sizes_{};
  int rank_ = 0;
};

}  // namespace fovea
