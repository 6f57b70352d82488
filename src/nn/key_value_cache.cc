#include "nn/key_value_cache.h"

#include <algorithm>
#include <cstring>

namespace fovea::nn {
namespace {

template <class T>
void pick(std::vector<T>& rows, std::span<const int32_t> parents) {
  std::vector<T> picked;
  picked.reserve(parents.size());
  for (const int32_t parent : parents) picked.push_back(rows[static_cast<size_t>(parent)]);
  rows = std::move(picked);
}

}  // namespace

void check_parents(std::span<const int32_t> parents, int64_t rows) {
  for (const int32_t parent : parents)
    require(parent >= 0 && parent < rows, "reorder: got row ", parent, ", but there are ", rows);
}

CacheRows CacheRows::growing(int64_t rows) {
  CacheRows made;
  made.growing_ = true;
  made.histories_.resize(static_cast<size_t>(rows));
  made.first_.resize(static_cast<size_t>(rows));
  made.count_.resize(static_cast<size_t>(rows));
  return made;
}

CacheRows CacheRows::of_sentences(std::span<const int64_t> lengths) {
  CacheRows made;
  for (const int64_t length : lengths) {
    made.first_.push_back(made.next_);
    made.count_.push_back(static_cast<int32_t>(length));
    made.next_ += static_cast<int32_t>(length);
  }
  return made;
}

void CacheRows::add_slots() {
  slots_.clear();
  for (size_t r = 0; r < histories_.size(); ++r) {
    std::vector<int32_t>& history = histories_[r];
    history.push_back(next_++);
    first_[r] = static_cast<int32_t>(slots_.size());
    count_[r] = static_cast<int32_t>(history.size());
    slots_.insert(slots_.end(), history.begin(), history.end());
  }
}

void CacheRows::reorder(std::span<const int32_t> parents) {
  check_parents(parents, rows());
  if (growing_) pick(histories_, parents);
  pick(first_, parents);
  pick(count_, parents);
}

float* KeyValueCache::append(int64_t slots, int64_t width) {
  const int64_t wanted = used_ + slots;
  if (!memory_.defined() || wanted > memory_.size(0)) {
    // Exactly what is requested at first, which for a source is all; then room for many steps.
    const Tensor larger(
        {memory_.defined() ? std::max(2 * memory_.size(0), used_ + 16 * slots) : wanted, width});
    if (used_ > 0)
      std::memcpy(larger.data(), memory_.data(), static_cast<size_t>(used_ * width) * sizeof(float));
    memory_ = larger;
  }
  float* const place = memory_.data() + used_ * width;
  used_ = wanted;
  return place;
}

void DecoderCache::reorder(std::span<const int32_t> parents) {
  self.reorder(parents);
  cross.reorder(parents);
}

}  // namespace fovea::nn
