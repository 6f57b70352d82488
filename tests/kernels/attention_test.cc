// Every level's attention against the scalar reference: shapes, masks, terms, NaN, extreme scores, threads.
#include "kernels/attention/block_attention.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/parallel.h"
#include "base/rng.h"
#include "kernels/attention/dropout.h"

namespace fovea::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Makes plans by hand, tile by tile.
class PlanMaker {
 public:
  PlanMaker(int64_t queries, int64_t keys) {
    plan_.query_count = queries;
    plan_.key_count = keys;
    plan_.group_tiles = {0};
  }
  void tile(int first, int step, int count) {
    const int segments = static_cast<int>(plan_.segments.size());
    plan_.tiles.push_back({first, step, count, segments, segments});
  }
  void add(PlanSegment segment) {
    plan_.segments.push_back(segment);
    plan_.tiles.back().segment_end = static_cast<int>(plan_.segments.size());
  }
  void full(int first, int count, int step = 1) {
    add({.key_first = first, .key_step = step, .key_count = count});
  }
  void gathered(const std::vector<int>& keys) {
    const int at = static_cast<int>(plan_.indices.size());
    plan_.indices.insert(plan_.indices.end(), keys.begin(), keys.end());
    add({.key_count = static_cast<int>(keys.size()), .gather = at});
  }
  // sees(query) gives the run of segment-local keys.
  void interval(int first, int count, int step, const std::function<std::pair<int, int>(int)>& sees) {
    const PlanTile tile = plan_.tiles.back();
    const int at = static_cast<int>(plan_.intervals.size());
    for (int r = 0; r < tile.row_count; ++r) {
      const auto [begin, end] = sees(tile.row_first + r * tile.row_step);
      plan_.intervals.push_back(std::max(0, begin));
      plan_.intervals.push_back(std::min(count, end));
    }
    add({.key_first = first,
         .key_step = step,
         .key_count = count,
         .mask = SegmentMask::interval,
         .mask_offset = at});
  }
  void bits(int first, int count, const std::function<bool(int query, int key)>& sees) {
    const PlanTile tile = plan_.tiles.back();
    const int at = static_cast<int>(plan_.bits.size()), words = (tile.row_count + 31) / 32;
    plan_.bits.resize(at + count * words);
    for (int j = 0; j < count; ++j)
      for (int r = 0; r < tile.row_count; ++r)
        if (sees(tile.row_first + r * tile.row_step, first + j))
          plan_.bits[at + j * words + r / 32] |= 1u << (r % 32);
    add({.key_first = first, .key_count = count, .mask = SegmentMask::bits, .mask_offset = at});
  }
  void end_group() { plan_.group_tiles.push_back(static_cast<int>(plan_.tiles.size())); }
  AttentionPlan finish(int batch_groups = 1, int head_groups = 1) {
    if (plan_.group_tiles.size() == 1) end_group();
    plan_.batch_groups = batch_groups;
    plan_.head_groups = head_groups;
    return std::move(plan_);
  }

 private:
  AttentionPlan plan_;
};

// Small cases: waking threads would cost more than the work.
const bool g_one_thread = (set_num_threads(1), true);

template <class Body>
void each_tile(int queries, int rows, Body body) {
  for (int first = 0; first < queries; first += rows) body(first, std::min(rows, queries - first));
}

AttentionPlan full_plan(int nq, int nk, int rows) {
  PlanMaker maker(nq, nk);
  each_tile(nq, rows, [&](int first, int count) {
    maker.tile(first, 1, count);
    maker.full(0, nk);
  });
  return maker.finish();
}

AttentionPlan window_plan(int nq, int nk, int rows, int left, int right) {
  PlanMaker maker(nq, nk);
  each_tile(nq, rows, [&](int first, int count) {
    maker.tile(first, 1, count);
    maker.interval(0, nk, 1, [&](int i) { return std::pair(i + nk - nq - left, i + nk - nq + right + 1); });
  });
  return maker.finish();
}

AttentionPlan causal_plan(int nq, int nk, int rows) {
  return window_plan(nq, nk, rows, nk + nq, 0);
}

