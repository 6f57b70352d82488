// Attention by its definition, forward and backward, in double precision: what every faster path is compared with.
#include "attention/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "kernels/attention/draws.h"
#include "kernels/attention/dropout.h"

namespace fovea::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double dot(const double* a, const double* b, int64_t count) {
  return std::inner_product(a, a + count, b, 0.0);
}

// y += scale * x
void add(double* y, double scale, const double* x, int64_t count) {
  for (int64_t c = 0; c < count; ++c) y[c] += scale * x[c];
}

// Which query of which head of which sequence.
struct Row {
  int64_t b, h, i;
};

struct Place {
  const Inputs& in;
  int64_t key_head(const Row& r) const { return r.h / (in.heads / in.kv_heads); }
  int64_t row(const Row& r) const { return (r.b * in.heads + r.h) * in.queries + r.i; }
  int64_t query(const Row& r) const { return row(r) * in.d; }
  int64_t key(const Row& r, int64_t j) const {
    return ((r.b * in.kv_heads + key_head(r)) * in.keys + j) * in.dk;
  }
  int64_t value(const Row& r, int64_t j) const {
    return ((r.b * in.kv_heads + key_head(r)) * in.keys + j) * in.dv;
  }
  int64_t pair(const Row& r, int64_t j) const { return row(r) * in.keys + j; }
  // The query's own position among the keys: the last query is at the last key.
  int64_t position(const Row& r) const { return r.i + in.keys - in.queries; }
};

// Step 1. How strongly a query meets a key.

double divisor(const Score& score, int64_t d) {
  if (score.kind == ScoreKind::cosine) return score.number > 0 ? score.number : 1;
  if (score.kind == ScoreKind::scaled_dot)
    return score.number > 0 ? score.number : std::sqrt(static_cast<double>(d));
  return 1;
}

// Additive and concat are one thing: v . tanh(part of the query + part of the key + b). Where each part's
// matrix stands, and how far apart its rows are:
struct HiddenLayer {
  const double *of_query, *of_key;
  int64_t query_stride, key_stride;
};
HiddenLayer hidden_layer(const Score& score, const Inputs& in) {
  if (score.kind == ScoreKind::additive) return {in.u.data(), in.w.data(), in.d, in.dk};
  return {in.w.data() + in.dk, in.w.data(), in.d + in.dk, in.d + in.dk};
}
double hidden_unit(const Score& score, const Inputs& in, const double* q, const double* k, int64_t unit) {
  const HiddenLayer layer = hidden_layer(score, in);
  return std::tanh(dot(layer.of_query + unit * layer.query_stride, q, in.d) +
                   dot(layer.of_key + unit * layer.key_stride, k, in.dk) + (in.b.empty() ? 0 : in.b[unit]));
}

// What the query meets: the key itself, or the row of its place.
const double* met_key(const AttentionSpec& spec, const Inputs& in, const Row& r, int64_t j) {
  if (spec.score.kind == ScoreKind::location) return &in.w[key_place(spec.pattern, j) * in.d];
  return &in.k[Place{in}.key(r, j)];
}

double raw_score(const Score& score, const Inputs& in, const double* q, const double* k) {
  switch (score.kind) {
    case ScoreKind::dot:
    case ScoreKind::scaled_dot:
    case ScoreKind::location:  // k is the row of the key's place
      return dot(q, k, in.d) / divisor(score, in.d);
    case ScoreKind::cosine: {
      const double norms = std::sqrt(dot(q, q, in.d)) * std::sqrt(dot(k, k, in.d));
      return norms > 0 ? dot(q, k, in.d) / norms / divisor(score, in.d) : 0;
    }
    case ScoreKind::bilinear: {
      double sum = 0;
      for (int64_t c = 0; c < in.d; ++c) sum += q[c] * dot(&in.w[c * in.dk], k, in.dk);
      return sum;
    }
    case ScoreKind::additive:
    case ScoreKind::concat: {
      double sum = 0;
      for (int64_t unit = 0; unit < in.hidden; ++unit)
        sum += in.score_vector[unit] * hidden_unit(score, in, q, k, unit);
      return sum;
    }
  }
  return 0;
}

