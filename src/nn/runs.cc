// Converts scores to their form for runs of keys, attends with any selection, and reports weights to observers.
#include "nn/runs.h"

#include <algorithm>
#include <cmath>

#include "attention/kernel_call.h"
#include "autograd/ops.h"
#include "nn/choices.h"

namespace fovea::nn {

Score score_named(const std::string& name) {
  const AttentionSpec spec = parse_spec(name);
  require(spec == AttentionSpec{.score = spec.score}, "attention: got '", name,
          "', wanted a score alone: additive, dot, scaled_dot, cosine, bilinear, concat or location");
  return spec.score;
}

RunScore run_score(const Score& score, int64_t width, const Var& vector) {
  const float number = score.number;
  switch (score.kind) {
    case ScoreKind::additive:
    case ScoreKind::concat:
      return {.family = kernels::ScoreFamily::additive, .vector = vector};
    case ScoreKind::scaled_dot:
      return {.scale = number != 0 ? 1 / number : 1 / std::sqrt(static_cast<float>(width))};
    case ScoreKind::cosine:
      return {.scale = number != 0 ? 1 / number : 1, .unit_query = true};
    case ScoreKind::dot:
    case ScoreKind::bilinear:  // the keys are W k
    case ScoreKind::location:  // the keys are rows of W
      return {};
  }
  fail("attention: a score without a form for runs of keys, wanted one of the algebra's");
}

void show_runs(const ShownAs& as, const Score& score, const KeyRuns& runs, const Tensor& weights) {
  AttentionObserver* const observer = attention_observer();
  if (observer == nullptr) return;
  const AttentionSpec spec{.score = score};
  const AttentionObserver::Call call{as.name, spec, 1, 1, runs.queries(), runs.keys(), as.site};
  const AttentionObserver::Capture capture = observer->capture(call);
  if (capture.heads.empty() || capture.rows.empty()) return;
  const Tensor shown = Tensor::zeros({1, 1, static_cast<int64_t>(capture.rows.size()), runs.keys()});
  for (size_t i = 0; i < capture.rows.size(); ++i) {
    const int64_t row = capture.rows[i];
    require(row >= 0 && row < runs.queries(), "attention: weights of row ", row,
            " were requested; there are ", runs.queries());
    std::copy_n(weights.data() + row * weights.size(1), runs.count[static_cast<size_t>(row)],
                shown.data() + static_cast<int64_t>(i) * runs.keys() + runs.first[static_cast<size_t>(row)]);
  }
  observer->observe(call, capture, {shown, {}});
}

namespace {

// Of the terms that count from a query's place, those that attend() takes as a bias: in a call of one query and a run of
// keys, it would count from the run's last key.
bool biases(const PlaceTerms* terms) {
  return terms != nullptr && (terms->terms.alibi || terms->terms.relative.buckets != 0);
}

// The score of queries and keys that are projected already, as the algebra says it.
AttentionSpec spec_of_runs(const RunQueries& queries, const Selection& selection) {
  const RunScore& score = queries.score;
  AttentionSpec spec{
      .score = score.family == kernels::ScoreFamily::additive ? additive() : scaled_dot(1 / score.scale),
      .selection = selection};
  if (queries.gaussian.centre.defined()) spec.terms.gaussian = queries.gaussian.sigma;
  if (queries.place_terms != nullptr) {
    spec.terms.soft_cap = queries.place_terms->terms.soft_cap;
    spec.terms.sink = queries.place_terms->terms.sink;
    spec.terms.bias = biases(queries.place_terms);
  }
  return spec;
}

// A run of keys as a query at some place sees it: `first` is the first key of the run, counted in the sentence.
struct PlacedRun {
  const PlaceTerms& terms;
  const QueryPlace& at;
  int64_t first, count;

