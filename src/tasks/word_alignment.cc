// Expectation maximisation over counted links, and the choice of the layer and head that agree best with
// them.
#include "tasks/word_alignment.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "tasks/explain.h"

namespace fovea::tasks {
namespace {

constexpr int kRounds = 5;
// As fast_align has them: how much the diagonal is preferred, and the share of tokens that belong to nothing.
constexpr double kDiagonal = 4, kNothing = 0.08;
// Counting needs more pairs than measuring.
constexpr int64_t kMostCounted = 20'000, kMostMeasured = 200, kLongest = 100;

uint64_t link_key(int32_t source, int32_t target) {
  return static_cast<uint64_t>(static_cast<uint32_t>(source)) << 32 | static_cast<uint32_t>(target);
}

// p(target token | source token), and with which source token a target token most likely goes.
class LinkModel {
 public:
  LinkModel(const data::PackedSentences& source, const data::PackedSentences& target)
      : source_(source), target_(target) {
    for (int round = 0; round < kRounds; ++round) count();
  }

  Links links(int64_t pair) const {
    const auto from = source_[pair], to = target_[pair];
    Links found;
    std::vector<double> scores(from.size());
    for (size_t j = 0; j < to.size(); ++j) {
      weigh(from, to, j, scores);
      found.push_back(static_cast<int32_t>(std::max_element(scores.begin(), scores.end()) - scores.begin()));
    }
    return found;
  }

 private:
  static constexpr double kUnseen = 1e-9;

  // Prior times probability of each source token for target token j.
  void weigh(std::span<const int32_t> from, std::span<const int32_t> to, size_t j,
             std::vector<double>& scores) const {
    double prior_sum = 0;
    for (size_t i = 0; i < from.size(); ++i) {
      const double distance = std::abs(static_cast<double>(i + 1) / static_cast<double>(from.size()) -
                                       static_cast<double>(j + 1) / static_cast<double>(to.size()));
      prior_sum += scores[i] = std::exp(-kDiagonal * distance);
    }
    for (size_t i = 0; i < from.size(); ++i) {
      double probability = 1;
      if (!table_.empty()) {
        const auto found = table_.find(link_key(from[i], to[j]));
        probability = found == table_.end() ? kUnseen : found->second;
      }
      scores[i] *= (1 - kNothing) * probability / prior_sum;
    }
  }

  void count() {
    std::unordered_map<uint64_t, double> counts;
    std::unordered_map<int32_t, double> totals;
    std::vector<double> scores;
    const double nothing = kNothing * (table_.empty() ? 1 : kUnseen);
    for (int64_t pair = 0; pair < source_.size(); ++pair) {
      const auto from = source_[pair], to = target_[pair];
      scores.resize(from.size());
      for (size_t j = 0; j < to.size(); ++j) {
        weigh(from, to, j, scores);
        double sum = nothing;
        for (const double score : scores) sum += score;
        for (size_t i = 0; i < from.size(); ++i) {
          counts[link_key(from[i], to[j])] += scores[i] / sum;
          totals[from[i]] += scores[i] / sum;
        }
      }
    }
    for (auto& [key, value] : counts) value /= totals[static_cast<int32_t>(key >> 32)];
    table_ = std::move(counts);
  }

  const data::PackedSentences& source_;
  const data::PackedSentences& target_;
  std::unordered_map<uint64_t, double> table_;  // empty at first: all are equal
};

// Pairs that are not too long to be counted, at most `most`.
void take(const data::ParallelIds& from, int64_t most, data::ParallelIds& to) {
  for (int64_t i = 0; i < from.size() && to.size() < most; ++i)
    if (from.source.length(i) <= kLongest && from.target.length(i) <= kLongest) {
      to.source.append(from.source[i]);
      to.target.append(from.target[i]);
    }
}

}  // namespace

std::vector<Links> forced_alignment(const data::ParallelIds& pairs) {
  const LinkModel forward(pairs.source, pairs.target), backward(pairs.target, pairs.source);
  std::vector<Links> all;
  for (int64_t pair = 0; pair < pairs.size(); ++pair) {
    Links links = forward.links(pair);
    const Links back = backward.links(pair);  // for each source token its target token
    for (size_t j = 0; j < links.size(); ++j)
      if (back[static_cast<size_t>(links[j])] != static_cast<int32_t>(j)) links[j] = -1;
    all.push_back(std::move(links));
  }
  return all;
}

Agreement agreement(const WeightMatrix& weights, std::span<const int32_t> links) {
  Agreement found;
  const int64_t sources = weights.columns - 1;  // the end never takes part
  for (size_t j = 0; j < links.size() && static_cast<int64_t>(j) < weights.rows; ++j) {
    if (links[j] < 0) continue;
    const float* row = weights.values.data() + static_cast<int64_t>(j) * weights.columns;
    ++found.links;
    found.agreeing += std::max_element(row, row + sources) - row == links[j];
  }
  return found;
}

std::optional<AlignmentChoice> choose_alignment(const LoadedTranslator& model, const data::ParallelIds& train,
                                                const data::ParallelIds& valid) {
  data::ParallelIds pairs;
  take(valid, kMostMeasured, pairs);
  const int64_t measured = pairs.size();
  take(train, kMostCounted, pairs);
  const std::vector<Links> links = forced_alignment(pairs);

  struct Candidate {
    AttentionChoice choice;
    Agreement agreement;
  };
  std::vector<Candidate> candidates;
  for (int64_t pair = 0; pair < measured; ++pair) {
    const AttentionRecord record =
        observe_attention(model, pairs.source[pair], pairs.target[pair], {AttentionKind::cross});
    if (candidates.empty())
      for (const AttentionLayer* layer : record.layers_of(AttentionKind::cross)) {
        candidates.push_back({{AttentionKind::cross, layer->layer, AttentionChoice::kAverage}, {}});
        for (size_t head = 0; layer->heads.size() > 1 && head < layer->heads.size(); ++head)
          candidates.push_back({{AttentionKind::cross, layer->layer, static_cast<int64_t>(head)}, {}});
      }
    if (candidates.size() < 2) return {};
    for (Candidate& candidate : candidates) {
      const Agreement one = agreement(choose(record, candidate.choice), links[static_cast<size_t>(pair)]);
      candidate.agreement.agreeing += one.agreeing;
      candidate.agreement.links += one.links;
    }
  }
  if (candidates.empty() || candidates[0].agreement.links == 0) return {};
  // Of equals the first: an average rather than one of its heads.
  const auto best = std::max_element(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
    return a.agreement.agreeing < b.agreement.agreeing;
  });
  return AlignmentChoice{best->choice.layer, best->choice.head, best->agreement.share()};
}

}  // namespace fovea::tasks