// Adds what dx, the gradient of the raw score of (row, j), gives to q, k and the score's parameters.
void raw_score_backward(const AttentionSpec& spec, const Inputs& in, const Row& r, int64_t j, double dx,
                        Inputs& grad) {
  const Place at{in};
  const Score& score = spec.score;
  const double *q = &in.q[at.query(r)], *k = met_key(spec, in, r, j);
  double *dq = &grad.q[at.query(r)], *dk = &grad.k[at.key(r, j)];
  switch (score.kind) {
    case ScoreKind::location:
      add(dq, dx, k, in.d);
      add(&grad.w[key_place(spec.pattern, j) * in.d], dx, q, in.d);
      return;
    case ScoreKind::dot:
    case ScoreKind::scaled_dot:
      add(dq, dx / divisor(score, in.d), k, in.d);
      add(dk, dx / divisor(score, in.d), q, in.d);
      return;
    case ScoreKind::cosine: {
      // The gradient of cos along q is k/|k| without its part along q, over |q|; and likewise for k.
      const double q2 = dot(q, q, in.d), k2 = dot(k, k, in.d), norms = std::sqrt(q2) * std::sqrt(k2);
      if (norms == 0) return;
      const double cosine = dot(q, k, in.d) / norms, share = dx / divisor(score, in.d);
      add(dq, share / norms, k, in.d);
      add(dq, -share * cosine / q2, q, in.d);
      add(dk, share / norms, q, in.d);
      add(dk, -share * cosine / k2, k, in.d);
      return;
    }
    case ScoreKind::bilinear:
      for (int64_t c = 0; c < in.d; ++c) {
        dq[c] += dx * dot(&in.w[c * in.dk], k, in.dk);
        add(dk, dx * q[c], &in.w[c * in.dk], in.dk);
        add(&grad.w[c * in.dk], dx * q[c], k, in.dk);
      }
      return;
    case ScoreKind::additive:
    case ScoreKind::concat: {
      const HiddenLayer layer = hidden_layer(score, in);
      double* d_of_query = score.kind == ScoreKind::additive ? grad.u.data() : grad.w.data() + in.dk;
      double* d_of_key = grad.w.data();
      for (int64_t unit = 0; unit < in.hidden; ++unit) {
        const double t = hidden_unit(score, in, q, k, unit);
        const double before_tanh = dx * in.score_vector[unit] * (1 - t * t);
        grad.score_vector[unit] += dx * t;
        if (!in.b.empty()) grad.b[unit] += before_tanh;
        add(dq, before_tanh, layer.of_query + unit * layer.query_stride, in.d);
        add(dk, before_tanh, layer.of_key + unit * layer.key_stride, in.dk);
        add(d_of_query + unit * layer.query_stride, before_tanh, q, in.d);
        add(d_of_key + unit * layer.key_stride, before_tanh, k, in.dk);
      }
      return;
    }
  }
}

// Step 2. Terms that change a score.

double slope(const Inputs& in, int64_t h) {
  return in.slopes.empty() ? default_slopes(in.heads)[h] : in.slopes[h];
}

double with_terms(const Terms& terms, const Inputs& in, const Row& r, int64_t j, double x) {
  const Place at{in};
  const int64_t distance = j - at.position(r);
  if (terms.soft_cap > 0) x = terms.soft_cap * std::tanh(x / terms.soft_cap);
  if (terms.alibi) x -= slope(in, r.h) * static_cast<double>(std::abs(distance));
  if (terms.bias) x += in.bias[at.pair(r, j)];
  if (terms.relative.buckets > 0) x += in.table[relative_bucket(terms.relative, distance) * in.heads + r.h];
  return x;
}

// Turns dx, the gradient of the finished score, into that of the raw one, and gives the terms their part.
double with_terms_backward(const Terms& terms, const Inputs& in, const Row& r, int64_t j, double raw,
                           double dx, Inputs& grad) {
  const Place at{in};
  const int64_t distance = j - at.position(r);
  if (terms.relative.buckets > 0)
    grad.table[relative_bucket(terms.relative, distance) * in.heads + r.h] += dx;
  if (terms.bias) grad.bias[at.pair(r, j)] += dx;
  if (terms.alibi && !grad.slopes.empty()) grad.slopes[r.h] -= dx * static_cast<double>(std::abs(distance));
  if (terms.soft_cap > 0) {
    const double t = std::tanh(raw / terms.soft_cap);
    dx *= 1 - t * t;
  }
  return dx;
}

// Step 3. How the scores of the visible keys become a choice.

