#include "infer/caption_scores.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "infer/ngrams.h"

namespace fovea::infer {
namespace {

constexpr size_t kOrders = 4;
constexpr double kSigma = 6, kScale = 10;

using Counts = std::array<std::vector<CountedNgram>, kOrders>;

Counts count_orders(WordNumbers& numbers, const std::string& sentence, const BleuOptions& options) {
  std::vector<uint32_t> words;
  for (const std::string& word : bleu_tokens(sentence, options)) words.push_back(numbers.of(word));
  Counts counts;
  for (size_t n = 0; n < kOrders; ++n) counts[n] = count_ngrams(words, n + 1, 32);
  return counts;
}

// In how many pictures' references an n-gram occurs.
using DocumentFrequency = std::array<std::map<Ngram, double>, kOrders>;

DocumentFrequency document_frequency(const std::vector<std::vector<Counts>>& references) {
  DocumentFrequency frequency;
  for (const std::vector<Counts>& picture : references)
    for (size_t n = 0; n < kOrders; ++n) {
      std::vector<Ngram> found;
      for (const Counts& reference : picture)
        for (const CountedNgram& counted : reference[n]) found.push_back(counted.ngram);
      std::sort(found.begin(), found.end());
      found.erase(std::unique(found.begin(), found.end()), found.end());
      for (const Ngram& ngram : found) ++frequency[n][ngram];
    }
  return frequency;
}

// Term frequency times inverse document frequency.
class Weigher {
 public:
  Weigher(const DocumentFrequency& frequency, size_t pictures)
      : frequency_(frequency), log_pictures_(std::log(static_cast<double>(pictures))) {}

  double weight(size_t n, const CountedNgram& counted) const {
    const auto found = frequency_[n].find(counted.ngram);
    const double documents = found == frequency_[n].end() ? 1 : std::max(1.0, found->second);
    return static_cast<double>(counted.count) * (log_pictures_ - std::log(documents));
  }
  double norm(size_t n, const Counts& counts) const {
    double sum = 0;
    for (const CountedNgram& counted : counts[n]) sum += std::pow(weight(n, counted), 2);
    return std::sqrt(sum);
  }
  // Mean over the orders of the clipped cosine.
  double similarity(const Counts& hypothesis, const Counts& reference) const {
    double mean = 0;
    for (size_t n = 0; n < kOrders; ++n) {
      double sum = 0;
      meet_ngrams(hypothesis[n], reference[n], [&](const CountedNgram& a, const CountedNgram& b) {
        if (a.count > 0 && b.count > 0) sum += std::min(weight(n, a), weight(n, b)) * weight(n, b);
      });
      const double norms = norm(n, hypothesis) * norm(n, reference);
      if (norms > 0) mean += sum / norms / kOrders;
    }
    const double delta = bigrams(hypothesis) - bigrams(reference);
    return mean * std::exp(-delta * delta / (2 * kSigma * kSigma));
  }

 private:
  // What the public implementation takes for the length.
  static double bigrams(const Counts& counts) {
    int64_t count = 0;
    for (const CountedNgram& counted : counts[1]) count += counted.count;
    return static_cast<double>(count);
  }

  const DocumentFrequency& frequency_;
  double log_pictures_;
};

double cider(std::span<const std::string> hypotheses, std::span<const std::vector<std::string>> sets,
             const BleuOptions& options) {
  WordNumbers numbers;
  std::vector<std::vector<Counts>> references(hypotheses.size());
  for (size_t i = 0; i < hypotheses.size(); ++i)
    for (const auto& set : sets) references[i].push_back(count_orders(numbers, set[i], options));
  const DocumentFrequency frequency = document_frequency(references);
  const Weigher weigher(frequency, hypotheses.size());
  double total = 0;
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    const Counts hypothesis = count_orders(numbers, hypotheses[i], options);
    double sum = 0;
    for (const Counts& reference : references[i]) sum += weigher.similarity(hypothesis, reference);
    total += kScale * sum / static_cast<double>(sets.size());
  }
  return total / static_cast<double>(hypotheses.size());
}

}  // namespace

CaptionScores caption_scores(std::span<const std::string> hypotheses,
                             std::span<const std::vector<std::string>> references,
                             const BleuOptions& options) {
  const BleuScore counted = bleu(hypotheses, references, options);
  CaptionScores scores;
  scores.brevity_penalty = counted.brevity_penalty;
  scores.hypothesis_length = counted.hypothesis_length;
  scores.reference_length = counted.reference_length;
  double logs = 0;
  for (size_t n = 0; n < kOrders && counted.matched[n] > 0; ++n) {
    logs += std::log(static_cast<double>(counted.matched[n]) / static_cast<double>(counted.total[n]));
    scores.bleu_without_penalty[n] = 100 * std::exp(logs / static_cast<double>(n + 1));
    scores.bleu[n] = counted.brevity_penalty * scores.bleu_without_penalty[n];
  }
  scores.cider = cider(hypotheses, references, options);
  return scores;
}

}  // namespace fovea::infer
