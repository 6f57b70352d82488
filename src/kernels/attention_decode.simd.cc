// Attention of few queries on many keys: bound by memory, so each key and value is read once, for all query
// heads that share it. Lanes are columns. Keys are cut into chunks of fixed length that run in parallel;
// their (maximum, sum, output) are merged in order.
//
// 32 query heads on 8 key heads, 4096 keys, d = 128, batch 8, one thread beside busy neighbours: 0.72 of the
// bandwidth that a plain read of the same memory reaches. Prefetching the next strip's keys, or longer
// strips, gave nothing.
#include "base/parallel.h"
#include "kernels/attention_levels.h"
#include "kernels/attention_scratch.h"
#include "kernels/attention_tile-inl.h"
#include "kernels/vector_tail-inl.h"

namespace fovea::kernels {
namespace {

constexpr int64_t kMostQueries = 16;  // of one tile, over the heads that share keys; beyond, tiles are faster
constexpr int kChunkKeys = 512;
constexpr int kStripKeys = 32;

// One query of a tile: head h, tile row r.
struct Query {
  int64_t h = 0, i = 0;
  int row = 0;
  float position = 0;
  DropoutRow dropout;
};

// The queries that meet the same keys: rows of one tile, of all heads that share the key head.
struct QuerySet {
  const AttentionForward& a;
  int64_t b, kv_head;
  const PlanTile& tile;
  int count = 0;
  Query query[kMostQueries];

  QuerySet(const AttentionForward& call, int64_t batch, int64_t first_head, int64_t heads,
           const PlanTile& plan_tile)
      : a(call), b(batch), kv_head(first_head / (call.shape.heads / call.shape.kv_heads)), tile(plan_tile) {
    for (int64_t h = first_head; h < first_head + heads; ++h)
      for (int row = 0; row < tile.row_count; ++row) {
        Query& q = query[count++];
        q.h = h;
        q.row = row;
        q.i = tile.row_first + int64_t{row} * tile.row_step;
        q.position = static_cast<float>(q.i + a.shape.keys - a.shape.queries);
        if (a.terms.dropout > 0) q.dropout = dropout_row(a.terms.seed, b, h, q.i);
      }
  }
};

// Softmax state of a query set over one chunk of keys.
struct Partial {
  float* max;  // [kMostQueries] in units of log 2
  float* sum;  // [kMostQueries]
  float* out;  // [kMostQueries][padded dv]
  static int64_t floats(int64_t dv) { return kMostQueries * (2 + round_up(dv, kLanes)); }
  explicit Partial(float* memory) : max(memory), sum(memory + kMostQueries), out(memory + 2 * kMostQueries) {}
};

FOVEA_INLINE inline void prefetch_row(const float* row, int64_t columns) {
  for (int64_t c = 0; c < columns; c += 16) __builtin_prefetch(row + c);
}

// s[g * kStripKeys + t] = q[g] . rows[t], for NQ queries and R keys.
template <int R, int NQ>
FOVEA_INLINE inline void dot_block(const float* q, int64_t ldq, const float* const* rows, int64_t d,
                                   float* s) {
  Vec acc[R][NQ];
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < NQ; ++n) acc[r][n] = hn::Zero(kTag);
  int64_t c = 0;
  for (; c + kLanes <= d; c += kLanes) {
    Vec x[NQ];
    for (int n = 0; n < NQ; ++n) x[n] = hn::LoadU(kTag, q + n * ldq + c);
    for (int r = 0; r < R; ++r) {
      const Vec k = hn::LoadU(kTag, rows[r] + c);
      for (int n = 0; n < NQ; ++n) acc[r][n] = hn::MulAdd(k, x[n], acc[r][n]);
    }
  }
  if (c < d) {
    for (int r = 0; r < R; ++r) {
      const Vec k = load_first(kTag, rows[r] + c, d - c);
      for (int n = 0; n < NQ; ++n) acc[r][n] = hn::MulAdd(k, hn::LoadU(kTag, q + n * ldq + c), acc[r][n]);
    }
  }
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < NQ; ++n) s[n * kStripKeys + r] = hn::GetLane(hn::SumOfLanes(kTag, acc[r][n]));
}

