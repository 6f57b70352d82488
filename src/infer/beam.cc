// Beam search: extends hypotheses, keeps the best, and ranks those that ended.
#include "infer/beam.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/parallel.h"
#include "base/stop_check.h"
#include "kernels/vector/topk.h"

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

// What choosing from one row needs besides the row.
struct Choice {
  std::vector<float> values;
  std::vector<int32_t> tokens;
};

// The `count` best continuations of one row, best first; those with the token `skipped` left out.
void best_of_row(const Logits& logits, double base, int32_t row, size_t count, int32_t skipped,
                 Choice& choice, std::vector<Candidate>& best) {
  choice.values.resize(count);
  choice.tokens.resize(count);
  const int64_t vocabulary = logits.values.size(1), blocks = logits.largest.size(1);
  const kernels::TopKResult top =
      kernels::top_k_kernels().top_k({.count = vocabulary,
                                      .x = logits.values.data() + row * vocabulary,
                                      .block_largest = logits.largest.data() + row * blocks,
                                      .block_sums = logits.sums.data() + row * blocks,
                                      .wanted = static_cast<int64_t>(count),
                                      .skipped = skipped,
                                      .values = choice.values.data(),
                                      .columns = choice.tokens.data()});
  if (!std::isfinite(top.sum)) fail_damaged_logits();
  const double offset = base - (double{top.largest} + std::log(double{top.sum}));
  best.clear();
  for (size_t i = 0; i < static_cast<size_t>(top.found); ++i)
    best.push_back({double{choice.values[i]} + offset, row, choice.tokens[i]});
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
    check_stop();
    std::vector<int32_t> tokens;
    tokens.reserve(rows_.size());
    for (const Row& row : rows_)
      tokens.push_back(row.link < 0 ? options_.begin : links_[static_cast<size_t>(row.link)].token);
    const Logits logits = decoder_.step(tokens);
    FOVEA_ASSERT(logits.values.size(0) == static_cast<int64_t>(rows_.size()));

    // Twice the beam, so that a beam of continuations is left even when a beam of ends comes first.
    const size_t wanted = 2 * static_cast<size_t>(options_.beam);
    per_row_.resize(rows_.size());
    parallel_for(static_cast<int64_t>(rows_.size()), 4, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const auto r = static_cast<size_t>(i);
        const bool full = rows_[r].length >= max_lengths_[static_cast<size_t>(rows_[r].sentence)];
        const bool early = !full && rows_[r].length < options_.min_length;
        Choice& choice = choices_[static_cast<size_t>(thread_index())];
        best_of_row(logits, rows_[r].log_probability, static_cast<int32_t>(i), full ? 1 : wanted,
                    early ? options_.end : options_.never, choice, per_row_[r]);
        if (full) {  // only the end may follow, whatever is best
          Candidate& only = per_row_[r][0];
          const float* row = logits.values.data() + i * logits.values.size(1);
          only.log_probability += double{row[options_.end]} - double{row[only.token]};
          only.token = options_.end;
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
        if (rank < beam) done.push_back(finish(parent, c.log_probability));
      } else {
        links_.push_back({parent.link, c.token});
        next.push_back(
            {parent.sentence, static_cast<int32_t>(links_.size() - 1), parent.length + 1, c.log_probability});
        parents.push_back(c.row);
      }
    }
    if (done.size() >= beam) {
      // Of the ends of the last step, one may be better than those of steps before.
      std::stable_sort(done.begin(), done.end(),
                       [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
      done.resize(beam);
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
  std::vector<Choice> choices_{static_cast<size_t>(num_threads())};  // one a thread
  std::vector<std::vector<Hypothesis>> finished_;
};

// A beam of 1 without scores.
std::vector<std::vector<Hypothesis>> greedy_search(StepDecoder& decoder, std::span<const int32_t> max_lengths,
                                                   const BeamOptions& options) {
  std::vector<std::vector<Hypothesis>> found(max_lengths.size());
  for (std::vector<Hypothesis>& sentence : found) sentence.resize(1);
  std::vector<int32_t> alive(max_lengths.size()), tokens(max_lengths.size(), options.begin), skipped, parents;
  std::iota(alive.begin(), alive.end(), 0);
  for (int32_t length = 0; !alive.empty(); ++length) {
    skipped.assign(alive.size(), length < options.min_length ? options.end : options.never);
    tokens = decoder.best(tokens, skipped);
    parents.clear();
    size_t kept = 0;
    for (size_t r = 0; r < alive.size(); ++r) {
      const auto sentence = static_cast<size_t>(alive[r]);
      if (tokens[r] == options.end || length >= max_lengths[sentence]) continue;
      found[sentence][0].tokens.push_back(tokens[r]);
      parents.push_back(static_cast<int32_t>(r));
      alive[kept] = alive[r];
      tokens[kept++] = tokens[r];
    }
    const bool all = kept == alive.size();
    alive.resize(kept);
    tokens.resize(kept);
    if (!all && kept > 0) decoder.reorder(parents);
  }
  return found;
}

}  // namespace

std::vector<std::vector<Hypothesis>> beam_search(StepDecoder& decoder, std::span<const int32_t> max_lengths,
                                                 const BeamOptions& options) {
  require(options.beam >= 1 && options.beam <= 1024, "beam: got ", options.beam, ", wanted 1 to 1024");
  require(options.n_best >= 1 && options.n_best <= options.beam, "n-best: got ", options.n_best,
          ", wanted 1 to the beam's ", options.beam);
  require(std::abs(options.length_penalty) <= 100, "length-penalty: got ", options.length_penalty,
          ", wanted a number from -100 to 100, such as 1");
  require(options.never < 0 || options.min_length == 0,
          "beam: a token that is never chosen does not go with a least length");
  if (options.beam == 1 && !options.scores) return greedy_search(decoder, max_lengths, options);
  return Search(decoder, max_lengths, options).run();
}

}  // namespace fovea
