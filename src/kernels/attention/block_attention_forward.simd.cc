// Forward attention: for each tile of queries, strips of keys flow through scores, running softmax and
// weighted sum; nothing larger than a strip is ever stored.
//
// Share of the FMA peak of one Zen 3 core (AVX2, 103 GFLOP/s), useful flops, by the thread's CPU time beside
// busy neighbours. One head, N = 512: full 0.84 (d = 64) and 0.89 (128), causal 0.78 and 0.82. Eight heads, N
// = 1024: full 0.81 and 0.84, causal 0.78 and 0.80. N = 32 and 64, 512 heads of d = 64: 0.61 and 0.73.
// window(256, 256) 0.78. What is missing goes to maximum, exponential, sums and copies; it was not taken
// apart further.
#include "base/parallel.h"
#include "kernels/attention/block_attention_levels.h"
#include "kernels/attention/block_attention_tile-inl.h"
#include "kernels/scratch.h"

namespace fovea::kernels {
namespace {

// The running softmax of one tile, and the scratch it works in.
struct TileState {
  float* queries;  // [d][lanes] per group, scaled
  float* out;      // [dv][lanes] per group, not yet divided by sum
  float* max;      // [lanes]
  float* sum;      // [lanes]
  float* begin;    // [lanes]: interval masks
  float* end;
  float* scores;   // [strip][lanes of a group]
  float* factors;  // the same for dropout
  float* trash;    // [dv]: rows of padding lanes are written here
  bool started[kMaxGroups];
  bool written[kMaxGroups];  // the group's results are in the output already
};

constexpr int64_t kGroupLanes = kTileVectors * kLanes;

// Whether rows that see few keys are written at once (write_at_once). It spares the way back from lanes to
// rows but reads values once for every register tile of queries: with AVX-512 it is ahead by 27, 18, 13 and 8
// % at 20, 32, 64 and 128 keys, with AVX2 behind by 9 % at 64.
constexpr bool kAtOnce = kLanes >= 16;

int64_t state_floats(const AttentionShape& shape) {
  constexpr int64_t kTileLanes = kMaxTileRows + kLanes;
  return kTileLanes * (shape.d + shape.dv + 4) + 2 * kMaxStrip * kGroupLanes + shape.dv;
}

TileState place_state(const AttentionShape& shape, float* memory) {
  constexpr int64_t kTileLanes = kMaxTileRows + kLanes;
  TileState state;
  const auto take = [&](int64_t count) { return memory += count, memory - count; };
  state.scores = take(kMaxStrip * kGroupLanes);
  state.factors = take(kMaxStrip * kGroupLanes);
  state.queries = take(kTileLanes * shape.d);
  state.out = take(kTileLanes * shape.dv);
  state.max = take(kTileLanes);
  state.sum = take(kTileLanes);
  state.begin = take(kTileLanes);
  state.end = take(kTileLanes);
  state.trash = take(shape.dv);
  return state;
}

struct TileJob {
  const AttentionForward& a;
  int64_t b, h, kv_head;
  const PlanTile& tile;
  TileLanes lanes;
  HeadTerms terms;
  LaneQueries queries;
  TileState state;
  LinesAhead ahead;
  bool one_strip;      // all of the tile's keys at once: results need not wait for more
  bool finite = true;  // of what was written at once

  TileJob(const AttentionForward& call, int64_t batch, int64_t head, const PlanTile& plan_tile, float* memory)
      : a(call),
        b(batch),
        h(head),
        kv_head(head / (call.shape.heads / call.shape.kv_heads)),
        tile(plan_tile),
        lanes(plan_tile.row_count, kTileVectors),
        terms(call.terms, batch, head),
        state(place_state(call.shape, memory)),
        one_strip(kAtOnce && plan_tile.segment_end - plan_tile.segment_begin == 1 &&
                  call.plan->segments[plan_tile.segment_begin].key_count <=
                      strip_keys(call.shape.d, call.shape.dv) &&
                  call.shape.dv % kLanes == 0) {
    queries.fill(tile, lanes, a.shape);
    if (terms.dropout > 0) queries.draw_keys(lanes.lanes, a.terms.seed, b, h);
  }

  void pack_queries() {
    for (int g = 0; g < lanes.groups; ++g) {
      const LaneGroup& group = lanes.group[g];
      float* to = state.queries + group.first * a.shape.d;
      for (int64_t v = 0; v < group.lanes(); v += kLanes) {
        const float* rows[kLanes];
        for (int lane = 0; lane < kLanes; ++lane)
          rows[lane] = a.q.at(b, h, queries.query[group.first + v + lane]);
        pack_lanes(rows, a.shape.d, terms.q_scale, to + v, group.lanes());
      }
    }
  }

  // The sink is a first key without a value.
  void reset() {
    const bool sink = a.terms.sink && a.terms.sink[h] > kLowest;
    for (int64_t lane = 0; lane < lanes.lanes; ++lane) {
      state.max[lane] = sink ? a.terms.sink[h] * kLog2e : kLowest;
      state.sum[lane] = sink ? 1 : 0;
    }
    for (int g = 0; g < lanes.groups; ++g) state.started[g] = state.written[g] = false;
    finite = true;
  }

