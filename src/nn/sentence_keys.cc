#include "nn/sentence_keys.h"

#include <algorithm>

#include "base/parallel.h"
#include "kernels/scratch.h"
#include "kernels/vector/rows.h"
#include "nn/key_value_cache.h"

namespace fovea::nn {

Tensor columns(const Tensor& x, int64_t begin, int64_t count) {
  return x.narrow(1, begin, count).contiguous();
}

Tensor pick_rows(const Tensor& t, std::span<const int32_t> parents) {
  check_parents(parents, t.size(0));
  Tensor picked({static_cast<int64_t>(parents.size()), t.size(1)});
  kernels::gather_rows(t.data(), t.size(1), parents, picked.data());
  return picked;
}

kernels::RunScore step_score(const RunScore& score, int64_t query_width) {
  const bool additive = score.family == kernels::ScoreFamily::additive;
  return {.family = score.family,
          .d = additive ? score.vector.size(0) : query_width,
          .scale = score.scale,
          .unit_query = score.unit_query,
          .vector = additive ? score.vector.value().data() : nullptr};
}

SentenceKeys::SentenceKeys(Tensor keys, Tensor values, std::span<const int64_t> lengths)
    : keys_(std::move(keys)), values_(std::move(values)), begin_{0} {
  for (const int64_t length : lengths) {
    sentence_.push_back(static_cast<int32_t>(begin_.size()) - 1);
    begin_.push_back(begin_.back() + length);
  }
}

int64_t SentenceKeys::keys_of(int64_t row) const {
  const auto s = static_cast<size_t>(sentence_[static_cast<size_t>(row)]);
  return begin_[s + 1] - begin_[s];
}

void SentenceKeys::reorder(std::span<const int32_t> parents) {
  check_parents(parents, rows());
  std::vector<int32_t> picked;
  picked.reserve(parents.size());
  for (const int32_t parent : parents) picked.push_back(sentence_[static_cast<size_t>(parent)]);
  sentence_ = std::move(picked);
}

Tensor SentenceKeys::attend_by_algebra(const Options& options, const Tensor& queries,
                                       std::span<const Run> runs) const {
  const kernels::RunScore& score = options.score;
  RunScore of_vars{.family = score.family, .scale = score.scale, .unit_query = score.unit_query};
  if (score.vector != nullptr)
    of_vars.vector = Var(Tensor::from({score.vector, score.vector + score.d}, {score.d}));
  Context use;
  Tensor out({rows(), values_.size(1)});
  for (int64_t r = 0; r < rows(); ++r) {
    // Places are counted in the row's own sentence, so that its neighbours round nothing.
    const auto& [run, centre] = runs[static_cast<size_t>(r)];
    const int64_t begin = begin_[static_cast<size_t>(sentence_[static_cast<size_t>(r)])];
    RunGaussian gaussian;
    if (options.sigma > 0) gaussian = {Var(Tensor::full({1}, centre)), options.sigma};
    const QueryPlace place = place_at(options.step, 0, keys_of(r));
    const Var seen = attend_runs_by(options.selection,
                                    {.q = Var(queries.narrow(0, r, 1)),
                                     .k = Var(keys_.narrow(0, begin, keys_of(r))),
                                     .v = Var(values_.narrow(0, begin, keys_of(r))),
                                     .first = {&run.first, 1},
                                     .count = {&run.count, 1},
                                     .score = of_vars,
                                     .gaussian = gaussian,
                                     .place_terms = options.place_terms,
                                     .places = {&place, 1}},
                                    use)
                         .out;
    out.narrow(0, r, 1).copy_from(seen.value());
  }
  return out;
}

Tensor SentenceKeys::attend(const Options& options, const Tensor& queries, std::span<const Run> runs) const {
  if (options.selection.kind != SelectionKind::soft || options.place_terms != nullptr)
    return attend_by_algebra(options, queries, runs);
  const int64_t d = keys_.size(1), dv = values_.size(1);
  FOVEA_ASSERT(queries.size(0) == rows() && queries.size(1) == d &&
               static_cast<int64_t>(runs.size()) == rows());
  int64_t longest = 0;
  for (int64_t r = 0; r < rows(); ++r) longest = std::max(longest, keys_of(r));
  Tensor out({rows(), dv});
  const kernels::AttentionRunsKernels& kernels = kernels::attention_runs_kernels();
  parallel_for(rows(), 4, [&](int64_t begin, int64_t end) {
    float* const scratch = kernels::scratch_floats(0, longest + d);
    for (int64_t r = begin; r < end; ++r) {
      const auto& [run, centre] = runs[static_cast<size_t>(r)];
      const int64_t first = begin_[static_cast<size_t>(sentence_[static_cast<size_t>(r)])] + run.first;
      kernels.forward(options.score,
                      {.q = queries.data() + r * d,
                       .count = run.count,
                       .k = keys_.data() + first * d,
                       .k_row = d,
                       .v = values_.data() + first * dv,
                       .v_row = dv,
                       .dv = dv,
                       .centre = centre - static_cast<float>(run.first),
                       .sigma = options.sigma,
                       .soft = scratch,
                       .out = out.data() + r * dv},
                      scratch + longest);
    }
  });
  return out;
}

}  // namespace fovea::nn
