// Records a series model's attention over past steps and features and writes it in the requested form.
#include "tasks/explain_series.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograd/ops.h"
#include "data/time_features.h"
#include "explain/attention_maps.h"
#include "explain/report.h"
#include "tasks/explain.h"
#include "tasks/pooling_recorder.h"
#include "tasks/training_run.h"

namespace fovea::tasks {
namespace {

// More tokens of a sequence make maps too large to keep.
constexpr int64_t kMostTokens = 2048;

void check_shown(const LoadedSeriesModel& loaded, int64_t steps) {
  const int64_t tokens = loaded.network->form().tokens(steps);
  require(tokens <= kMostTokens, "a series of ", tokens, " tokens; attention can be shown of at most ",
          kMostTokens, ": train with a larger --patch");
}

// How much the answer takes from each token's state: by pooling, or as the output layer reads it.
std::vector<double> pooled_weights(const LoadedSeriesModel& loaded, const PoolingRecorder& seen,
                                   const Tensor& summary, int64_t sequence, int64_t tokens) {
  std::vector<double> weights(static_cast<size_t>(tokens), 0);
  const std::string& pooling = loaded.network->pooling();
  if (pooling == "first" || pooling == "last") {
    weights[pooling == "first" ? 0 : weights.size() - 1] = 1;
  } else if (pooling == "flatten") {
    const std::vector<float> shares = loaded.network->flattened_shares(summary, sequence);
    std::copy(shares.begin(), shares.end(), weights.begin());
  } else {
    for (int64_t i = 0; i < tokens; ++i) weights[static_cast<size_t>(i)] = double{seen.words.at(0, i)};
  }
  return weights;
}

// The weight of each token of one sequence; they sum to 1.
std::vector<double> token_weights(const LoadedSeriesModel& loaded, const Tensor& x, int64_t sequence) {
  const int64_t tokens = x.size(0);
  PoolingRecorder recorder(true);
  Tensor summary;
  {
    const NoGrad no_grad;
    const ObserveAttention observe(recorder);
    nn::Context context;
    const int64_t lengths[] = {tokens};
    summary = loaded.network->summary(Var(x), lengths, context).value().contiguous();
  }
  std::vector<double> weights = pooled_weights(loaded, recorder, summary, sequence, tokens);
  AttentionRecord record;
  record.source.tokens.resize(static_cast<size_t>(tokens));  // their number is the size of a rollout
  record.layers = recorder.heads.take();
  if (!record.layers.empty()) {
    const WeightMatrix reached = rollout(record, AttentionKind::encoder);
    std::vector<double> through(weights.size(), 0);
    for (int64_t i = 0; i < tokens; ++i)
      for (int64_t j = 0; j < tokens; ++j)
        through[static_cast<size_t>(j)] += weights[static_cast<size_t>(i)] * double{reached.at(i, j)};
    weights = through;
  }
  double sum = 0;
  for (double& weight : weights) sum += std::abs(weight);
  for (double& weight : weights) weight = sum > 0 ? std::abs(weight) / sum : 1 / static_cast<double>(tokens);
  return weights;
}

// |x * d answer / d x| for every value that the network reads.
Tensor value_shares(const LoadedSeriesModel& loaded, const models::SeriesTokens& tokens, int64_t label) {
  const Var x(tokens.x, true);
  nn::Context context;
  const Var out = loaded.network->outputs(tokens, x, context);
  const Var answer = label >= 0 ? slice(out, 1, label, 1) : out;
  sum(answer).backward();
  const Tensor gradient = x.grad();
  const Tensor shares(tokens.x.shape());
  for (int64_t i = 0; i < shares.count(); ++i)
    shares.data()[i] = std::abs(gradient.data()[i] * tokens.x.data()[i]);
  loaded.network->clear_grad();
  return shares;
}

// weights: [rows, steps], rows being columns and then time features.
std::vector<float> step_weights(const LoadedSeriesModel& loaded, const models::SeriesBatch& batch,
                                int64_t label) {
  const models::SeriesForm& form = loaded.network->form();
  const models::SeriesTokens tokens = form.cut(batch);
  const Tensor shares = value_shares(loaded, tokens, label);
  const int64_t steps = batch.lengths[0], rows = form.features + form.known, width = form.step_width(),
                held = width - form.known;
  std::vector<double> weights(static_cast<size_t>(rows * steps), 0);
  const auto sequences = static_cast<int64_t>(tokens.lengths.size());
  int64_t begin = 0;
  for (int64_t s = 0; s < sequences; ++s) {
    const int64_t count = tokens.lengths[static_cast<size_t>(s)];
    const std::vector<double> of_tokens = token_weights(loaded, tokens.x.narrow(0, begin, count), s);
    for (int64_t t = 0; t < count; ++t) {
      const float* share = shares.data() + (begin + t) * form.token_width();
      const double all = std::accumulate(share, share + form.token_width(), 0.0);
      for (int64_t i = 0; i < form.token_width(); ++i) {
        const int64_t step = std::clamp<int64_t>(form.first_step(t, steps) + i / width, 0, steps - 1);
        const int64_t inside = i % width;
        const int64_t row = inside < held ? s + inside : form.features + inside - held;
        const double part = all > 0 ? double{share[i]} / all : 1 / static_cast<double>(form.token_width());
        weights[static_cast<size_t>(row * steps + step)] +=
            of_tokens[static_cast<size_t>(t)] * part / static_cast<double>(sequences);
      }
    }
    begin += count;
  }
  return {weights.begin(), weights.end()};
}

// A row for each column, then for each time feature. values: [steps, columns], in their own units.
SeriesMap map_of(const LoadedSeriesModel& loaded, std::span<const float> values,
                 const std::vector<float>& weights) {
  SeriesMap map;
  const size_t columns = loaded.columns.size(), steps = values.size() / columns;
  for (size_t r = 0; r < columns + loaded.time_features.size(); ++r) {
    SeriesRow row{.name = r < columns ? loaded.columns[r] : loaded.time_features[r - columns],
                  .past = {},
                  .weights = {}};
    row.weights.assign(weights.begin() + static_cast<std::ptrdiff_t>(r * steps),
                       weights.begin() + static_cast<std::ptrdiff_t>((r + 1) * steps));
    if (r < columns)
      for (size_t t = 0; t < steps; ++t) row.past.push_back(values[t * columns + r]);
    map.rows.push_back(std::move(row));
  }
  return map;
}

std::string number_text(float value) {
  return message(value);
}

}  // namespace

SeriesExplanation explain_forecast(const LoadedSeriesModel& loaded, const data::SeriesTable& table,
                                   const std::string& name) {
  check_shown(loaded, loaded.steps_in);
  const SeriesRows rows = rows_of(loaded, table, name);
  require(rows.count() >= loaded.steps_in, name, ": ", rows.count(), " rows, wanted at least ",
          loaded.steps_in);
  const std::vector<float> steps = forecast(loaded, rows);
  const int64_t first[] = {rows.count() - loaded.steps_in};
  const std::vector<float> weights = step_weights(loaded, windows_at(loaded, rows, first), -1);
  SeriesExplanation result;
  result.model = loaded.model;
  result.answer =
      message("the next ", counted(loaded.horizon, "step"), " of ", counted(loaded.targets, "column"));
  result.map = map_of(
      loaded, std::span(table.values).last(static_cast<size_t>(loaded.steps_in) * loaded.columns.size()),
      weights);
  result.answer_json["forecast"] = Json::object();
  for (int64_t t = 0; t < loaded.targets; ++t) {
    std::vector<float>& ahead = result.map.rows[static_cast<size_t>(t)].forecast;
    for (int64_t h = 0; h < loaded.horizon; ++h)
      ahead.push_back(steps[static_cast<size_t>(h * loaded.targets + t)]);
    result.answer_json["forecast"][loaded.columns[static_cast<size_t>(t)]] = value_to_json(ahead);
  }
  result.map.title = result.answer;
  if (table.times.empty()) {
    result.map.first = message(loaded.steps_in, " steps back");
    result.map.last = "the last row";
    result.map.end = message(loaded.horizon, " steps ahead");
    return result;
  }
  const std::vector<int64_t> ahead = times_after(table, loaded.horizon);
  result.map.first = data::time_text(table.times[static_cast<size_t>(first[0])]);
  result.map.last = data::time_text(table.times.back());
  result.map.end = data::time_text(ahead.back());
  return result;
}

SeriesExplanation explain_case(const LoadedSeriesModel& loaded, const data::SeriesCases& cases) {
  check_shown(loaded, cases.length(0));
  data::SeriesCases one = cases;
  one.starts.resize(2);
  one.values.resize(static_cast<size_t>(one.starts[1] * one.features));
  const Tensor found = answer_cases(loaded, one);
  SeriesExplanation result;
  result.model = loaded.model;
  int64_t label = -1;
  if (loaded.goal == SeriesGoal::classify) {
    const Prediction prediction = predictions_of(found)[0];
    label = prediction.label;
    result.answer = prediction_text(prediction, loaded.labels);
    result.answer_json = prediction_json(prediction, loaded.labels);
  } else {
    result.answer = number_text(found.data()[0]);
    result.answer_json = {{"number", value_to_json(found.data()[0])}};
  }
  const int64_t place[] = {0};
  const std::vector<float> weights =
      step_weights(loaded, cases_at(standard_cases(loaded, one), one, place), label);
  result.map = map_of(loaded, one.values, weights);
  result.map.title = result.answer;
  result.map.first = "step 1";
  result.map.last = message("step ", one.starts[1]);
  return result;
}

std::string explain_series_file(const SeriesExplanation& e, const std::filesystem::path& path) {
  check_explain_ending(path);
  const std::string ending = path.extension().string();
  if (ending == ".txt") {
    std::string text;
    for (const SeriesRow& row : e.map.rows)
      for (size_t t = 0; t < row.weights.size(); ++t)
        text += message(t + 1, '\t', row.name, '\t', row.weights[t], '\n');
    return text;
  }
  if (ending == ".json") {
    Json json = e.answer_json;
    json["from"] = e.map.first;
    json["to"] = e.map.last;
    json["features"] = Json::array();
    for (const SeriesRow& row : e.map.rows)
      json["features"].push_back(
          {{"name", row.name}, {"values", value_to_json(row.past)}, {"weights", value_to_json(row.weights)}});
    return json.dump() + "\n";
  }
  if (ending != ".html") return draw(e.map, picture_format(path));
  Report report(e.answer, e.model);
  report.picture(
      draw(e.map, PictureFormat::svg),
      "Each feature over time, and below it the weight of every step: the darker, the larger. The sums "
      "at the right are the shares of the features.");
  report.paragraph(
      "Attention gives the weight of each token (a step, or a patch of steps); within a token it is divided among "
      "steps and features as |gradient x value| of the answer is.");
  return report.html();
}

}  // namespace fovea::tasks
