// Backward attention: weights are computed again from the log-sum-exp, then five products per strip of keys.
// Scores and their gradients have queries in the lanes, dK and dV have columns in the lanes: no transposes.
//
// dK and dV of a key head are gathered over all tiles that visit it. Tiles are dealt out to a fixed number of
// cuts, each with sums of its own over the keys it meets, added in order at the end: the result does not
// depend on the number of threads.
//
// Share of the FMA peak of forward and backward together, measured as in attention_forward.simd.cc. One head,
// N = 512: 0.87 (d = 64) and 0.88 (128); eight heads 0.83. One head, N = 4096, d = 64: full 0.83, causal
// 0.80, window(256, 256) 0.73, with a global token 0.70, BigBird 0.73; at N = 16 384 0.72, 0.68 and 0.73.
// What dropout, a bias and ALiBi cost beside it is in docs/benchmarks.md.
#include "base/parallel.h"
#include "kernels/attention/block_attention_levels.h"
#include "kernels/attention/block_attention_tile-inl.h"
#include "kernels/scratch.h"

namespace fovea::kernels {
namespace {

constexpr int kGroupVectors = 2 * kTileVectors;
constexpr int64_t kGroupLanes = kGroupVectors * kLanes;
constexpr int64_t kTileLanes = kMaxTileRows + kLanes;

// Beyond this a float log-sum-exp is too coarse to give weights back, and the softmax is computed again.
constexpr float kCoarseLse = 256;

constexpr int64_t kBlockKeys = 64;

int64_t key_blocks(const AttentionShape& shape) {
  return (shape.keys + kBlockKeys - 1) / kBlockKeys;
}

// Sums of dK and dV over some tiles: in dk and dv themselves, or in memory with rows padded to whole vectors.
// Keys are cleared block by block when a tile first meets them: a window meets few.
struct KeySums {
  float* dk = nullptr;  // row j at dk + j * ld_k
  float* dv = nullptr;
  int64_t ld_k = 0, ld_v = 0;
  uint8_t* met = nullptr;  // [key_blocks]: whether a block holds sums

  static int64_t flag_floats(const AttentionShape& shape) { return round_up(key_blocks(shape), 64) / 4; }
  static int64_t floats(const AttentionShape& shape) {
    return shape.keys * (round_up(shape.d, kLanes) + round_up(shape.dv, kLanes)) + flag_floats(shape);
  }
  KeySums(const AttentionShape& shape, float* memory)
      : dk(memory + flag_floats(shape)),
        ld_k(round_up(shape.d, kLanes)),
        ld_v(round_up(shape.dv, kLanes)),
        met(reinterpret_cast<uint8_t*>(memory)) {
    dv = dk + shape.keys * ld_k;
  }
  KeySums(const AttentionBackward& g, int64_t b, int64_t kv_head, float* flags)
      : dk(g.dk.at(b, kv_head, 0)),
        dv(g.dv.at(b, kv_head, 0)),
        ld_k(g.dk.row),
        ld_v(g.dv.row),
        met(reinterpret_cast<uint8_t*>(flags)) {}
  // Whether the gradients themselves can be summed in: whole vectors stay inside a row.
  static bool in_place(const AttentionBackward& g) {
    const AttentionShape& shape = g.forward.shape;
    return g.dk.data && g.dv.data && shape.d % kLanes == 0 && shape.dv % kLanes == 0;
  }
  void forget(const AttentionShape& shape) const {
    for (int64_t block = 0; block < key_blocks(shape); ++block) met[block] = 0;
  }
  void meet(const AttentionShape& shape, int64_t block) const {
    met[block] = 1;
    const int64_t end = smaller(shape.keys, (block + 1) * kBlockKeys);
    for (int64_t j = block * kBlockKeys; j < end; ++j) {
      for (int64_t c = 0; c < round_up(shape.d, kLanes); ++c) dk[j * ld_k + c] = 0;
      for (int64_t c = 0; c < round_up(shape.dv, kLanes); ++c) dv[j * ld_v + c] = 0;
    }
  }
  void meet_all(const AttentionShape& shape) const {
    for (int64_t block = 0; block < key_blocks(shape); ++block)
      if (!met[block]) meet(shape, block);
  }
};

struct HeadSums {
  double alibi = 0, sink = 0;
};

struct TileMemory {
  float *queries, *d_outs, *dq;    // [d or dv][lanes] per group
  float *query_rows, *d_out_rows;  // [rows][padded d or dv], where rows cannot be read in place
  float *lse, *delta, *max, *sum;  // [lanes]
  float *begin, *end;              // [lanes]: interval masks
  float *weights, *d_scores;       // [strip][lanes of a group]
  float *factors, *cap_slope;      // the same for dropout and soft cap
  float* trash;                    // [d]: rows of padding lanes are written here
  float* next;

