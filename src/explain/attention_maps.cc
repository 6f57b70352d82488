// Chooses layers and heads of an attention record, averages or rolls them out, joins tokens into words, and makes heat
// maps and alignment pairs.
#include "explain/attention_maps.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "explain/shades.h"

namespace fovea {
namespace {

constexpr double kCellOfSmallMaps = 16;

WeightMatrix product(const WeightMatrix& a, const WeightMatrix& b) {
  WeightMatrix out = WeightMatrix::zeros(a.rows, b.columns);
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t k = 0; k < a.columns; ++k)
      for (int64_t j = 0; j < b.columns; ++j) out.at(i, j) += a.at(i, k) * b.at(k, j);
  return out;
}

WeightMatrix halfway(const WeightMatrix& a, const WeightMatrix& b) {
  WeightMatrix out = a;
  for (size_t i = 0; i < out.values.size(); ++i) out.values[i] = (a.values[i] + b.values[i]) / 2;
  return out;
}

// Rows that sum to 1, whatever the selection gave; a row that saw nothing stays where it is in square
// matrices, where the residual connection carries it.
WeightMatrix normalised(WeightMatrix weights) {
  for (int64_t i = 0; i < weights.rows; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < weights.columns; ++j) sum += weights.at(i, j);
    if (sum > 0)
      for (int64_t j = 0; j < weights.columns; ++j)
        weights.at(i, j) = static_cast<float>(weights.at(i, j) / sum);
    else if (weights.rows == weights.columns)
      weights.at(i, i) = 1;
  }
  return weights;
}

WeightMatrix self_rollout(const AttentionRecord& record, AttentionKind kind, int64_t size) {
  WeightMatrix reached = WeightMatrix::identity(size);
  for (const AttentionLayer* layer : record.layers_of(kind))
    reached = halfway(product(normalised(head_average(*layer)), reached), reached);
  return reached;
}

std::string range_of(size_t count) {
  return count == 1 ? "only 0" : message("0 to ", count - 1);
}

const AttentionLayer& layer_of(const AttentionRecord& record, AttentionKind kind, int64_t number) {
  const auto layers = record.layers_of(kind);
  require(!layers.empty(), "the model has no ", kind_name(kind), " attention");
  for (const AttentionLayer* layer : layers)
    if (layer->layer == number) return *layer;
  fail("layer: got ", number, ", but ", kind_name(kind), " attention has ", range_of(layers.size()),
       has_rollout(record, kind) ? ", and rollout" : "");
}

}  // namespace

WeightMatrix head_average(const AttentionLayer& layer) {
  WeightMatrix average = layer.heads.at(0);
  for (size_t h = 1; h < layer.heads.size(); ++h)
    for (size_t i = 0; i < average.values.size(); ++i) average.values[i] += layer.heads[h].values[i];
  for (float& weight : average.values) weight /= static_cast<float>(layer.heads.size());
  return average;
}

bool has_rollout(const AttentionRecord& record, AttentionKind kind) {
  if (kind != AttentionKind::cross) return !record.layers_of(kind).empty();
  const auto cross = record.layers_of(kind);
  return !cross.empty() && cross.size() == record.layers_of(AttentionKind::decoder).size();
}

WeightMatrix rollout(const AttentionRecord& record, AttentionKind kind) {
  require(has_rollout(record, kind), "rollout: the model's ", kind_name(kind),
          " attention is no stack of layers");
  const auto sources = static_cast<int64_t>(record.source.tokens.size());
  const auto targets = static_cast<int64_t>(record.target.tokens.size());
  if (kind != AttentionKind::cross)
    return self_rollout(record, kind, kind == AttentionKind::encoder ? sources : targets);
  const WeightMatrix read = self_rollout(record, AttentionKind::encoder, sources);
  const auto self = record.layers_of(AttentionKind::decoder), cross = record.layers_of(AttentionKind::cross);
  WeightMatrix reached = WeightMatrix::zeros(targets, sources);
  for (size_t l = 0; l < cross.size(); ++l) {
    reached = halfway(product(normalised(head_average(*self[l])), reached), reached);
    reached = halfway(product(normalised(head_average(*cross[l])), read), reached);
  }
  return normalised(std::move(reached));
}

RolloutRow::RolloutRow(int64_t size, int64_t row)
    : shares_(static_cast<size_t>(size)), gathered_(static_cast<size_t>(size)) {
  shares_.at(static_cast<size_t>(row)) = 1;
}

