#include "kernels/attention/row_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/parallel.h"
#include "base/rng.h"
#include "kernels/attention/draws.h"

namespace fovea {
namespace {

using namespace kernels;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

using Floats = std::vector<float>;

Floats random_floats(int64_t count, uint64_t seed, float size = 1) {
  Rng rng(seed);
  Floats x(static_cast<size_t>(count));
  for (float& value : x) value = size * rng.normal();
  return x;
}

enum class PlanKind { full, causal, ragged, scattered };

// Tiles of 37 rows. full: one segment. causal: two segments, the second cut by intervals. ragged: keys end
// earlier in each batch. scattered: rows of one residue class, keys dilated and gathered, bits; query 1 sees
// nothing.
AttentionPlan make_plan(PlanKind kind, const AttentionShape& shape) {
  AttentionPlan plan;
  plan.query_count = shape.queries;
  plan.key_count = shape.keys;
  plan.group_tiles.push_back(0);
  const auto nk = static_cast<int32_t>(shape.keys), nq = static_cast<int32_t>(shape.queries);
  plan.batch_groups = kind == PlanKind::ragged ? static_cast<int32_t>(shape.batch) : 1;
  const int32_t step = kind == PlanKind::scattered ? 2 : 1;
  for (int32_t b = 0; b < plan.batch_groups; ++b) {
    for (int32_t residue = 0; residue < step; ++residue)
      for (int32_t first = residue; first < nq; first += 37 * step) {
        PlanTile tile{.row_first = first,
                      .row_step = step,
                      .row_count = std::min(37, (nq - first + step - 1) / step),
                      .segment_begin = static_cast<int32_t>(plan.segments.size())};
        if (kind == PlanKind::full && nk > 0) plan.segments.push_back({.key_count = nk});
        if (kind == PlanKind::ragged && nk - b > 0) plan.segments.push_back({.key_count = nk - b});
        if (kind == PlanKind::causal) {
          const int32_t split = std::min(first, nk);
          if (split > 0) plan.segments.push_back({.key_count = split});
          if (split < nk) {
            plan.segments.push_back({.key_first = split,
                                     .key_count = nk - split,
                                     .mask = SegmentMask::interval,
                                     .mask_offset = static_cast<int32_t>(plan.intervals.size())});
            for (int32_t r = 0; r < tile.row_count; ++r) {
              plan.intervals.push_back(0);
              plan.intervals.push_back(std::min(first + r + 1, nk) - split);
            }
          }
        }
        if (kind == PlanKind::scattered) {
          // Odd keys from high to low by gathering, then even keys as a progression.
          const int32_t words = (tile.row_count + 31) / 32;
          PlanSegment odd{.key_count = nk / 2,
                          .gather = static_cast<int32_t>(plan.indices.size()),
                          .mask = SegmentMask::bits,
                          .mask_offset = static_cast<int32_t>(plan.bits.size())};
          for (int32_t j = nk / 2; j-- > 0;) plan.indices.push_back(2 * j + 1);
          PlanSegment even{.key_step = 2, .key_count = (nk + 1) / 2, .mask = SegmentMask::bits};
          const auto add_bits = [&](const PlanSegment& segment) {
            for (int32_t j = 0; j < segment.key_count; ++j)
              for (int32_t w = 0; w < words; ++w) {
                uint32_t word =
                    philox(7, static_cast<uint64_t>(first), static_cast<uint64_t>(j * words + w))[0];
                if (residue == 1 && first == 1 && w == 0) word &= ~1u;
                plan.bits.push_back(word);
              }
          };
          if (odd.key_count > 0) {
            add_bits(odd);
            plan.segments.push_back(odd);
          }
          even.mask_offset = static_cast<int32_t>(plan.bits.size());
          add_bits(even);
          if (even.key_count > 0) plan.segments.push_back(even);
        }
        tile.segment_end = static_cast<int32_t>(plan.segments.size());
        plan.tiles.push_back(tile);
      }
    plan.group_tiles.push_back(static_cast<int32_t>(plan.tiles.size()));
  }
  return plan;
}

// One point of the algebra with all its arrays; results and gradients filled by run().
struct Case {
  AttentionShape shape{.batch = 2, .heads = 2, .kv_heads = 1, .queries = 13, .keys = 19, .d = 11, .dv = 7};
  ScoreFamily score = ScoreFamily::dot;
  SelectionTerms selection{};
  PlanKind plan_kind = PlanKind::full;
  bool soft_cap = false, alibi = false, sink = false, relative = false, gaussian = false,
       vector_per_head = false;
  float dropout = 0;
  std::string bias{};  // which of b, h, i, j the bias has; empty: no bias
  float size = 1;      // of q and k