AttentionPlan bits_plan(int nq, int nk, int rows) {
  PlanMaker maker(nq, nk);
  each_tile(nq, rows, [&](int first, int count) {
    maker.tile(first, 1, count);
    maker.bits(0, nk, [](int i, int j) { return philox(5, i, j)[0] % 3 == 0; });
  });
  return maker.finish();
}

// Two residue classes, each a causal run inside its class, plus a gathered key of the other class.
AttentionPlan dilated_plan(int nq, int nk, int rows) {
  PlanMaker maker(nq, nk);
  for (int residue = 0; residue < 2 && residue < nq; ++residue) {
    const int members = (nq - residue + 1) / 2;
    each_tile(members, rows, [&](int first, int count) {
      maker.tile(residue + 2 * first, 2, count);
      const int keys = std::max(0, (nk - residue + 1) / 2);
      if (keys > 0) maker.interval(residue, keys, 2, [&](int i) { return std::pair(i / 2 - 3, i / 2 + 1); });
      if (nk > 1 - residue) maker.gathered({1 - residue});
    });
  }
  return maker.finish();
}

// Every batch entry has a length of its own, every head a window of its own; half the rows of batch 0 see
// nothing.
AttentionPlan grouped_plan(int nq, int nk, int rows, int batch, int heads) {
  PlanMaker maker(nq, nk);
  for (int b = 0; b < batch; ++b)
    for (int h = 0; h < heads; ++h) {
      each_tile(nq, rows, [&](int first, int count) {
        maker.tile(first, 1, count);
        if (b == 0 && first >= nq / 2) return;
        const int length = std::max(1, nk - b);
        maker.interval(0, length, 1, [&](int i) { return std::pair(i - 2 * h - 1, i + 3 * h + 1); });
      });
      maker.end_group();
    }
  return maker.finish(batch, heads);
}

struct Case {
  AttentionShape shape;
  AttentionPlan plan;
  bool cap = false, alibi = false, bias = false, sink = false;
  float dropout = 0;
  bool bias_batch = true, bias_head = true, bias_row = true, bias_column = true;  // false: broadcast
  bool bias_once = false;
  float scale = 0.3f;
};

// Tensors of one case with strides wider than they need be, and the calls on them.
struct Problem {
  const Case& c;
  std::vector<float> q, k, v, out, lse, d_out, dq, dk, dv, alibi, sink, bias, d_alibi, d_sink, d_bias;
  BiasView<const float> bias_view;

