// The built-in corpus: a small grammar that generates each sentence in Chinese and in English.
//
// The grammar keeps the different word order of the two languages: time and place come before the Chinese verb
// and after the English object, a relative clause before and after its noun, a question word in place of its
// answer and at the front, a reason first and last. So a translator has to attend to distant words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/corpus.h"

namespace fovea::data {

struct ExampleCorpus {
  ParallelText train, valid, test;
};

// `count` sentence pairs for training, 100 for validation and 400 for testing; no sentence occurs twice. The
// English sentences have 1 to 40 words. Validation and test sentences take the lengths 1 to 8, 9 to 16, ... 33
// to 40 in turn, as many of each; training has more short sentences. The same seed gives the same text. Throws
// Error for more than 100 000.
ExampleCorpus example_corpus(int64_t count, uint64_t seed);

}  // namespace fovea::data