  AttentionPlan plan{};
  Floats q{}, k{}, v{}, vector{}, bias_data{}, slopes{}, sinks{}, table{}, centre{}, d_out{}, d_log{},
      d_entropy{};
  std::vector<int32_t> buckets{}, heads{}, rows{};
  Floats out{}, lse{}, log_probability{}, entropy{}, weights{};
  std::vector<int32_t> chosen{};
  Floats dq{}, dk{}, dv{}, d_vector{}, d_bias{}, d_slopes{}, d_sinks{}, d_table{}, d_centre{};

  int64_t row_total() const { return shape.batch * shape.heads * shape.queries; }
  int64_t vector_heads() const { return vector_per_head ? shape.heads : 1; }
  static constexpr int64_t kBuckets = 5;

  void fill() {
    plan = make_plan(plan_kind, shape);
    const int64_t key_total = shape.batch * shape.kv_heads * shape.keys;
    q = random_floats(row_total() * shape.d, 1, size);
    k = random_floats(key_total * shape.d, 2, size);
    v = random_floats(key_total * shape.dv, 3);
    vector = random_floats(vector_heads() * shape.d, 4);
    int64_t bias_size = 0;
    bias_view<float>(nullptr, bias_size);
    bias_data = random_floats(bias_size, 5);
    slopes = random_floats(shape.heads, 6, 0.1f);
    sinks = random_floats(shape.heads, 7);
    table = random_floats(shape.heads * kBuckets, 8);
    centre = random_floats(row_total(), 9, 3);
    for (float& value : centre) value += static_cast<float>(shape.keys) / 2;
    d_out = random_floats(row_total() * shape.dv, 10);
    d_log = random_floats(row_total(), 11);
    d_entropy = random_floats(row_total(), 12);
    buckets.clear();
    for (int64_t n = 0; n < shape.queries + shape.keys - 1; ++n)
      buckets.push_back(static_cast<int32_t>(n * 7 / 3 % kBuckets));
    heads = {static_cast<int32_t>(shape.heads - 1)};
    rows.clear();
    for (int32_t i = 0; i < shape.queries; i += 3) rows.push_back(i);
  }

  template <class T>
  BiasView<T> bias_view(T* data, int64_t& bias_size) const {
    BiasView<T> view{.data = data};
    bias_size = 1;
    const auto take = [&](char axis, int64_t extent) {
      if (bias.find(axis) == std::string::npos) return int64_t{0};
      const int64_t step = bias_size;
      bias_size *= extent;
      return step;
    };
    view.column = take('j', shape.keys);
    view.row = take('i', shape.queries);
    view.head = take('h', shape.heads);
    view.batch = take('b', shape.batch);
    return view;
  }

  template <class T>
  static HeadView<T> view(T* data, int64_t head_count, int64_t row_count, int64_t width) {
    return {data, head_count * row_count * width, row_count * width, width};
  }

