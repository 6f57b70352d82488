// A model of short texts made into one of long texts, as Longformer and the long BERTs after it were made.
#pragma once

#include <memory>
#include <string>

#include "models/bert.h"

namespace fovea::models {

// Windows and blocks of a model made by lengthened(): those of the published ones.
inline constexpr int64_t kLongformerWindow = 512, kBigBirdBlock = 64, kBigBirdRandomBlocks = 3;

// `from` as a model of type "longformer" or "big_bird" that reads texts of up to max_tokens tokens. Learned
// positions are repeated, one copy after the other; Longformer's projections of global tokens begin as copies of
// the others; BERT's head for the next sentence is left out; everything else is kept (and shared: `from` must not be trained on). Throws Error unless `from` is
// a BERT or RoBERTa, when it reads as many tokens already, and when a head would compute something else.
std::unique_ptr<Bert> lengthened(const Bert& from, const std::string& to, int64_t max_tokens);

}  // namespace fovea::models
