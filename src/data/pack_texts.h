// Texts turned into token ids on all threads, and packed in their order.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "data/batches.h"

namespace fovea::data {

// encode(i): the ids of text i; called by several threads at once.
PackedSentences pack_texts(int64_t count, const std::function<std::vector<int32_t>(int64_t)>& encode);

}  // namespace fovea::data
