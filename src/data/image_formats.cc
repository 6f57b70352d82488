#include "data/image_formats.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

namespace fovea::data {
namespace {

constexpr uint64_t kDecodingBudget = uint64_t{256} << 20;

struct Budget {
  std::mutex mutex;
  std::condition_variable freed;
  uint64_t used = 0;
};

Budget& budget() {
  static Budget only;
  return only;
}

int64_t shrunk(int64_t size, int64_t factor) {
  return (size + factor - 1) / factor;
}

}  // namespace

DecodingMemory::DecodingMemory(uint64_t bytes) : bytes_(bytes) {
  Budget& shared = budget();
  std::unique_lock lock(shared.mutex);
  shared.freed.wait(lock, [&] { return shared.used == 0 || shared.used + bytes_ <= kDecodingBudget; });
  shared.used += bytes_;
}

DecodingMemory::~DecodingMemory() {
  Budget& shared = budget();
  {
    const std::lock_guard lock(shared.mutex);
    shared.used -= bytes_;
  }
  shared.freed.notify_all();
}

uint64_t Shrinker::bytes(int64_t height, int64_t width, int64_t factor) {
  return static_cast<uint64_t>(shrunk(height, factor) * shrunk(width, factor) * 3);
}

Shrinker::Shrinker(int64_t height, int64_t width, int64_t factor)
    : height_(height), width_(width), factor_(factor) {
  image_.height = shrunk(height, factor);
  image_.width = shrunk(width, factor);
  image_.pixels.reserve(static_cast<size_t>(bytes(height, width, factor)));
  if (factor > 1) sums_.assign(static_cast<size_t>(image_.width * 3), 0);
}

void Shrinker::add(const uint8_t* row) {
  if (factor_ == 1) {
    image_.pixels.insert(image_.pixels.end(), row, row + width_ * 3);
    return;
  }
  uint64_t* sum = sums_.data();
  for (int64_t left = 0; left < width_; left += factor_, sum += 3)
    for (int64_t w = left; w < std::min(left + factor_, width_); ++w)
      for (int64_t c = 0; c < 3; ++c) sum[c] += row[3 * w + c];
  ++rows_;
  if (++done_ == height_ || rows_ == factor_) finish_rows();
}

void Shrinker::finish_rows() {
  for (int64_t i = 0; i < image_.width; ++i) {
    const auto count = static_cast<uint64_t>(rows_ * std::min(factor_, width_ - i * factor_));
    for (int64_t c = 0; c < 3; ++c) {
      uint64_t& sum = sums_[static_cast<size_t>(3 * i + c)];
      image_.pixels.push_back(static_cast<uint8_t>((sum + count / 2) / count));
      sum = 0;
    }
  }
  rows_ = 0;
}

}  // namespace fovea::data
