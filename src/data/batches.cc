// Converts parallel text to ids, orders examples of similar lengths into shuffled batches, and resumes at any position.
#include "data/batches.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "base/error.h"
#include "base/parallel.h"
#include "base/rng.h"

namespace fovea::data {
namespace {

uint64_t fingerprint(const ParallelIds& corpus) {
  CorpusFingerprint print;
  print.add(corpus.source);
  print.add(corpus.target);
  return print.value();
}

std::vector<BatchOrder::Size> sizes_of(const ParallelIds& corpus) {
  std::vector<BatchOrder::Size> sizes;
  for (int64_t i = 0; i < corpus.size(); ++i)
    sizes.push_back({corpus.target.length(i) + 1, corpus.source.length(i) + 1});
  return sizes;
}

template <class T>
void shuffle(std::vector<T>& items, Rng rng) {
  for (auto left = static_cast<int64_t>(items.size()); left > 1; --left)
    std::swap(items[left - 1], items[rng.below(left)]);
}

}  // namespace

ParallelIds encode_parallel(const ParallelText& text, const Tokenizers& tokenizers, int64_t max_tokens) {
  constexpr int64_t kBlock = 4096;  // pairs held as separate vectors at one time
  ParallelIds ids;
  ids.source_marks = tokenizers.source->sequence_marks();
  ids.target_marks = tokenizers.target->sequence_marks();
  std::vector<std::vector<int32_t>> sources(kBlock), targets(kBlock);
  const auto usable = [&](const std::vector<int32_t>& sentence) {
    return !sentence.empty() && (max_tokens == 0 || static_cast<int64_t>(sentence.size()) <= max_tokens);
  };
  for (int64_t first = 0; first < text.size(); first += kBlock) {
    const int64_t count = std::min(kBlock, text.size() - first);
    parallel_for(count, 64, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        sources[i] = tokenizers.source->encode(text.source[first + i]);
        targets[i] = tokenizers.target->encode(text.target[first + i]);
      }
    });
    for (int64_t i = 0; i < count; ++i) {
      if (!usable(sources[i]) || !usable(targets[i])) {
        ++ids.dropped;
        continue;
      }
      ids.source.append(sources[i]);
      ids.target.append(targets[i]);
    }
  }
  return ids;
}

Batch make_batch(const ParallelIds& corpus, std::span<const int64_t> pairs) {
  Batch batch;
  for (const int64_t pair : pairs) {
    const auto source = corpus.source[pair], target = corpus.target[pair];
    batch.source.insert(batch.source.end(), source.begin(), source.end());
    batch.source.push_back(corpus.source_marks.end);
    batch.source_lengths.push_back(static_cast<int32_t>(source.size()) + 1);
    batch.target_in.push_back(corpus.target_marks.begin);
    batch.target_in.insert(batch.target_in.end(), target.begin(), target.end());
    batch.target_out.insert(batch.target_out.end(), target.begin(), target.end());
    batch.target_out.push_back(corpus.target_marks.end);
    batch.target_lengths.push_back(static_cast<int32_t>(target.size()) + 1);
    batch.pairs.push_back(pair);
  }
  return batch;
}

void CorpusFingerprint::add(const PackedSentences& sentences) {
  for (const int64_t start : sentences.starts) add(static_cast<uint64_t>(start));
  for (const int32_t token : sentences.tokens) add(static_cast<uint64_t>(token));
}

BatchStream::BatchStream(const ParallelIds& corpus, const BatchOptions& options)
    : corpus_(corpus), order_(sizes_of(corpus), fingerprint(corpus), options) {}

BatchOrder::BatchOrder(std::vector<Size> sizes, uint64_t corpus, const BatchOptions& options)
    : sizes_(std::move(sizes)), options_(options), position_{.seed = options.seed, .corpus = corpus} {
  require(!sizes_.empty(), "no text to make batches of");
  require(options.max_tokens > 0, "batches of ", options.max_tokens, " tokens, wanted at least 1");
  require(options.max_sentences >= 0, "batches of ", options.max_sentences,
          " sentences, wanted 0 (no limit) or more");
  prepare(0);
}

void BatchOrder::prepare(int64_t epoch) {
  if (prepared_epoch_ == epoch || (prepared_epoch_ >= 0 && !options_.shuffle)) return;
  prepared_epoch_ = epoch;
  const Rng rng = Rng(options_.seed).split(static_cast<uint64_t>(epoch));
  order_.resize(sizes_.size());
  std::iota(order_.begin(), order_.end(), 0);
  // Which of several examples as long share a batch is left to chance.
  if (options_.shuffle) shuffle(order_, rng.split(0));
  std::stable_sort(order_.begin(), order_.end(), [&](int64_t a, int64_t b) { return sizes_[a] > sizes_[b]; });

  batches_.clear();
  const auto count = static_cast<int64_t>(order_.size());
  int64_t begin = 0;
  Size sum;
  for (int64_t i = 0; i < count; ++i) {
    const Size& size = sizes_[order_[i]];
    const bool full = sum.first + size.first > options_.max_tokens ||
                      sum.second + size.second > options_.max_tokens ||
                      (options_.max_sentences > 0 && i - begin == options_.max_sentences);
    if (full && i > begin) {
      batches_.push_back({begin, i});
      begin = i;
      sum = {};
    }
    sum.first += size.first;
    sum.second += size.second;
  }
  batches_.push_back({begin, count});
  if (options_.shuffle) shuffle(batches_, rng.split(1));
}

std::span<const int64_t> BatchOrder::next() {
  prepare(position_.epoch);
  const Range range = batches_[position_.index];
  if (++position_.index == batches_per_epoch()) {
    ++position_.epoch;
    position_.index = 0;
  }
  return std::span(order_).subspan(range.begin, range.end - range.begin);
}

void BatchOrder::seek(const BatchPosition& position) {
  require(
      position.corpus == position_.corpus,
      "the saved place belongs to other training data or another vocabulary; continue with the same files, "
      "or start "
      "in a new folder");
  require(position.seed == position_.seed, "the saved place belongs to seed ", position.seed, ", got seed ",
          position_.seed);
  require(position.epoch >= 0 && position.index >= 0 && position.index < batches_per_epoch(),
          "the saved place is batch ", position.index, " of epoch ", position.epoch, ", but an epoch has ",
          batches_per_epoch(), " batches; continue with the same batch size");
  position_ = position;
}

std::string BatchPosition::text() const {
  return message("seed ", seed, " corpus ", corpus, " epoch ", epoch, " index ", index);
}

BatchPosition BatchPosition::parse(std::string_view text) {
  BatchPosition position;
  std::string_view rest = text;
  const auto take = [&](std::string_view name, auto& value) {
    if (!rest.starts_with(name)) return false;
    rest.remove_prefix(name.size());
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (error != std::errc()) return false;
    rest.remove_prefix(end - rest.data());
    return true;
  };
  require(take("seed ", position.seed) && take(" corpus ", position.corpus) &&
              take(" epoch ", position.epoch) && take(" index ", position.index) && rest.empty(),
          "'", text, "' is no place in the data, wanted 'seed N corpus N epoch N index N'");
  return position;
}

}  // namespace fovea::data