  AttentionRowsForward forward_call() {
    int64_t unused = 0;
    out.assign(static_cast<size_t>(row_total() * shape.dv), kNan);
    lse.assign(static_cast<size_t>(row_total()), kNan);
    chosen.assign(static_cast<size_t>(row_total()), -7);
    log_probability = entropy = lse;
    weights.assign(
        static_cast<size_t>(shape.batch) * heads.size() * rows.size() * static_cast<size_t>(shape.keys),
        kNan);
    AttentionRowsForward f{.shape = shape, .score = score, .selection = selection, .plan = &plan};
    f.terms.scale = 0.7f;
    f.terms.soft_cap = soft_cap ? 2.0f : 0.0f;
    f.terms.alibi = alibi ? slopes.data() : nullptr;
    if (!bias.empty()) f.terms.bias = bias_view<const float>(bias_data.data(), unused);
    f.terms.sink = sink ? sinks.data() : nullptr;
    f.terms.dropout = dropout;
    f.terms.seed = 99;
    if (relative)
      f.relative = {.table = table.data(),
                    .head = 1,
                    .step = shape.heads,
                    .bucket = buckets.data(),
                    .bucket_count = kBuckets};
    if (gaussian) f.gaussian = {.centre = centre.data(), .sigma = 4};
    f.selection.seed = 1234;
    f.q = view<const float>(q.data(), shape.heads, shape.queries, shape.d);
    f.k = view<const float>(k.data(), shape.kv_heads, shape.keys, shape.d);
    f.v = view<const float>(v.data(), shape.kv_heads, shape.keys, shape.dv);
    f.score_vector = vector.data();
    f.score_vector_head = vector_per_head ? shape.d : 0;
    f.out = view(out.data(), shape.heads, shape.queries, shape.dv);
    f.lse = lse.data();
    if (selection.kind == SelectionKind::hard || selection.kind == SelectionKind::argmax)
      f.chosen = chosen.data();
    if (selection.kind == SelectionKind::hard) {
      f.log_probability = log_probability.data();
      f.entropy = entropy.data();
    }
    f.weights = {.data = weights.data(),
                 .heads = heads.data(),
                 .head_count = static_cast<int64_t>(heads.size()),
                 .rows = rows.data(),
                 .row_count = static_cast<int64_t>(rows.size())};
    return f;
  }

  void forward(Level level) { attention_rows_forward(forward_call(), level); }

  void run(Level level) {
    AttentionRowsBackward back{.forward = forward_call()};
    attention_rows_forward(back.forward, level);
    dq.assign(q.size(), kNan);
    dk.assign(k.size(), kNan);
    dv.assign(v.size(), kNan);
    d_centre.assign(centre.size(), 0);
    d_vector.assign(vector.size(), 1);
    d_bias.assign(bias_data.size(), 1);
    d_slopes.assign(slopes.size(), 1);
    d_sinks.assign(sinks.size(), 1);
    d_table.assign(table.size(), 1);
    int64_t unused = 0;
    back.d_out = view<const float>(d_out.data(), shape.heads, shape.queries, shape.dv);
    back.d_log_probability = d_log.data();
    back.d_entropy = d_entropy.data();
    back.dq = view(dq.data(), shape.heads, shape.queries, shape.d);
    back.dk = view(dk.data(), shape.kv_heads, shape.keys, shape.d);
    back.dv = view(dv.data(), shape.kv_heads, shape.keys, shape.dv);
    if (score == ScoreFamily::additive) back.d_score_vector = d_vector.data();
    if (!bias.empty()) back.d_bias = bias_view(d_bias.data(), unused);
    if (alibi) back.d_alibi = d_slopes.data();
    if (sink) back.d_sink = d_sinks.data();
    if (relative) back.d_relative = d_table.data();
    if (gaussian) back.d_centre = d_centre.data();
    attention_rows_backward(back, level);
  }

  // What gradients are taken of: sum(out d_out), and under hard sum(log p d_log) + sum(entropy d_entropy).
  double loss(Level level) {
    forward(level);
    double sum = 0;
    for (size_t n = 0; n < out.size(); ++n) sum += double{out[n]} * d_out[n];
    if (selection.kind == SelectionKind::hard)
      for (size_t n = 0; n < lse.size(); ++n)
        sum += double{log_probability[n]} * d_log[n] + double{entropy[n]} * d_entropy[n];
    return sum;
  }

