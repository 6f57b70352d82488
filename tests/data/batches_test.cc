#include "data/batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/parallel.h"
#include "base/rng.h"

namespace fovea::data {
namespace {

using Ids = std::vector<int32_t>;

// Pairs whose first token tells which pair it is.
ParallelIds made_up(int64_t count, int max_length = 40) {
  ParallelIds corpus;
  Rng rng(5);
  for (int64_t i = 0; i < count; ++i) {
    const Ids source(1 + rng.below(max_length), static_cast<int32_t>(10 + i));
    const Ids target(1 + rng.below(max_length), static_cast<int32_t>(10 + i));
    corpus.source.append(source);
    corpus.target.append(target);
  }
  return corpus;
}

TEST(Batch, IsPackedWithItsEnds) {
  ParallelIds corpus;
  corpus.source.append(Ids{5, 6});
  corpus.target.append(Ids{7});
  corpus.source.append(Ids{8});
  corpus.target.append(Ids{9, 10, 11});
  const int64_t pairs[] = {1, 0};
  const Batch batch = make_batch(corpus, pairs);
  EXPECT_EQ(batch.source, (Ids{8, kEnd, 5, 6, kEnd}));
  EXPECT_EQ(batch.source_lengths, (Ids{2, 3}));
  EXPECT_EQ(batch.target_in, (Ids{kBegin, 9, 10, 11, kBegin, 7}));
  EXPECT_EQ(batch.target_out, (Ids{9, 10, 11, kEnd, 7, kEnd}));
  EXPECT_EQ(batch.target_lengths, (Ids{4, 2}));
  EXPECT_EQ(batch.size(), 2);
}

TEST(BatchStream, GivesEveryPairOnceAnEpochWithinTheLimits) {
  const ParallelIds corpus = made_up(1000);
  BatchStream stream(corpus, {.max_tokens = 300, .max_sentences = 12});
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::multiset<int64_t> seen;
    int64_t spread = 0;
    for (int64_t i = 0; i < stream.batches_per_epoch(); ++i) {
      EXPECT_EQ(stream.position().epoch, epoch);
      EXPECT_EQ(stream.position().index, i);
      const Batch batch = stream.next();
      EXPECT_LE(batch.source.size(), 300u);
      EXPECT_LE(batch.target_in.size(), 300u);
      EXPECT_LE(batch.size(), 12);
      EXPECT_EQ(batch.target_in.size(), batch.target_out.size());
      seen.insert(batch.pairs.begin(), batch.pairs.end());
      const auto [low, high] = std::minmax_element(batch.target_lengths.begin(), batch.target_lengths.end());
      spread = std::max<int64_t>(spread, *high - *low);
    }
    EXPECT_EQ(seen.size(), 1000u);
    EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), 1000u);
    EXPECT_LE(spread, 2) << "lengths in a batch differ";
  }
}

TEST(BatchStream, ShufflesByTheSeedAndByEpoch) {
  const ParallelIds corpus = made_up(500);
  const auto epoch = [&](BatchStream& stream) {
    std::vector<std::vector<int64_t>> pairs;
    for (int64_t i = 0; i < stream.batches_per_epoch(); ++i) pairs.push_back(stream.next().pairs);
    return pairs;
  };
  BatchStream a(corpus, {.max_tokens = 200, .seed = 1}), b(corpus, {.max_tokens = 200, .seed = 1}),
      c(corpus, {.max_tokens = 200, .seed = 2});
  const auto first = epoch(a);
  EXPECT_EQ(first, epoch(b));
  EXPECT_NE(first, epoch(c));
  auto second = epoch(a);
  EXPECT_NE(first, second);
  // Not the same batches in another order: pairs as long change places too.
  auto sorted = first;
  std::sort(sorted.begin(), sorted.end());
  std::sort(second.begin(), second.end());
  EXPECT_NE(sorted, second);
  BatchStream still(corpus, {.max_tokens = 200, .shuffle = false});
  EXPECT_EQ(epoch(still), epoch(still));
}