// log(exp(sink) + sum of exp(x)), without overflow.
double log_sum_exp(const Array& x, double sink) {
  double largest = sink;
  for (const double value : x) largest = std::max(largest, value);
  if (largest == -kInfinity) return -kInfinity;
  double sum = std::exp(sink - largest);
  for (const double value : x) sum += std::exp(value - largest);
  return largest + std::log(sum);
}

Array softmax(const Array& x, double lse) {
  Array p(x.size());
  for (size_t n = 0; n < x.size(); ++n) p[n] = std::exp(x[n] - lse);
  return p;
}

size_t largest(const Array& x) {
  return std::max_element(x.begin(), x.end()) - x.begin();
}

// Places of x from the largest to the smallest; of equals the first key first.
std::vector<size_t> descending(const Array& x) {
  std::vector<size_t> order(x.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return x[a] > x[b]; });
  return order;
}

Array sparsemax(Array x) {
  const double top = x[largest(x)];  // a shift changes nothing, and huge scores keep their differences
  for (double& value : x) value -= top;
  // The largest support for which all members stay above the threshold that makes them sum to 1.
  double sum = 0, threshold = 0;
  int64_t size = 0;
  for (const size_t n : descending(x)) {
    ++size;
    sum += x[n];
    if (1 + size * x[n] <= sum) break;
    threshold = (sum - 1) / size;
  }
  Array p(x.size());
  for (size_t n = 0; n < x.size(); ++n) p[n] = std::max(0.0, x[n] - threshold);
  return p;
}

// One row between its scores and its weights; all arrays run over the visible keys.
struct Choice {
  std::vector<int64_t> keys;  // visible
  Array raw, x;               // scores before and after the terms
  double sink = -kInfinity;
  double lse = -kInfinity;
  Array p;               // what the selection says
  Array soft;            // gumbel: the relaxed choice; hard: the softmax it was drawn from
  Array gaussian, kept;  // factors on p; 1 where absent
  int64_t chosen = -1;   // place among the visible keys
  double weight(size_t n) const { return p[n] * gaussian[n] * kept[n]; }
};

void select(const Selection& selection, const Inputs& in, const Row& r, Choice& c) {
  const size_t count = c.keys.size();
  c.lse = log_sum_exp(c.x, c.sink);
  if (count == 0) return;
  const auto only = [&](int64_t place) {
    c.chosen = place;
    c.p.assign(count, 0);
    c.p[place] = 1;
  };
  const auto with_noise = [&](double tau) {
    Array noisy(count);
    for (size_t n = 0; n < count; ++n)
      noisy[n] = (c.x[n] + kernels::attention_gumbel(in.seed, r.b, r.h, r.i, c.keys[n])) / tau;
    return noisy;
  };
  switch (selection.kind) {
    case SelectionKind::soft:
      c.p = softmax(c.x, c.lse);
      return;
    case SelectionKind::hard:
      // The largest of score + Gumbel noise is one draw from the softmax of the scores.
      c.soft = softmax(c.x, c.lse);
      only(static_cast<int64_t>(largest(with_noise(1))));
      return;
    case SelectionKind::gumbel: {
      const Array noisy = with_noise(selection.tau);
      c.soft = softmax(noisy, log_sum_exp(noisy, -kInfinity));
      if (selection.straight_through) {
        only(static_cast<int64_t>(largest(noisy)));
        c.chosen = -1;
      } else {
        c.p = c.soft;
      }
      return;
    }
    case SelectionKind::argmax:
      only(static_cast<int64_t>(largest(c.x)));
      return;
    case SelectionKind::top_k: {
      std::vector<size_t> order = descending(c.x);
      order.resize(std::min(order.size(), static_cast<size_t>(selection.k)));
      Array best;
      for (const size_t n : order) best.push_back(c.x[n]);
      const Array share = softmax(best, log_sum_exp(best, c.sink));
      c.p.assign(count, 0);
      for (size_t n = 0; n < order.size(); ++n) c.p[order[n]] = share[n];
      return;
    }
    case SelectionKind::sparsemax:
      c.p = sparsemax(c.x);
      return;
    case SelectionKind::sigmoid:
      for (const double x : c.x) c.p.push_back(1 / (1 + std::exp(-x)));
      return;
    case SelectionKind::identity:
      c.p = c.x;
      return;
  }
}

