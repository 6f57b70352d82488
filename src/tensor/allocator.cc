// The cache of float memory: free blocks by size, and where new ones come from (slabs of huge pages, or the system).
#include "tensor/allocator.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "base/shape.h"

namespace fovea {
namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kHugePage = int64_t{2} << 20;

// Blocks of these sizes are cut from slabs of huge pages: translating one sentence, which reads all weights for each token, takes
// 17.0 ms instead of 22.4 with them (int8, Transformer-base on Zen 4). A block of a slab is kept for reuse and never returned to
// the system. AddressSanitizer needs separate blocks to see what lies outside them.
constexpr int64_t kSmallestCut = int64_t{64} << 10, kLargestCut = int64_t{16} << 20;
constexpr int64_t kSlab = int64_t{64} << 20;
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kCuts = false;
#elif defined(__has_feature)  // clang
constexpr bool kCuts = !__has_feature(address_sanitizer);
#else
constexpr bool kCuts = true;
#endif

bool is_cut(int64_t bytes) {
  return kCuts && bytes >= kSmallestCut && bytes <= kLargestCut;
}

// Sizes are rounded up to eight steps per power of two: at most an eighth is wasted, and sizes meet again.
int64_t rounded_size(int64_t bytes) {
  if (bytes <= 256) return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const int64_t step = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(bytes - 1))) / 8;
  const int64_t unit = std::max(step, kAlignment);
  return (bytes + unit - 1) / unit * unit;
}

// The place of a rounded size among all of them.
size_t place_of(int64_t bytes) {
  const auto last = static_cast<uint64_t>(bytes - 1);
  const int power = std::bit_width(last) - 1;  // 5 at least
  return static_cast<size_t>(8 * power) + (last >> (power - 3) & 7);
}

// The inverse.
int64_t size_of(size_t place) {
  const int64_t power = int64_t{1} << place / 8;
  return power + power / 8 * static_cast<int64_t>(place % 8 + 1);
}

// Large blocks may be up to half as large again as was requested, where the cache has one: in training, gradients of weights
// then use what the activations have given back.
constexpr int64_t kLarge = int64_t{1} << 20;
constexpr size_t kPlacesAbove = 4;

void* take_from_system(int64_t bytes) {
  const bool huge = bytes >= kHugePage;
  const int64_t alignment = huge ? kHugePage : kAlignment;
  const int64_t whole = (bytes + alignment - 1) / alignment * alignment;
  void* block = std::aligned_alloc(static_cast<size_t>(alignment), static_cast<size_t>(whole));
  // Not the last page where it is used in part: all of it would be taken.
  if (block != nullptr && huge)
    madvise(block, static_cast<size_t>(bytes / kHugePage * kHugePage), MADV_HUGEPAGE);
  return block;
}

class Cache {
 public:
  // `bytes` becomes the size of the block.
  void* allocate(int64_t& bytes) {
    {
      const std::lock_guard lock(mutex_);
      const size_t place = place_of(bytes), last = bytes >= kLarge ? place + kPlacesAbove : place;
      size_t found = place;
      while (found < last && free_[found].empty()) ++found;
      const bool cached = !free_[found].empty();
      if (found > place && cached) bytes = size_of(found);
      use_.live_bytes += bytes;
      use_.peak_bytes = std::max(use_.peak_bytes, use_.live_bytes);
      if (cached) {
        void* block = free_[found].back();
        free_[found].pop_back();
        use_.cached_bytes -= bytes;
        return block;
      }
      if (is_cut(bytes))
        if (void* block = cut(bytes)) return block;
    }
    void* block = take_from_system(bytes);
    if (block == nullptr) {
      trim();
      block = take_from_system(bytes);
    }
    if (block == nullptr) {
      const std::lock_guard lock(mutex_);
      use_.live_bytes -= bytes;
      fail("out of memory: ", bytes, " bytes more were wanted with ", use_.live_bytes,
           " in use; try smaller batches");
    }
    return block;
  }
  void release(void* block, int64_t bytes) noexcept {
    const std::lock_guard lock(mutex_);
    use_.live_bytes -= bytes;
    use_.cached_bytes += bytes;
    free_[place_of(bytes)].push_back(block);
  }
  void trim() {
    const std::lock_guard lock(mutex_);
    for (size_t place = 0; place < free_.size(); ++place) {
      if (free_[place].empty() || is_cut(size_of(place))) continue;
      use_.cached_bytes -= static_cast<int64_t>(free_[place].size()) * size_of(place);
      for (void* block : free_[place]) std::free(block);
      free_[place] = {};
    }
  }
  MemoryUse use() {
    const std::lock_guard lock(mutex_);
    return use_;
  }
  void reset_peak() {
    const std::lock_guard lock(mutex_);
    use_.peak_bytes = use_.live_bytes;
  }

 private:
  // The next block of the newest slab; null without memory for another slab.
  void* cut(int64_t bytes) {
    if (slab_left_ < bytes) {
      auto* slab = static_cast<std::byte*>(std::aligned_alloc(kHugePage, kSlab));
      if (slab == nullptr) return nullptr;
      madvise(slab, kSlab, MADV_HUGEPAGE);
      slab_ = slab;
      slab_left_ = kSlab;
    }
    void* block = slab_;
    slab_ += bytes;
    slab_left_ -= bytes;
    return block;
  }

  std::mutex mutex_;
  std::array<std::vector<void*>, 8 * 64> free_;  // by place_of() their size
  std::byte* slab_ = nullptr;                    // what is left of the newest slab
  int64_t slab_left_ = 0;
  MemoryUse use_;
};

// Never destroyed: tensors with static lifetime may be released after everything else.
Cache& cache() {
  static Cache* const instance = new Cache;
  return *instance;
}

}  // namespace

std::shared_ptr<float[]> allocate_floats(int64_t count) {
  int64_t bytes = rounded_size(std::max<int64_t>(1, checked_product(count, sizeof(float))));
  auto* block = static_cast<float*>(cache().allocate(bytes));
  return std::shared_ptr<float[]>(block, [bytes](float* p) { cache().release(p, bytes); });
}

MemoryUse memory_use() {
  return cache().use();
}
void reset_peak_memory() {
  cache().reset_peak();
}
void trim_memory() {
  cache().trim();
}

}  // namespace fovea
