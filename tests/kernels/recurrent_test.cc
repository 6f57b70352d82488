#include "kernels/recurrent/recurrent.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "base/parallel.h"
#include "base/rng.h"

namespace fovea::kernels {
namespace {

std::vector<float> random_floats(int64_t count, uint64_t seed, float scale = 1) {
  std::vector<float> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    values[static_cast<size_t>(i)] =
        scale * (static_cast<float>(philox(seed, static_cast<uint64_t>(i), 0)[0]) * 0x1p-31f - 1);
  return values;
}

struct Case {
  RecurrentCell cell;
  int64_t input, hidden;
  std::vector<int64_t> lengths;
  bool reverse = false, states = true, biases = true;
};

std::string describe(const Case& x, Level level) {
  std::ostringstream text;
  text << level_name(level) << (x.cell == RecurrentCell::lstm ? " lstm " : " gru ") << x.input << " -> "
       << x.hidden << (x.reverse ? " reverse" : "") << " lengths";
  for (const int64_t length : x.lengths) text << " " << length;
  return text.str();
}

// A layer with made-up weights, inputs and gradients, run forward and back.
struct Trial {
  Trial(const Case& x, Level level) : size(x) {
    const int64_t H = x.hidden, G = recurrent_gates(x.cell);
    sequences = static_cast<int64_t>(x.lengths.size());
    tokens = std::accumulate(x.lengths.begin(), x.lengths.end(), int64_t{0});
    out_stride = H + 3;
    const float scale = 1 / std::sqrt(static_cast<float>(H));
    w_input = random_floats(G * H * x.input, 1, scale);
    w_hidden = random_floats(G * H * H, 2, scale);
    b_input = random_floats(G * H, 3);
    b_hidden = random_floats(G * H, 4);
    input = random_floats(tokens * x.input, 5);
    h_first = random_floats(sequences * H, 6);
    c_first = random_floats(sequences * H, 7);
    d_out = random_floats(tokens * out_stride, 8);
    d_h_last = random_floats(sequences * H, 9);
    d_c_last = random_floats(sequences * H, 10);
    out.resize(tokens * out_stride);
    h_last.resize(sequences * H);
    c_last.resize(sequences * H);
    gates.resize(tokens * 4 * H);
    cells.resize(tokens * H);
    work.resize(tokens * 4 * H);
    d_x.resize(tokens * x.input);
    d_h_first.resize(sequences * H);
    d_c_first.resize(sequences * H);
    d_w_input.resize(w_input.size());
    d_w_hidden.resize(w_hidden.size());
    d_b_input.resize(b_input.size());
    d_b_hidden.resize(b_hidden.size());
    const bool lstm = x.cell == RecurrentCell::lstm;
    forward = {.size = {.cell = x.cell, .input = x.input, .hidden = H, .lengths = size.lengths},
               .reverse = x.reverse,
               .weights = {.input = w_input.data(),
                           .hidden = w_hidden.data(),
                           .input_bias = x.biases ? b_input.data() : nullptr,
                           .hidden_bias = x.biases ? b_hidden.data() : nullptr},
               .x = input.data(),
               .h_first = x.states ? h_first.data() : nullptr,
               .c_first = x.states && lstm ? c_first.data() : nullptr,
               .out = out.data(),
               .out_stride = out_stride,
               .h_last = h_last.data(),
               .c_last = lstm ? c_last.data() : nullptr,
               .gates = gates.data(),
               .cells = lstm ? cells.data() : nullptr};
    recurrent_forward({&forward, 1}, level);
    const RecurrentBackward backward{.forward = forward,
                                     .d_out = d_out.data(),
                                     .d_h_last = d_h_last.data(),
                                     .d_c_last = lstm ? d_c_last.data() : nullptr,
                                     .d_x = d_x.data(),
                                     .d_h_first = d_h_first.data(),
                                     .d_c_first = lstm ? d_c_first.data() : nullptr,
                                     .d_input = d_w_input.data(),
                                     .d_hidden = d_w_hidden.data(),
                                     .d_input_bias = d_b_input.data(),
                                     .d_hidden_bias = d_b_hidden.data(),
                                     .work = work.data()};
    recurrent_backward({&backward, 1}, level);
  }
  std::vector<const std::vector<float>*> results() const {
    return {&out,       &h_last,    &c_last,     &d_x,       &d_h_first,
            &d_c_first, &d_w_input, &d_w_hidden, &d_b_input, &d_b_hidden};
  }

