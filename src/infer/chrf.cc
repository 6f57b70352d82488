#include "infer/chrf.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "base/error.h"
#include "data/text.h"
#include "infer/bleu.h"
#include "infer/ngrams.h"

namespace fovea::infer {
namespace {

constexpr int kCharacterBits = 21;
static_assert(6 * kCharacterBits <= 128);

struct Matches {
  int64_t hypothesis = 0, reference = 0, both = 0;
};

// Words with one punctuation mark taken off the end, or else off the beginning.
std::vector<std::string> words_and_punctuation(std::string_view sentence) {
  const auto punctuation = [](char c) {
    return std::string_view("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~").find(c) != std::string_view::npos;
  };
  std::vector<std::string> words;
  for (const std::string_view word : data::split_words(sentence)) {
    const size_t last = word.size() - 1;
    if (last > 0 && punctuation(word[last])) {
      words.emplace_back(word.substr(0, last));
      words.emplace_back(word.substr(last));
    } else if (last > 0 && punctuation(word[0])) {
      words.emplace_back(word.substr(0, 1));
      words.emplace_back(word.substr(1));
    } else {
      words.emplace_back(word);
    }
  }
  return words;
}

class Scorer {
 public:
  explicit Scorer(const ChrfOptions& options) : options_(options) {}

  // Counted n-grams of every order: characters first, then words.
  std::vector<std::vector<CountedNgram>> count(const std::string& sentence) {
    const std::string text = options_.lowercase ? data::lowercase(sentence) : sentence;
    std::vector<uint32_t> symbols;
    for (std::string_view rest = text; !rest.empty();)
      if (const char32_t c = data::next_character(rest); !data::is_space(c)) symbols.push_back(c);
    std::vector<std::vector<CountedNgram>> counts;
    for (int n = 1; n <= options_.char_order; ++n) counts.push_back(count_ngrams(symbols, n, kCharacterBits));
    if (options_.word_order == 0) return counts;
    symbols.clear();
    for (const std::string& word : words_and_punctuation(text))
      symbols.push_back(
          known_words_.try_emplace(word, static_cast<uint32_t>(known_words_.size())).first->second);
    for (int n = 1; n <= options_.word_order; ++n) counts.push_back(count_ngrams(symbols, n, 32));
    return counts;
  }

  // F of mean precision and mean recall over the orders that both sides have, in percent.
  double f_score(const std::vector<Matches>& orders) const {
    double precision = 0, recall = 0;
    int effective = 0;
    for (const Matches& order : orders) {
      if (order.hypothesis == 0 || order.reference == 0) continue;
      precision += static_cast<double>(order.both) / static_cast<double>(order.hypothesis);
      recall += static_cast<double>(order.both) / static_cast<double>(order.reference);
      ++effective;
    }
    if (effective == 0 || precision + recall == 0) return 0;
    precision /= effective;
    recall /= effective;
    const double factor = options_.beta * options_.beta;
    return 100 * ((1 + factor) * precision * recall / (factor * precision + recall));
  }

 private:
  const ChrfOptions& options_;
  std::unordered_map<std::string, uint32_t> known_words_;
};

std::vector<Matches> match(const std::vector<std::vector<CountedNgram>>& hypothesis,
                           const std::vector<std::vector<CountedNgram>>& reference) {
  std::vector<Matches> orders(hypothesis.size());
  for (size_t n = 0; n < orders.size(); ++n) {
    meet_ngrams(hypothesis[n], reference[n], [&](const CountedNgram& a, const CountedNgram& b) {
      orders[n].hypothesis += a.count;
      orders[n].reference += b.count;
      orders[n].both += std::min(a.count, b.count);
    });
    // A reference too short for an order says nothing about it.
    if (reference[n].empty()) orders[n].hypothesis = 0;
  }
  return orders;
}

void check(std::span<const std::string> hypotheses, std::span<const std::vector<std::string>> references,
           const ChrfOptions& options) {
  require(options.char_order >= 1 && options.char_order <= 6, "chrF character order ", options.char_order,
          ", wanted 1 ... 6");
  require(options.word_order >= 0 && options.word_order <= 4, "chrF word order ", options.word_order,
          ", wanted 0 ... 4");
  require(options.beta >= 1, "chrF beta ", options.beta, ", wanted at least 1");
  require(!hypotheses.empty(), "no sentences to score");
  require(!references.empty(), "no references to score against");
  for (const auto& set : references)
    require(set.size() == hypotheses.size(), hypotheses.size(), " hypotheses but ", set.size(),
            " references, wanted as many");
}

}  // namespace

ChrfScore chrf(std::span<const std::string> hypotheses, std::span<const std::vector<std::string>> references,
               const ChrfOptions& options) {
  check(hypotheses, references, options);
  Scorer scorer(options);
  std::vector<Matches> corpus(options.char_order + options.word_order);
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    const auto hypothesis = scorer.count(hypotheses[i]);
    std::vector<Matches> best;
    double best_score = -1;
    for (const auto& set : references) {
      std::vector<Matches> orders = match(hypothesis, scorer.count(set[i]));
      if (const double score = scorer.f_score(orders); score > best_score) {
        best_score = score;
        best = std::move(orders);
      }
    }
    for (size_t n = 0; n < corpus.size(); ++n) {
      corpus[n].hypothesis += best[n].hypothesis;
      corpus[n].reference += best[n].reference;
      corpus[n].both += best[n].both;
    }
  }
  ChrfScore result;
  result.score = scorer.f_score(corpus);
  result.name = message("chrF", options.beta, std::string(options.word_order, '+'));
  result.signature = message("nrefs:", references.size(), "|case:", options.lowercase ? "lc" : "mixed",
                             "|eff:yes|nc:", options.char_order, "|nw:", options.word_order,
                             "|space:no|version:", kSacreBleuVersion);
  return result;
}

}  // namespace fovea::infer
