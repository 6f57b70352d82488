// The recurrent decoders that attend at every step, on every level, against their definition in double precision:
// forward directly, gradients by differences of it.
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/rng.h"
#include "kernels/kernel_check.h"
#include "kernels/recurrent/attentive_gru.h"
#include "kernels/recurrent/attentive_lstm.h"

namespace fovea::kernels {
namespace {

using Array = std::vector<double>;

// Three sentences, one without a step; windows of one key, of none and of all.
constexpr int64_t kQueryBegin[] = {0, 3, 3, 7}, kKeyBegin[] = {0, 5, 7, 20}, kSteps = 7, kKeys = 20;
constexpr int32_t kFirst[] = {0, 1, 4, 7, 9, 7, 12}, kCount[] = {5, 3, 0, 13, 6, 1, 8};
constexpr int32_t kWholeFirst[] = {0, 0, 0, 7, 7, 7, 7}, kWholeCount[] = {5, 5, 5, 13, 13, 13, 13};
constexpr int64_t kLengths[] = {3, 0, 4};

struct ScoreCase {
  ScoreFamily family = ScoreFamily::dot;
  bool unit_query = false;
  bool query_weight = false;
};

// Inputs and results by name, as a test holds them.
struct Numbers {
  std::map<std::string, Array> all;
  Array& operator[](const std::string& name) { return all[name]; }
  const Array& at(const std::string& name) const { return all.at(name); }
  bool has(const std::string& name) const { return all.count(name) > 0; }
  void draw(const std::string& name, int64_t count, Rng& rng, double size = 0.6) {
    Array& array = all[name];
    for (int64_t i = 0; i < count; ++i)
      array.push_back(static_cast<double>(static_cast<float>(size * rng.normal())));
  }
};

std::vector<float> floats(const Array& array) {
  return {array.begin(), array.end()};
}

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

// y = W x + b; W: [rows, x.size()].
Array product(const Array& w, const Array& x, int64_t rows, const Array* b = nullptr) {
  Array y(static_cast<size_t>(rows));
  for (size_t r = 0; r < y.size(); ++r) {
    if (b != nullptr) y[r] = (*b)[r];
    for (size_t c = 0; c < x.size(); ++c) y[r] += w[r * x.size() + c] * x[c];
  }
  return y;
}

Array row_of(const Array& array, int64_t row, int64_t width) {
  return {array.begin() + row * width, array.begin() + (row + 1) * width};
}

// What a query sees of keys [first, first + count): values weighed by the softmax, times the gaussian around
// `centre` where there is one.
Array attend(const ScoreCase& score, const Numbers& n, Array q, int64_t first, int64_t count, int64_t width,
             const double* centre = nullptr, double sigma = 1) {
  const auto d = static_cast<int64_t>(q.size());
  double squares = 0;
  for (const double x : q) squares += x * x;
  if (score.unit_query)
    for (double& x : q) x /= std::sqrt(squares);
  Array weights;
  double largest = -INFINITY, sum = 0;
  for (int64_t j = first; j < first + count; ++j) {
    double x = 0;
    for (int64_t c = 0; c < d; ++c) {
      const double k = n.at("keys")[static_cast<size_t>(j * d + c)];
      x += score.family == ScoreFamily::additive
               ? n.at("vector")[static_cast<size_t>(c)] * std::tanh(q[static_cast<size_t>(c)] + k)
               : 0.7 * q[static_cast<size_t>(c)] * k;
    }
    weights.push_back(x);
    largest = std::max(largest, x);
  }
  for (double& w : weights) sum += w = std::exp(w - largest);
  Array seen(static_cast<size_t>(width));
  for (int64_t j = 0; j < count; ++j) {
    double w = weights[static_cast<size_t>(j)] / sum;
    if (centre != nullptr)
      w *= std::exp(-std::pow(static_cast<double>(first + j) - *centre, 2) / (2 * sigma * sigma));
    for (int64_t c = 0; c < width; ++c)
      seen[static_cast<size_t>(c)] += w * n.at("values")[static_cast<size_t>((first + j) * width + c)];
  }
  return seen;
}

// The sum of results times their gradients: what the differences are taken of.
double weigh(const Array& result, const Array& gradient) {
  double sum = 0;
  for (size_t i = 0; i < result.size(); ++i) sum += result[i] * gradient[i];
  return sum;
}

void expect_gradients(const Numbers& inputs, const std::map<std::string, std::vector<float>>& got,
                      const std::function<double(const Numbers&)>& loss, const std::string& what) {
  constexpr double h = 1e-5;
  for (const auto& [name, gradient] : got) {
    Numbers moved = inputs;
    Array& array = moved[name];
    ASSERT_EQ(array.size(), gradient.size()) << what << ' ' << name;
    for (size_t i = 0; i < array.size(); ++i) {
      const double at = array[i];
      array[i] = at + h;
      const double above = loss(moved);
      array[i] = at - h;
      const double below = loss(moved);
      array[i] = at;
      ASSERT_NEAR(gradient[i], (above - below) / (2 * h), 3e-4)
          << what << ", gradient of " << name << '[' << i << ']';
    }
  }
}

void expect_results(const std::vector<float>& got, const Array& wanted, const std::string& what) {
  ASSERT_EQ(got.size(), wanted.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], wanted[i], 2e-5) << what << '[' << i << ']';
}

// s_t = GRU(products_t + seen_t, s_{t-1}), where seen_t is what s_{t-1} sees.
struct GruResults {
  Array out, context;
};
GruResults gru(const ScoreCase& score, const Numbers& n, int64_t hidden, int64_t extra, int64_t d) {
  const int64_t width = 3 * hidden + extra;
  GruResults results;
  for (int64_t s = 0; s < 3; ++s) {
    Array h = row_of(n.at("h_first"), s, hidden);
    for (int64_t t = kQueryBegin[s]; t < kQueryBegin[s + 1]; ++t) {
      const Array q = score.query_weight ? product(n.at("query_weight"), h, d, &n.at("query_bias")) : h;
      const Array seen = attend(score, n, q, kFirst[t], kCount[t], width);
      const Array from_state = product(n.at("weight"), h, 3 * hidden, &n.at("bias"));
      Array next(h.size());
      for (int64_t i = 0; i < hidden; ++i) {
        const auto before = [&](int64_t gate) {
          return n.at("products")[static_cast<size_t>(t * 3 * hidden + gate * hidden + i)] +
                 seen[static_cast<size_t>(gate * hidden + i)];
        };
        const auto state = [&](int64_t gate) { return from_state[static_cast<size_t>(gate * hidden + i)]; };
        const double r = sigmoid(before(0) + state(0)), z = sigmoid(before(1) + state(1));
        const double candidate = std::tanh(before(2) + r * state(2));
        next[static_cast<size_t>(i)] = (1 - z) * candidate + z * h[static_cast<size_t>(i)];
      }
      h = next;
      results.out.insert(results.out.end(), h.begin(), h.end());
      results.context.insert(results.context.end(), seen.begin() + 3 * hidden, seen.end());
    }
  }
  return results;
}

void check_gru(const ScoreCase& score, int64_t hidden, int64_t extra, Level level) {
  const int64_t d = score.query_weight ? hidden + 3 : hidden, width = 3 * hidden + extra;
  const std::string what =
      std::string("GRU at ") + std::string(level_name(level)) + ", hidden " + std::to_string(hidden);
  Rng rng(static_cast<uint64_t>(hidden));
  Numbers n;
  n.draw("products", kSteps * 3 * hidden, rng);
  n.draw("h_first", 3 * hidden, rng);
  n.draw("keys", kKeys * d, rng);
  n.draw("values", kKeys * width, rng);
  n.draw("weight", 3 * hidden * hidden, rng, 0.3);
  n.draw("bias", 3 * hidden, rng);
  if (score.query_weight) {
    n.draw("query_weight", d * hidden, rng, 0.3);
    n.draw("query_bias", d, rng);
  }
  if (score.family == ScoreFamily::additive) n.draw("vector", d, rng);
  Numbers seeds;
  seeds.draw("out", kSteps * hidden, rng);
  seeds.draw("context", kSteps * extra, rng);

  std::map<std::string, std::vector<float>> in, grad;
  for (const auto& [name, array] : n.all) {
    in[name] = floats(array);
    grad[name].resize(array.size());
  }
  const auto input = [&](const char* name) { return in.count(name) ? in[name].data() : nullptr; };
  const auto gradient = [&](const char* name) { return grad.count(name) ? grad[name].data() : nullptr; };
  const std::vector<float> d_out = floats(seeds.at("out")), d_context = floats(seeds.at("context"));
  std::vector<float> soft(kSteps * 13), out(kSteps * hidden), context(kSteps * extra),
      gates(kSteps * 4 * hidden), queries(kSteps * d), d_seen(kSteps * width), states(kSteps * hidden),
      d_queries(kSteps * d);
  const AttentiveGruForward call{.hidden = hidden,
                                 .extra = extra,
                                 .lengths = kLengths,
                                 .score = {.family = score.family,
                                           .d = d,
                                           .scale = 0.7f,
                                           .unit_query = score.unit_query,
                                           .vector = input("vector")},
                                 .runs = {.sentences = 3,
                                          .query_begin = kQueryBegin,
                                          .key_begin = kKeyBegin,
                                          .first = kFirst,
                                          .count = kCount,
                                          .soft = soft.data(),
                                          .soft_row = 13},
                                 .products = input("products"),
                                 .h_first = input("h_first"),
                                 .keys = input("keys"),
                                 .values = input("values"),
                                 .weight = input("weight"),
                                 .bias = input("bias"),
                                 .query_weight = input("query_weight"),
                                 .query_bias = input("query_bias"),
                                 .out = out.data(),
                                 .context = context.data(),
                                 .gates = gates.data(),
                                 .queries = queries.data()};
  attentive_gru_forward(call, level);
  const GruResults wanted = gru(score, n, hidden, extra, d);
  expect_results(out, wanted.out, what + " out");
  expect_results(context, wanted.context, what + " context");
  attentive_gru_backward({.forward = call,
                          .d_out = d_out.data(),
                          .d_context = d_context.data(),
                          .d_seen = d_seen.data(),
                          .d_h_first = gradient("h_first"),
                          .d_keys = gradient("keys"),
                          .d_values = gradient("values"),
                          .d_weight = gradient("weight"),
                          .d_bias = gradient("bias"),
                          .d_query_weight = gradient("query_weight"),
                          .d_query_bias = gradient("query_bias"),
                          .d_vector = gradient("vector"),
                          .states = states.data(),
                          .d_queries = d_queries.data()},
                         level);
  for (int64_t t = 0; t < kSteps; ++t)
    std::copy_n(d_seen.data() + t * width, 3 * hidden, grad["products"].data() + t * 3 * hidden);
  expect_gradients(
      n, grad,
      [&](const Numbers& moved) {
        const GruResults r = gru(score, moved, hidden, extra, d);
        return weigh(r.out, seeds.at("out")) + weigh(r.context, seeds.at("context"));
      },
      what);
}

// One step of an LSTM layer: h and c become the next ones. before: what enters the gates i f g o beside the
// products with the input and the state.
void lstm_step(const Array& input, const Array& state, const Array& x, const Array& before, Array& h,
               Array& c) {
  const auto hidden = static_cast<int64_t>(h.size());
  const Array from_input = product(input, x, 4 * hidden, &before), from_state = product(state, h, 4 * hidden);
  for (size_t i = 0; i < h.size(); ++i) {
    const auto gate = [&](size_t g) { return from_input[g * h.size() + i] + from_state[g * h.size() + i]; };
    c[i] = sigmoid(gate(1)) * c[i] + sigmoid(gate(0)) * std::tanh(gate(2));
    h[i] = sigmoid(gate(3)) * std::tanh(c[i]);
  }
}

// Two layers; s~_t = tanh(seen_t + combine h_t) is what the next step reads. Where a place is predicted, the
// window holds the whole sentence, so that the result is smooth.
Array lstm(const ScoreCase& score, const Numbers& n, int64_t hidden, int64_t d) {
  const bool predicts = n.has("position_weight");
  Array out;
  for (int64_t s = 0; s < 3; ++s) {
    Array fed(static_cast<size_t>(hidden));
    Array h0 = row_of(n.at("h_first0"), s, hidden), c0 = row_of(n.at("c_first0"), s, hidden);
    Array h1 = row_of(n.at("h_first1"), s, hidden), c1 = row_of(n.at("c_first1"), s, hidden);
    for (int64_t t = kQueryBegin[s]; t < kQueryBegin[s + 1]; ++t) {
      lstm_step(n.at("input0"), n.at("state0"), fed, row_of(n.at("products"), t, 4 * hidden), h0, c0);
      lstm_step(n.at("input1"), n.at("state1"), h0, n.at("bias1"), h1, c1);
      const Array q = score.query_weight ? product(n.at("query_weight"), h1, d, &n.at("query_bias")) : h1;
      Array seen;
      if (predicts) {
        const auto places = static_cast<int64_t>(n.at("position_vector").size());
        const Array before = product(n.at("position_weight"), h1, places);
        double sum = 0;
        for (size_t i = 0; i < before.size(); ++i) sum += n.at("position_vector")[i] * std::tanh(before[i]);
        const auto keys = static_cast<double>(kKeyBegin[s + 1] - kKeyBegin[s]);
        const double centre = static_cast<double>(kKeyBegin[s]) + keys * sigmoid(sum);
        seen = attend(score, n, q, kWholeFirst[t], kWholeCount[t], hidden, &centre, 2.5);
      } else {
        seen = attend(score, n, q, kFirst[t], kCount[t], hidden);
      }
      const Array combined = product(n.at("combine"), h1, hidden, &seen);
      for (size_t i = 0; i < fed.size(); ++i) fed[i] = std::tanh(combined[i]);
      out.insert(out.end(), fed.begin(), fed.end());
    }
  }
  return out;
}

void check_lstm(const ScoreCase& score, bool predicts, int64_t hidden, Level level) {
  const int64_t d = score.query_weight ? hidden + 2 : hidden, places = predicts ? 5 : 0;
  const std::string what =
      std::string("LSTM at ") + std::string(level_name(level)) + ", hidden " + std::to_string(hidden);
  Rng rng(static_cast<uint64_t>(hidden));
  Numbers n;
  n.draw("products", kSteps * 4 * hidden, rng);
  for (const char* layer : {"0", "1"}) {
    n.draw(std::string("h_first") + layer, 3 * hidden, rng);
    n.draw(std::string("c_first") + layer, 3 * hidden, rng);
    n.draw(std::string("input") + layer, 4 * hidden * hidden, rng, 0.3);
    n.draw(std::string("state") + layer, 4 * hidden * hidden, rng, 0.3);
  }
  n.draw("bias1", 4 * hidden, rng);
  n.draw("keys", kKeys * d, rng);
  n.draw("values", kKeys * hidden, rng);
  n.draw("combine", hidden * hidden, rng, 0.3);
  if (score.query_weight) {
    n.draw("query_weight", d * hidden, rng, 0.3);
    n.draw("query_bias", d, rng);
  }
  if (score.family == ScoreFamily::additive) n.draw("vector", d, rng);
  if (predicts) {
    n.draw("position_weight", places * hidden, rng, 0.3);
    n.draw("position_vector", places, rng);
  }
  Numbers seeds;
  seeds.draw("out", kSteps * hidden, rng);

  std::map<std::string, std::vector<float>> in, grad;
  for (const auto& [name, array] : n.all) {
    in[name] = floats(array);
    grad[name].resize(array.size());
  }
  const auto input = [&](const std::string& name) { return in.count(name) ? in[name].data() : nullptr; };
  const auto gradient = [&](const std::string& name) {
    return grad.count(name) ? grad[name].data() : nullptr;
  };
  std::vector<int32_t> first(predicts ? kWholeFirst : kFirst, (predicts ? kWholeFirst : kFirst) + kSteps);
  std::vector<int32_t> count(predicts ? kWholeCount : kCount, (predicts ? kWholeCount : kCount) + kSteps);
  std::vector<float> centre(kSteps), soft(kSteps * 13), out(kSteps * hidden), work(kSteps * hidden);
  std::vector<float> states[2], cells[2], gates[2];
  std::vector<AttentiveLstmLayer> layers;
  std::vector<AttentiveLstmLayerGradients> layer_gradients;
  for (int l = 0; l < 2; ++l) {
    const std::string name = std::to_string(l);
    states[l].resize(kSteps * hidden);
    cells[l].resize(kSteps * hidden);
    gates[l].resize(kSteps * 4 * hidden);
    layers.push_back({.input = input("input" + name),
                      .state = input("state" + name),
                      .bias = input("bias" + name),
                      .h_first = input("h_first" + name),
                      .c_first = input("c_first" + name),
                      .states = states[l].data(),
                      .cells = cells[l].data(),
                      .gates = gates[l].data()});
    layer_gradients.push_back({.d_input = gradient("input" + name),
                               .d_state = gradient("state" + name),
                               .d_bias = gradient("bias" + name),
                               .d_h_first = gradient("h_first" + name),
                               .d_c_first = gradient("c_first" + name)});
  }
  StepAttention attention{.score = {.family = score.family,
                                    .d = d,
                                    .scale = 0.7f,
                                    .unit_query = score.unit_query,
                                    .vector = input("vector")},
                          .runs = {.sentences = 3,
                                   .query_begin = kQueryBegin,
                                   .key_begin = kKeyBegin,
                                   .first = first.data(),
                                   .count = count.data(),
                                   .centre = predicts ? centre.data() : nullptr,
                                   .sigma = 2.5f,
                                   .soft = soft.data(),
                                   .soft_row = 13},
                          .keys = input("keys"),
                          .values = input("values"),
                          .combine = input("combine"),
                          .query_weight = input("query_weight"),
                          .query_bias = input("query_bias"),
                          .position_weight = input("position_weight"),
                          .position_vector = input("position_vector"),
                          .position_width = places,
                          .window = kKeys,
                          .first = first.data(),
                          .count = count.data(),
                          .centre = centre.data()};
  std::vector<float> projected(static_cast<size_t>(kSteps * projected_width(attention, hidden)));
  attention.projected = projected.data();
  const AttentiveLstmForward call{.hidden = hidden,
                                  .lengths = kLengths,
                                  .layers = layers,
                                  .attention = attention,
                                  .products = input("products"),
                                  .out = out.data()};
  attentive_lstm_forward(call, level);
  expect_results(out, lstm(score, n, hidden, d), what + " out");
  const std::vector<float> d_out = floats(seeds.at("out"));
  attentive_lstm_backward({.forward = call,
                           .layers = layer_gradients,
                           .d_out = d_out.data(),
                           .d_keys = gradient("keys"),
                           .d_values = gradient("values"),
                           .d_vector = gradient("vector"),
                           .d_combine = gradient("combine"),
                           .d_query_weight = gradient("query_weight"),
                           .d_query_bias = gradient("query_bias"),
                           .d_position_weight = gradient("position_weight"),
                           .d_position_vector = gradient("position_vector"),
                           .work = work.data()},
                          level);
  grad["products"] = gates[0];  // where the kernel leaves it
  expect_gradients(
      n, grad, [&](const Numbers& moved) { return weigh(lstm(score, moved, hidden, d), seeds.at("out")); },
      what);
}

constexpr ScoreCase kCases[] = {
    {ScoreFamily::dot, false, false}, {ScoreFamily::dot, true, false}, {ScoreFamily::additive, false, true}};

TEST(AttentiveGru, EqualsItsDefinitionOnEveryLevel) {
  for (const Level level : available_levels())
    for (const ScoreCase& score : kCases)
      for (const int64_t hidden : {1, 5, 9}) check_gru(score, hidden, 3, level);
}

TEST(AttentiveLstm, EqualsItsDefinitionOnEveryLevel) {
  for (const Level level : available_levels())
    for (const ScoreCase& score : kCases)
      for (const int64_t hidden : {1, 5, 9})
        for (const bool predicts : {false, true}) check_lstm(score, predicts, hidden, level);
}

}  // namespace
}  // namespace fovea::kernels
