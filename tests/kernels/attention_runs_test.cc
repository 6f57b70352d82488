#include "kernels/attention/run_attention.h"

#include <cmath>
#include <vector>

#include "base/parallel.h"
#include "kernels/kernel_check.h"

namespace fovea::kernels {
namespace {

using testing::expect_close;
using testing::Guarded;

struct Case {
  ScoreFamily family;
  bool unit_query, gaussian;
  int64_t d, dv;
  bool exponential = false;
};

struct Outcome {
  Guarded soft, out, dq, dk, d_v, d_vector, d_centre;
};

constexpr int64_t kQueryBegin[] = {0, 3, 3, 7}, kKeyBegin[] = {0, 5, 7, 30};
constexpr int32_t kFirst[] = {0, 1, 4, 7, 9, 7, 20}, kCount[] = {5, 3, 0, 23, 11, 1, 9};
constexpr int64_t kQueries = 7, kKeys = 30;

Outcome run(const Case& c, Level level) {
  const Guarded q = Guarded::random(kQueries * c.d, 1), k = Guarded::random(kKeys * c.d, 2),
                v = Guarded::random(kKeys * c.dv, 3), vector = Guarded::random(c.d, 4),
                d_out = Guarded::random(kQueries * c.dv, 5), d_weights = Guarded::random(kQueries * 23, 6);
  Guarded exp_q(kQueries * c.d), exp_k(kKeys * c.d), d_scores(kQueries * 23);
  EXPECT_TRUE(run_exponentials(q.data(), exp_q.data(), kQueries * c.d, level));
  EXPECT_TRUE(run_exponentials(k.data(), exp_k.data(), kKeys * c.d, level));
  const float centre[] = {2.3f, 1, 4, 19, 12.5f, 7, 21};
  Outcome o{Guarded(kQueries * 23), Guarded(kQueries * c.dv), Guarded(kQueries * c.d),
            Guarded(kKeys * c.d),   Guarded(kKeys * c.dv),    Guarded(c.d),
            Guarded(kQueries)};
  const bool additive = c.family == ScoreFamily::additive;
  const AttentionRunsForward forward{.score = {.family = c.family,
                                               .d = c.d,
                                               .scale = 0.3f,
                                               .unit_query = c.unit_query,
                                               .vector = additive ? vector.data() : nullptr,
                                               .exponential = c.exponential},
                                     .runs = {.sentences = 3,
                                              .query_begin = kQueryBegin,
                                              .key_begin = kKeyBegin,
                                              .first = kFirst,
                                              .count = kCount,
                                              .centre = c.gaussian ? centre : nullptr,
                                              .sigma = 1.5f,
                                              .soft = o.soft.data(),
                                              .soft_row = 23},
                                     .dv = c.dv,
                                     .q = (c.exponential ? exp_q : q).data(),
                                     .k = (c.exponential ? exp_k : k).data(),
                                     .v = v.data(),
                                     .out = o.out.data()};
  attention_runs_forward(forward, level);
  attention_runs_backward({.forward = forward,
                           .d_out = d_out.data(),
                           .d_weights = d_weights.data(),
                           .dq = o.dq.data(),
                           .dk = c.exponential ? nullptr : o.dk.data(),
                           .dv = o.d_v.data(),
                           .d_vector = additive ? o.d_vector.data() : nullptr,
                           .d_centre = c.gaussian ? o.d_centre.data() : nullptr,
                           .d_scores = d_scores.data()},
                          level);
  if (c.exponential) {
    const RunQueriesSeen seen[] = {{&forward.runs, exp_q.data(), d_scores.data()}};
    run_keys_gradient(forward.score, seen, exp_k.data(), o.dk.data(), o.d_vector.data(), level);
  }
  return o;
}

TEST(AttentionRuns, EqualTheReferenceOnEveryLevel) {
  for (const int64_t d : {1, 7, 8, 33, 130}) {
    for (const Case& c :
         {Case{ScoreFamily::dot, false, false, d, 70}, Case{ScoreFamily::dot, true, true, d, 3},
          Case{ScoreFamily::additive, false, false, d, 64}, Case{ScoreFamily::additive, false, true, d, 17},
          Case{ScoreFamily::additive, false, true, d, 300, true}}) {
      const Outcome wanted = run(c, Level::scalar);
      for (const Level level : testing::vector_levels()) {
        const Outcome got = run(c, level);
        const std::string what = std::string(level_name(level)) + " d " + std::to_string(d);
        expect_close(got.soft, wanted.soft, 1e-5f, what + " soft");
        expect_close(got.out, wanted.out, 1e-5f, what + " out");
        expect_close(got.dq, wanted.dq, 2e-5f, what + " dq");
        expect_close(got.dk, wanted.dk, 2e-5f, what + " dk");
        expect_close(got.d_v, wanted.d_v, 1e-5f, what + " dv");
        expect_close(got.d_vector, wanted.d_vector, 3e-5f, what + " d_vector");
        expect_close(got.d_centre, wanted.d_centre, 2e-5f, what + " d_centre");
      }
    }
  }
}

TEST(AttentionRuns, ExponentialsGiveWhatTheNumbersThemselvesGive) {
  for (const int64_t d : {1, 19, 300}) {
    const Outcome wanted = run({ScoreFamily::additive, false, false, d, 12}, current_level()),
                  got = run({ScoreFamily::additive, false, false, d, 12, true}, current_level());
    expect_close(got.soft, wanted.soft, 1e-5f, "soft");
    expect_close(got.dq, wanted.dq, 2e-5f, "dq");
    expect_close(got.dk, wanted.dk, 2e-5f, "dk");
    expect_close(got.d_vector, wanted.d_vector, 3e-5f, "d_vector");
  }
}

TEST(AttentionRuns, NumbersTooLargeForExponentialsAreRefused) {
  std::vector<float> x(40000), y(x.size());
  EXPECT_TRUE(run_exponentials(x.data(), y.data(), 40000));
  for (const float large : {21.0f, -21.0f, NAN}) {
    x[33000] = large;
    EXPECT_FALSE(run_exponentials(x.data(), y.data(), 40000));
  }
}

TEST(AttentionRuns, ARunWithoutKeysSeesNothing) {
  const Outcome o = run({ScoreFamily::additive, false, false, 9, 5}, current_level());
  for (int64_t c = 0; c < 5; ++c) EXPECT_EQ(o.out[2 * 5 + c], 0);
  for (int64_t c = 0; c < 9; ++c) EXPECT_EQ(o.dq[2 * 9 + c], 0);
  // A sentence that nobody asks gets no gradient.
  for (int64_t c = 5 * 5; c < 7 * 5; ++c) EXPECT_EQ(o.d_v[c], 0);
}

TEST(AttentionRuns, BytesDoNotDependOnThreads) {
  for (const bool exponential : {false, true}) {
    const Case c{ScoreFamily::additive, false, true, 40, 50, exponential};
    set_num_threads(1);
    const Outcome one = run(c, current_level());
    set_num_threads(3);
    const Outcome three = run(c, current_level());
    set_num_threads(0);
    testing::expect_same_bits(three.out, one.out, "out");
    testing::expect_same_bits(three.dk, one.dk, "dk");
    testing::expect_same_bits(three.d_vector, one.d_vector, "d_vector");
  }
}

}  // namespace
}  // namespace fovea::kernels
