// Counted n-grams, from which BLEU and chrF are computed: short runs of numbers packed into 128 bits, kept sorted.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fovea::infer {

struct Ngram {
  uint64_t high = 0, low = 0;
  friend auto operator<=>(const Ngram&, const Ngram&) = default;
};

struct CountedNgram {
  Ngram ngram;
  int64_t count;
};

// Numbers for words, the same word the same number.
class WordNumbers {
 public:
  uint32_t of(std::string_view word) {
    return known_.try_emplace(std::string(word), static_cast<uint32_t>(known_.size())).first->second;
  }
  std::vector<uint32_t> of(std::span<const std::string_view> words) {
    std::vector<uint32_t> numbers;
    for (const std::string_view word : words) numbers.push_back(of(word));
    return numbers;
  }

 private:
  std::unordered_map<std::string, uint32_t> known_;
};

// The n-grams of `symbols` with how often each occurs, sorted. Each symbol fits in `bits`, and order * bits
// in 128: so different runs have different packings.
inline std::vector<CountedNgram> count_ngrams(std::span<const uint32_t> symbols, size_t order, int bits) {
  std::vector<Ngram> all;
  if (symbols.size() >= order) all.reserve(symbols.size() - order + 1);
  for (size_t i = 0; i + order <= symbols.size(); ++i) {
    Ngram packed;
    for (const uint32_t symbol : symbols.subspan(i, order))
      packed = {packed.high << bits | packed.low >> (64 - bits), packed.low << bits | symbol};
    all.push_back(packed);
  }
  std::sort(all.begin(), all.end());
  std::vector<CountedNgram> counted;
  for (const Ngram& ngram : all) {
    if (counted.empty() || counted.back().ngram != ngram) counted.push_back({ngram, 0});
    ++counted.back().count;
  }
  return counted;
}

// Calls meet(a's count, b's count) for every n-gram of either, in order; 0 where one lacks it.
template <class Meet>
void meet_ngrams(const std::vector<CountedNgram>& a, const std::vector<CountedNgram>& b, Meet&& meet) {
  auto x = a.begin();
  auto y = b.begin();
  while (x != a.end() || y != b.end()) {
    const bool first = y == b.end() || (x != a.end() && x->ngram <= y->ngram);
    const bool second = x == a.end() || (y != b.end() && y->ngram <= x->ngram);
    meet(first ? *x : CountedNgram{y->ngram, 0}, second ? *y : CountedNgram{x->ngram, 0});
    x += first;
    y += second;
  }
}

}  // namespace fovea::infer