// From dp, the gradient of the choice, to the gradient of the scores; d_sink gets the sink's part.
Array select_backward(const Selection& selection, const Choice& c, const Array& dp, double& d_sink) {
  const size_t count = c.keys.size();
  Array dx(count);
  // A softmax: every score pulls its own weight up and all the others down.
  const auto softmax_backward = [&](const Array& p, double tau) {
    const double mean = dot(p.data(), dp.data(), static_cast<int64_t>(count));
    for (size_t n = 0; n < count; ++n) dx[n] = p[n] * (dp[n] - mean) / tau;
    return mean;
  };
  switch (selection.kind) {
    case SelectionKind::soft:
    case SelectionKind::top_k: {
      // The sink's own weight is what the others leave; it carries no value, so its dp is 0.
      const double mean = softmax_backward(c.p, 1);
      if (c.sink > -kInfinity) d_sink -= (1 - std::accumulate(c.p.begin(), c.p.end(), 0.0)) * mean;
      break;
    }
    case SelectionKind::gumbel:
      softmax_backward(c.soft, selection.tau);
      break;
    case SelectionKind::hard:
    case SelectionKind::argmax:
      break;
    case SelectionKind::sparsemax: {
      double sum = 0, support = 0;
      for (size_t n = 0; n < count; ++n)
        if (c.p[n] > 0) {
          sum += dp[n];
          support += 1;
        }
      for (size_t n = 0; n < count; ++n) dx[n] = c.p[n] > 0 ? dp[n] - sum / support : 0;
      break;
    }
    case SelectionKind::sigmoid:
      for (size_t n = 0; n < count; ++n) dx[n] = dp[n] * c.p[n] * (1 - c.p[n]);
      break;
    case SelectionKind::identity:
      dx = dp;
      break;
  }
  return dx;
}

double entropy_of(const Array& p) {
  double sum = 0;
  for (const double value : p) sum -= value > 0 ? value * std::log(value) : 0;
  return sum;
}

// Steps 1 to 4 for one row.
Choice choose(const AttentionSpec& spec, const Inputs& in, const Row& r) {
  const Place at{in};
  Choice c;
  for (int64_t j = 0; j < in.keys; ++j) {
    if (!allowed(spec.pattern, {in.queries, in.keys, r.b, r.h, r.i, j})) continue;
    const double raw = raw_score(spec.score, in, &in.q[at.query(r)], met_key(spec, in, r, j));
    const double x = with_terms(spec.terms, in, r, j, raw);
    if (x == -kInfinity) continue;  // a bias of -inf is a mask too
    c.keys.push_back(j);
    c.raw.push_back(raw);
    c.x.push_back(x);
  }
  if (spec.terms.sink) c.sink = in.sink[r.h];
  select(spec.selection, in, r, c);
  // Step 4. Factors on the weights, which are not normalised again.
  for (const int64_t j : c.keys) {
    double gaussian = 1, kept = 1;
    if (const double sigma = spec.terms.gaussian; sigma > 0) {
      const double away = static_cast<double>(j) - in.centre[at.row(r)];
      gaussian = std::exp(-away * away / (2 * sigma * sigma));
    }
    if (const float p = spec.selection.dropout; p > 0)
      kept = kernels::attention_keep(in.seed, r.b, r.h, r.i, j, p) ? 1 / (1 - static_cast<double>(p)) : 0;
    c.gaussian.push_back(gaussian);
    c.kept.push_back(kept);
  }
  return c;
}

template <class F>
void for_each_row(const Inputs& in, const F& f) {
  for (int64_t b = 0; b < in.batch; ++b)
    for (int64_t h = 0; h < in.heads; ++h)
      for (int64_t i = 0; i < in.queries; ++i) f(Row{b, h, i});
}

void check_sizes(const Inputs& in) {
  require(in.heads > 0 && in.kv_heads > 0 && in.heads % in.kv_heads == 0, "reference attention: got ",
          in.heads, " heads and ", in.kv_heads, " key heads, wanted a multiple");
  const auto check = [](const char* name, const Array& got, int64_t wanted) {
    require(static_cast<int64_t>(got.size()) == wanted, "reference attention: got ", got.size(),
            " numbers for ", name, ", wanted ", wanted);
  };
  check("q", in.q, in.batch * in.heads * in.queries * in.d);
  check("k", in.k, in.batch * in.kv_heads * in.keys * in.dk);
  check("v", in.v, in.batch * in.kv_heads * in.keys * in.dv);
}

