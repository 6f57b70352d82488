// Batches of sentence pairs or texts: packed without padding, similar lengths together, shuffled by a seed,
// and restartable anywhere, since the order of an epoch is a function of seed and epoch alone.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/corpus.h"
#include "data/tokenizer.h"

namespace fovea::data {

// Sentences of token ids, one after the other.
struct PackedSentences {
  std::vector<int32_t> tokens;
  std::vector<int64_t> starts{0};  // sentence i is tokens [starts[i], starts[i + 1])

  int64_t size() const { return static_cast<int64_t>(starts.size()) - 1; }
  int64_t length(int64_t i) const { return starts[i + 1] - starts[i]; }
  std::span<const int32_t> operator[](int64_t i) const {
    return std::span(tokens).subspan(starts[i], length(i));
  }
  void append(std::span<const int32_t> sentence) {
    tokens.insert(tokens.end(), sentence.begin(), sentence.end());
    starts.push_back(static_cast<int64_t>(tokens.size()));
  }
};

// Encoded pairs, without the marks around them.
struct ParallelIds {
  PackedSentences source, target;  // as many of each
  int64_t dropped = 0;             // pairs left out because a side had no or too many tokens
  SequenceMarks source_marks = {}, target_marks = {};

  int64_t size() const { return source.size(); }
};

// Encodes on all threads. Pairs of which a side has more than max_tokens tokens (0: no limit), or none, are
// left out and counted.
ParallelIds encode_parallel(const ParallelText& text, const Tokenizers& tokenizers, int64_t max_tokens = 0);

// Packed tokens of n sentences. Each source ends with the end mark; a target is fed as begin y and wanted as
// y end, so that its lengths count one token more than the sentence.
struct Batch {
  std::vector<int32_t> source;          // [sum of source_lengths]
  std::vector<int32_t> source_lengths;  // [n]
  std::vector<int32_t> target_in;       // [sum of target_lengths]
  std::vector<int32_t> target_out;      // [sum of target_lengths]
  std::vector<int32_t> target_lengths;  // [n]
  std::vector<int64_t> pairs;           // [n], places in the corpus

  int64_t size() const { return static_cast<int64_t>(pairs.size()); }
};

// The given pairs as one batch, in the given order.
Batch make_batch(const ParallelIds& corpus, std::span<const int64_t> pairs);

struct BatchOptions {
  int64_t max_tokens = 4096;  // at most so many source tokens and so many target tokens, ends included
  int64_t max_sentences = 0;  // 0: no limit
  bool shuffle = true;        // otherwise every epoch has the same order, long sentences first
  uint64_t seed = 1;
};

// The position of a stream: the next batch. `corpus` identifies the texts, so that a run is never continued
// on other data unnoticed.
struct BatchPosition {
  uint64_t seed = 0;
  uint64_t corpus = 0;
  int64_t epoch = 0;
  int64_t index = 0;  // batches of the epoch already given

  // "seed 1 corpus 8f… epoch 2 index 17", and back; throws Error for anything else.
  std::string text() const;
  static BatchPosition parse(std::string_view text);
  friend bool operator==(const BatchPosition&, const BatchPosition&) = default;
};

// Which examples share a batch, endlessly, epoch after epoch.
class BatchOrder {
 public:
  // Tokens of an example's two sides, ends included; the second is 0 where there is but one.
  struct Size {
    int64_t first = 0, second = 0;
    friend auto operator<=>(const Size&, const Size&) = default;
  };
  // sizes: of every example, at least one; `corpus` tells texts apart. An example longer than max_tokens is a
  // batch of its own.
  BatchOrder(std::vector<Size> sizes, uint64_t corpus, const BatchOptions& options);

  // Places in the corpus, valid until the next call.
  std::span<const int64_t> next();
  // The number of batches is the same in every epoch.
  int64_t batches_per_epoch() const { return static_cast<int64_t>(batches_.size()); }

  BatchPosition position() const { return position_; }
  // Goes on from there. Throws Error when seed, corpus or batch sizes are not those of this stream.
  void seek(const BatchPosition& position);

 private:
  void prepare(int64_t epoch);

  std::vector<Size> sizes_;
  BatchOptions options_;
  BatchPosition position_;
  struct Range {
    int64_t begin, end;
  };
  int64_t prepared_epoch_ = -1;
  std::vector<int64_t> order_;  // examples of the prepared epoch, sorted by length
  std::vector<Range> batches_;  // cuts of order_, in the order they are given
};

// Batches of sentence pairs.
class BatchStream {
 public:
  // corpus: not empty, outlives the stream.
  BatchStream(const ParallelIds& corpus, const BatchOptions& options);

  Batch next() { return make_batch(corpus_, order_.next()); }
  int64_t batches_per_epoch() const { return order_.batches_per_epoch(); }
  BatchPosition position() const { return order_.position(); }
  void seek(const BatchPosition& position) { order_.seek(position); }

 private:
  const ParallelIds& corpus_;
  BatchOrder order_;
};

// Tells corpora apart by their tokens and lengths; not meant against people who try.
class CorpusFingerprint {
 public:
  void add(uint64_t value) { hash_ = (hash_ ^ value) * 0x100000001b3ull; }
  void add(const PackedSentences& sentences);
  uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 0xcbf29ce484222325ull;  // FNV-1a
};

}  // namespace fovea::data