  static std::vector<float> draw(int64_t count, uint64_t seed, float size = 1) {
    Rng rng(seed);
    std::vector<float> x(count);
    for (float& value : x) value = size * rng.normal();
    return x;
  }
  explicit Problem(const Case& the_case) : c(the_case) {
    const AttentionShape& s = c.shape;
    q = draw(s.batch * s.heads * s.queries * s.d + 3, 1);
    k = draw(s.batch * s.kv_heads * s.keys * s.d + 3, 2);
    v = draw(s.batch * s.kv_heads * s.keys * s.dv + 3, 3);
    d_out = draw(s.batch * s.heads * s.queries * s.dv + 3, 4);
    out.assign(s.batch * s.heads * s.queries * s.dv, kNan);
    lse.assign(s.batch * s.heads * s.queries, kNan);
    dq.assign(s.batch * s.heads * s.queries * s.d, kNan);
    dk.assign(s.batch * s.kv_heads * s.keys * s.d, kNan);
    dv.assign(s.batch * s.kv_heads * s.keys * s.dv, kNan);
    alibi = draw(s.heads, 5, 0.1f);
    sink = draw(s.heads, 6);
    d_alibi.assign(s.heads, 1);
    d_sink.assign(s.heads, 2);
    int64_t size = 1;
    const auto stride = [&](bool wanted, int64_t count) {
      const int64_t mine = wanted ? size : 0;
      if (wanted) size *= count;
      return mine;
    };
    bias_view.column = stride(c.bias_column, s.keys);
    bias_view.row = stride(c.bias_row, s.queries);
    bias_view.head = stride(c.bias_head, s.heads);
    bias_view.batch = stride(c.bias_batch, s.batch);
    bias = draw(size, 7);
    d_bias.assign(size, c.bias_once ? kNan : 0.5f);
    bias_view.data = bias.data();
  }
  // Rows interleave heads, as a fused projection leaves them: [B, N, H, D].
  template <class T>
  static HeadView<T> view(T* data, int64_t heads, int64_t rows, int64_t columns) {
    return {data, heads * rows * columns, columns, heads * columns};
  }
  AttentionForward forward() {
    const AttentionShape& s = c.shape;
    AttentionForward a{
        .shape = s, .terms = {}, .plan = &c.plan, .q = {}, .k = {}, .v = {}, .out = {}, .lse = lse.data()};
    a.q = view<const float>(q.data() + 1, s.heads, s.queries, s.d);
    a.k = view<const float>(k.data() + 1, s.kv_heads, s.keys, s.d);
    a.v = view<const float>(v.data() + 1, s.kv_heads, s.keys, s.dv);
    a.out = view<float>(out.data(), s.heads, s.queries, s.dv);
    a.terms.scale = c.scale;
    if (c.cap) a.terms.soft_cap = 1.5f;
    if (c.alibi) a.terms.alibi = alibi.data();
    if (c.bias) a.terms.bias = bias_view;
    if (c.sink) a.terms.sink = sink.data();
    a.terms.dropout = c.dropout;
    a.terms.seed = 99;
    return a;
  }
  AttentionBackward backward() {
    const AttentionShape& s = c.shape;
    AttentionBackward g{.forward = forward(), .d_out = {}, .dq = {}, .dk = {}, .dv = {}, .d_bias = {}};
    g.d_out = view<const float>(d_out.data() + 1, s.heads, s.queries, s.dv);
    g.dq = view<float>(dq.data(), s.heads, s.queries, s.d);
    g.dk = view<float>(dk.data(), s.kv_heads, s.keys, s.d);
    g.dv = view<float>(dv.data(), s.kv_heads, s.keys, s.dv);
    if (c.bias) g.d_bias = {d_bias.data(), bias_view.batch, bias_view.head, bias_view.row, bias_view.column};
    g.d_bias_once = c.bias_once;
    if (c.alibi) g.d_alibi = d_alibi.data();
    if (c.sink) g.d_sink = d_sink.data();
    return g;
  }
  void run(Level level) {
    attention_kernels(level).forward(forward());
    attention_kernels(level).backward(backward());
  }
};

// Largest difference relative to the largest wanted value (at least 1, the size of the inputs); NaN and
// infinities must agree.
void expect_close(const std::vector<float>& got, const std::vector<float>& wanted, double tolerance,
                  const std::string& what) {
  ASSERT_EQ(got.size(), wanted.size());
  double size = 1;
  for (const float x : wanted)
    if (std::isfinite(x)) size = std::max(size, std::abs(static_cast<double>(x)));
  for (size_t n = 0; n < got.size(); ++n) {
    if (std::isnan(wanted[n]) && std::isnan(got[n])) continue;
    if (got[n] == wanted[n]) continue;
    const double error = std::abs(static_cast<double>(got[n]) - wanted[n]) / size;
    if (!(error <= tolerance)) {
      ADD_FAILURE() << what << "[" << n << "] is " << got[n] << ", wanted " << wanted[n] << " (error "
                    << error << ")";
      return;
    }
  }
}