Inputs zeros_like(const Inputs& in) {
  Inputs zeros = in;
  for (Array* array : {&zeros.q, &zeros.k, &zeros.v, &zeros.w, &zeros.u, &zeros.b, &zeros.score_vector,
                       &zeros.bias, &zeros.slopes, &zeros.table, &zeros.centre, &zeros.sink})
    std::fill(array->begin(), array->end(), 0.0);
  return zeros;
}

}  // namespace

Array default_slopes(int64_t heads) {
  Array slopes;
  for (int64_t h = 0; h < heads; ++h)
    slopes.push_back(std::exp2(-8.0 * static_cast<double>(h + 1) / static_cast<double>(heads)));
  return slopes;
}

Results forward(const AttentionSpec& spec, const Inputs& in) {
  check_sizes(in);
  const Place at{in};
  const int64_t rows = in.batch * in.heads * in.queries;
  Results results{.out = Array(rows * in.dv),
                  .lse = Array(rows),
                  .weights = Array(rows * in.keys),
                  .chosen = std::vector<int64_t>(rows, -1),
                  .log_probability = Array(rows),
                  .entropy = Array(rows)};
  for_each_row(in, [&](const Row& r) {
    const Choice c = choose(spec, in, r);
    results.lse[at.row(r)] = c.lse;
    // Step 5. What is carried away.
    for (size_t n = 0; n < c.keys.size(); ++n) {
      results.weights[at.pair(r, c.keys[n])] = c.weight(n);
      if (c.weight(n) != 0)
        add(&results.out[at.row(r) * in.dv], c.weight(n), &in.v[at.value(r, c.keys[n])], in.dv);
    }
    if (c.chosen >= 0) results.chosen[at.row(r)] = c.keys[c.chosen];
    if (c.chosen >= 0 && spec.selection.kind == SelectionKind::hard) {
      results.log_probability[at.row(r)] = std::log(c.soft[c.chosen]);
      results.entropy[at.row(r)] = entropy_of(c.soft);
    }
  });
  return results;
}

Inputs backward(const AttentionSpec& spec, const Inputs& in, const ResultGradients& d) {
  const Place at{in};
  Inputs grad = zeros_like(in);
  for_each_row(in, [&](const Row& r) {
    const Choice c = choose(spec, in, r);
    const size_t count = c.keys.size();
    const double* d_out = &d.out[at.row(r) * in.dv];
    // Steps 5 and 4: from the output to the weights, the values, and the factors on the weights.
    Array dp(count);
    for (size_t n = 0; n < count; ++n) {
      const int64_t value = at.value(r, c.keys[n]);
      const double d_weight = dot(d_out, &in.v[value], in.dv);
      add(&grad.v[value], c.weight(n), d_out, in.dv);
      dp[n] = d_weight * c.gaussian[n] * c.kept[n];
      if (const double sigma = spec.terms.gaussian; sigma > 0)
        grad.centre[at.row(r)] += d_weight * c.weight(n) *
                                  (static_cast<double>(c.keys[n]) - in.centre[at.row(r)]) / (sigma * sigma);
    }
    // Step 3.
    double d_sink = 0;
    Array dx = select_backward(spec.selection, c, dp, d_sink);
    if (spec.selection.kind == SelectionKind::hard && count > 0) {
      const double d_log = d.log_probability.empty() ? 0 : d.log_probability[at.row(r)];
      const double d_entropy = d.entropy.empty() ? 0 : d.entropy[at.row(r)];
      const double entropy = entropy_of(c.soft);
      for (size_t n = 0; n < count; ++n) {
        const double p = c.soft[n];
        dx[n] += d_log * ((static_cast<int64_t>(n) == c.chosen ? 1 : 0) - p);
        if (p > 0) dx[n] -= d_entropy * p * (std::log(p) + entropy);
      }
    }
    if (spec.terms.sink) grad.sink[r.h] += d_sink;
    // Steps 2 and 1.
    for (size_t n = 0; n < count; ++n) {
      const double d_raw = with_terms_backward(spec.terms, in, r, c.keys[n], c.raw[n], dx[n], grad);
      raw_score_backward(spec, in, r, c.keys[n], d_raw, grad);
    }
  });
  return grad;
}

}  // namespace fovea::reference