  // Keys [from, to) of the strip (strip-local) meet group g.
  template <bool kCareful>
  void visit(int g, const Strip& strip, int from, int to, const GroupView& view, bool masked) {
    const LaneGroup& group = lanes.group[g];
    const int64_t ld = group.lanes();
    const float* packed = state.queries + group.first * a.shape.d;
    float* max = state.max + group.first;
    float* sum = state.sum + group.first;
    HWY_ALIGN float raised[kGroupLanes];
    HWY_ALIGN float factor[kGroupLanes];
    for (int64_t lane = 0; lane < ld; ++lane) raised[lane] = max[lane];
    const ScoreBlock block{state.scores, ld, from, to};
    float* first = block.s + from * ld;
    if (!masked && terms.plain()) {
      scores_product<true>(strip.k + from, to - from, a.shape.d, packed, ld, first, raised,
                           [&] { ahead.ask(); });
    } else {
      if (terms.bias_along(strip))
        ask_for_bias(ahead, LinesAhead::kBias, block, strip,
                     terms.bias + queries.query[group.first] * terms.bias_row, terms.bias_row * tile.row_step,
                     group.rows);
      scores_product<false>(strip.k + from, to - from, a.shape.d, packed, ld, first, nullptr,
                            [&] { ahead.ask(); });
      terms_pass(block, strip, terms, queries, group.first, masked ? &view : nullptr, nullptr, raised);
    }
    const bool grew = raise_max(raised, ld, max, sum, factor);
    weights_pass(block, max, sum);
    if (terms.dropout > 0) {
      dropout_pass(block, strip, queries, group.first, terms.dropout, state.factors);
      for_each_vector(block, [&](int t, int64_t v, float* s) FOVEA_INLINE {
        hn::StoreU(hn::Mul(hn::LoadU(kTag, s), hn::LoadU(kTag, state.factors + t * ld + v)), kTag, s);
      });
    }
    if (one_strip) {
      write_at_once<kCareful>(group, first, strip.v + from, to - from);
      state.written[g] = true;
      return;
    }
    const Update update = !state.started[g] ? Update::store : grew ? Update::rescale : Update::add;
    columns_product<kCareful>(strip.v + from, to - from, a.shape.dv, first, ld, update, factor,
                              state.out + group.first * a.shape.dv, [&] { ahead.ask(); });
    state.started[g] = true;
  }

  void ask_for(const KeyRun& next) {
    if (!far_keys(a.shape)) return;
    ahead.set(LinesAhead::kKeys, a.k.at(b, kv_head, next.first), a.k.row * next.step, next.count, a.shape.d,
              8);
    ahead.set(LinesAhead::kValues, a.v.at(b, kv_head, next.first), a.v.row * next.step, next.count,
              a.shape.dv, 8);
  }

  template <bool kCareful>
  void run() {
    reset();
    visit_keys(
        a, b, kv_head, tile, lanes, state.begin, state.end, [&](const KeyRun& next) { ask_for(next); },
        [&](int g, const Strip& strip, int from, int to, const GroupView& view, bool masked) {
          visit<kCareful>(g, strip, from, to, view, masked);
        });
  }

  // inverse[lane] = 1 / sum, 0 where nothing was seen; writes the group's lse.
  void close_sums(const LaneGroup& group, float* inverse) {
    HWY_ALIGN float lse[kLanes];
    for (int64_t v = 0; v < group.lanes(); v += kLanes) {
      const Vec sum = hn::LoadU(kTag, state.sum + group.first + v);
      const auto empty = hn::Eq(sum, hn::Zero(kTag));
      hn::StoreU(hn::IfThenZeroElse(empty, hn::Div(hn::Set(kTag, 1.0f), sum)), kTag, inverse + v);
      if (!a.lse) continue;
      const Vec max = hn::LoadU(kTag, state.max + group.first + v);
      const Vec value = hn::MulAdd(max, hn::Set(kTag, kLn2), vmath::log(kTag, sum));
      hn::Store(hn::IfThenElse(empty, hn::Neg(hn::Inf(kTag)), value), kTag, lse);
      float* to = a.lse + (b * a.shape.heads + h) * a.shape.queries;
      for (int lane = 0; lane < kLanes && v + lane < group.rows; ++lane)
        to[queries.query[group.first + v + lane]] = lse[lane];
    }
  }

  // The rows of a group whose keys have all been seen, from its weights: sums over keys with features in the
  // lanes leave the registers as rows.
  template <bool kCareful>
  void write_at_once(const LaneGroup& group, const float* weights, const float* const* values, int count) {
    HWY_ALIGN float inverse[kGroupLanes];
    close_sums(group, inverse);
    float* rows[kGroupLanes];
    for (int lane = 0; lane < group.rows; ++lane)
      rows[lane] = a.out.at(b, h, queries.query[group.first + lane]);
    finite &= weigh_rows<kCareful>(weights, group.lanes(), group.rows, values, count, a.shape.dv, inverse,
                                   rows, [&] { ahead.ask(); });
  }