  std::string text() const {
    const auto number = [](auto value) { return std::to_string(value) + " "; };
    return "score " + number(static_cast<int>(score)) + "selection " +
           number(static_cast<int>(selection.kind)) + "plan " + number(static_cast<int>(plan_kind)) +
           "shape " + number(shape.batch) + number(shape.heads) + number(shape.kv_heads) +
           number(shape.queries) + number(shape.keys) + number(shape.d) + number(shape.dv) +
           "cap/alibi/sink/relative/gaussian " + number(soft_cap) + number(alibi) + number(sink) +
           number(relative) + number(gaussian) + "dropout " + number(dropout) + "bias " + bias + " size " +
           number(size);
  }
};

// Largest difference, relative to the size of what is wanted.
double distance(const Floats& got, const Floats& wanted) {
  double size = 1e-3, worst = 0;
  for (float value : wanted)
    if (std::isfinite(value)) size = std::max(size, std::abs(double{value}));
  for (size_t n = 0; n < wanted.size(); ++n) {
    if (got[n] == wanted[n] || (std::isnan(got[n]) && std::isnan(wanted[n]))) continue;
    const double difference = std::abs(double{got[n]} - wanted[n]) / size;
    if (!(difference <= worst)) worst = std::isnan(difference) ? kInf : difference;
  }
  return worst;
}

constexpr double kTolerance = 1e-5;

void expect_same_results(const Case& got, const Case& wanted, double tolerance = kTolerance) {
  EXPECT_LE(distance(got.out, wanted.out), tolerance) << "out";
  EXPECT_LE(distance(got.lse, wanted.lse), tolerance) << "lse";
  EXPECT_LE(distance(got.weights, wanted.weights), tolerance) << "weights";
  EXPECT_LE(distance(got.log_probability, wanted.log_probability), tolerance) << "log probability";
  EXPECT_LE(distance(got.entropy, wanted.entropy), tolerance) << "entropy";
  EXPECT_EQ(got.chosen, wanted.chosen);
  EXPECT_LE(distance(got.dq, wanted.dq), tolerance) << "dq";
  EXPECT_LE(distance(got.dk, wanted.dk), tolerance) << "dk";
  EXPECT_LE(distance(got.dv, wanted.dv), tolerance) << "dv";
  EXPECT_LE(distance(got.d_vector, wanted.d_vector), tolerance) << "score vector";
  EXPECT_LE(distance(got.d_bias, wanted.d_bias), tolerance) << "bias";
  EXPECT_LE(distance(got.d_slopes, wanted.d_slopes), tolerance) << "alibi";
  EXPECT_LE(distance(got.d_sinks, wanted.d_sinks), tolerance) << "sink";
  EXPECT_LE(distance(got.d_table, wanted.d_table), tolerance) << "relative";
  EXPECT_LE(distance(got.d_centre, wanted.d_centre), tolerance) << "centre";
}

// Runs the case on the scalar level and on every other; the results must agree.
void expect_levels_agree(Case c) {
  SCOPED_TRACE(c.text());
  set_num_threads(1);  // cases are too small to share
  c.fill();
  Case wanted = c;
  wanted.run(Level::scalar);
  for (Level level : available_levels()) {
    if (level == Level::scalar) continue;
    SCOPED_TRACE(level_name(level));
    c.run(level);
    expect_same_results(c, wanted);
  }
}

const std::vector<SelectionTerms> kSelections{
    {.kind = SelectionKind::soft},
    {.kind = SelectionKind::hard},
    {.kind = SelectionKind::gumbel, .tau = 0.7f},
    {.kind = SelectionKind::gumbel, .tau = 0.7f, .straight_through = true},
    {.kind = SelectionKind::argmax},
    {.kind = SelectionKind::top_k, .k = 3},
    {.kind = SelectionKind::sparsemax},
    {.kind = SelectionKind::sigmoid},
    {.kind = SelectionKind::identity},
};
const std::vector<ScoreFamily> kFamilies{ScoreFamily::dot, ScoreFamily::additive};
const std::vector<PlanKind> kPlans{PlanKind::full, PlanKind::causal, PlanKind::ragged, PlanKind::scattered};

TEST(AttentionRows, EverySelectionAgreesWithTheReferenceOverEveryPlan) {
  for (const auto& selection : kSelections)
    for (ScoreFamily family : kFamilies)
      for (PlanKind plan : kPlans)
        expect_levels_agree({.score = family, .selection = selection, .plan_kind = plan});
}

TEST(AttentionRows, OddShapesAgreeWithTheReference) {
  const AttentionShape shapes[] = {
      {.batch = 1, .heads = 1, .kv_heads = 1, .queries = 1, .keys = 1, .d = 1, .dv = 1},
      {.batch = 3, .heads = 1, .kv_heads = 1, .queries = 1, .keys = 37, .d = 65, .dv = 3},
      {.batch = 1, .heads = 4, .kv_heads = 2, .queries = 2, .keys = 5, .d = 3, .dv = 130},
      {.batch = 1, .heads = 3, .kv_heads = 3, .queries = 3, .keys = 16, .d = 16, .dv = 16},
      {.batch = 2, .heads = 2, .kv_heads = 1, .queries = 65, .keys = 37, .d = 37, .dv = 65},
      {.batch = 1, .heads = 2, .kv_heads = 2, .queries = 130, .keys = 65, .d = 33, .dv = 24},
  };
  for (const auto& shape : shapes)
    for (ScoreFamily family : kFamilies)
      for (PlanKind plan : kPlans) expect_levels_agree({.shape = shape, .score = family, .plan_kind = plan});
}

TEST(AttentionRows, EveryTermAgreesWithTheReference) {
  for (ScoreFamily family : kFamilies)
    for (PlanKind plan : {PlanKind::full, PlanKind::scattered})
      for (const auto& selection : kSelections) {
        const Case base{.score = family, .selection = selection, .plan_kind = plan};
        const auto with = [&](auto change) {
          Case c = base;
          change(c);
          expect_levels_agree(c);
        };
        with([](Case& c) { c.soft_cap = true; });
        with([](Case& c) { c.alibi = true; });
        with([](Case& c) { c.relative = true; });
        with([](Case& c) { c.gaussian = true; });
        with([](Case& c) { c.dropout = 0.3f; });
        with([](Case& c) { c.vector_per_head = true; });
        if (selection.kind == SelectionKind::soft || selection.kind == SelectionKind::top_k)
          with([](Case& c) { c.sink = true; });
        with([](Case& c) {
          c.soft_cap = c.alibi = c.relative = c.gaussian = true;
          c.dropout = 0.2f;
          c.bias = "hij";
        });
      }
}

TEST(AttentionRows, BiasBroadcastsAndItsGradientSums) {
  for (const char* axes : {"bhij", "hij", "bij", "ij", "j", "i", "bh", "bj", "h"})
    expect_levels_agree({.bias = axes});
}

TEST(AttentionRows, LargeAdditiveInputsAgreeWithTheReference) {
  for (float size : {3.0f, 8.0f, 12.0f, 40.0f})
    for (PlanKind plan : kPlans)
      expect_levels_agree({.score = ScoreFamily::additive, .plan_kind = plan, .size = size});
}

TEST(AttentionRows, TheReferenceHasTheGradientsOfFiniteDifferences) {
  for (const auto& selection : kSelections) {
    if (selection.kind == SelectionKind::argmax || selection.straight_through) continue;
    for (ScoreFamily family : kFamilies) {
      Case c{.score = family, .selection = selection, .plan_kind = PlanKind::scattered};
      c.shape = {.batch = 1, .heads = 2, .kv_heads = 1, .queries = 3, .keys = 6, .d = 3, .dv = 2};
      c.soft_cap = c.alibi = c.relative = c.gaussian = true;
      c.sink = selection.kind == SelectionKind::soft || selection.kind == SelectionKind::top_k;
      c.bias = "hj";
      SCOPED_TRACE(c.text());
      c.fill();
      c.run(Level::scalar);
      const auto check = [&](const char* name, Floats& x, const Floats& gradient, float start) {
        for (size_t n = 0; n < x.size(); ++n) {
          const float kept = x[n], step = 2e-3f;
          x[n] = kept + step;
          const double above = c.loss(Level::scalar);
          x[n] = kept - step;
          const double below = c.loss(Level::scalar);
          x[n] = kept;
          EXPECT_NEAR(gradient[n] - start, (above - below) / (2 * double{step}), 3e-3) << name << " " << n;
        }
      };
      const Case computed = c;
      check("q", c.q, computed.dq, 0);
      check("k", c.k, computed.dk, 0);
      check("v", c.v, computed.dv, 0);
      check("bias", c.bias_data, computed.d_bias, 1);
      check("alibi", c.slopes, computed.d_slopes, 1);
      check("relative", c.table, computed.d_table, 1);
      check("centre", c.centre, computed.d_centre, 0);
      if (c.sink) check("sink", c.sinks, computed.d_sinks, 1);
      if (family == ScoreFamily::additive) check("score vector", c.vector, computed.d_vector, 1);
    }
  }
}

TEST(AttentionRows, StraightThroughLearnsLikeSoftGumbel) {
  Case soft{.selection = {.kind = SelectionKind::gumbel, .tau = 0.5f}}, straight = soft;
  straight.selection.straight_through = true;
  soft.fill();
  straight.fill();
  soft.run(current_level());
  straight.run(current_level());
  EXPECT_LE(distance(straight.dq, soft.dq), kTolerance);
  for (float weight : straight.weights) EXPECT_TRUE(weight == 0 || weight == 1) << weight;
}

TEST(AttentionRows, ResultsAreTheSameForAnyNumberOfThreads) {
  for (const auto& selection : kSelections)
    for (ScoreFamily family : kFamilies) {
      Case c{.score = family, .selection = selection, .plan_kind = PlanKind::causal};
      c.shape = {.batch = 3, .heads = 4, .kv_heads = 2, .queries = 50, .keys = 41, .d = 20, .dv = 9};
      c.alibi = c.relative = true;
      c.bias = "ij";
      c.dropout = 0.1f;
      c.fill();
      Case one = c;
      const int threads = num_threads();
      set_num_threads(1);
      one.run(current_level());
      for (int count : {2, 3}) {
        set_num_threads(count);
        c.run(current_level());
        expect_same_results(c, one, 0);
      }
      set_num_threads(threads);
    }
}

TEST(AttentionRows, FullyMaskedRowGivesZero) {
  for (Level level : available_levels())
    for (const auto& selection : kSelections)
      for (ScoreFamily family : kFamilies) {
        Case c{.score = family, .selection = selection, .plan_kind = PlanKind::scattered};
        SCOPED_TRACE(c.text());
        c.fill();
        c.run(level);
        for (int64_t c2 = 0; c2 < c.shape.dv; ++c2) EXPECT_EQ(c.out[c.shape.dv + c2], 0);
        for (int64_t c2 = 0; c2 < c.shape.d; ++c2) EXPECT_EQ(c.dq[c.shape.d + c2], 0);
        EXPECT_EQ(c.lse[1], -kInf);
        if (selection.kind == SelectionKind::hard) {
          EXPECT_EQ(c.chosen[1], -1);
          EXPECT_EQ(c.log_probability[1], 0);
          EXPECT_EQ(c.entropy[1], 0);
        }
      }
}

TEST(AttentionRows, NoKeysAtAllGiveZero) {
  for (Level level : available_levels()) {
    Case c;
    c.shape.keys = 0;
    c.fill();
    c.run(level);
    for (float value : c.out) EXPECT_EQ(value, 0);
    for (float value : c.dq) EXPECT_EQ(value, 0);
  }
}

TEST(AttentionRows, WhatAMaskedKeyHoldsNeverReachesAResult) {
  for (float poison : {kNan, kInf})
    for (int64_t n : {2, 12})
      for (Level level : available_levels())
        for (const auto& selection : kSelections)
          for (ScoreFamily family : kFamilies) {
            Case clean{.score = family, .selection = selection, .plan_kind = PlanKind::causal};
            clean.shape = {.batch = 1, .heads = 1, .kv_heads = 1, .queries = n, .keys = n, .d = 9, .dv = 5};
            SCOPED_TRACE(clean.text());
            clean.fill();
            Case dirty = clean;
            // Only the last query sees the last key.
            std::fill(dirty.k.end() - 9, dirty.k.end(), poison);
            std::fill(dirty.v.end() - 5, dirty.v.end(), poison);
            clean.run(level);
            dirty.run(level);
            const auto others = [](const Floats& x, int64_t width) {
              return Floats(x.begin(), x.end() - width);
            };
            EXPECT_LE(distance(others(dirty.out, 5), others(clean.out, 5)), kTolerance);
            EXPECT_LE(distance(others(dirty.dq, 9), others(clean.dq, 9)), kTolerance);
          }
}

TEST(AttentionRows, HugeScoresStayRight) {
  for (float size : {100.0f, 1e15f})
    for (const auto& selection : kSelections) {
      Case c{.selection = selection, .size = size};
      c.fill();
      Case wanted = c;
      wanted.forward(Level::scalar);
      for (Level level : available_levels()) {
        c.forward(level);
        EXPECT_LE(distance(c.lse, wanted.lse), kTolerance) << c.text();
        for (float value : c.out) EXPECT_TRUE(std::isfinite(value)) << c.text();
      }
    }
}

TEST(AttentionRows, OfEqualScoresTheLowestKeyWins) {
  for (Level level : available_levels())
    for (auto kind : {SelectionKind::argmax, SelectionKind::top_k}) {
      Case c{.selection = {.kind = kind, .k = 2}, .plan_kind = PlanKind::scattered};
      c.fill();
      // Every query sees every key, in the scattered order.
      for (auto& segment : c.plan.segments) segment.mask = SegmentMask::full;
      std::fill(c.q.begin(), c.q.end(), 0.0f);
      c.forward(level);
      const auto keys = static_cast<size_t>(c.shape.keys);
      for (size_t n = 0; n < c.weights.size(); ++n) {
        const float wanted = kind == SelectionKind::argmax ? n % keys == 0 : n % keys < 2 ? 0.5f : 0.0f;
        ASSERT_EQ(c.weights[n], wanted) << n;
      }
    }
}

TEST(AttentionRows, WeightsAloneAreTheWeightsOfAWholeRun) {
  Case c{.plan_kind = PlanKind::causal};
  c.fill();
  c.forward(current_level());
  Floats whole = c.weights;
  AttentionRowsForward call = c.forward_call();
  call.out.data = nullptr;
  call.lse = nullptr;
  attention_rows_forward(call);
  EXPECT_EQ(c.weights, whole);
  for (float value : c.out) EXPECT_TRUE(std::isnan(value));
}

// A query and four keys with given scores, drawn many times.
struct Draws {
  static constexpr int kRows = 20000;
  Case c;
  Floats p;