TEST(BatchStream, GoesOnAnywhereAsIfNeverStopped) {
  const ParallelIds corpus = made_up(200);
  const BatchOptions options{.max_tokens = 250, .seed = 9};
  BatchStream stream(corpus, options);
  std::vector<std::string> places;
  std::vector<std::vector<int64_t>> pairs;
  for (int i = 0; i < 3 * stream.batches_per_epoch(); ++i) {
    places.push_back(stream.position().text());
    pairs.push_back(stream.next().pairs);
  }
  for (size_t start = 0; start < places.size(); ++start) {
    BatchStream later(corpus, options);
    later.seek(BatchPosition::parse(places[start]));
    for (size_t i = start; i < std::min(places.size(), start + 5); ++i)
      ASSERT_EQ(later.next().pairs, pairs[i]);
  }
}

TEST(BatchStream, LetsALongPairStandAlone) {
  ParallelIds corpus = made_up(3, 4);
  corpus.source.append(Ids(100, 7));
  corpus.target.append(Ids(3, 7));
  BatchStream stream(corpus, {.max_tokens = 10});
  std::multiset<int64_t> seen;
  for (int64_t i = 0; i < stream.batches_per_epoch(); ++i) {
    const Batch batch = stream.next();
    EXPECT_TRUE(batch.source.size() <= 10 || batch.size() == 1);
    seen.insert(batch.pairs.begin(), batch.pairs.end());
  }
  EXPECT_EQ(seen, (std::multiset<int64_t>{0, 1, 2, 3}));
}

TEST(BatchStream, RefusesAPlaceOfAnotherRun) {
  const ParallelIds corpus = made_up(100), other = made_up(101);
  const BatchPosition place = BatchStream(corpus, {.max_tokens = 100}).position();
  const auto refuses = [&](const ParallelIds& data, BatchOptions options, BatchPosition at) {
    BatchStream stream(data, options);
    EXPECT_THROW(stream.seek(at), Error);
  };
  refuses(other, {.max_tokens = 100}, place);
  refuses(corpus, {.max_tokens = 100, .seed = 2}, place);
  BatchPosition far = place;
  far.index = 99;
  refuses(corpus, {.max_tokens = 4000}, far);
  far.index = -1;
  refuses(corpus, {.max_tokens = 4000}, far);
  EXPECT_THROW(BatchStream({}, {}), Error);
  EXPECT_THROW(BatchStream(corpus, {.max_tokens = 0}), Error);
  for (const char* text :
       {"", "seed", "seed 1", "seed 1 corpus 2 epoch 3 index", "seed 1 corpus 2 epoch 3 index 4 ",
        "seed 1 corpus 2 epoch 3 index 99999999999999999999"})
    EXPECT_THROW(BatchPosition::parse(text), Error) << text;
}

TEST(Encode, IsTheSameForAnyNumberOfThreads) {
  ParallelText text;
  for (int i = 0; i < 6000; ++i) {
    text.source.push_back("word" + std::to_string(i % 97) + " and word" + std::to_string(i % 31));
    text.target.push_back(i % 1000 == 0 ? "a b c d e f g" : "target " + std::to_string(i));
  }
  const std::span<const std::string> texts[] = {text.source, text.target};
  const std::shared_ptr<const Tokenizer> words = count_words(texts);
  set_num_threads(1);
  const ParallelIds one = encode_parallel(text, {words, words}, 5);
  set_num_threads(3);
  const ParallelIds three = encode_parallel(text, {words, words}, 5);
  EXPECT_EQ(one.source.tokens, three.source.tokens);
  EXPECT_EQ(one.target.tokens, three.target.tokens);
  EXPECT_EQ(one.target.starts, three.target.starts);
  EXPECT_EQ(one.dropped, 6);
  EXPECT_EQ(one.size(), 5994);
  EXPECT_EQ(words->decode(one.source[0]), text.source[1]);
}

}  // namespace
}  // namespace fovea::data