// out[g][c] += sum over t of p[g * kStripKeys + t] * rows[t][c], for NQ queries and NV vectors of columns.
template <bool kCareful, int NQ, int NV>
FOVEA_INLINE inline void value_block(const float* p, const float* const* rows, int count, int64_t column,
                                     int64_t lanes, float* out, int64_t ldo) {
  Vec acc[NQ][NV];
  for (int n = 0; n < NQ; ++n)
    for (int v = 0; v < NV; ++v) acc[n][v] = hn::LoadU(kTag, out + n * ldo + column + v * kLanes);
  for (int t = 0; t < count; ++t) {
    Vec x[NV];
    for (int v = 0; v < NV; ++v)
      x[v] = lanes == kLanes ? hn::LoadU(kTag, rows[t] + column + v * kLanes)
                             : load_first(kTag, rows[t] + column + v * kLanes, lanes);
    for (int n = 0; n < NQ; ++n) {
      if (kCareful && p[n * kStripKeys + t] == 0) continue;
      const Vec weight = hn::Set(kTag, p[n * kStripKeys + t]);
      for (int v = 0; v < NV; ++v) acc[n][v] = hn::MulAdd(weight, x[v], acc[n][v]);
    }
  }
  for (int n = 0; n < NQ; ++n)
    for (int v = 0; v < NV; ++v) hn::StoreU(acc[n][v], kTag, out + n * ldo + column + v * kLanes);
}

struct DecodeChunk {
  const QuerySet& set;
  const AttentionShape& shape;
  Partial partial;
  int64_t ldq, ldo;
  float* q;  // [queries][padded d], scaled
  float* s;  // [queries][kStripKeys]

  DecodeChunk(const QuerySet& queries, float* result, float* scratch)
      : set(queries),
        shape(queries.a.shape),
        partial(result),
        ldq(round_up(shape.d, kLanes)),
        ldo(round_up(shape.dv, kLanes)),
        q(scratch),
        s(scratch + kMostQueries * ldq) {
    const ScoreTerms& terms = set.a.terms;
    const float scale = terms.soft_cap > 0 ? terms.scale / terms.soft_cap : terms.scale * kLog2e;
    for (int g = 0; g < set.count; ++g) {
      const float* x = set.a.q.at(set.b, set.query[g].h, set.query[g].i);
      for (int64_t c = 0; c < ldq; ++c) q[g * ldq + c] = c < shape.d ? x[c] * scale : 0;
    }
  }
  static int64_t scratch_floats(const AttentionShape& shape) {
    return kMostQueries * (round_up(shape.d, kLanes) + kStripKeys);
  }

  void scores(const Strip& strip, int ahead) {
    const auto block = [&]<int R>(int t) FOVEA_INLINE {
      if (t < ahead)
        for (int r = 0; r < R; ++r) prefetch_row(strip.v[t + r], shape.dv);
      int g = 0;
      const int even = set.count % 3 == 1 && set.count > 1 ? set.count - 4 : set.count;  // 4 is 2 + 2
      for (; g + 3 <= even; g += 3)
        dot_block<R, 3>(q + g * ldq, ldq, strip.k + t, shape.d, s + g * kStripKeys + t);
      for (; g + 2 <= set.count; g += 2)
        dot_block<R, 2>(q + g * ldq, ldq, strip.k + t, shape.d, s + g * kStripKeys + t);
      if (g < set.count) dot_block<R, 1>(q + g * ldq, ldq, strip.k + t, shape.d, s + g * kStripKeys + t);
    };
    int t = 0;
    for (; t + 4 <= strip.count; t += 4) block.template operator()<4>(t);
    for (; t < strip.count; ++t) block.template operator()<1>(t);
  }