std::vector<int32_t> RolloutRow::rows() const {
  std::vector<int32_t> rows;
  for (size_t i = 0; i < shares_.size(); ++i)
    if (shares_[i] != 0) rows.push_back(static_cast<int32_t>(i));
  return rows;
}

// The same rules as normalised() has.
void RolloutRow::add(std::span<const int32_t> rows, std::span<const float> weights) {
  const size_t size = shares_.size(), heads = weights.size() / std::max<size_t>(1, rows.size() * size);
  FOVEA_ASSERT(weights.size() == heads * rows.size() * size);
  std::vector<double> average(size);
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto row = static_cast<size_t>(rows[i]);
    if (shares_[row] == 0) continue;
    std::fill(average.begin(), average.end(), 0.0);
    for (size_t h = 0; h < heads; ++h) {
      const float* const own = weights.data() + (h * rows.size() + i) * size;
      for (size_t j = 0; j < size; ++j) average[j] += double{own[j]} / static_cast<double>(heads);
    }
    double sum = std::accumulate(average.begin(), average.end(), 0.0);
    if (!(sum > 0)) {
      average[row] = 1;
      sum = 1;
    }
    const double share = shares_[row] / sum;
    for (size_t j = 0; j < size; ++j) gathered_[j] += share * average[j];
  }
}

void RolloutRow::end_layer() {
  for (size_t j = 0; j < shares_.size(); ++j)
    shares_[j] = (shares_[j] + std::exchange(gathered_[j], 0.0)) / 2;
}

std::vector<float> RolloutRow::shares() const {
  return {shares_.begin(), shares_.end()};
}

std::vector<float> rollout_row(const AttentionRecord& record, AttentionKind kind, int64_t row) {
  FOVEA_ASSERT(kind != AttentionKind::cross);
  const auto layers = record.layers_of(kind);
  require(!layers.empty(), "rollout: the model has no ", kind_name(kind), " attention");
  RolloutRow reached(static_cast<int64_t>(record.rows(kind).tokens.size()), row);
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    const WeightMatrix average = head_average(**layer);
    std::vector<int32_t> every(static_cast<size_t>(average.rows));
    std::iota(every.begin(), every.end(), 0);
    reached.add(every, average.values);
    reached.end_layer();
  }
  return reached.shares();
}

WeightMatrix merge_words(const WeightMatrix& weights, const TokenLine& rows, const TokenLine& columns) {
  WeightMatrix merged = WeightMatrix::zeros(static_cast<int64_t>(rows.words.size()),
                                            static_cast<int64_t>(columns.words.size()));
  std::vector<float> tokens(rows.words.size());
  for (const int32_t word : rows.word_of) ++tokens[static_cast<size_t>(word)];
  for (int64_t i = 0; i < weights.rows; ++i) {
    const int32_t row = rows.word_of[static_cast<size_t>(i)];
    for (int64_t j = 0; j < weights.columns; ++j)
      merged.at(row, columns.word_of[static_cast<size_t>(j)]) +=
          weights.at(i, j) / tokens[static_cast<size_t>(row)];
  }
  return merged;
}

WeightMatrix choose(const AttentionRecord& record, const AttentionChoice& choice) {
  if (choice.layer == AttentionChoice::kRollout) return rollout(record, choice.kind);
  const AttentionLayer& layer = layer_of(record, choice.kind, choice.layer);
  if (choice.head == AttentionChoice::kAverage) return head_average(layer);
  require(choice.head >= 0 && choice.head < static_cast<int64_t>(layer.heads.size()), "head: got ",
          choice.head, ", but ", kind_name(choice.kind), " attention has ", range_of(layer.heads.size()),
          ", and average");
  return layer.heads[static_cast<size_t>(choice.head)];
}

int64_t alignment_layer(const AttentionRecord& record) {
  const auto layers = record.layers_of(AttentionKind::cross);
  require(!layers.empty(), "the model has no attention to the source: nothing aligns the two sentences");
  return layers[layers.size() > 1 ? layers.size() - 2 : 0]->layer;
}