  float* take(int64_t count) { return next += count, next - count; }
  TileMemory(const AttentionShape& shape, float* memory) : next(memory) {
    weights = take(kMaxStrip * kGroupLanes);
    d_scores = take(kMaxStrip * kGroupLanes);
    factors = take(kMaxStrip * kGroupLanes);
    cap_slope = take(kMaxStrip * kGroupLanes);
    queries = take(kTileLanes * shape.d);
    d_outs = take(kTileLanes * shape.dv);
    dq = take(kTileLanes * shape.d);
    query_rows = take(kTileLanes * round_up(shape.d, kLanes));
    d_out_rows = take(kTileLanes * round_up(shape.dv, kLanes));
    for (float** lanes : {&lse, &delta, &max, &sum, &begin, &end}) *lanes = take(kTileLanes);
    trash = take(shape.d);
  }
  static int64_t floats(const AttentionShape& shape) {
    return 4 * kMaxStrip * kGroupLanes +
           kTileLanes *
               (2 * shape.d + shape.dv + round_up(shape.d, kLanes) + round_up(shape.dv, kLanes) + 6) +
           shape.d;
  }
};

float dot(const float* x, const float* y, int64_t count) {
  Vec sum = hn::Zero(kTag);
  int64_t c = 0;
  for (; c + kLanes <= count; c += kLanes)
    sum = hn::MulAdd(hn::LoadU(kTag, x + c), hn::LoadU(kTag, y + c), sum);
  float total = hn::GetLane(hn::SumOfLanes(kTag, sum));
  for (; c < count; ++c) total += x[c] * y[c];
  return total;
}

// One lane group's scores and score gradients against keys [from, to) of a strip.
struct GradientBlock {
  ScoreBlock scores;     // in: scores; out: the weights that multiply values
  float* d_scores;       // in: d_out . value; out: gradients of the scores
  const float* lse;      // [lanes] in units of log 2, +inf where a row sees nothing
  const float* inverse;  // [lanes]: weights are 2^(s - lse) * inverse; null is 1
  const float* delta;    // [lanes] d_out . out
  const float* factors;  // dropout
};

// Careful: a weight of 0 passes no gradient, whatever its value or its row hold.
template <bool kCareful, bool kDropout>
void gradient_pass(const GradientBlock& g) {
  const int64_t ld = g.scores.ld;
  for_vector_chunks(static_cast<int>(ld / kLanes), [&]<int NV>(int first) FOVEA_INLINE {
    Vec lse[NV], delta[NV];
    for (int v = 0; v < NV; ++v) {
      lse[v] = hn::LoadU(kTag, g.lse + (first + v) * kLanes);
      delta[v] = hn::LoadU(kTag, g.delta + (first + v) * kLanes);
    }
    for (int t = g.scores.from; t < g.scores.to; ++t) {
      for (int v = 0; v < NV; ++v) {
        const int64_t offset = t * ld + (first + v) * kLanes;
        const Vec s = hn::LoadU(kTag, g.scores.s + offset);
        Vec p = exp2_nonpositive(hn::Sub(s, lse[v]));
        if (g.inverse) p = hn::Mul(p, hn::LoadU(kTag, g.inverse + (first + v) * kLanes));
        if constexpr (kCareful) p = hn::IfThenZeroElse(hn::Eq(s, hn::Neg(hn::Inf(kTag))), p);
        Vec dp = hn::LoadU(kTag, g.d_scores + offset), weight = p;
        if constexpr (kDropout) {
          const Vec factor = hn::LoadU(kTag, g.factors + offset);
          dp = hn::Mul(dp, factor);
          weight = hn::Mul(p, factor);
        }
        Vec ds = hn::Mul(p, hn::Sub(dp, delta[v]));
        if constexpr (kCareful) ds = hn::IfThenZeroElse(hn::Eq(p, hn::Zero(kTag)), ds);
        hn::StoreU(weight, kTag, g.scores.s + offset);
        hn::StoreU(ds, kTag, g.d_scores + offset);
      }
    }
  });
}

// Whether products with a scale can be divided by it again.
bool is_invertible(float scale) {
  return __builtin_fabsf(scale) > 1e-18f && __builtin_fabsf(scale) < 1e18f;
}

struct TileJob {
  const AttentionBackward& g;
  const AttentionForward& a;
  int64_t b, h, kv_head;
  const PlanTile& tile;
  TileLanes lanes;
  HeadTerms terms;
  LaneQueries queries;
  TileMemory memory;
  bool folded;  // the scale is in the packed d_out and delta, so that d_scores come out scaled
  LinesAhead ahead;
  bool coarse = false;
  bool started[kMaxGroups] = {};

