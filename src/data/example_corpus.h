// The built-in corpus: a small grammar that says each sentence in Chinese and in English at once.
//
// The two languages order things differently, and the grammar keeps that: time and place stand before the
// Chinese verb and after the English object, a relative clause before and behind its noun, a question word
// where its answer would be and at the front, a reason first and last. To translate, one has to look around.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/corpus.h"

namespace fovea::data {

struct ExampleCorpus {
  ParallelText train, valid, test;
};

// `count` different sentences of all lengths to train on, and of others, that are in none of the other parts,
// 100 for validation and 300 to test. The same seed gives the same text. Throws Error for more than 100 000.
ExampleCorpus example_corpus(int64_t count, uint64_t seed);

}  // namespace fovea::data
