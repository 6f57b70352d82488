// Made-up batches for the translation models.
#pragma once

#include <vector>

#include "base/rng.h"
#include "data/batches.h"

namespace fovea::testing {

// Sentences of `shortest` to `longest` words out of `words`, to be written backwards (or as they are).
inline data::Batch reversals(Rng& rng, int count, int64_t words = 16, int64_t shortest = 2,
                             int64_t longest = 6, bool backwards = true) {
  data::Batch batch;
  for (int i = 0; i < count; ++i) {
    const auto length = static_cast<int32_t>(shortest + rng.below(longest - shortest + 1));
    std::vector<int32_t> source;
    for (int32_t j = 0; j < length; ++j)
      source.push_back(static_cast<int32_t>(data::kSpecials + rng.below(words)));
    std::vector<int32_t> target = source;
    if (backwards) target.assign(source.rbegin(), source.rend());
    batch.source.insert(batch.source.end(), source.begin(), source.end());
    batch.source.push_back(data::kEnd);
    batch.target_in.push_back(data::kBegin);
    batch.target_in.insert(batch.target_in.end(), target.begin(), target.end());
    batch.target_out.insert(batch.target_out.end(), target.begin(), target.end());
    batch.target_out.push_back(data::kEnd);
    batch.source_lengths.push_back(length + 1);
    batch.target_lengths.push_back(length + 1);
    batch.pairs.push_back(i);
  }
  return batch;
}

// Sentence i of a batch, alone.
inline data::Batch only(const data::Batch& batch, size_t i) {
  size_t source_begin = 0, target_begin = 0;
  for (size_t s = 0; s < i; ++s) {
    source_begin += static_cast<size_t>(batch.source_lengths[s]);
    target_begin += static_cast<size_t>(batch.target_lengths[s]);
  }
  const auto cut = [](const std::vector<int32_t>& tokens, size_t begin, int32_t count) {
    return std::vector<int32_t>(tokens.begin() + static_cast<long>(begin),
                                tokens.begin() + static_cast<long>(begin) + count);
  };
  data::Batch one;
  one.source = cut(batch.source, source_begin, batch.source_lengths[i]);
  one.target_in = cut(batch.target_in, target_begin, batch.target_lengths[i]);
  one.target_out = cut(batch.target_out, target_begin, batch.target_lengths[i]);
  one.source_lengths = {batch.source_lengths[i]};
  one.target_lengths = {batch.target_lengths[i]};
  one.pairs = {0};
  return one;
}

}  // namespace fovea::testing