  TileJob(const AttentionBackward& call, int64_t batch, int64_t head, const PlanTile& plan_tile,
          float* scratch)
      : g(call),
        a(call.forward),
        b(batch),
        h(head),
        kv_head(head / (a.shape.heads / a.shape.kv_heads)),
        tile(plan_tile),
        lanes(plan_tile.row_count, kGroupVectors),
        terms(a.terms, batch, head),
        memory(a.shape, scratch),
        folded(terms.cap == 0 && is_invertible(a.terms.scale)) {
    queries.fill(tile, lanes, a.shape);
    if (terms.dropout > 0) queries.draw_keys(lanes.lanes, a.terms.seed, b, h);
  }

  void pack(HeadView<const float> from, int64_t columns, float scale, float* transposed) {
    for (int n = 0; n < lanes.groups; ++n) {
      const LaneGroup& group = lanes.group[n];
      for (int64_t v = 0; v < group.lanes(); v += kLanes) {
        const float* rows[kLanes];
        for (int lane = 0; lane < kLanes; ++lane)
          rows[lane] = from.at(b, h, queries.query[group.first + v + lane]);
        pack_lanes(rows, columns, scale, transposed + group.first * columns + v, group.lanes());
      }
    }
  }

  // Where the outer products read rows: in place when whole vectors fit, else from a padded copy.
  struct Rows {
    const float* data;
    int64_t stride;
  };
  Rows rows_of(HeadView<const float> from, int64_t columns, float* copy) {
    if (columns % kLanes == 0) return {from.at(b, h, tile.row_first), from.row * tile.row_step};
    const int64_t ld = round_up(columns, kLanes);
    for (int row = 0; row < tile.row_count; ++row) {
      const float* x = from.at(b, h, queries.query[row]);
      for (int64_t c = 0; c < ld; ++c) copy[row * ld + c] = c < columns ? x[c] : 0;
    }
    return {copy, ld};
  }

  void look_at_rows(HeadSums& sums) {
    const float scale = folded ? a.terms.scale : 1;
    const float* lse = a.lse + (b * a.shape.heads + h) * a.shape.queries;
    for (int lane = 0; lane < lanes.lanes; ++lane) {
      if (lane >= tile.row_count) {
        memory.lse[lane] = memory.lse[lane - 1];
        memory.delta[lane] = memory.delta[lane - 1];
        continue;
      }
      const int64_t i = queries.query[lane];
      const float delta = dot(g.d_out.at(b, h, i), a.out.at(b, h, i), a.shape.dv);
      const bool nothing = lse[i] == -__builtin_inff();
      memory.lse[lane] = nothing ? __builtin_inff() : lse[i] * kLog2e;
      memory.delta[lane] = delta * scale;
      coarse |= !nothing && __builtin_fabsf(lse[i]) > kCoarseLse;
      if (g.d_sink && !nothing)
        sums.sink -= static_cast<double>(__builtin_expf(a.terms.sink[h] - lse[i]) * delta);
    }
  }

  // Scores of group n, terms and mask applied, into memory.weights.
  ScoreBlock score(int n, const Strip& strip, int from, int to, const GroupView& view, bool masked) {
    const LaneGroup& group = lanes.group[n];
    const ScoreBlock block{memory.weights, group.lanes(), from, to};
    if (terms.bias_along(strip))
      ask_for_bias(ahead, LinesAhead::kBias, block, strip,
                   terms.bias + queries.query[group.first] * terms.bias_row, terms.bias_row * tile.row_step,
                   group.rows);
    scores_product<false>(strip.k + from, to - from, a.shape.d, memory.queries + group.first * a.shape.d,
                          block.ld, block.s + from * block.ld, nullptr, [&] { ahead.ask(); });
    terms_pass(block, strip, terms, queries, group.first, masked ? &view : nullptr, memory.cap_slope,
               nullptr);
    return block;
  }