  // Divides by the sums and writes the rows that are not written yet; false when a result is not finite.
  bool finish(bool check) {
    const int64_t dv = a.shape.dv;
    HWY_ALIGN float inverse[kGroupLanes];
    if (check) {
      if (!finite) return false;
      for (int g = 0; g < lanes.groups; ++g) {
        const LaneGroup& group = lanes.group[g];
        if (state.started[g] && !all_finite(state.out + group.first * dv, 0, 1, dv * group.lanes()))
          return false;
      }
    }
    for (int g = 0; g < lanes.groups; ++g) {
      if (state.written[g]) continue;
      const LaneGroup& group = lanes.group[g];
      const int64_t ld = group.lanes();
      float* out = state.out + group.first * dv;
      if (!state.started[g])
        for (int64_t n = 0; n < dv * ld; ++n) out[n] = 0;
      close_sums(group, inverse);
      for (int64_t v = 0; v < ld; v += kLanes) {
        float* rows[kLanes];
        for (int lane = 0; lane < kLanes; ++lane)
          rows[lane] =
              v + lane < group.rows ? a.out.at(b, h, queries.query[group.first + v + lane]) : state.trash;
        unpack_lanes(out + v, ld, dv, hn::LoadU(kTag, inverse + v), false, rows);
      }
    }
    return true;
  }
};

// One tile of the call's work.
struct TileTask {
  int64_t b = 0, h = 0;
  const PlanTile* tile = nullptr;  // null: nothing to do
};

// A weight of 0 must take nothing from its value, even from a NaN. The fast product cannot promise that, so a
// result that is not finite is computed again with care: the plain case pays one look at the output.
void forward_tile(const AttentionForward& a, const TileTask& task, const TileTask& next) {
  if (!task.tile || task.tile->row_count == 0) return;
  const PlanTile& tile = *task.tile;
  TileJob job(a, task.b, task.h, tile, scratch_floats(kAttentionTileSlot, state_floats(a.shape)));
  job.ahead.set(LinesAhead::kOut, a.out.at(task.b, task.h, tile.row_first), a.out.row * tile.row_step,
                tile.row_count, a.shape.dv);
  if (next.tile) {
    const int64_t sharing = a.shape.heads / a.shape.kv_heads, kv_head = next.h / sharing;
    job.ahead.set(LinesAhead::kNextQueries, a.q.at(next.b, next.h, next.tile->row_first),
                  a.q.row * next.tile->row_step, next.tile->row_count, a.shape.d);
    if (next.b != task.b || kv_head != task.h / sharing) {
      const int64_t keys = smaller(a.shape.keys, kMaxStrip);
      job.ahead.set(LinesAhead::kKeys, a.k.at(next.b, kv_head, 0), a.k.row, keys, a.shape.d);
      job.ahead.set(LinesAhead::kValues, a.v.at(next.b, kv_head, 0), a.v.row, keys, a.shape.dv);
    }
  }
  job.pack_queries();
  job.run<false>();
  if (job.finish(true)) return;
  job.run<true>();
  job.finish(false);
}

void forward(const AttentionForward& a) {
  const AttentionPlan& plan = *a.plan;
  const int64_t heads = a.shape.batch * a.shape.heads;
  int64_t most =
      0;  // tiles of a group; groups differ in length, so some of the numbers below stand for nothing
  for (size_t g = 0; g + 1 < plan.group_tiles.size(); ++g)
    most = larger(most, plan.group_tiles[g + 1] - plan.group_tiles[g]);
  const int64_t rows = larger(1, a.shape.queries / larger(1, most));
  const int64_t work = rows * larger(1, a.shape.keys) * (a.shape.d + a.shape.dv);
  const int64_t grain = larger(1, smaller(heads * most / 16, (int64_t{1} << 21) / larger(1, work)));
  const auto find = [&](int64_t n) {
    const int64_t b = n / most / a.shape.heads, h = n / most % a.shape.heads;
    const int64_t group = plan_group(plan, b, h), t = plan.group_tiles[group] + n % most;
    return TileTask{b, h, t < plan.group_tiles[group + 1] ? &plan.tiles[t] : nullptr};
  };
  parallel_for(heads * most, grain, [&](int64_t begin, int64_t end) {
    TileTask task = find(begin);
    for (int64_t n = begin; n < end; ++n) {
      const TileTask next = n + 1 < heads * most ? find(n + 1) : TileTask{};
      forward_tile(a, task, next);
      task = next;
    }
  });
}

}  // namespace

namespace FOVEA_LEVEL {
void attention_forward(const AttentionForward& a) {
  if (attention_few_queries(a))
    attention_decode(a);
  else
    forward(a);
}
}  // namespace FOVEA_LEVEL

}  // namespace fovea::kernels
