#include "infer/beam.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/parallel.h"

namespace fovea {
namespace {

// A token and the one before it: hypotheses that share a beginning share its links.
struct Link {
  int32_t parent;
  int32_t token;
};

struct Row {
  int32_t sentence;
  int32_t link;  // -1 before the first token
  int32_t length;
  double log_probability;
};

struct Candidate {
  double log_probability;
  int32_t row;
  int32_t token;
};

bool better(const Candidate& a, const Candidate& b) {
  if (a.log_probability != b.log_probability) return a.log_probability > b.log_probability;
  return a.row != b.row ? a.row < b.row : a.token < b.token;
}

double log_sum_exp(std::span<const float> logits) {
  const float largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += std::exp(x - largest);
  return largest + std::log(sum);
}

// The `count` best continuations of one row, unordered. A running threshold makes most tokens one comparison.
void best_of_row(std::span<const float> logits, double base, int32_t row, size_t count,
                 std::vector<Candidate>& best) {
  best.clear();
  const double offset = base - log_sum_exp(logits);
  float threshold = -std::numeric_limits<float>::infinity();
  for (size_t token = 0; token < logits.size(); ++token) {
    if (best.size() == count && logits[token] <= threshold) continue;
    if (std::isnan(logits[token])) fail("decoding: the model gives NaN; its weights are damaged");
    best.push_back({logits[token] + offset, row, static_cast<int32_t>(token)});
    std::push_heap(best.begin(), best.end(), better);
    if (best.size() > count) {
      std::pop_heap(best.begin(), best.end(), better);
      best.pop_back();
    }
    threshold = logits[static_cast<size_t>(best.front().token)];
  }
}

class Search {
 public:
  Search(StepDecoder& decoder, std::span<const int32_t> max_lengths, const BeamOptions& options)
      : decoder_(decoder), max_lengths_(max_lengths), options_(options), finished_(max_lengths.size()) {
    for (size_t s = 0; s < max_lengths.size(); ++s) rows_.push_back({static_cast<int32_t>(s), -1, 0, 0});
  }

  std::vector<std::vector<Hypothesis>> run() {
    while (!rows_.empty()) step();
    for (std::vector<Hypothesis>& sentence : finished_) {
      std::stable_sort(sentence.begin(), sentence.end(),
                       [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
      if (sentence.size() > static_cast<size_t>(options_.n_best))
        sentence.resize(static_cast<size_t>(options_.n_best));
    }
    return std::move(finished_);
  }

 private:
  void step() {
    std::vector<int32_t> tokens;
    tokens.reserve(rows_.size());
    for (const Row& row : rows_)
      tokens.push_back(row.link < 0 ? options_.begin : links_[static_cast<size_t>(row.link)].token);
    const Tensor logits = decoder_.step(tokens);
    const auto vocabulary = static_cast<size_t>(logits.size(-1));
    FOVEA_ASSERT(logits.count() == static_cast<int64_t>(rows_.size() * vocabulary));

    // Twice the beam, so that a beam of continuations is left even when a beam of ends comes first.
    const size_t wanted = 2 * static_cast<size_t>(options_.beam);
    per_row_.resize(rows_.size());
    parallel_for(static_cast<int64_t>(rows_.size()), 4, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const auto r = static_cast<size_t>(i);
        const std::span<const float> row(logits.data() + r * vocabulary, vocabulary);
        if (rows_[r].length >= max_lengths_[static_cast<size_t>(rows_[r].sentence)]) {
          const auto last = static_cast<size_t>(options_.end);
          per_row_[r] = {{rows_[r].log_probability + row[last] - log_sum_exp(row), static_cast<int32_t>(i),
                          options_.end}};
        } else {
          best_of_row(row, rows_[r].log_probability, static_cast<int32_t>(i), wanted, per_row_[r]);
        }
      }
    });

    std::vector<Row> next;
    std::vector<int32_t> parents;
    for (size_t begin = 0, end; begin < rows_.size(); begin = end) {
      end = begin + 1;
      while (end < rows_.size() && rows_[end].sentence == rows_[begin].sentence) ++end;
      extend_sentence(begin, end, wanted, next, parents);
    }
    rows_ = std::move(next);
    if (!rows_.empty()) decoder_.reorder(parents);
  }

  void extend_sentence(size_t begin, size_t end, size_t wanted, std::vector<Row>& next,
                       std::vector<int32_t>& parents) {
    std::vector<Candidate> candidates;
    for (size_t r = begin; r < end; ++r)
      candidates.insert(candidates.end(), per_row_[r].begin(), per_row_[r].end());
    std::sort(candidates.begin(), candidates.end(), better);
    if (candidates.size() > wanted) candidates.resize(wanted);

    const auto beam = static_cast<size_t>(options_.beam);
    std::vector<Hypothesis>& done = finished_[static_cast<size_t>(rows_[begin].sentence)];
    const size_t first_new = next.size();
    for (size_t rank = 0; rank < candidates.size() && next.size() - first_new < beam; ++rank) {
      const Candidate& c = candidates[rank];
      const Row& parent = rows_[static_cast<size_t>(c.row)];
      if (c.token == options_.end) {
        // An end outside the beam would be finished only because better ones went on.
        if (rank < beam && done.size() < beam) done.push_back(finish(parent, c.log_probability));
      } else {
        links_.push_back({parent.link, c.token});
        next.push_back(
            {parent.sentence, static_cast<int32_t>(links_.size() - 1), parent.length + 1, c.log_probability});
        parents.push_back(c.row);
      }
    }
    if (done.size() >= beam) {
      next.resize(first_new);
      parents.resize(first_new);
    }
  }

  Hypothesis finish(const Row& row, double log_probability) const {
    Hypothesis hypothesis;
    for (int32_t link = row.link; link >= 0; link = links_[static_cast<size_t>(link)].parent)
      hypothesis.tokens.push_back(links_[static_cast<size_t>(link)].token);
    std::reverse(hypothesis.tokens.begin(), hypothesis.tokens.end());
    hypothesis.log_probability = log_probability;
    hypothesis.score = log_probability / std::pow(row.length + 1, double{options_.length_penalty});
    return hypothesis;
  }

  StepDecoder& decoder_;
  const std::span<const int32_t> max_lengths_;
  const BeamOptions options_;
  std::vector<Row> rows_;
  std::vector<Link> links_;
  std::vector<std::vector<Candidate>> per_row_;
  std::vector<std::vector<Hypothesis>> finished_;
};

}  // namespace

std::vector<std::vector<Hypothesis>> beam_search(StepDecoder& decoder, std::span<const int32_t> max_lengths,
                                                 const BeamOptions& options) {
  require(options.beam >= 1 && options.beam <= 1024, "beam: got ", options.beam, ", wanted 1 to 1024");
  require(options.n_best >= 1 && options.n_best <= options.beam, "n-best: got ", options.n_best,
          ", wanted 1 to the beam's ", options.beam);
  return Search(decoder, max_lengths, options).run();
}

}  // namespace fovea