  void ask_for(const KeyRun& next, const KeySums& keys) {
    if (!far_keys(a.shape)) return;
    const int64_t d = a.shape.d, dv = a.shape.dv;
    ahead.set(LinesAhead::kKeys, a.k.at(b, kv_head, next.first), a.k.row * next.step, next.count, d);
    ahead.set(LinesAhead::kValues, a.v.at(b, kv_head, next.first), a.v.row * next.step, next.count, dv);
    ahead.set(LinesAhead::kKeySums, keys.dk + next.first * keys.ld_k, keys.ld_k * next.step, next.count, d);
    ahead.set(LinesAhead::kValueSums, keys.dv + next.first * keys.ld_v, keys.ld_v * next.step, next.count,
              dv);
  }

  // Replaces lse by the running maximum and sum of a second softmax.
  void softmax_again() {
    const bool sink = a.terms.sink && a.terms.sink[h] > kLowest;
    for (int64_t lane = 0; lane < lanes.lanes; ++lane) {
      memory.max[lane] = sink ? a.terms.sink[h] * kLog2e : kLowest;
      memory.sum[lane] = sink ? 1 : 0;
    }
    visit_keys(
        a, b, kv_head, tile, lanes, memory.begin, memory.end, [](const KeyRun&) {},
        [&](int n, const Strip& strip, int from, int to, const GroupView& view, bool masked) {
          const LaneGroup& group = lanes.group[n];
          const ScoreBlock block = score(n, strip, from, to, view, masked);
          HWY_ALIGN float raised[kGroupLanes];
          HWY_ALIGN float factor[kGroupLanes];
          for (int64_t lane = 0; lane < block.ld; ++lane) raised[lane] = memory.max[group.first + lane];
          max_pass(block, raised);
          raise_max(raised, block.ld, memory.max + group.first, memory.sum + group.first, factor);
          weights_pass(block, memory.max + group.first, memory.sum + group.first);
        });
    for (int64_t lane = 0; lane < lanes.lanes; ++lane) {
      memory.lse[lane] = memory.max[lane];
      memory.sum[lane] = memory.sum[lane] == 0 ? 0 : 1 / memory.sum[lane];
    }
  }

  // Where the d_bias of query 0 and key 0 stands.
  float* bias_gradient() const { return g.d_bias.data + b * g.d_bias.batch + h * g.d_bias.head; }

  // d_bias (= or +=) d_scores * factor.
  void write_bias_gradient(const ScoreBlock& block, const Strip& strip, const LaneGroup& group,
                           float factor) {
    const BiasView<float>& bias = g.d_bias;
    const bool add = !g.d_bias_once, along = strip.contiguous && bias.column == 1 && bias.row != 0;
    const Vec scale = hn::Set(kTag, factor);
    for (int64_t v = 0; v < group.rows; v += kLanes) {
      const int count = static_cast<int>(smaller(kLanes, group.rows - v));
      float* rows[kLanes];
      for (int lane = 0; lane < count; ++lane)
        rows[lane] = bias_gradient() + queries.query[group.first + v + lane] * bias.row;
      int t = block.from;
      if (along && count == kLanes) {
        for (; t + kLanes <= block.to; t += kLanes) {
          const float* s = block.s + t * block.ld + v;
          Vec x[kLanes];
          for (int n = 0; n < kLanes; ++n) x[n] = hn::Mul(hn::LoadU(kTag, s + n * block.ld), scale);
          store_columns(x, rows, strip.keys[t], add);
        }
      }
      for (; t < block.to; ++t)
        for (int lane = 0; lane < count; ++lane) {
          float& to = rows[lane][strip.keys[t] * bias.column];
          to = (add ? to : 0) + block.s[t * block.ld + v + lane] * factor;
        }
    }
  }

  double alibi_gradient(const ScoreBlock& block, const Strip& strip, const LaneGroup& group) {
    HWY_ALIGN float sums[kLanes];
    float keys[kMaxStrip];
    for (int t = block.from; t < block.to; ++t) keys[t] = static_cast<float>(strip.keys[t]);
    double total = 0;
    for (int64_t v = 0; v < group.rows; v += kLanes) {
      const Vec position = hn::LoadU(kTag, queries.position + group.first + v);
      Vec sum = hn::Zero(kTag);
      for (int t = block.from; t < block.to; ++t) {
        const Vec distance = hn::Abs(hn::Sub(position, hn::Set(kTag, keys[t])));
        sum = hn::MulAdd(hn::LoadU(kTag, block.s + t * block.ld + v), distance, sum);
      }
      hn::Store(sum, kTag, sums);
      for (int lane = 0; lane < kLanes && v + lane < group.rows; ++lane)
        total -= static_cast<double>(sums[lane]);
    }
    return total;
  }

