// Attention by rows in double precision, one row after the other, written to be read: the oracle of the fast
// path.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/attention/draws.h"
#include "kernels/attention/dropout.h"
#include "kernels/attention/row_attention_steps.h"

namespace fovea::kernels::scalar {
namespace {

using Doubles = std::vector<double>;

// One query and the keys that it sees; the other arrays run along `keys`.
struct Row {
  int64_t b = 0, h = 0, i = 0;
  std::vector<int64_t> keys{};
  Doubles cap_slope{};  // derivative of the soft cap
  Doubles logits{};     // scores with every term
  Doubles soft{};       // softmax of the logits, or of the noisy logits under Gumbel
  Doubles selected{};   // what the selection made of them
  Doubles factor{};     // gaussian times dropout
  double sink_weight = 0;
  double lse = -std::numeric_limits<double>::infinity();
  size_t chosen = 0;  // hard and argmax, when keys is not empty
};

int64_t key_head(const AttentionShape& shape, int64_t h) {
  return h / (shape.heads / shape.kv_heads);
}

double dot(const float* a, const float* b, int64_t count) {
  double sum = 0;
  for (int64_t c = 0; c < count; ++c) sum += double{a[c]} * b[c];
  return sum;
}

double raw_score(const AttentionRowsForward& call, const Row& row, int64_t j) {
  const float* q = call.q.at(row.b, row.h, row.i);
  const float* k = call.k.at(row.b, key_head(call.shape, row.h), j);
  if (call.score == ScoreFamily::dot) return dot(q, k, call.shape.d);
  const float* a = call.score_vector + row.h * call.score_vector_head;
  double sum = 0;
  for (int64_t c = 0; c < call.shape.d; ++c) sum += a[c] * std::tanh(double{q[c]} + k[c]);
  return sum;
}

double alibi_distance(const AttentionShape& shape, int64_t i, int64_t j) {
  return static_cast<double>(std::abs(i + shape.keys - shape.queries - j));
}

int64_t bias_place(const auto& bias, const Row& row, int64_t j) {
  return row.b * bias.batch + row.h * bias.head + row.i * bias.row + j * bias.column;
}

int64_t relative_place(const AttentionRowsForward& call, const Row& row, int64_t j) {
  const RelativeTerm& relative = call.relative;
  return row.h * relative.head + relative.bucket[j - row.i + call.shape.queries - 1] * relative.step;
}

double centre_of(const AttentionRowsForward& call, const Row& row) {
  return call.gaussian.centre[(row.b * call.shape.heads + row.h) * call.shape.queries + row.i];
}

double gaussian_factor(const AttentionRowsForward& call, const Row& row, int64_t j) {
  if (!call.gaussian.centre) return 1;
  const double away = (static_cast<double>(j) - centre_of(call, row)) / call.gaussian.sigma;
  return std::exp(-away * away / 2);
}

double dropout_factor(const ScoreTerms& terms, const Row& row, int64_t j) {
  if (terms.dropout <= 0) return 1;
  return attention_keep(terms.seed, row.b, row.h, row.i, j, terms.dropout) ? 1 / (1 - double{terms.dropout})
                                                                           : 0;
}

// Fills logits and cap_slope, and drops keys whose logit is -inf.
void score_row(const AttentionRowsForward& call, Row& row) {
  const ScoreTerms& terms = call.terms;
  std::vector<int64_t> visible;
  for (int64_t j : row.keys) {
    double x = raw_score(call, row, j) * terms.scale, slope = 1;
    if (terms.soft_cap > 0) {
      const double t = std::tanh(x / terms.soft_cap);
      x = terms.soft_cap * t;
      slope = 1 - t * t;
    }
    if (terms.alibi) x -= terms.alibi[row.h] * alibi_distance(call.shape, row.i, j);
    if (terms.bias.data) x += terms.bias.data[bias_place(terms.bias, row, j)];
    if (call.relative.table) x += call.relative.table[relative_place(call, row, j)];
    if (x == -std::numeric_limits<double>::infinity()) continue;
    visible.push_back(j);
    row.logits.push_back(x);
    row.cap_slope.push_back(slope);
  }
  row.keys = visible;
}

// Turns x into its softmax with one more logit, which may be -inf; returns log(sum(exp)).
double softmax(Doubles& x, double sink, double& sink_weight) {
  double largest = sink, sum = 0;
  for (double value : x) largest = std::max(largest, value);
  if (largest == -std::numeric_limits<double>::infinity()) return largest;
  for (double& value : x) sum += value = std::exp(value - largest);
  sum += sink_weight = std::exp(sink - largest);
  for (double& value : x) value /= sum;
  sink_weight /= sum;
  return largest + std::log(sum);
}

// Places by falling value; of equals the lowest key first.
std::vector<size_t> ranked(const Doubles& x, const std::vector<int64_t>& keys) {
  std::vector<size_t> order(x.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return x[a] != x[b] ? x[a] > x[b] : keys[a] < keys[b]; });
  return order;
}

// The nearest point of the simplex: max(x - threshold, 0), the threshold such that the sum is 1.
Doubles sparsemax(const Doubles& x) {
  Doubles sorted = x;
  std::sort(sorted.rbegin(), sorted.rend());
  double sum = 0, threshold = 0;
  for (size_t n = 0; n < sorted.size(); ++n) {
    sum += sorted[n];
    const double candidate = (sum - 1) / static_cast<double>(n + 1);
    if (sorted[n] <= candidate) break;
    threshold = candidate;
  }
  Doubles result;
  for (double value : x) result.push_back(std::max(value - threshold, 0.0));
  return result;
}

void select_row(const AttentionRowsForward& call, Row& row) {
  const SelectionTerms& selection = call.selection;
  const double sink = call.terms.sink ? call.terms.sink[row.h] : -std::numeric_limits<double>::infinity();
  row.soft = row.logits;
  row.lse = softmax(row.soft, sink, row.sink_weight);
  row.selected.assign(row.keys.size(), 0);
  if (row.keys.empty()) return;
  const auto choose = [&](const Doubles& x) {
    row.chosen = ranked(x, row.keys)[0];
    row.selected[row.chosen] = 1;
  };
  Doubles noisy = row.logits;
  if (selection.kind == SelectionKind::hard || selection.kind == SelectionKind::gumbel)
    for (size_t n = 0; n < noisy.size(); ++n)
      noisy[n] += attention_gumbel(selection.seed, row.b, row.h, row.i, row.keys[n]);

  switch (selection.kind) {
    case SelectionKind::soft:
      row.selected = row.soft;
      break;
    case SelectionKind::hard:
      choose(noisy);
      break;
    case SelectionKind::argmax:
      choose(row.logits);
      break;
    case SelectionKind::gumbel: {
      if (selection.straight_through) choose(noisy);
      for (double& value : noisy) value /= selection.tau;
      double none = 0;
      softmax(noisy, -std::numeric_limits<double>::infinity(), none);
      row.soft = noisy;
      if (!selection.straight_through) row.selected = row.soft;
      break;
    }
    case SelectionKind::top_k: {
      const auto order = ranked(row.logits, row.keys);
      const size_t count = std::min(static_cast<size_t>(selection.k), order.size());
      Doubles kept;
      for (size_t n = 0; n < count; ++n) kept.push_back(row.logits[order[n]]);
      softmax(kept, sink, row.sink_weight);
      for (size_t n = 0; n < count; ++n) row.selected[order[n]] = kept[n];
      break;
    }
    case SelectionKind::sparsemax:
      row.selected = sparsemax(row.logits);
      break;
    case SelectionKind::sigmoid:
      for (size_t n = 0; n < row.keys.size(); ++n) row.selected[n] = 1 / (1 + std::exp(-row.logits[n]));
      break;
    case SelectionKind::identity:
      row.selected = row.logits;
      break;
  }
}

Row compute_row(const AttentionRowsForward& call, Row row) {
  score_row(call, row);
  select_row(call, row);
  for (int64_t j : row.keys)
    row.factor.push_back(gaussian_factor(call, row, j) * dropout_factor(call.terms, row, j));
  return row;
}

// Entropy of a softmax, from its logits' log-sum-exp.
double entropy(const Row& row) {
  double sum = 0;
  for (size_t n = 0; n < row.keys.size(); ++n) sum -= row.soft[n] * (row.logits[n] - row.lse);
  return sum;
}

// Runs body(row) for every (b, h, i), with the keys that the plan lets it see.
template <class Body>
void for_each_row(const AttentionRowsForward& call, Body body) {
  const AttentionPlan& plan = *call.plan;
  for (int64_t b = 0; b < call.shape.batch; ++b)
    for (int64_t h = 0; h < call.shape.heads; ++h) {
      const int64_t group = plan_group(plan, b, h);
      for (int32_t t = plan.group_tiles[group]; t < plan.group_tiles[group + 1]; ++t)
        for (int32_t r = 0; r < plan.tiles[t].row_count; ++r) {
          Row row{.b = b, .h = h, .i = plan.tiles[t].row_first + int64_t{r} * plan.tiles[t].row_step};
          for (int32_t s = plan.tiles[t].segment_begin; s < plan.tiles[t].segment_end; ++s)
            for (int32_t j = 0; j < plan.segments[s].key_count; ++j)
              if (plan_sees(plan, plan.tiles[t], plan.segments[s], r, j))
                row.keys.push_back(plan_key(plan, plan.segments[s], j));
          body(row);
        }
    }
}

// The place of a value in an ascending list, or -1.
int64_t place_in(const int32_t* list, int64_t count, int64_t value) {
  const int32_t* found = std::lower_bound(list, list + count, static_cast<int32_t>(value));
  return found != list + count && *found == value ? found - list : -1;
}

void forward(const AttentionRowsForward& call) {
  const AttentionShape& shape = call.shape;
  const ChosenWeights& wanted = call.weights;
  for_each_row(call, [&](const Row& start) {
    const Row row = compute_row(call, start);
    const int64_t place = (row.b * shape.heads + row.h) * shape.queries + row.i;
    const bool any = !row.keys.empty();
    if (call.out.data) {
      Doubles sum(static_cast<size_t>(shape.dv));
      for (size_t n = 0; n < row.keys.size(); ++n) {
        const double weight = row.selected[n] * row.factor[n];
        const float* v = call.v.at(row.b, key_head(shape, row.h), row.keys[n]);
        if (weight != 0)
          for (int64_t c = 0; c < shape.dv; ++c) sum[c] += weight * v[c];
      }
      for (int64_t c = 0; c < shape.dv; ++c) call.out.at(row.b, row.h, row.i)[c] = static_cast<float>(sum[c]);
    }
    if (call.lse) call.lse[place] = static_cast<float>(row.lse);
    if (call.chosen) call.chosen[place] = any ? static_cast<int32_t>(row.keys[row.chosen]) : -1;
    if (call.log_probability)
      call.log_probability[place] = any ? static_cast<float>(row.logits[row.chosen] - row.lse) : 0;
    if (call.entropy) call.entropy[place] = static_cast<float>(entropy(row));
    const int64_t head = place_in(wanted.heads, wanted.head_count, row.h);
    const int64_t query = place_in(wanted.rows, wanted.row_count, row.i);
    if (wanted.data && head >= 0 && query >= 0) {
      float* weights =
          wanted.data + ((row.b * wanted.head_count + head) * wanted.row_count + query) * shape.keys;
      std::fill(weights, weights + shape.keys, 0.0f);
      for (size_t n = 0; n < row.keys.size(); ++n)
        weights[row.keys[n]] = static_cast<float>(row.selected[n] * row.factor[n]);
    }
  });
}

// The selection's derivative: from d_selected to the gradient of the logits (and of the sink).
Doubles select_backward(const AttentionRowsBackward& call, const Row& row, const Doubles& d_selected,
                        double& d_sink) {
  const SelectionTerms& selection = call.forward.selection;
  const AttentionShape& shape = call.forward.shape;
  const int64_t place = (row.b * shape.heads + row.h) * shape.queries + row.i;
  const size_t count = row.keys.size();
  Doubles d_logits(count);
  const auto through_softmax = [&](const Doubles& p, double temperature) {
    double mean = 0;
    for (size_t n = 0; n < count; ++n) mean += p[n] * d_selected[n];
    for (size_t n = 0; n < count; ++n) d_logits[n] = p[n] * (d_selected[n] - mean) / temperature;
    d_sink = -row.sink_weight * mean;
  };
  switch (selection.kind) {
    case SelectionKind::soft:
    case SelectionKind::top_k:
      through_softmax(row.selected, 1);
      break;
    case SelectionKind::gumbel:
      through_softmax(row.soft, selection.tau);
      break;
    case SelectionKind::argmax:
      break;
    case SelectionKind::hard: {
      const double d_log = call.d_log_probability ? call.d_log_probability[place] : 0;
      const double d_entropy = call.d_entropy ? call.d_entropy[place] : 0;
      const double h = entropy(row);
      for (size_t n = 0; n < count; ++n) {
        const double p = row.soft[n], log_p = row.logits[n] - row.lse;
        d_logits[n] = d_log * ((n == row.chosen) - p) - d_entropy * p * (log_p + h);
      }
      break;
    }
    case SelectionKind::sparsemax: {
      double mean = 0, support = 0;
      for (size_t n = 0; n < count; ++n)
        if (row.selected[n] > 0) mean += d_selected[n], support += 1;
      for (size_t n = 0; n < count; ++n)
        if (row.selected[n] > 0) d_logits[n] = d_selected[n] - mean / support;
      break;
    }
    case SelectionKind::sigmoid:
      for (size_t n = 0; n < count; ++n)
        d_logits[n] = d_selected[n] * row.selected[n] * (1 - row.selected[n]);
      break;
    case SelectionKind::identity:
      d_logits = d_selected;
      break;
  }
  return d_logits;
}

// Gradients in double until the end, in the layout [B, heads, rows, width].
struct Sum {
  int64_t heads, rows, width;
  Doubles data;
  Sum(int64_t batch, int64_t head_count, int64_t row_count, int64_t row_width)
      : heads(head_count),
        rows(row_count),
        width(row_width),
        data(static_cast<size_t>(batch * heads * rows * width)) {}
  double* at(int64_t b, int64_t h, int64_t i) { return data.data() + ((b * heads + h) * rows + i) * width; }
  void write(const HeadView<float>& view) {
    if (!view.data) return;
    for (size_t n = 0; n < data.size() / std::max<size_t>(width, 1); ++n) {
      const int64_t place = static_cast<int64_t>(n), b = place / (heads * rows), h = place / rows % heads;
      for (int64_t c = 0; c < width; ++c)
        view.at(b, h, place % rows)[c] = static_cast<float>(at(b, h, place % rows)[c]);
    }
  }
};

void backward(const AttentionRowsBackward& call) {
  const AttentionRowsForward& f = call.forward;
  const AttentionShape& shape = f.shape;
  Sum dq(shape.batch, shape.heads, shape.queries, shape.d),
      dk(shape.batch, shape.kv_heads, shape.keys, shape.d);
  Sum dv(shape.batch, shape.kv_heads, shape.keys, shape.dv);
  Sum d_alibi(1, 1, shape.heads, 1), d_sink(1, 1, shape.heads, 1), d_vector(1, 1, shape.heads, shape.d);
  Sum d_relative(1, 1, shape.heads, f.relative.bucket_count);

  for_each_row(f, [&](const Row& start) {
    const Row row = compute_row(f, start);
    const int64_t g = key_head(shape, row.h), place = (row.b * shape.heads + row.h) * shape.queries + row.i;
    const size_t count = row.keys.size();
    const float* d_out = call.d_out.at(row.b, row.h, row.i);
    const float* q = f.q.at(row.b, row.h, row.i);

    Doubles d_selected(count);
    double d_centre = 0;
    for (size_t n = 0; n < count; ++n) {
      const double weight = row.selected[n] * row.factor[n];
      const double d_weight = dot(d_out, f.v.at(row.b, g, row.keys[n]), shape.dv);
      for (int64_t c = 0; c < shape.dv; ++c) dv.at(row.b, g, row.keys[n])[c] += weight * d_out[c];
      d_selected[n] = d_weight * row.factor[n];
      if (f.gaussian.centre)
        d_centre += d_weight * weight * (static_cast<double>(row.keys[n]) - centre_of(f, row)) /
                    (double{f.gaussian.sigma} * f.gaussian.sigma);
    }
    if (call.d_centre) call.d_centre[place] = static_cast<float>(d_centre);

    double sink = 0;
    const Doubles d_logits = select_backward(call, row, d_selected, sink);
    *d_sink.at(0, 0, row.h) += sink;
    for (size_t n = 0; n < count; ++n) {
      const int64_t j = row.keys[n];
      if (call.d_bias.data)
        call.d_bias.data[bias_place(call.d_bias, row, j)] += static_cast<float>(d_logits[n]);
      *d_alibi.at(0, 0, row.h) -= d_logits[n] * alibi_distance(shape, row.i, j);
      if (f.relative.table)
        d_relative.at(0, 0, row.h)[f.relative.bucket[j - row.i + shape.queries - 1]] += d_logits[n];

      const double d_raw = d_logits[n] * row.cap_slope[n] * f.terms.scale;
      const float* k = f.k.at(row.b, g, j);
      for (int64_t c = 0; c < shape.d; ++c) {
        if (f.score == ScoreFamily::dot) {
          dq.at(row.b, row.h, row.i)[c] += d_raw * k[c];
          dk.at(row.b, g, j)[c] += d_raw * q[c];
        } else {
          const double t = std::tanh(double{q[c]} + k[c]);
          const double inside = d_raw * f.score_vector[row.h * f.score_vector_head + c] * (1 - t * t);
          dq.at(row.b, row.h, row.i)[c] += inside;
          dk.at(row.b, g, j)[c] += inside;
          d_vector.at(0, 0, row.h)[c] += d_raw * t;
        }
      }
    }
  });

  dq.write(call.dq);
  dk.write(call.dk);
  dv.write(call.dv);
  for (int64_t h = 0; h < shape.heads; ++h) {
    if (call.d_alibi) call.d_alibi[h] += static_cast<float>(*d_alibi.at(0, 0, h));
    if (call.d_sink) call.d_sink[h] += static_cast<float>(*d_sink.at(0, 0, h));
    if (call.d_score_vector)
      for (int64_t c = 0; c < shape.d; ++c)
        call.d_score_vector[h * f.score_vector_head + c] += static_cast<float>(d_vector.at(0, 0, h)[c]);
    if (call.d_relative)
      for (int64_t n = 0; n < f.relative.bucket_count; ++n)
        call.d_relative[h * f.relative.head + n * f.relative.step] +=
            static_cast<float>(d_relative.at(0, 0, h)[n]);
  }
}

}  // namespace

// The scalar level runs whole calls, never steps of the fast path.
extern const AttentionRowsSteps attention_rows_table;
const AttentionRowsSteps attention_rows_table{};

void attention_rows_forward(const AttentionRowsForward& call) {
  forward(call);
}
void attention_rows_backward(const AttentionRowsBackward& call) {
  backward(call);
}

}  // namespace fovea::kernels::scalar
