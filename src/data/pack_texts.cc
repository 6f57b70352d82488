#include "data/pack_texts.h"

#include <algorithm>

#include "base/parallel.h"

namespace fovea::data {

PackedSentences pack_texts(int64_t count, const std::function<std::vector<int32_t>(int64_t)>& encode) {
  PackedSentences packed;
  constexpr int64_t kBlock = 4096;  // texts held as separate vectors at one time
  std::vector<std::vector<int32_t>> ids(kBlock);
  for (int64_t first = 0; first < count; first += kBlock) {
    const int64_t some = std::min(kBlock, count - first);
    parallel_for(some, 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ids[static_cast<size_t>(i)] = encode(first + i);
    });
    for (int64_t i = 0; i < some; ++i) packed.append(ids[static_cast<size_t>(i)]);
  }
  return packed;
}

}  // namespace fovea::data
