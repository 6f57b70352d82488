// The fused paths against the oracle: every score x pattern x selection x size, forward and every gradient.
//
// A case is a line of text: "scaled_dot + bias / causal / soft @ b=2 h=4 hk=2 nq=5 nk=7 d=3 dv=2". To run one
// alone: FOVEA_CASE='...' test_attention_grid_test. FOVEA_LIST=1 prints them all.
//
// Held: |fused - oracle| <= 3e-5 times the largest number of the oracle's result, for each result and
// gradient. Inputs and the gradients of the output are of size 1, so where everything cancels (a softmax over
// one key) what rounds is of size 1 all the same, by 6e-8 each time. A result below 0.04 is held to 1.2e-6,
// twenty such roundings; a gradient below 0.4 to 1.2e-5, two hundred: it sums over queries, keys and
// features.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "attention/fused.h"
#include "attention/named.h"
#include "attention/problem.h"
#include "base/cpu.h"
#include "base/parallel.h"

namespace fovea {
namespace {

using reference::Array;
using reference::Inputs;
using test::BiasShape;
using test::MemoryLayout;
using test::ProblemSizes;
using test::random_inputs;

constexpr double kTolerance = 3e-5;

// Sizes that are 1, odd, prime, not multiples of a vector, beyond a tile; grouped heads; D other than Dv.
constexpr const char* kSizes[] = {
    "b=1 h=1 hk=1 nq=1 nk=1 d=1 dv=1",    "b=2 h=4 hk=2 nq=5 nk=7 d=3 dv=2",
    "b=1 h=3 hk=1 nq=13 nk=13 d=37 dv=5", "b=3 h=2 hk=2 nq=9 nk=4 d=8 dv=16",
    "b=2 h=2 hk=1 nq=17 nk=33 d=5 dv=65", "b=1 h=2 hk=2 nq=66 nk=66 d=16 dv=16",
    "b=1 h=2 hk=1 nq=3 nk=130 d=4 dv=3",
};
constexpr const char* kScores[] = {"dot",      "scaled_dot", "scaled_dot(3)", "cosine(0.3)",
                                   "bilinear", "additive",   "concat",        "location"};
constexpr const char* kTerms[] = {
    "",
    " + bias",
    " + alibi",
    " + soft_cap(15)",
    "",
    " + relative(8,12)",
    " + gaussian(2)",
    " + sink",
    " + soft_cap(20) + alibi + bias + relative(6,5,one_sided) + gaussian(3) + sink",
    " + alibi + bias"};
constexpr const char* kSelections[] = {
    "soft",   "soft(0.25)", "hard",      "gumbel(0.6)", "gumbel(0.8,straight_through)",
    "argmax", "top_k(3)",   "sparsemax", "sigmoid",     "identity"};
// LENGTHS, QUERIES and DOCUMENTS stand for numbers that fit the sizes.
constexpr const char* kPatterns[] = {
    "full",
    "causal",
    "causal(top_left)",
    "window(3,2)",
    "causal & window(4,0)",
    "window(2,2,3)",
    "window(2,1) | global(0,3)",
    "window(2,1) | global_keys(0,3..4)",
    "causal & (window(3,0) | strided(4))",
    "causal & fixed(5,2)",
    "block_window(4,1,1) | random_blocks(4,1,3) | global(0..1)",
    "LENGTHS",
    "LENGTHS & QUERIES & causal",
    "DOCUMENTS",
    "causal & DOCUMENTS",
    "heads(HEADS)",
    "LAYOUT",
    "predicate(odd)",
    "WITHIN",
    "EACH_WITHIN",
    "longformer(4)",
    "bigbird(4)",
    "sparse_strided(4)",
    "sparse_strided(4) merged",
    "sparse_fixed(4)",
    "streaming(4)",
    "local_m(2)",
};

// Patterns known by a paper's name, as the algebra writes them.
std::string named_pattern(const std::string& name, const ProblemSizes& s) {
  if (name == "longformer(4)") return to_string(longformer({.window = 4, .dilation = 2, .global = {0, 2}}));
  if (name == "bigbird(4)") return to_string(bigbird({.block = 4, .random = 1, .global = {1}, .added = 1}));
  if (name == "sparse_strided(4)") return to_string(sparse_strided(4, s.heads % 2 != 0));
  if (name == "sparse_strided(4) merged") return to_string(sparse_strided(4, true));
  if (name == "sparse_fixed(4)") return to_string(sparse_fixed(4, 1));
  if (name == "streaming(4)") return to_string(streaming(4, 2));
  if (name == "local_m(2)") return to_string(local_m(2));
  return name;
}

const PredicateTable& predicates() {
  static const PredicateTable table{
      {"odd", [](int64_t head, int64_t query, int64_t key) { return (query + 3 * key + head) % 4 != 0; }}};
  return table;
}

ProblemSizes parse_sizes(const std::string& text) {
  ProblemSizes s;
  const int read = std::sscanf(text.c_str(), "b=%ld h=%ld hk=%ld nq=%ld nk=%ld d=%ld dv=%ld", &s.batch,
                               &s.heads, &s.kv_heads, &s.queries, &s.keys, &s.d, &s.dv);
  EXPECT_EQ(read, 7) << text;
  return s;
}

std::string numbers(const std::vector<int64_t>& values) {
  std::string text;
  for (const int64_t value : values) text.append(text.empty() ? "" : ",").append(std::to_string(value));
  return text;
}

void replace(std::string& text, const std::string& word, const std::string& by) {
  for (size_t at; (at = text.find(word)) != std::string::npos;) text.replace(at, word.size(), by);
}

std::string fit_pattern(std::string pattern, const ProblemSizes& s) {
  pattern = named_pattern(pattern, s);
  std::vector<int64_t> keys, queries;
  for (int64_t b = 0; b < s.batch; ++b) {
    keys.push_back(b == 1 ? 0 : s.keys - s.keys / (b + 3));
    queries.push_back(b == 2 ? 0 : s.queries - s.queries / (b + 2));
  }
  const auto documents = [](int64_t tokens) {
    return numbers({tokens / 3, 0, tokens / 2, tokens - tokens / 3 - tokens / 2});
  };
  std::string heads;
  for (int64_t h = 0; h < s.heads; ++h)
    heads.append(h ? "; " : "").append(h % 2 ? "causal" : "window(1,3,2)");
  std::string rows;
  for (int64_t i = 0; i < (s.queries + 3) / 4; ++i) {
    rows += i ? "," : "";
    for (int64_t j = 0; j < (s.keys + 3) / 4; ++j) rows += (i * 5 + j * 3) % 4 < 2 ? '1' : '0';
  }
  replace(pattern, "LENGTHS", "lengths(" + numbers(keys) + ")");
  replace(pattern, "QUERIES", "query_lengths(" + numbers(queries) + ")");
  replace(pattern, "EACH_WITHIN",
          s.queries == s.keys
              ? "within(" + documents(s.queries) + "; window(2,1) | global(0); full; causal; global(1,3))"
              : "window(1,2) & DOCUMENTS");
  // within() is of texts that see themselves: as many keys as queries.
  replace(pattern, "WITHIN",
          s.queries == s.keys ? "within(" + documents(s.queries) + "; window(2,1) | global(0))"
                              : "window(2,2) & DOCUMENTS");
  replace(pattern, "DOCUMENTS", "documents(" + documents(s.queries) + ";" + documents(s.keys) + ")");
  replace(pattern, "HEADS", heads);
  replace(pattern, "LAYOUT", "layout(4;" + rows + ")");
  return pattern;
}

std::vector<std::string> all_cases() {
  std::vector<std::string> cases;
  size_t term = 0;
  for (const std::string sizes : kSizes)
    for (const char* score : kScores)
      for (const char* pattern : kPatterns)
        for (const std::string selection : kSelections) {
          std::string terms = kTerms[term++ % std::size(kTerms)];
          const bool sums = selection.starts_with("soft") || selection.starts_with("top_k");
          if (!sums) replace(terms, " + sink", "");
          // The largest problems cost the oracle the most: a share of them is enough there.
          if (sizes.find("nq=66") != std::string::npos && term % 7 != 0) continue;
          if (sizes.find("nq=17") != std::string::npos && term % 3 != 0) continue;
          cases.push_back(score + terms + " / " + fit_pattern(pattern, parse_sizes(sizes)) + " / " +
                          selection + " @ " + sizes);
        }
  return cases;
}

// How far the nearest discontinuity is: a tie of the largest scores, the edge of a support. Rounding may fall
// on the other side of one that is too near, and then neither answer is wrong.
double margin(const AttentionSpec& spec, const Inputs& in) {
  const SelectionKind kind = spec.selection.kind;
  const bool draws =
      kind == SelectionKind::hard || (kind == SelectionKind::gumbel && spec.selection.straight_through);
  if (!draws && kind != SelectionKind::argmax && kind != SelectionKind::top_k &&
      kind != SelectionKind::sparsemax)
    return 1;
  AttentionSpec soft_spec = spec;
  soft_spec.selection = draws ? gumbel() : soft();
  soft_spec.terms.gaussian = 0;
  soft_spec.terms.sink = false;
  const Array weights = reference::forward(soft_spec, in).weights;
  const Array chosen = reference::forward(spec, in).weights;
  double nearest = 1;
  for (size_t row = 0; row < static_cast<size_t>(in.batch * in.heads * in.queries); ++row) {
    Array x;  // scores up to a constant
    double threshold = 0;
    for (size_t j = 0; j < static_cast<size_t>(in.keys); ++j) {
      const size_t at = row * static_cast<size_t>(in.keys) + j;
      if (weights[at] == 0) continue;
      x.push_back(std::log(weights[at]));
      if (chosen[at] > 0 && spec.terms.gaussian == 0) threshold = x.back() - chosen[at];
    }
    if (kind == SelectionKind::sparsemax) {
      if (spec.terms.gaussian != 0) return 1;
      for (const double value : x) nearest = std::min(nearest, std::abs(value - threshold));
      continue;
    }
    std::sort(x.rbegin(), x.rend());
    const auto last = static_cast<size_t>(kind == SelectionKind::top_k ? spec.selection.k : 1);
    if (x.size() > last) nearest = std::min(nearest, x[last - 1] - x[last]);
  }
  return nearest;
}

void expect_near(const Array& got, const Array& wanted, const std::string& what, double least = 0.04) {
  ASSERT_EQ(got.size(), wanted.size()) << what;
  double largest = least;
  for (const double value : wanted)
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  for (size_t n = 0; n < wanted.size(); ++n) {
    if (std::isinf(wanted[n]))
      ASSERT_EQ(got[n], wanted[n]) << what << '[' << n << ']';
    else
      ASSERT_NEAR(got[n], wanted[n], kTolerance * largest) << what << '[' << n << ']';
  }
}

// Writes NaN over every key and value that no query sees: none may reach a result.
void poison_unseen(const AttentionSpec& spec, Inputs& in) {
  const int64_t group = in.heads / in.kv_heads;
  for (int64_t b = 0; b < in.batch; ++b)
    for (int64_t h = 0; h < in.kv_heads; ++h)
      for (int64_t j = 0; j < in.keys; ++j) {
        bool seen = false;
        for (int64_t g = 0; g < group; ++g)
          for (int64_t i = 0; i < in.queries && !seen; ++i)
            seen = allowed(spec.pattern, {in.queries, in.keys, b, h * group + g, i, j});
        if (seen) continue;
        const int64_t key = (b * in.kv_heads + h) * in.keys + j;
        for (int64_t c = 0; c < in.dk; ++c) in.k[static_cast<size_t>(key * in.dk + c)] = NAN;
        for (int64_t c = 0; c < in.dv; ++c) in.v[static_cast<size_t>(key * in.dv + c)] = INFINITY;
      }
}

// The length of the shortest query or key that takes part.
double shortest_vector(const Inputs& in) {
  double shortest = INFINITY;
  const auto measure = [&](const Array& rows, int64_t width) {
    for (size_t first = 0; first + static_cast<size_t>(width) <= rows.size();
         first += static_cast<size_t>(width)) {
      double sum = 0;
      for (size_t c = 0; c < static_cast<size_t>(width); ++c) sum += rows[first + c] * rows[first + c];
      if (std::isfinite(sum)) shortest = std::min(shortest, std::sqrt(sum));
    }
  };
  measure(in.q, in.d);
  measure(in.k, in.dk);
  return shortest;
}

void run_case(const std::string& line, size_t number) {
  SCOPED_TRACE("FOVEA_CASE='" + line + "'");
  const size_t at = line.find(" @ ");
  ASSERT_NE(at, std::string::npos);
  const AttentionSpec spec = parse_spec(line.substr(0, at), predicates());
  const ProblemSizes sizes = parse_sizes(line.substr(at + 3));
  Rng rng(std::hash<std::string>()(line));
  const BiasShape one{number % 2 == 0, number % 3 == 0, number % 5 == 0, number % 7 == 0};
  Inputs in;
  int tries = 0;
  do {
    ASSERT_LT(tries++, 50) << "no problem without near ties";
    in = random_inputs(spec, sizes, rng);
    if (spec.terms.bias) {
      const Array dense = in.bias;
      test::for_each_bias(in, one, [&](int64_t full, int64_t small) { in.bias[full] = dense[small]; });
    }
  } while (margin(spec, in) < 1e-4);
  // Only the dot family leaves unseen keys unread: the others multiply all of k by a matrix first.
  const ScoreKind kind = spec.score.kind;
  const bool reads_seen_keys = kind == ScoreKind::dot || kind == ScoreKind::scaled_dot;
  if (reads_seen_keys && number % 2 == 0) poison_unseen(spec, in);

  const auto rows = in.batch * in.heads * in.queries;
  reference::ResultGradients d{.out = test::random_array(rng, rows * in.dv)};
  const bool is_hard = spec.selection.kind == SelectionKind::hard;
  if (is_hard) {
    d.log_probability = test::random_array(rng, rows);
    d.entropy = test::random_array(rng, rows);
  }
  const auto layout = number % 3 ? MemoryLayout::projected : MemoryLayout::dense;
  const test::FusedRun fused = test::run_fused(spec, in, d, layout, one);
  const reference::Results wanted = reference::forward(spec, in);
  Inputs grad = reference::backward(spec, in, d);
  if (spec.terms.bias) {
    Array summed(static_cast<size_t>(test::bias_shape(in, one).count()));
    test::for_each_bias(in, one, [&](int64_t full, int64_t small) { summed[small] += grad.bias[full]; });
    grad.bias = summed;
  }
  expect_near(test::to_array(fused.result.output.value()), wanted.out, "output");
  expect_near(test::to_array(fused.result.lse), wanted.lse, "lse");
  expect_near(test::to_array(fused.result.weights), wanted.weights, "weights");
  if (is_hard) {
    expect_near(test::to_array(fused.result.log_probability.value()), wanted.log_probability,
                "log probability");
    expect_near(test::to_array(fused.result.entropy.value()), wanted.entropy, "entropy");
  }
  if (is_hard || spec.selection.kind == SelectionKind::argmax) {
    const auto& chosen = fused.result.chosen;
    ASSERT_TRUE(std::equal(chosen.begin(), chosen.end(), wanted.chosen.begin(), wanted.chosen.end()));
  }
  for (const auto& [name, array] : test::kInputArrays) {
    // A slope's gradient sums distances, which are as large as there are keys.
    double least = 0.4 * (array == &Inputs::slopes ? static_cast<double>(in.keys) : 1);
    // Raw scores as weights: the gradient of a direction, divided by the vector's length, has no other bound.
    if (spec.score.kind == ScoreKind::cosine && spec.selection.kind == SelectionKind::identity)
      least /= std::min(1.0, shortest_vector(in));
    expect_near(fused.grad.*array, grad.*array, std::string("gradient of ") + name, least);
  }
}

// The level this process is to be held at, by the test's name in ctest.
bool settle_level() {
  const char* level = std::getenv("FOVEA_GRID_LEVEL");
  if (level == nullptr) return true;
  for (const Level each : available_levels())
    if (level_name(each) == level) {
      setenv("FOVEA_ISA", level, 1);
      return true;
    }
  return false;
}

TEST(Grid, FusedAttentionEqualsTheOracle) {
  if (!settle_level()) GTEST_SKIP() << "this CPU lacks " << std::getenv("FOVEA_GRID_LEVEL");
  if (const char* line = std::getenv("FOVEA_CASE")) return run_case(line, 0);
  const std::vector<std::string> cases = all_cases();
  ASSERT_GT(cases.size(), 5000u);
  set_num_threads(1);  // many small problems; other numbers of threads give the same bits, as shown below
  for (size_t n = 0; n < cases.size(); ++n) {
    if (std::getenv("FOVEA_LIST")) {
      std::puts(cases[n].c_str());
      continue;
    }
    run_case(cases[n], n);
    if (HasFailure()) return;
  }
}

TEST(Grid, OneTwoAndThreeThreadsGiveTheSameBits) {
  if (!settle_level()) GTEST_SKIP();
  const std::vector<std::string> cases = all_cases();
  for (size_t n = 0; n < cases.size(); n += 97) {
    const size_t at = cases[n].find(" @ ");
    const AttentionSpec spec = parse_spec(cases[n].substr(0, at), predicates());
    ProblemSizes sizes = parse_sizes(cases[n].substr(at + 3));
    Rng rng(n);
    const Inputs in = random_inputs(spec, sizes, rng);
    const reference::ResultGradients d{.out =
                                           test::random_array(rng, in.batch * in.heads * in.queries * in.dv)};
    std::vector<test::FusedRun> runs;
    for (const int threads : {1, 2, 3}) {
      set_num_threads(threads);
      runs.push_back(test::run_fused(spec, in, d, MemoryLayout::dense));
    }
    set_num_threads(0);
    for (const size_t other : {1, 2}) {
      ASSERT_EQ(runs[0].result.output.value().to_vector(), runs[other].result.output.value().to_vector())
          << cases[n];
      for (const auto& [name, array] : test::kInputArrays)
        ASSERT_EQ(runs[0].grad.*array, runs[other].grad.*array) << cases[n] << ": " << name;
    }
  }
}

}  // namespace
}  // namespace fovea