  explicit Draws(SelectionTerms selection) {
    c.selection = selection;
    c.shape = {.batch = 1, .heads = 1, .kv_heads = 1, .queries = kRows, .keys = 4, .d = 1, .dv = 1};
    c.fill();
    c.k = {0.1f, 1.4f, -0.9f, 0.6f};
    c.v = {1, -2, 3, 0.5f};
    std::fill(c.q.begin(), c.q.end(), 1 / 0.7f);
    float sum = 0;
    for (float key : c.k) sum += std::exp(key);
    for (float key : c.k) p.push_back(std::exp(key) / sum);
  }
};

TEST(AttentionRows, HardDrawsWithTheSoftmaxProbabilities) {
  Draws draws({.kind = SelectionKind::hard});
  draws.c.forward(current_level());
  double chi_square = 0;
  for (int32_t key = 0; key < 4; ++key) {
    const auto count = static_cast<double>(std::count(draws.c.chosen.begin(), draws.c.chosen.end(), key));
    const double wanted = draws.p[key] * Draws::kRows;
    chi_square += (count - wanted) * (count - wanted) / wanted;
  }
  EXPECT_LT(chi_square, 16.3);  // 3 degrees of freedom: exceeded by chance once in 1000 seeds
}

TEST(AttentionRows, ReinforceIsUnbiased) {
  // Reward v of the chosen key: the gradient of its expectation by key score j is p_j (v_j - sum p v).
  Draws draws({.kind = SelectionKind::hard});
  Case& c = draws.c;
  c.forward(current_level());
  for (int n = 0; n < Draws::kRows; ++n) c.d_log[n] = c.out[n];
  std::fill(c.d_entropy.begin(), c.d_entropy.end(), 0.0f);
  c.run(current_level());
  double mean = 0;
  for (int j = 0; j < 4; ++j) mean += draws.p[j] * c.v[j];
  for (int j = 0; j < 4; ++j) EXPECT_NEAR(c.dk[j] / Draws::kRows, draws.p[j] * (c.v[j] - mean), 0.03);
}

TEST(AttentionRows, GumbelWithSmallTemperatureApproachesHard) {
  Draws soft({.kind = SelectionKind::gumbel, .tau = 1e-4f}), hard({.kind = SelectionKind::hard});
  soft.c.forward(current_level());
  hard.c.forward(current_level());
  int different = 0;
  for (int n = 0; n < Draws::kRows; ++n) different += std::abs(soft.c.out[n] - hard.c.out[n]) > 1e-3f;
  EXPECT_LT(different, Draws::kRows / 200);
}

}  // namespace
}  // namespace fovea
