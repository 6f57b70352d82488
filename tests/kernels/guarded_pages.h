// Floats directly beside a page that cannot be read or written: a kernel that leaves its array is stopped by
// the system, reading as well as writing.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "base/error.h"
#include "base/rng.h"

namespace fovea::testing {

// Where the page lies that the array touches; the other side ends within a page of it.
enum class Edge { before, behind };

class GuardedPages {
 public:
  GuardedPages(int64_t count, Edge edge) : count_(count) {
    const int64_t page = sysconf(_SC_PAGESIZE), bytes = count * static_cast<int64_t>(sizeof(float));
    const int64_t inside = (bytes + page - 1) / page * page;
    length_ = static_cast<size_t>(inside + 2 * page);
    pages_ = mmap(nullptr, length_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    FOVEA_ASSERT(pages_ != MAP_FAILED);
    char* const first = static_cast<char*>(pages_) + page;
    FOVEA_ASSERT(inside == 0 || mprotect(first, static_cast<size_t>(inside), PROT_READ | PROT_WRITE) == 0);
    data_ = reinterpret_cast<float*>(edge == Edge::before ? first : first + inside - bytes);
  }
  ~GuardedPages() { munmap(pages_, length_); }
  GuardedPages(const GuardedPages&) = delete;
  GuardedPages& operator=(const GuardedPages&) = delete;

  static GuardedPages random(int64_t count, uint64_t seed, Edge edge) {
    return GuardedPages(count, edge, Rng(seed));
  }
  float* data() { return data_; }
  int64_t size() const { return count_; }

 private:
  GuardedPages(int64_t count, Edge edge, Rng rng) : GuardedPages(count, edge) {
    for (int64_t i = 0; i < count; ++i) data_[i] = rng.normal();
  }
  int64_t count_;
  size_t length_ = 0;
  void* pages_ = nullptr;
  float* data_ = nullptr;
};

}  // namespace fovea::testing