  Case size;
  int64_t sequences, tokens, out_stride;
  std::vector<float> w_input, w_hidden, b_input, b_hidden, input, h_first, c_first, d_out, d_h_last, d_c_last;
  std::vector<float> out, h_last, c_last, gates, cells, work;
  std::vector<float> d_x, d_h_first, d_c_first, d_w_input, d_w_hidden, d_b_input, d_b_hidden;
  RecurrentForward forward;
};

void expect_near(const Trial& got, const Trial& want, const std::string& what) {
  static const char* const names[] = {"out",       "h_last",    "c_last",     "d_x",       "d_h_first",
                                      "d_c_first", "d_w_input", "d_w_hidden", "d_b_input", "d_b_hidden"};
  const auto a = got.results(), b = want.results();
  for (size_t i = 0; i < a.size(); ++i) {
    float largest = 1;
    for (const float v : *b[i]) largest = std::max(largest, std::fabs(v));
    for (size_t j = 0; j < a[i]->size(); ++j)
      ASSERT_NEAR((*a[i])[j], (*b[i])[j], 1e-5 * largest) << what << ": " << names[i] << "[" << j << "]";
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const RecurrentCell cell : {RecurrentCell::lstm, RecurrentCell::gru}) {
    all.push_back({cell, 3, 1, {1, 2}});
    all.push_back({cell, 5, 7, {4, 9, 1, 4, 2}});
    all.push_back({cell, 5, 7, {4, 9, 1, 4, 2}, true});
    all.push_back({cell, 1, 16, {3}, false, false});
    all.push_back({cell, 17, 65, {5, 0, 3, 7, 0}, true, true, false});
    all.push_back({cell, 8, 130, std::vector<int64_t>(11, 4)});
    all.push_back({cell, 8, 33, std::vector<int64_t>(5, 1)});
    all.push_back({cell, 8, 33, std::vector<int64_t>(5, 1), true, false});
    std::vector<int64_t> many(45);
    for (size_t i = 0; i < many.size(); ++i) many[i] = static_cast<int64_t>(i * 7 % 13);
    all.push_back({cell, 4, 20, many});
    all.push_back({cell, 4, 5, {0, 0}});
    all.push_back({cell, 4, 5, {}});
  }
  return all;
}

TEST(Recurrent, EveryLevelEqualsTheReference) {
  for (const Case& x : cases()) {
    const Trial want(x, Level::scalar);
    for (const Level level : available_levels()) expect_near(Trial(x, level), want, describe(x, level));
  }
}

TEST(Recurrent, ResultsAreTheSameBytesForAnyThreadCount) {
  for (const Case& x : cases()) {
    set_num_threads(1);
    const Trial one(x, current_level());
    for (const int threads : {2, 3}) {
      set_num_threads(threads);
      const Trial more(x, current_level());
      for (size_t i = 0; i < one.results().size(); ++i)
        ASSERT_EQ(*more.results()[i], *one.results()[i]) << describe(x, current_level()) << " result " << i;
    }
  }
  set_num_threads(0);
}

TEST(Recurrent, WithoutGradientsTheOutputIsTheSameBytes) {
  for (const Case& x : cases()) {
    Trial run(x, current_level());
    std::vector<float> out(run.out.size()), h_last(run.h_last.size());
    run.forward.out = out.data();
    run.forward.h_last = h_last.data();
    run.forward.gates = run.forward.cells = nullptr;
    run.forward.work = run.work.data();
    recurrent_forward({&run.forward, 1});
    ASSERT_EQ(out, run.out);
    ASSERT_EQ(h_last, run.h_last);
  }
}

TEST(Recurrent, TwoDirectionsSideBySideEqualEachAlone) {
  Case x{RecurrentCell::lstm, 6, 9, {3, 8, 5}};
  Trial ahead(x, current_level());
  x.reverse = true;
  Trial back(x, current_level());
  const int64_t H = x.hidden;
  std::vector<float> both(static_cast<size_t>(ahead.tokens * 2 * H));
  RecurrentForward pair[] = {ahead.forward, back.forward};
  for (RecurrentForward& f : pair) {
    f.out = both.data() + (f.reverse ? H : 0);
    f.out_stride = 2 * H;
  }
  recurrent_forward(pair);
  for (int64_t token = 0; token < ahead.tokens; ++token)
    for (int64_t u = 0; u < H; ++u) {
      ASSERT_EQ(both[token * 2 * H + u], ahead.out[token * ahead.out_stride + u]);
      ASSERT_EQ(both[token * 2 * H + H + u], back.out[token * back.out_stride + u]);
    }
}

}  // namespace
}  // namespace fovea::kernels