  // Gradients of the terms, from those of the scores.
  void term_gradients(const ScoreBlock& block, const Strip& strip, const LaneGroup& group, HeadSums& sums) {
    const float factor = folded ? 1 / a.terms.scale : 1;
    if (g.d_bias.data) write_bias_gradient(block, strip, group, factor);
    if (g.d_alibi) sums.alibi += alibi_gradient(block, strip, group) * static_cast<double>(factor);
  }

  // What is between the gradients of scores and those of q . k, when it is more than the folded scale.
  void unfold(const ScoreBlock& block) {
    const Vec scale = hn::Set(kTag, a.terms.scale);
    for_each_vector(block, [&](int t, int64_t v, float* s) FOVEA_INLINE {
      Vec x = hn::Mul(hn::LoadU(kTag, s), scale);
      if (terms.cap != 0) x = hn::Mul(x, hn::LoadU(kTag, memory.cap_slope + t * block.ld + v));
      hn::StoreU(x, kTag, s);
    });
  }

  template <bool kCareful>
  void run(const KeySums& keys, HeadSums& sums) {
    const AttentionShape& shape = a.shape;
    pack(a.q, shape.d, terms.q_scale, memory.queries);
    pack(g.d_out, shape.dv, folded ? a.terms.scale : 1, memory.d_outs);
    look_at_rows(sums);
    if (coarse) softmax_again();
    const Rows query_rows = rows_of(a.q, shape.d, memory.query_rows);
    const Rows d_out_rows = rows_of(g.d_out, shape.dv, memory.d_out_rows);
    const auto ask = [this] { ahead.ask(); };
    visit_keys(
        a, b, kv_head, tile, lanes, memory.begin, memory.end,
        [&](const KeyRun& next) { ask_for(next, keys); },
        [&](int n, const Strip& strip, int from, int to, const GroupView& view, bool masked) {
          const LaneGroup& group = lanes.group[n];
          const int count = to - from;
          const ScoreBlock block = score(n, strip, from, to, view, masked);
          const int64_t ld = block.ld, first = from * ld;
          if (g.d_bias.data && g.d_bias.column == 1 && g.d_bias.row != 0 && strip.contiguous)
            ask_for_bias(ahead, LinesAhead::kBiasSums, block, strip,
                         bias_gradient() + queries.query[group.first] * g.d_bias.row,
                         g.d_bias.row * tile.row_step, group.rows);
          scores_product<false>(strip.v + from, count, shape.dv, memory.d_outs + group.first * shape.dv, ld,
                                memory.d_scores + first, nullptr, ask);
          const GradientBlock gradient{block,
                                       memory.d_scores,
                                       memory.lse + group.first,
                                       coarse ? memory.sum + group.first : nullptr,
                                       memory.delta + group.first,
                                       memory.factors};
          if (terms.dropout > 0) {
            dropout_pass(block, strip, queries, group.first, terms.dropout, memory.factors);
            gradient_pass<kCareful, true>(gradient);
          } else {
            gradient_pass<kCareful, false>(gradient);
          }
          const ScoreBlock d_scores{memory.d_scores, ld, from, to};
          term_gradients(d_scores, strip, group, sums);
          if (!folded) unfold(d_scores);
          float* dk[kMaxStrip];
          float* dv[kMaxStrip];
          for (int t = 0; t < count; ++t) {
            if (!keys.met[strip.keys[from + t] / kBlockKeys])
              keys.meet(shape, strip.keys[from + t] / kBlockKeys);
            dk[t] = keys.dk + strip.keys[from + t] * keys.ld_k;
            dv[t] = keys.dv + strip.keys[from + t] * keys.ld_v;
          }
          if (g.dv.data)
            outer_product<kCareful>(block.s + first, ld, count, group.rows,
                                    d_out_rows.data + group.first * d_out_rows.stride, d_out_rows.stride, dv,
                                    round_up(shape.dv, kLanes), ask);
          if (g.dk.data)
            outer_product<kCareful>(memory.d_scores + first, ld, count, group.rows,
                                    query_rows.data + group.first * query_rows.stride, query_rows.stride, dk,
                                    round_up(shape.d, kLanes), ask);
          if (g.dq.data)
            columns_product<kCareful>(strip.k + from, count, shape.d, memory.d_scores + first, ld,
                                      started[n] ? Update::add : Update::store, nullptr,
                                      memory.dq + group.first * shape.d, ask);
          started[n] = true;
        });
    if (g.dq.data) write_query_gradients();
  }