  void terms(const Strip& strip, const PlanSegment& segment) {
    const ScoreTerms& terms = set.a.terms;
    const AttentionPlan& plan = *set.a.plan;
    const int words = (set.tile.row_count + 31) / 32;
    for (int g = 0; g < set.count; ++g) {
      const Query& query = set.query[g];
      float* x = s + g * kStripKeys;
      if (terms.soft_cap > 0)
        for (int t = 0; t < strip.count; ++t) x[t] = terms.soft_cap * kLog2e * __builtin_tanhf(x[t]);
      if (terms.alibi)
        for (int t = 0; t < strip.count; ++t)
          x[t] -= terms.alibi[query.h] * kLog2e *
                  __builtin_fabsf(query.position - static_cast<float>(strip.keys[t]));
      if (terms.bias.data) {
        const float* bias =
            terms.bias.data + set.b * terms.bias.batch + query.h * terms.bias.head + query.i * terms.bias.row;
        for (int t = 0; t < strip.count; ++t) x[t] += bias[strip.keys[t] * terms.bias.column] * kLog2e;
      }
      if (segment.mask == SegmentMask::interval) {
        const int32_t* range = plan.intervals.data() + segment.mask_offset + 2 * query.row;
        for (int t = 0; t < strip.count; ++t)
          if (strip.first + t < range[0] || strip.first + t >= range[1]) x[t] = -__builtin_inff();
      } else if (segment.mask == SegmentMask::bits) {
        const uint32_t* bits = plan.bits.data() + segment.mask_offset + query.row / 32;
        for (int t = 0; t < strip.count; ++t)
          if (!(bits[int64_t{strip.first + t} * words] >> (query.row % 32) & 1)) x[t] = -__builtin_inff();
      }
    }
  }

  // Scores to weights; what was gathered so far is rescaled where the maximum grew.
  void softmax(const Strip& strip) {
    const int padded = static_cast<int>(round_up(strip.count, kLanes));
    for (int g = 0; g < set.count; ++g) {
      float* x = s + g * kStripKeys;
      for (int t = strip.count; t < padded; ++t) x[t] = -__builtin_inff();
      Vec top = hn::Set(kTag, partial.max[g]);
      for (int t = 0; t < padded; t += kLanes) top = hn::Max(top, hn::LoadU(kTag, x + t));
      top = hn::MaxOfLanes(kTag, top);
      const float max = hn::GetLane(top);
      if (max != partial.max[g]) {
        const float factor = hn::GetLane(exp2_nonpositive(hn::Sub(hn::Set(kTag, partial.max[g]), top)));
        partial.max[g] = max;
        partial.sum[g] *= factor;
        float* out = partial.out + g * ldo;
        for (int64_t c = 0; c < ldo; ++c) out[c] *= factor;
      }
      Vec sum = hn::Zero(kTag);
      for (int t = 0; t < padded; t += kLanes) {
        const Vec p = exp2_nonpositive(hn::Sub(hn::LoadU(kTag, x + t), top));
        sum = hn::Add(sum, p);
        hn::StoreU(p, kTag, x + t);
      }
      partial.sum[g] += hn::GetLane(hn::SumOfLanes(kTag, sum));
      if (set.a.terms.dropout > 0) {
        const float p = set.a.terms.dropout, kept = 1 / (1 - p);
        const uint32_t threshold = dropout_threshold(p);
        for (int t = 0; t < strip.count; ++t)
          x[t] *= dropout_draw(set.query[g].dropout, strip.keys[t]) < threshold ? 0 : kept;
      }
    }
  }