std::vector<AlignedPair> aligned_pairs(const WeightMatrix& weights, double threshold) {
  std::vector<AlignedPair> pairs;
  const int64_t targets = weights.rows - 1, sources = weights.columns - 1;
  for (int64_t i = 0; i < targets; ++i) {
    if (threshold > 0) {
      for (int64_t j = 0; j < sources; ++j)
        if (double{weights.at(i, j)} >= threshold) pairs.push_back({j, i});
    } else if (sources > 0) {
      const float* row = weights.values.data() + i * weights.columns;
      pairs.push_back({std::max_element(row, row + sources) - row, i});
    }
  }
  return pairs;
}

std::string pharaoh(const std::vector<AlignedPair>& pairs) {
  std::string text;
  for (const AlignedPair& pair : pairs) {
    text += (text.empty() ? "" : " ") + std::to_string(pair.source);
    text += "-" + std::to_string(pair.target);
  }
  return text;
}

std::string title_of(const AttentionChoice& choice) {
  if (choice.layer == AttentionChoice::kRollout) return message(kind_name(choice.kind), ", rollout");
  const std::string head =
      choice.head == AttentionChoice::kAverage ? "average of heads" : message("head ", choice.head);
  return message(kind_name(choice.kind), ", layer ", choice.layer, ", ", head);
}

HeatMap heat_map(const AttentionRecord& record, const AttentionChoice& choice, bool words) {
  const TokenLine &rows = record.rows(choice.kind), &columns = record.columns(choice.kind);
  WeightMatrix weights = choose(record, choice);
  if (words) weights = merge_words(weights, rows, columns);
  HeatMap map;
  // A model with one map, as those of the alignment papers, needs no name for it.
  const auto layers = record.layers_of(choice.kind);
  const bool only = layers.size() == 1 && layers[0]->heads.size() == 1 && !has_rollout(record, choice.kind);
  map.title = only ? "" : title_of(choice);
  map.rows = words ? shown_words(rows) : shown_tokens(rows);
  map.columns = words ? shown_words(columns) : shown_tokens(columns);
  map.notes = record.notes;
  if (words && !(rows.unknown.empty() && columns.unknown.empty())) map.notes.emplace_back(kUnknownLegend);
  map.row_count = weights.rows;
  map.column_count = weights.columns;
  map.weights = std::move(weights.values);
  map.largest = map.weights.empty() ? 1 : 1e-6f;
  for (const float weight : map.weights) map.largest = std::max(map.largest, std::abs(weight));
  return map;
}

Figure attention_figure(const AttentionRecord& record, const FigureChoice& choice, bool words) {
  Figure figure;
  figure.across = 1;
  figure.title = message(kind_name(choice.kind), " attention, each map to its own largest weight");
  const auto layers = record.layers_of(choice.kind);
  require(!layers.empty(), "the model has no ", kind_name(choice.kind), " attention");
  const auto add = [&](int64_t layer, int64_t head, bool first_row, bool first_column) {
    HeatMap map = heat_map(record, {choice.kind, layer, head}, words);
    map.title = layer == AttentionChoice::kRollout  ? "rollout"
                : head == AttentionChoice::kAverage ? message("layer ", layer, ", average")
                                                    : message("layer ", layer, ", head ", head);
    map.cell = kCellOfSmallMaps;
    if (!first_row) map.columns.clear();
    if (!first_column) map.rows.clear();
    figure.panels.push_back(std::move(map));
  };
  std::vector<int64_t> shown;
  if (choice.layer) {
    shown = {*choice.layer};
  } else {
    for (const AttentionLayer* layer : layers) shown.push_back(layer->layer);
    if (has_rollout(record, choice.kind)) shown.push_back(AttentionChoice::kRollout);
  }
  for (const int64_t layer : shown) {
    const bool first_row = layer == shown.front();
    if (layer == AttentionChoice::kRollout) {
      add(layer, AttentionChoice::kAverage, first_row, true);
    } else if (choice.head) {
      add(layer, *choice.head, first_row, true);
    } else {
      const auto heads = static_cast<int64_t>(layer_of(record, choice.kind, layer).heads.size());
      for (int64_t h = 0; h < heads; ++h) add(layer, h, first_row, h == 0);
      if (heads > 1) add(layer, AttentionChoice::kAverage, first_row, false);
      figure.across = static_cast<int>(std::max<int64_t>(figure.across, heads > 1 ? heads + 1 : 1));
    }
  }
  if (figure.panels.size() == 1)
    return {
        "",
        {heat_map(record, {choice.kind, shown[0], choice.head.value_or(AttentionChoice::kAverage)}, words)},
        1};
  return figure;
}

}  // namespace fovea