  void write_query_gradients() {
    for (int n = 0; n < lanes.groups; ++n) {
      const LaneGroup& group = lanes.group[n];
      float* dq = memory.dq + group.first * a.shape.d;
      if (!started[n])
        for (int64_t x = 0; x < a.shape.d * group.lanes(); ++x) dq[x] = 0;
      for (int64_t v = 0; v < group.lanes(); v += kLanes) {
        float* rows[kLanes];
        for (int lane = 0; lane < kLanes; ++lane)
          rows[lane] =
              v + lane < group.rows ? g.dq.at(b, h, queries.query[group.first + v + lane]) : memory.trash;
        unpack_lanes(dq + v, group.lanes(), a.shape.d, hn::Set(kTag, 1.0f), false, rows);
      }
    }
  }
};

bool plan_masks(const AttentionPlan& plan) {
  for (size_t s = 0; s < plan.segments.size(); ++s)
    if (plan.segments[s].mask != SegmentMask::full) return true;
  return false;
}

// Whether two queries add to one place of d_bias: broadcast rows, or diagonals as relative positions have
// them.
bool rows_overlap(const BiasView<float>& bias, const AttentionShape& shape) {
  const int64_t row = bias.row < 0 ? -bias.row : bias.row,
                column = bias.column < 0 ? -bias.column : bias.column;
  return row == 0 || (row * (shape.queries - 1) >= column && column * (shape.keys - 1) >= row);
}

// How the work is cut: heads that add to the same d_bias are in one share and run in turn; the tiles of a
// head are dealt out to `cuts`.
struct Cuts {
  bool share_batch = false, share_heads = false;
  int64_t shares = 0, cuts = 1;

  explicit Cuts(const AttentionBackward& g) {
    const AttentionShape& shape = g.forward.shape;
    const AttentionPlan& plan = *g.forward.plan;
    share_batch = g.d_bias.data && g.d_bias.batch == 0 && shape.batch > 1;
    share_heads = g.d_bias.data && g.d_bias.head == 0 && shape.heads > 1;
    shares = (share_batch ? 1 : shape.batch) * (share_heads ? 1 : shape.kv_heads);
    const bool one_group = plan.batch_groups == 1 && plan.head_groups == 1;
    const bool rows_meet =
        g.d_bias.data && (rows_overlap(g.d_bias, shape) || ((share_batch || share_heads) && !one_group));
    int64_t tiles = 0;
    for (size_t n = 0; n + 1 < plan.group_tiles.size(); ++n)
      tiles = larger(tiles, plan.group_tiles[n + 1] - plan.group_tiles[n]);
    // Every cut costs a pass over dK and dV: it must have enough rows to be worth it.
    constexpr int64_t kPieces = 16, kMostCuts = 8, kLeastRows = 512;
    const int64_t worth = shape.queries * (shape.heads / shape.kv_heads) / kLeastRows;
    if (!rows_meet && shares > 0)
      cuts = larger(1, smaller(smaller(kMostCuts, smaller(tiles, worth)), (kPieces + shares - 1) / shares));
  }
};

// Sums of the cuts of one key head, in order, into dk and dv, for one block of keys.
void write_key_gradients(const AttentionBackward& g, int64_t b, int64_t kv_head, const float* sums,
                         int64_t cuts, int64_t block) {
  const AttentionShape& shape = g.forward.shape;
  const int64_t size = KeySums::floats(shape);
  const int64_t from = block * kBlockKeys, to = smaller(shape.keys, from + kBlockKeys);
  const auto write = [&](const HeadView<float>& view, const float* x, int64_t ld, int64_t columns,
                         bool first) {
    if (!view.data) return;
    for (int64_t j = from; j < to; ++j) {
      float* row = view.at(b, kv_head, j);
      if (!x)
        for (int64_t c = 0; c < columns; ++c) row[c] = 0;
      else if (first)
        for (int64_t c = 0; c < columns; ++c) row[c] = x[j * ld + c];
      else
        for (int64_t c = 0; c < columns; ++c) row[c] += x[j * ld + c];
    }
  };
  bool first = true;
  for (int64_t cut = 0; cut < cuts; ++cut) {
    const KeySums keys(shape, const_cast<float*>(sums + cut * size));
    if (!keys.met[block]) continue;
    write(g.dk, keys.dk, keys.ld_k, shape.d, first);
    write(g.dv, keys.dv, keys.ld_v, shape.dv, first);
    first = false;
  }
  if (!first) return;
  write(g.dk, nullptr, 0, shape.d, true);
  write(g.dv, nullptr, 0, shape.dv, true);
}

// The tiles [begin, end) of a group that one of `cuts` takes: neighbours, so that it meets few keys where the
// pattern is local, and in shares of about the same work.
struct CutTiles {
  int64_t begin = 0, end = 0;