  // The pattern's row of that place: place and keys are those of one sequence, so that both alignments agree.
  Pattern pattern() const {
    if (terms.pattern == full()) return full();
    return predicate("place", [run = *this](int64_t, int64_t, int64_t key) {
      return allowed(
          run.terms.pattern,
          {.queries = run.at.keys, .keys = run.at.keys, .query = run.at.place, .key = run.first + key});
    });
  }
  // alibi and relative positions: [1, 1, 1, count].
  Var bias() const {
    const Tensor alibi = Tensor::zeros({count});
    if (terms.terms.alibi) {
      const float slope = default_slopes(1)[0];
      for (int64_t j = 0; j < count; ++j)
        alibi.data()[j] = -slope * static_cast<float>(std::abs(first + j - at.place));
    }
    Var sum(alibi);
    if (terms.terms.relative.buckets != 0) {
      std::vector<int32_t> buckets;
      for (int64_t j = 0; j < count; ++j)
        buckets.push_back(static_cast<int32_t>(relative_bucket(terms.terms.relative, first + j - at.place)));
      sum = sum + reshape(gather(terms.relative, buckets), {count});
    }
    return reshape(sum, {1, 1, 1, count});
  }
};

// Observes nothing.
struct NoObserver : AttentionObserver {
  Capture capture(const Call&) override { return {}; }
  void observe(const Call&, const Capture&, const Captured&) override {}
};

// rows: [sequences rows, d] -> [sequences, 1, rows, d].
Var one_head(const Var& rows, int64_t sequences = 1) {
  return reshape(rows, {sequences, 1, rows.size(0) / sequences, rows.size(1)});
}

// Runs of one length, one behind the other: query i sees the keys [first + i count, first + (i + 1) count).
bool side_by_side(const RunQueries& queries) {
  for (size_t i = 0; i < queries.first.size(); ++i)
    if (queries.count[i] != queries.count[0] || queries.count[i] < 1 ||
        queries.first[i] != queries.first[0] + static_cast<int32_t>(i) * queries.count[0])
      return false;
  return true;
}

// attend_runs_by() of runs side by side, as one call of the algebra.
ChosenRuns attend_side_by_side(const Var& q, const RunQueries& queries, const AttentionSpec& spec,
                               AttentionRequest request, Context& context) {
  const int64_t count = q.size(0), first = queries.first[0], keys = count * queries.count[0];
  if (draws(spec.selection)) request.seed = context.next_seed();
  const AttentionResult all = attend(one_head(q, count), one_head(slice(queries.k, 0, first, keys), count),
                                     one_head(slice(queries.v, 0, first, keys), count), spec, request);
  ChosenRuns result;
  result.out = reshape(all.output, {count, queries.v.size(1)});
  if (request.weights) result.weights = all.weights.contiguous().reshape({count, queries.count[0]});
  if (!all.log_probability.defined()) return result;
  keep_choices(context, all.log_probability);
  result.entropy = reshape(all.entropy, {count, 1});
  return result;
}

}  // namespace

QueryPlace place_at(int64_t step, int64_t begin, int64_t keys) {
  return {static_cast<int32_t>(std::min(step, keys - 1)), static_cast<int32_t>(begin),
          static_cast<int32_t>(keys)};
}

ChosenRuns attend_runs_by(const Selection& selection, const RunQueries& queries, Context& context,
                          bool want_weights) {
  NoObserver no_observer;
  const ObserveAttention unobserved(no_observer);
  const int64_t count = queries.q.size(0), dv = queries.v.size(1);
  if (count == 0) return {{Var(Tensor::zeros({0, dv})), Tensor::zeros({0, 0})}};
  const Var q = queries.score.unit_query ? unit_rows(queries.q) : queries.q;
  const bool local = queries.gaussian.centre.defined();
  const PlaceTerms* const place_terms = queries.place_terms;
  FOVEA_ASSERT(place_terms == nullptr || static_cast<int64_t>(queries.places.size()) == count);
  AttentionSpec spec = spec_of_runs(queries, selection);
  AttentionRequest request{.training = context.training, .weights = want_weights};
  if (queries.score.family == kernels::ScoreFamily::additive) {
    request.projected = true;
    request.parameters.v = queries.score.vector;
  }
  if (spec.terms.sink) request.parameters.sink = place_terms->sink;
  if (context.training && !local && place_terms == nullptr && side_by_side(queries))
    return attend_side_by_side(q, queries, spec, request, context);
  const int64_t longest = *std::max_element(queries.count.begin(), queries.count.end());
  ChosenRuns result;
  if (want_weights) result.weights = Tensor::zeros({count, longest});
  std::vector<Var> seen, drawn, entropies;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t first = queries.first[static_cast<size_t>(i)], keys = queries.count[static_cast<size_t>(i)];
    if (context.training && draws(selection)) request.seed = context.next_seed();
    if (local) {
      const Var begin(Tensor::full({1}, static_cast<float>(first)));
      request.parameters.position = reshape(slice(queries.gaussian.centre, 0, i, 1) - begin, {1, 1, 1});
    }
    if (place_terms != nullptr) {
      const QueryPlace& at = queries.places[static_cast<size_t>(i)];
      const PlacedRun run{*place_terms, at, first - at.begin, keys};
      spec.pattern = run.pattern();
      if (spec.terms.bias) request.parameters.bias = run.bias();
    }
    const AttentionResult one =
        attend(one_head(slice(q, 0, i, 1)), one_head(slice(queries.k, 0, first, keys)),
               one_head(slice(queries.v, 0, first, keys)), spec, request);
    seen.push_back(reshape(one.output, {1, dv}));
    if (one.log_probability.defined()) {
      drawn.push_back(one.log_probability);
      entropies.push_back(reshape(one.entropy, {1, 1}));
    }
    if (want_weights) std::copy_n(one.weights.data(), keys, result.weights.data() + i * longest);
  }
  if (!drawn.empty()) {
    keep_choices(context, concat(drawn, 2));
    result.entropy = concat(entropies, 0);
  }
  result.out = concat(seen, 0);
  return result;
}

}  // namespace fovea::nn