  template <bool kCareful, int NQ>
  void value_columns(const Strip& strip, int g) {
    constexpr int NV = NQ == 1 ? 8 : 4;
    const float* p = s + g * kStripKeys;
    float* out = partial.out + g * ldo;
    int64_t c = 0;
    for (; c + NV * kLanes <= shape.dv; c += NV * kLanes)
      value_block<kCareful, NQ, NV>(p, strip.v, strip.count, c, kLanes, out, ldo);
    for (; c + kLanes <= shape.dv; c += kLanes)
      value_block<kCareful, NQ, 1>(p, strip.v, strip.count, c, kLanes, out, ldo);
    if (c < shape.dv) value_block<kCareful, NQ, 1>(p, strip.v, strip.count, c, shape.dv - c, out, ldo);
  }

  template <bool kCareful>
  void values(const Strip& strip) {
    int g = 0;
    const int even = set.count % 3 == 1 && set.count > 1 ? set.count - 4 : set.count;
    for (; g + 3 <= even; g += 3) value_columns<kCareful, 3>(strip, g);
    for (; g + 2 <= set.count; g += 2) value_columns<kCareful, 2>(strip, g);
    if (g < set.count) value_columns<kCareful, 1>(strip, g);
  }

  // Keys [begin, end) of the tile's segments, counted through all of them.
  template <bool kCareful>
  void run(int64_t begin, int64_t end) {
    const AttentionForward& a = set.a;
    const AttentionPlan& plan = *a.plan;
    const HeadView<const float> k{a.k.at(set.b, set.kv_head, 0), 0, 0, a.k.row};
    const HeadView<const float> v{a.v.at(set.b, set.kv_head, 0), 0, 0, a.v.row};
    for (int g = 0; g < set.count; ++g) {
      partial.max[g] = kLowest;
      partial.sum[g] = 0;
      for (int64_t c = 0; c < ldo; ++c) partial.out[g * ldo + c] = 0;
    }
    Strip strip;
    int64_t at = 0;
    for (int n = set.tile.segment_begin; n < set.tile.segment_end && at < end; ++n) {
      const PlanSegment& segment = plan.segments[n];
      const int64_t from = larger(0, begin - at), to = smaller(segment.key_count, end - at);
      for (int64_t first = from; first < to; first += kStripKeys) {
        strip.fill(plan, segment, static_cast<int>(first), static_cast<int>(smaller(first + kStripKeys, to)),
                   k, v);
        scores(strip, strip.count);
        terms(strip, segment);
        softmax(strip);
        values<kCareful>(strip);
      }
      at += segment.key_count;
    }
  }
};

// The chunks of one query set become its rows of output.
void merge(const QuerySet& set, const float* partials, int64_t chunks) {
  const AttentionForward& a = set.a;
  const int64_t dv = a.shape.dv, ldo = round_up(dv, kLanes), size = Partial::floats(dv);
  for (int g = 0; g < set.count; ++g) {
    const Query& query = set.query[g];
    const bool sink = a.terms.sink && a.terms.sink[query.h] > kLowest;
    float max = sink ? a.terms.sink[query.h] * kLog2e : kLowest;
    for (int64_t n = 0; n < chunks; ++n) {
      const float mine = Partial(const_cast<float*>(partials + n * size)).max[g];
      if (!(mine <= max)) max = mine;
    }
    float sum = sink ? __builtin_exp2f(a.terms.sink[query.h] * kLog2e - max) : 0;
    float* out = a.out.at(set.b, query.h, query.i);
    for (int64_t c = 0; c < dv; ++c) out[c] = 0;
    for (int64_t n = 0; n < chunks; ++n) {
      const Partial part(const_cast<float*>(partials + n * size));
      const float factor = __builtin_exp2f(part.max[g] - max);
      sum += part.sum[g] * factor;
      for (int64_t c = 0; c < dv; ++c) out[c] += part.out[g * ldo + c] * factor;
    }
    const float inverse = sum == 0 ? 0 : 1 / sum;
    for (int64_t c = 0; c < dv; ++c) out[c] *= inverse;
    if (a.lse)
      a.lse[(set.b * a.shape.heads + query.h) * a.shape.queries + query.i] =
          sum == 0 ? -__builtin_inff() : max * kLn2 + __builtin_logf(sum);
  }
}