  CutTiles(const AttentionPlan& plan, int64_t group, int64_t cut, int64_t cuts) {
    const int64_t first = plan.group_tiles[group], last = plan.group_tiles[group + 1];
    const auto work = [&](int64_t t) {
      const PlanTile& tile = plan.tiles[t];
      int64_t keys = 1;
      for (int s = tile.segment_begin; s < tile.segment_end; ++s) keys += plan.segments[s].key_count;
      return keys * tile.row_count;
    };
    int64_t total = 1, before = 0;
    for (int64_t t = first; t < last; ++t) total += work(t);
    begin = end = first;
    for (int64_t t = first; t < last; ++t) {
      const int64_t owner = before * cuts / total;
      if (owner < cut) begin = t + 1;
      if (owner <= cut) end = t + 1;
      before += work(t);
    }
  }
};

// 1 for every (batch, head) whose numbers are not all finite: a weight of 0 must then take nothing from them.
struct OddHeads {
  int32_t* keys;     // [batch * kv_heads]
  int32_t* queries;  // [batch * heads]

  static int64_t floats(const AttentionShape& shape) { return shape.batch * (shape.kv_heads + shape.heads); }
  OddHeads(const AttentionBackward& g, bool masks, float* memory)
      : keys(reinterpret_cast<int32_t*>(memory)),
        queries(keys + g.forward.shape.batch * g.forward.shape.kv_heads) {
    const AttentionForward& a = g.forward;
    const AttentionShape& shape = a.shape;
    for (int64_t n = 0; n < floats(shape); ++n) keys[n] = 0;
    if (!masks) return;
    constexpr int64_t kRows = 1024;
    const auto look = [&](HeadView<const float> x, int64_t heads, int64_t rows, int64_t columns,
                          int32_t* odd) {
      const int64_t blocks = (rows + kRows - 1) / kRows;
      parallel_for(shape.batch * heads * blocks, 4, [&](int64_t begin, int64_t end) {
        for (int64_t n = begin; n < end; ++n) {
          const int64_t head = n / blocks, from = n % blocks * kRows;
          if (!all_finite(x.at(head / heads, head % heads, from), x.row, smaller(kRows, rows - from),
                          columns))
            __atomic_store_n(odd + head, 1, __ATOMIC_RELAXED);
        }
      });
    };
    look(a.k, shape.kv_heads, shape.keys, shape.d, keys);
    look(a.v, shape.kv_heads, shape.keys, shape.dv, keys);
    look(a.q, shape.heads, shape.queries, shape.d, queries);
    look(g.d_out, shape.heads, shape.queries, shape.dv, queries);
  }
};

struct BackwardJob {
  const AttentionBackward& g;
  const AttentionShape& shape;
  Cuts cuts;
  OddHeads odd;
  HeadSums* head_sums;  // [batch * heads][cuts]
  float* key_sums;      // [batch * kv_heads][cuts], or null where one cut writes at once

