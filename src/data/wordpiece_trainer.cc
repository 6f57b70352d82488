// Learns a WordPiece vocabulary: counts words and merges the most frequent pair of neighbouring pieces until the
// vocabulary is full.
#include "data/wordpiece_trainer.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>

#include "base/error.h"

namespace fovea::data {
namespace {

// A word as the pieces that it is made of so far.
struct Word {
  std::vector<int32_t> pieces;
  int64_t count;
};

using Pair = std::pair<int32_t, int32_t>;

struct Candidate {
  int64_t count;
  Pair pair;
  // The most frequent comes first; of equals the one whose pieces are older.
  bool operator<(const Candidate& other) const {
    return count != other.count ? count < other.count : pair > other.pair;
  }
};

std::vector<std::string_view> characters_of(std::string_view word) {
  std::vector<std::string_view> characters;
  for (size_t begin = 0; begin < word.size();) {
    size_t end = begin + 1;
    while (end < word.size() && (word[end] & 0xC0) == 0x80) ++end;
    characters.push_back(word.substr(begin, end - begin));
    begin = end;
  }
  return characters;
}

class Trainer {
 public:
  Trainer(const std::unordered_map<std::string, int64_t>& counts, const WordPieceTraining& training,
          const WordPieceOptions& options)
      : training_(training), prefix_(options.prefix) {
    for (const std::string& mark : {options.pad, options.unknown, options.begin, options.end, options.mask})
      add_token(mark);
    // Sorted, so that nothing depends on the order of a hash table.
    const std::map<std::string, int64_t> sorted(counts.begin(), counts.end());
    require(!sorted.empty(), "a vocabulary cannot be learnt from a text without words");
    add_characters(sorted);
    for (const auto& [word, count] : sorted) add_word(word, count);
    require(static_cast<int64_t>(tokens_.size()) <= training.size, "vocabulary: got ", training.size,
            ", wanted at least ", tokens_.size(), " for the marks and characters of this text");
    for (size_t w = 0; w < words_.size(); ++w) count_pairs(w, 1);
    for (const auto& [pair, count] : pairs_) queue_.push({count, pair});
  }

  std::vector<std::string> run() {
    while (static_cast<int64_t>(tokens_.size()) < training_.size && !queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      const auto found = pairs_.find(best.pair);
      if (found == pairs_.end() || found->second <= 0) continue;
      if (found->second != best.count) {  // it has become rarer since
        queue_.push({found->second, best.pair});
        continue;
      }
      if (best.count < training_.least) break;
      merge(best.pair);
    }
    return std::move(tokens_);
  }

 private:
  int32_t add_token(const std::string& token) {
    const auto [place, fresh] = ids_.emplace(token, static_cast<int32_t>(tokens_.size()));
    if (fresh) tokens_.push_back(token);
    return place->second;
  }

  std::string spelled(std::string_view characters, bool inner) const {
    return (inner ? prefix_ : "") + std::string(characters);
  }

  // The most frequent characters; as the first of a word and inside one they are different tokens.
  void add_characters(const std::map<std::string, int64_t>& words) {
    std::map<std::string, int64_t> counts;
    for (const auto& [word, count] : words)
      for (const std::string_view character : characters_of(word)) counts[std::string(character)] += count;
    std::vector<std::pair<std::string, int64_t>> order(counts.begin(), counts.end());
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    if (static_cast<int64_t>(order.size()) > training_.most_characters)
      order.resize(static_cast<size_t>(training_.most_characters));
    for (const auto& [character, count] : order) kept_.insert(character);
    std::set<std::string> seen;
    for (const auto& [word, count] : words) {
      bool inner = false;
      for (const std::string_view character : characters_of(word)) {
        if (kept_.contains(std::string(character))) seen.insert(spelled(character, inner));
        inner = true;
      }
    }
    for (const std::string& token : seen) add_token(token);
  }

  // A word with a character that was left out is unknown and teaches nothing.
  void add_word(const std::string& word, int64_t count) {
    Word added{{}, count};
    for (const std::string_view character : characters_of(word)) {
      if (!kept_.contains(std::string(character))) return;
      added.pieces.push_back(ids_.at(spelled(character, !added.pieces.empty())));
    }
    words_.push_back(std::move(added));
  }

  void count_pairs(size_t word, int64_t sign) {
    const Word& w = words_[word];
    for (size_t i = 1; i < w.pieces.size(); ++i) {
      const Pair pair{w.pieces[i - 1], w.pieces[i]};
      pairs_[pair] += sign * w.count;
      if (sign > 0) {
        where_[pair].insert(word);
        touched_.insert(pair);
      }
    }
  }

  void merge(const Pair& pair) {
    const std::string& second = tokens_[static_cast<size_t>(pair.second)];
    const int32_t whole = add_token(tokens_[static_cast<size_t>(pair.first)] + second.substr(prefix_.size()));
    touched_.clear();
    const std::set<size_t> words = std::move(where_[pair]);
    where_.erase(pair);
    for (const size_t w : words) {
      count_pairs(w, -1);
      std::vector<int32_t>& pieces = words_[w].pieces;
      size_t to = 0;
      for (size_t from = 0; from < pieces.size(); ++from, ++to) {
        const bool here =
            from + 1 < pieces.size() && pieces[from] == pair.first && pieces[from + 1] == pair.second;
        pieces[to] = here ? whole : pieces[from];
        from += here;
      }
      pieces.resize(to);
      count_pairs(w, 1);
    }
    pairs_.erase(pair);
    touched_.erase(pair);
    for (const Pair& changed : touched_) queue_.push({pairs_[changed], changed});
  }

  WordPieceTraining training_;
  std::string prefix_;
  std::vector<std::string> tokens_;
  std::unordered_map<std::string, int32_t> ids_;
  std::set<std::string> kept_;
  std::vector<Word> words_;
  std::map<Pair, int64_t> pairs_;
  std::map<Pair, std::set<size_t>> where_;
  std::set<Pair> touched_;
  std::priority_queue<Candidate> queue_;
};

}  // namespace

void WordCounts::add(std::string_view text) {
  for_each_wordpiece_word(text, options_, [&](const std::string& word, int64_t length) {
    if (length <= options_.longest_word) ++counts_[word];
  });
}

std::vector<std::string> learn_wordpiece(const std::unordered_map<std::string, int64_t>& words,
                                         const WordPieceTraining& training, const WordPieceOptions& options) {
  return Trainer(words, training, options).run();
}

}  // namespace fovea::data