// What one (batch, run of heads, tile) number stands for.
struct DecodePlan {
  const AttentionForward& a;
  int64_t heads_together;         // query heads that one set takes in
  int64_t tiles = 0, chunks = 0;  // the most of any group

  explicit DecodePlan(const AttentionForward& call) : a(call) {
    const AttentionPlan& plan = *a.plan;
    heads_together = plan.head_groups > 1 ? 1 : a.shape.heads / a.shape.kv_heads;
    for (size_t g = 0; g + 1 < plan.group_tiles.size(); ++g) {
      tiles = larger(tiles, plan.group_tiles[g + 1] - plan.group_tiles[g]);
      for (int t = plan.group_tiles[g]; t < plan.group_tiles[g + 1]; ++t)
        chunks = larger(chunks, chunks_of(plan.tiles[t]));
    }
    chunks = larger(1, chunks);
  }
  int64_t keys_of(const PlanTile& tile) const {
    int64_t keys = 0;
    for (int s = tile.segment_begin; s < tile.segment_end; ++s) keys += a.plan->segments[s].key_count;
    return keys;
  }
  int64_t chunks_of(const PlanTile& tile) const { return (keys_of(tile) + kChunkKeys - 1) / kChunkKeys; }
  int64_t sets() const { return a.shape.batch * (a.shape.heads / heads_together) * tiles; }
  // The tile of set n, or null where its group has fewer.
  const PlanTile* find(int64_t n, int64_t& b, int64_t& head) const {
    const int64_t runs = a.shape.heads / heads_together;
    b = n / tiles / runs;
    head = n / tiles % runs * heads_together;
    const int64_t group = plan_group(*a.plan, b, head), t = a.plan->group_tiles[group] + n % tiles;
    if (t >= a.plan->group_tiles[group + 1] || a.plan->tiles[t].row_count == 0) return nullptr;
    return &a.plan->tiles[t];
  }
};

bool few_queries(const AttentionForward& a) {
  if (a.shape.queries == 0 || a.shape.queries > kMostQueries || a.shape.keys < 4 * kLanes) return false;
  const int64_t heads = a.plan->head_groups > 1 ? 1 : a.shape.heads / a.shape.kv_heads;
  return heads * a.shape.queries <= kMostQueries;
}

void decode(const AttentionForward& a) {
  const DecodePlan plan(a);
  const int64_t size = Partial::floats(a.shape.dv), sets = plan.sets();
  float* partials = attention_workspace(sets * plan.chunks * size);
  parallel_chunks(sets * plan.chunks, [&](int64_t n) {
    int64_t b, head;
    const PlanTile* tile = plan.find(n / plan.chunks, b, head);
    const int64_t begin = n % plan.chunks * kChunkKeys;
    if (!tile || begin >= plan.keys_of(*tile)) return;
    const QuerySet set(a, b, head, plan.heads_together, *tile);
    DecodeChunk chunk(set, partials + n * size, attention_scratch(DecodeChunk::scratch_floats(a.shape)));
    chunk.run<false>(begin, begin + kChunkKeys);
    if (!all_finite(chunk.partial.out, 0, 1, set.count * chunk.ldo))
      chunk.run<true>(begin, begin + kChunkKeys);
  });
  parallel_for(sets, 16, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      int64_t b, head;
      const PlanTile* tile = plan.find(n, b, head);
      if (tile)
        merge(QuerySet(a, b, head, plan.heads_together, *tile), partials + n * plan.chunks * size,
              plan.chunks_of(*tile));
    }
  });
}

}  // namespace

namespace FOVEA_LEVEL {
bool attention_few_queries(const AttentionForward& a) {
  return few_queries(a);
}
void attention_decode(const AttentionForward& a) {
  decode(a);
}
}  // namespace FOVEA_LEVEL

}  // namespace fovea::kernels