  // Tiles of one cut of key head (b, kv_head).
  void run(int64_t b, int64_t kv_head, int64_t cut) const {
    const AttentionForward& a = g.forward;
    const int64_t tile_floats = round_up(TileMemory::floats(shape), 16);
    const int64_t key_floats = KeySums::floats(shape);
    const bool direct = !key_sums && KeySums::in_place(g);
    float* scratch = scratch_floats(kAttentionTileSlot, tile_floats + (key_sums ? 0
                                                                       : direct ? KeySums::flag_floats(shape)
                                                                                : key_floats));
    float* memory = key_sums ? key_sums + ((b * shape.kv_heads + kv_head) * cuts.cuts + cut) * key_floats
                             : scratch + tile_floats;
    const KeySums keys = direct ? KeySums(g, b, kv_head, memory) : KeySums(shape, memory);
    keys.forget(shape);
    const int64_t sharing = shape.heads / shape.kv_heads;
    for (int64_t h = kv_head * sharing; h < (kv_head + 1) * sharing; ++h) {
      const bool finite = !odd.keys[b * shape.kv_heads + kv_head] && !odd.queries[b * shape.heads + h];
      HeadSums& sums = head_sums[(b * shape.heads + h) * cuts.cuts + cut];
      const CutTiles tiles(*a.plan, plan_group(*a.plan, b, h), cut, cuts.cuts);
      for (int64_t t = tiles.begin; t < tiles.end; ++t) {
        if (a.plan->tiles[t].row_count == 0) continue;
        TileJob job(g, b, h, a.plan->tiles[t], scratch);
        if (finite)
          job.run<false>(keys, sums);
        else
          job.run<true>(keys, sums);
      }
    }
    if (direct)
      keys.meet_all(shape);
    else if (!key_sums)
      for (int64_t block = 0; block < key_blocks(shape); ++block)
        write_key_gradients(g, b, kv_head, memory, 1, block);
  }

  void run_share(int64_t share, int64_t cut) const {
    const int64_t head_shares = cuts.share_heads ? 1 : shape.kv_heads;
    const int64_t b0 = cuts.share_batch ? 0 : share / head_shares,
                  h0 = cuts.share_heads ? 0 : share % head_shares;
    for (int64_t b = b0; b < (cuts.share_batch ? shape.batch : b0 + 1); ++b)
      for (int64_t h = h0; h < (cuts.share_heads ? shape.kv_heads : h0 + 1); ++h) run(b, h, cut);
  }
};

void backward(const AttentionBackward& g) {
  const AttentionShape& shape = g.forward.shape;
  const Cuts cuts(g);
  const int64_t key_heads = shape.batch * shape.kv_heads, heads = shape.batch * shape.heads;
  if (heads == 0) return;
  const int64_t head_sum_floats = heads * cuts.cuts * static_cast<int64_t>(sizeof(HeadSums) / sizeof(float));
  const int64_t key_floats = cuts.cuts > 1 ? key_heads * cuts.cuts * KeySums::floats(shape) : 0;
  const int64_t odd_floats = round_up(OddHeads::floats(shape), 16);
  float* head_memory =
      scratch_floats(kAttentionCallSlot, round_up(head_sum_floats, 16) + odd_floats + key_floats);
  HeadSums* head_sums = reinterpret_cast<HeadSums*>(head_memory);
  for (int64_t n = 0; n < heads * cuts.cuts; ++n) head_sums[n] = HeadSums{};
  float* odd_memory = head_memory + round_up(head_sum_floats, 16);
  const OddHeads odd(g, plan_masks(*g.forward.plan), odd_memory);
  float* key_memory = cuts.cuts > 1 ? odd_memory + odd_floats : nullptr;
  const BackwardJob job{g, shape, cuts, odd, head_sums, key_memory};

  const int64_t pieces = cuts.shares * cuts.cuts;
  const int64_t work = larger(1, shape.queries * shape.keys * (shape.d + shape.dv));
  const int64_t grain = larger(1, smaller(pieces / 16, (int64_t{1} << 20) / work));
  parallel_for(pieces, grain, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) job.run_share(n / cuts.cuts, n % cuts.cuts);
  });
  if (cuts.cuts > 1) {
    const int64_t blocks = key_blocks(shape);
    parallel_for(key_heads * blocks, 4, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        const int64_t head = n / blocks;
        write_key_gradients(g, head / shape.kv_heads, head % shape.kv_heads,
                            key_memory + head * cuts.cuts * KeySums::floats(shape), cuts.cuts, n % blocks);
      }
    });
  }
  for (int64_t h = 0; h < shape.heads; ++h) {
    HeadSums total;
    for (int64_t b = 0; b < shape.batch; ++b)
      for (int64_t cut = 0; cut < cuts.cuts; ++cut) {
        const HeadSums& part = head_sums[(b * shape.heads + h) * cuts.cuts + cut];
        total.alibi += part.alibi;
        total.sink += part.sink;
      }
    if (g.d_alibi) g.d_alibi[h] += static_cast<float>(total.alibi);
    if (g.d_sink) g.d_sink[h] += static_cast<float>(total.sink);
  }
}

}  // namespace

namespace FOVEA_LEVEL {
void attention_backward(const AttentionBackward& g) {
  backward(g);
}
}  // namespace FOVEA_LEVEL

}  // namespace fovea::kernels