void expect_same_as_reference(const Case& c, const std::string& name, double tolerance = 2e-5) {
  Problem wanted(c);
  wanted.run(Level::scalar);
  for (const Level level : available_levels()) {
    if (level == Level::scalar) continue;
    SCOPED_TRACE(std::string(level_name(level)) + " " + name);
    Problem got(c);
    got.run(level);
    expect_close(got.out, wanted.out, tolerance, "out");
    expect_close(got.lse, wanted.lse, tolerance, "lse");
    expect_close(got.dq, wanted.dq, tolerance, "dq");
    expect_close(got.dk, wanted.dk, tolerance, "dk");
    expect_close(got.dv, wanted.dv, tolerance, "dv");
    expect_close(got.d_bias, wanted.d_bias, 5 * tolerance, "d_bias");
    expect_close(got.d_alibi, wanted.d_alibi, 5 * tolerance, "d_alibi");
    expect_close(got.d_sink, wanted.d_sink, 5 * tolerance, "d_sink");
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Attention, EqualsTheReferenceForAnyLength) {
  for (const int nq : {1, 3, 37, 65, 130})
    for (const int nk : {1, 3, 37, 65, 130})
      for (const int d : {16, 37})
        for (const int rows : {24, 192}) {
          const std::string name = "nq " + std::to_string(nq) + " nk " + std::to_string(nk) + " d " +
                                   std::to_string(d) + " rows " + std::to_string(rows);
          const AttentionShape shape{1, 2, 1, nq, nk, d, d};
          expect_same_as_reference({.shape = shape, .plan = full_plan(nq, nk, rows)}, "full " + name);
          expect_same_as_reference({.shape = shape, .plan = causal_plan(nq, nk, rows)}, "causal " + name);
          expect_same_as_reference({.shape = shape, .plan = window_plan(nq, nk, rows, 5, 2)},
                                   "window " + name);
          expect_same_as_reference({.shape = shape, .plan = bits_plan(nq, nk, rows)}, "bits " + name);
          expect_same_as_reference({.shape = shape, .plan = dilated_plan(nq, nk, rows)}, "dilated " + name);
          if (HasFailure()) return;
        }
}

TEST(Attention, EqualsTheReferenceForAnyWidth) {
  for (const int d : {1, 3, 16, 37, 64, 65, 128, 130})
    for (const int dv : {d, 65, 16}) {
      const std::string name = "d " + std::to_string(d) + " dv " + std::to_string(dv);
      const AttentionShape shape{1, 2, 1, 41, 53, d, dv};
      const float scale = 1 / std::sqrt(static_cast<float>(d));
      expect_same_as_reference({.shape = shape, .plan = full_plan(41, 53, 96), .scale = scale},
                               "full " + name);
      expect_same_as_reference({.shape = shape, .plan = causal_plan(41, 53, 96), .scale = scale},
                               "causal " + name);
      if (HasFailure()) return;
    }
}

TEST(Attention, EqualsTheReferenceWithEveryTerm) {
  for (int terms = 0; terms < 32; ++terms)
    for (int pattern = 0; pattern < 5; ++pattern) {
      const int nq = 29, nk = 43;
      Case c{.shape = {2, 4, 2, nq, nk, 12, 9}, .plan = {}};
      c.plan = pattern == 0   ? full_plan(nq, nk, 192)
               : pattern == 1 ? causal_plan(nq, nk, 24)
               : pattern == 2 ? bits_plan(nq, nk, 40)
               : pattern == 3 ? dilated_plan(nq, nk, 48)
                              : grouped_plan(nq, nk, 16, 2, 4);
      c.cap = terms & 1;
      c.alibi = terms & 2;
      c.bias = terms & 4;
      c.sink = terms & 8;
      c.dropout = terms & 16 ? 0.3f : 0;
      expect_same_as_reference(c, "terms " + std::to_string(terms) + " pattern " + std::to_string(pattern));
      if (HasFailure()) return;
    }
}

TEST(Attention, SumsTheGradientOfABroadcastBias) {
  for (int broadcast = 0; broadcast < 16; ++broadcast)
    for (const bool groups : {false, true}) {
      Case c{.shape = {2, 4, 2, 50, 60, 16, 16},
             .plan = groups ? grouped_plan(50, 60, 16, 2, 4) : full_plan(50, 60, 24)};
      c.bias = true;
      c.bias_batch = !(broadcast & 1);
      c.bias_head = !(broadcast & 2);
      c.bias_row = !(broadcast & 4);
      c.bias_column = !(broadcast & 8);
      expect_same_as_reference(c, "broadcast " + std::to_string(broadcast));
      if (HasFailure()) return;
    }
}

TEST(Attention, OverwritesTheGradientOfABiasWhereAsked) {
  for (const int nq : {1, 37, 50, 130})
    for (const int nk : {1, 7, 60, 133}) {
      Case c{.shape = {2, 4, 2, nq, nk, 16, 16}, .plan = full_plan(nq, nk, 24)};
      c.bias = c.bias_once = true;
      expect_same_as_reference(c, "nq " + std::to_string(nq) + " nk " + std::to_string(nk));
      if (HasFailure()) return;
    }
}

TEST(Attention, GroupedHeadsShareKeys) {
  for (const int kv_heads : {1, 2, 3, 6}) {
    const Case c{.shape = {3, 6, kv_heads, 30, 45, 32, 32}, .plan = causal_plan(30, 45, 48)};
    expect_same_as_reference(c, "kv heads " + std::to_string(kv_heads));
  }
}

TEST(Attention, FewQueriesOnManyKeys) {
  for (const int nq : {1, 2, 5, 8})
    for (const int d : {32, 100, 128}) {
      Case c{.shape = {1, 4, 2, nq, 1100, d, d}, .plan = causal_plan(nq, 1100, 48), .scale = 0.1f};
      expect_same_as_reference(c, "few " + std::to_string(nq));
      c.alibi = c.bias = c.sink = c.cap = true;
      c.dropout = 0.2f;
      expect_same_as_reference(c, "few with terms " + std::to_string(nq));
    }
}

// Long enough for several cuts of the backward pass, each of which meets some keys alone.
TEST(Attention, KeysThatFewTilesMeetGetTheirGradients) {
  const auto windows = [](int nq, int nk) {
    PlanMaker maker(nq, nk);
    each_tile(nq, 48, [&](int first, int count) {
      maker.tile(first, 1, count);
      const int from = std::min(first, nk - 70);
      if (from < 300 || from >= 500) maker.full(from, 70);  // keys 370 to 499 are seen by nobody
      if (first == 480) maker.gathered({3, 299, nk - 1});
    });
    return maker.finish();
  };
  for (const int d : {8, 20}) {
    const Case c{.shape = {1, 1, 1, 1100, 900, d, d}, .plan = windows(1100, 900)};
    expect_same_as_reference(c, "d " + std::to_string(d));
  }
}

// Steep slopes make weights that are tiny beside the largest. Products with them must not become denormal: each would
// cost an Intel CPU more than a hundred cycles.
TEST(Attention, TinyWeightsGiveNoDenormalNumbers) {
  const int n = 400;
  Case c{.shape = {1, 1, 1, n, n, 16, 16}, .plan = full_plan(n, n, 96)};
  c.alibi = true;
  for (const Level level : available_levels()) {
    if (level == Level::scalar) continue;
    Problem p(c);
    p.alibi[0] = 0.5f;
    std::feclearexcept(FE_UNDERFLOW);
    p.run(level);
    EXPECT_EQ(std::fetestexcept(FE_UNDERFLOW), 0) << level_name(level);
  }
}

TEST(Attention, RowThatSeesNothingGivesZero) {
  PlanMaker maker(40, 20);
  maker.tile(0, 1, 30);
  maker.interval(0, 20, 1, [](int i) { return i % 2 ? std::pair(0, 0) : std::pair(0, 20); });
  maker.tile(30, 1, 10);
  const Case c{.shape = {1, 1, 1, 40, 20, 16, 16}, .plan = maker.finish()};
  for (const Level level : available_levels()) {
    Problem p(c);
    p.run(level);
    for (int i = 0; i < 40; ++i) {
      const bool blind = i % 2 || i >= 30;
      EXPECT_EQ(p.lse[i] == -kInfinity, blind);
      for (int col = 0; col < 16; ++col) {
        if (!blind) continue;
        EXPECT_EQ(p.out[i * 16 + col], 0);
        EXPECT_EQ(p.dq[i * 16 + col], 0);
      }
    }
  }
}

// Keys and values 0 .. 9 hold NaN or infinity; rows from 12 on do not see them.
TEST(Attention, MaskedNanAndInfinityNeverLeak) {
  const int n = 60, d = 16;
  for (const float poison : {kNan, kInfinity, -kInfinity})
    for (const int kind : {0, 1, 2}) {
      PlanMaker maker(n, n);
      maker.tile(0, 1, n);
      const auto sees = [](int i, int j) { return i < 12 ? j <= i : j >= 10 && j <= i; };
      if (kind == 0) maker.bits(0, n, sees);
      if (kind == 1) maker.interval(0, n, 1, [](int i) { return std::pair(i < 12 ? 0 : 10, i + 1); });
      if (kind == 2) {
        maker.interval(0, 10, 1, [](int i) { return i < 12 ? std::pair(0, i + 1) : std::pair(0, 0); });
        maker.interval(10, n - 10, 1, [](int i) { return std::pair(0, i - 9); });
      }
      const Case c{.shape = {1, 1, 1, n, n, d, d}, .plan = maker.finish()};
      for (const Level level : available_levels()) {
        SCOPED_TRACE(std::string(level_name(level)) + " kind " + std::to_string(kind));
        Problem clean(c), dirty(c);
        for (int x = 0; x < 10 * d; ++x) dirty.k[1 + x] = dirty.v[1 + x] = poison;
        clean.run(level);
        dirty.run(level);
        for (int i = 12; i < n; ++i)
          for (int col = 0; col < d; ++col) {
            EXPECT_EQ(dirty.out[i * d + col], clean.out[i * d + col]);
            ASSERT_EQ(dirty.dq[i * d + col], clean.dq[i * d + col]);
          }
        for (int j = 12; j < n; ++j)
          for (int col = 0; col < d; ++col) {
            EXPECT_EQ(dirty.dk[j * d + col], clean.dk[j * d + col]);
            ASSERT_EQ(dirty.dv[j * d + col], clean.dv[j * d + col]);
          }
      }
    }
}

TEST(Attention, ExtremeScoresStayRight) {
  for (const float size : {1e2f, 1e4f, 1e15f}) {
    Case c{.shape = {1, 1, 1, 40, 50, 8, 8}, .plan = causal_plan(40, 50, 48), .scale = 1};
    for (const Level level : available_levels()) {
      SCOPED_TRACE(std::string(level_name(level)) + " size " + std::to_string(size));
      // One column carries the score, so that it is exact and the softmax picks single keys.
      const auto prepare = [&](Problem& p) {
        for (size_t x = 0; x < p.q.size(); ++x) p.q[x] = (x - 1) % 8 == 0 ? (x % 16 < 8 ? size : -size) : 0;
        for (size_t x = 0; x < p.k.size(); ++x)
          p.k[x] = (x - 1) % 8 == 0 ? (static_cast<float>((x * 7) % 50) - 25) * (size > 1e10f ? size : 1) : 0;
      };
      Problem got(c), wanted(c);
      prepare(got);
      prepare(wanted);
      wanted.run(Level::scalar);
      got.run(level);
      expect_close(got.out, wanted.out, 1e-4, "out");
      expect_close(got.lse, wanted.lse, 1e-5, "lse");
      expect_close(got.dv, wanted.dv, 1e-4, "dv");
    }
  }
}

TEST(Attention, SameBytesForAnyNumberOfThreads) {
  for (int terms = 0; terms < 2; ++terms)
    for (const bool grouped : {false, true}) {
      const int nq = 300, nk = 310;
      Case c{.shape = {2, 4, 2, nq, nk, 40, 24}, .plan = {}};
      c.plan = grouped ? grouped_plan(nq, nk, 48, 2, 4) : causal_plan(nq, nk, 24);
      if (terms) {
        c.alibi = c.bias = c.sink = true;
        c.bias_batch = false;
        c.dropout = 0.1f;
      }
      std::vector<Problem> runs;
      for (const int threads : {1, 2, 3}) {
        set_num_threads(threads);
        runs.emplace_back(c);
        runs.back().run(current_level());
      }
      set_num_threads(1);
      for (size_t n = 1; n < runs.size(); ++n)
        for (const auto member : {&Problem::out, &Problem::lse, &Problem::dq, &Problem::dk, &Problem::dv,
                                  &Problem::d_bias, &Problem::d_alibi, &Problem::d_sink}) {
          const auto &x = runs[0].*member, &y = runs[n].*member;
          EXPECT_EQ(std::memcmp(x.data(), y.data(), x.size() * sizeof(float)), 0);
        }
    }
}

TEST(Attention, TilesDoNotChangeTheDropout) {
  Case c{.shape = {1, 2, 2, 70, 90, 16, 16}, .plan = full_plan(70, 90, 24), .dropout = 0.4f};
  Problem small(c);
  small.run(current_level());
  Case wide = c;
  wide.plan = full_plan(70, 90, 192);
  Problem large(wide);
  large.run(current_level());
  expect_close(small.out, large.out, 1e-6, "out");
  expect_close(small.dk, large.dk, 1e-5, "dk");
}

TEST(Attention, EmptySequencesWork) {
  for (const Level level : available_levels()) {
    const Case none{.shape = {1, 2, 2, 0, 5, 8, 8}, .plan = full_plan(0, 5, 48)};
    Problem p(none);
    p.run(level);
    for (const float x : p.dk) EXPECT_EQ(x, 0);
    const Case blind{.shape = {1, 2, 2, 5, 0, 8, 8}, .plan = full_plan(5, 0, 48)};
    Problem r(blind);
    r.run(level);
    for (const float x : r.out) EXPECT_EQ(x, 0);
    for (const float x : r.lse) EXPECT_EQ(x, -kInfinity);
  }
}

// Dropped weights: the wanted share, and no tie between neighbours in any direction.
TEST(AttentionDropout, DrawsAreFairAndIndependent) {
  for (const float p : {0.1f, 0.5f, 0.9f}) {
    constexpr int kRows = 256, kKeys = 512;
    std::vector<std::vector<int>> kept(2 * kRows, std::vector<int>(kKeys));
    double sum = 0;
    for (int row = 0; row < 2 * kRows; ++row)
      for (int j = 0; j < kKeys; ++j)
        sum += kept[row][j] = attention_keep(7, 0, row / kRows, row % kRows, j, p);
    const double count = 2.0 * kRows * kKeys, mean = 1 - p, sigma = std::sqrt(mean * p / count);
    EXPECT_NEAR(sum / count, mean, 4.5 * sigma);
    const auto correlation = [&](int down, int right) {
      double product = 0;
      int64_t pairs = 0;
      for (int row = 0; row + down < 2 * kRows; ++row)
        for (int j = 0; j + right < kKeys; ++j, ++pairs)
          product += (kept[row][j] - mean) * (kept[row + down][j + right] - mean);
      return product / (mean * p) / std::sqrt(static_cast<double>(pairs));
    };
    for (const auto& [down, right] :
         {std::pair(0, 1), {0, 2}, {0, 3}, {0, 64}, {1, 0}, {1, 1}, {2, 1}, {kRows, 0}, {kRows, 1}})
      EXPECT_LT(std::abs(correlation(down, right)), 4.5) << down << " down, " << right << " right, p " << p;
    // A planted bias of one part in fifty must be seen by the same test.
    EXPECT_GT(std::abs(sum / count - (mean - 0.02)), 4.5 * sigma);
  }
}

TEST(AttentionDropout, RowsAreFarFromEachOther) {
  // Two rows agree on a share p^2 + (1-p)^2 of the keys, for every pair and shift.
  constexpr int kKeys = 2048;
  for (int i = 0; i < 40; ++i)
    for (const int shift : {0, 1, 2, 7}) {
      int same = 0;
      for (int j = 0; j + shift < kKeys; ++j)
        same += attention_keep(3, 1, 2, i, j, 0.5f) == attention_keep(3, 1, 2, i + 1, j + shift, 0.5f);
      EXPECT_NEAR(same, (kKeys - shift) / 2, 5 * std::sqrt(kKeys / 4.0));
    }
}

}  // namespace
}  // namespace fovea::kernels
