// Attention of few queries on many keys: bound by memory, so each key and value is read once, for all query
// heads that share it. Lanes are columns. Keys are cut into chunks of fixed length that run in parallel;
// their (maximum, sum, output) are merged in order.
//
// One stream of lines brings a Zen 3 core 13 GB/s, four bring 30: so a chunk is read in three places at once,
// three keys by four queries fill the registers, and while keys are multiplied values are requested, and the
// other way round. Strips are short, so that what was requested is still in the first cache when its turn
// comes (24 keys of d = 128: a fifth slower; asking a strip earlier: a third). 32 query heads on 8 key heads,
// 4096 keys, d = 128, one thread on an idle machine: 25.8 GB/s, the same 32 MiB requested again and again.
#include "base/parallel.h"
#include "kernels/attention/block_attention_levels.h"
#include "kernels/attention/block_attention_tile-inl.h"
#include "kernels/scratch.h"
#include "kernels/vector/vector_sums-inl.h"
#include "kernels/vector/vector_tail-inl.h"

namespace fovea::kernels {
namespace {

constexpr int64_t kMostQueries = 16;  // of one tile, over the heads that share keys; beyond, tiles are faster
// Keys there are at least, more than queries: here the order of sums depends on where a run of keys begins,
// and a sentence's self-attention must not depend on the sentences packed beside it.
constexpr int64_t kLeastKeys = larger(4 * kLanes, 2 * kMostQueries);
constexpr int kChunkKeys = 516;  // places a third apart should not share cache sets: no power of 2
constexpr int kStripKeys = 24;   // at most
constexpr int kStreams = 3;      // a divisor of a strip's keys
constexpr int kQuad = 4;         // queries side by side
constexpr int kQuadFloats = kQuad * (kStripKeys + kLanes / kQuad);  // of a strip's scores, whole vectors

// Keys of a strip: few enough for three strips of keys or values beside each other in the first cache.
int strip_keys_of(const AttentionShape& shape) {
  return shape.d + shape.dv > 160 ? kStripKeys / 2 : kStripKeys;
}

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

constexpr int64_t kLineFloats = 16;  // of a cache line

// Asks for rows, a few at a time and in the order in which they are in memory: then the machine's own
// prefetching joins in, and its lines do not wait for the few that a core itself can have on their way.
struct Ahead {
  const float* const* rows;
  int count;
  int64_t columns;
  int at = 0;

  FOVEA_INLINE void ask(int more) {
    const int end = static_cast<int>(smaller(count, at + more));
    for (; at < end; ++at) {
      const float* row = rows[at];
      int64_t c = 0;
      for (; c + 4 * kLineFloats <= columns; c += 4 * kLineFloats) {
        __builtin_prefetch(row + c);
        __builtin_prefetch(row + c + kLineFloats);
        __builtin_prefetch(row + c + 2 * kLineFloats);
        __builtin_prefetch(row + c + 3 * kLineFloats);
      }
      for (; c < columns; c += kLineFloats) __builtin_prefetch(row + c);
    }
  }
};

// Keeps a loaded vector in its register: the compiler would read it again for each use, and loads are scarcer
// here than registers.
FOVEA_INLINE inline void keep_loaded(Vec& x) {
#if HWY_ARCH_X86
  __asm__("" : "+x"(x.raw));
#elif HWY_ARCH_ARM_A64
  __asm__("" : "+w"(x.raw));
#endif
}

// s[t * kQuad + g] = q[g] . rows[t], for NQ queries and R keys. Between the products the first columns of R
// rows `ahead` are requested, a line at a time: many at once would hinder each other.
template <int R, int NQ>
FOVEA_INLINE inline void dot_block(const float* q, int64_t ldq, const float* const* rows, int64_t d,
                                   const float* const* ahead, int64_t columns_ahead, float* s) {
  Vec acc[R][NQ];
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < NQ; ++n) acc[r][n] = hn::Zero(kTag);
  int64_t c = 0;
  for (; c + kLanes <= d; c += kLanes) {
    if (c % kLineFloats == 0 && c < columns_ahead)
      for (int r = 0; r < R; ++r) __builtin_prefetch(ahead[r] + c);
    Vec k[R];
    for (int r = 0; r < R; ++r) {
      k[r] = hn::LoadU(kTag, rows[r] + c);
      keep_loaded(k[r]);
    }
    for (int n = 0; n < NQ; ++n) {
      Vec x = hn::LoadU(kTag, q + n * ldq + c);
      keep_loaded(x);
      for (int r = 0; r < R; ++r) acc[r][n] = hn::MulAdd(k[r], x, acc[r][n]);
    }
  }
  if (c < d) {
    for (int r = 0; r < R; ++r) {
      const Vec k = load_first(kTag, rows[r] + c, d - c);
      for (int n = 0; n < NQ; ++n) acc[r][n] = hn::MulAdd(k, hn::LoadU(kTag, q + n * ldq + c), acc[r][n]);
    }
  }
  for (int r = 0; r < R; ++r) {
    const auto vector = [&](int n) FOVEA_INLINE { return n < NQ ? acc[r][n < NQ ? n : 0] : hn::Zero(kTag); };
    if constexpr (NQ > 1) {
      hn::StoreU(four_sums(kTag, vector(0), vector(1), vector(2), vector(3)), hn::FixedTag<float, 4>(),
                 s + r * kQuad);
    } else {
      s[r * kQuad] = hn::GetLane(hn::SumOfLanes(kTag, acc[r][0]));
    }
  }
}

// out[g][c] += sum over t of p[t * kQuad + g] * rows[t][c], for NQ queries and NV vectors of columns.
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
      if (kCareful && p[t * kQuad + n] == 0) continue;
      const Vec weight = hn::Set(kTag, p[t * kQuad + n]);
      for (int v = 0; v < NV; ++v) acc[n][v] = hn::MulAdd(weight, x[v], acc[n][v]);
    }
  }
  for (int n = 0; n < NQ; ++n)
    for (int v = 0; v < NV; ++v) hn::StoreU(acc[n][v], kTag, out + n * ldo + column + v * kLanes);
}

// Keys that are taken together.
struct KeyStrip {
  int count = 0;
  const PlanSegment* segment = nullptr;
  int32_t local[kStripKeys];  // among the segment's keys
  int32_t keys[kStripKeys];
  const float* k[kStripKeys];
  const float* v[kStripKeys];
};

// The strips of a tile's keys [begin, end), counted through its segments. The keys of a run are taken in turn
// from kStreams places, so that these many streams are on their way from memory.
struct StripWalk {
  const AttentionPlan& plan;
  const PlanTile& tile;
  const HeadView<const float> k, v;  // of key 0
  int64_t begin, end;                // counted from the next segment on
  int segment, strip_keys;
  int64_t first = 0, run = 0;  // keys [first, first + run) of this segment are taken
  int64_t done = 0;            // of the run

  StripWalk(const AttentionForward& a, int64_t b, int64_t kv_head, const PlanTile& plan_tile, int64_t from,
            int64_t to)
      : plan(*a.plan),
        tile(plan_tile),
        k{a.k.at(b, kv_head, 0), 0, 0, a.k.row},
        v{a.v.at(b, kv_head, 0), 0, 0, a.v.row},
        begin(from),
        end(to),
        segment(plan_tile.segment_begin - 1),
        strip_keys(strip_keys_of(a.shape)) {}

  void add(KeyStrip& strip, int64_t place) const {
    const PlanSegment& from = *strip.segment;
    const int32_t local = static_cast<int32_t>(first + place);
    const int32_t key =
        from.gather >= 0 ? plan.indices[from.gather + local] : from.key_first + local * from.key_step;
    strip.local[strip.count] = local;
    strip.keys[strip.count] = key;
    strip.k[strip.count] = k.data + key * k.row;
    strip.v[strip.count] = v.data + key * v.row;
    ++strip.count;
  }

  // An empty strip when there is none left.
  void next(KeyStrip& strip) {
    strip.count = 0;
    while (done == run) {
      if (++segment == tile.segment_end) {
        --segment;
        return;
      }
      const int64_t count = plan.segments[segment].key_count;
      first = larger(0, begin);
      run = larger(0, smaller(count, end) - first);
      done = 0;
      begin -= count;
      end -= count;
    }
    strip.segment = &plan.segments[segment];
    const int64_t length = run / kStreams;
    if (done < length * kStreams) {
      const int64_t from = done / kStreams, to = smaller(from + strip_keys / kStreams, length);
      for (int64_t i = from; i < to; ++i)
        for (int stream = 0; stream < kStreams; ++stream) add(strip, stream * length + i);
    } else {
      for (int64_t i = done; i < run; ++i) add(strip, i);
    }
    done += strip.count;
  }
};

struct DecodeChunk {
  const QuerySet& set;
  const AttentionShape& shape;
  Partial partial;
  int64_t ldq, ldo;
  float* q;     // [queries][padded d], scaled
  float* s;     // [quads][kStripKeys][kQuad]: scores, then weights; lanes without a query hold finite numbers
  float* sums;  // [quads][kLanes], lane n belonging to query n % kQuad

  DecodeChunk(const QuerySet& queries, float* result, float* scratch)
      : set(queries),
        shape(queries.a.shape),
        partial(result),
        ldq(round_up(shape.d, kLanes)),
        ldo(round_up(shape.dv, kLanes)),
        q(scratch),
        s(scratch + kMostQueries * ldq),
        sums(s + kMostQueries / kQuad * kQuadFloats) {
    const ScoreTerms& terms = set.a.terms;
    const float scale = terms.soft_cap > 0 ? terms.scale / terms.soft_cap : terms.scale * kLog2e;
    for (int g = 0; g < set.count; ++g) {
      const float* x = set.a.q.at(set.b, set.query[g].h, set.query[g].i);
      for (int64_t c = 0; c < ldq; ++c) q[g * ldq + c] = c < shape.d ? x[c] * scale : 0;
    }
    for (int n = 0; n < quads() * kQuadFloats; ++n) s[n] = 0;
  }
  int quads() const { return (set.count + kQuad - 1) / kQuad; }
  float* scores_of(int g) const { return s + g / kQuad * kQuadFloats + g % kQuad; }
  static int64_t scratch_floats(const AttentionShape& shape) {
    return kMostQueries * round_up(shape.d, kLanes) + kMostQueries / kQuad * (kQuadFloats + kLanes);
  }

  void scores(const KeyStrip& strip) {
    const auto block = [&]<int R>(int t) FOVEA_INLINE {
      const auto dots = [&]<int NQ>(int g) FOVEA_INLINE {
        dot_block<R, NQ>(q + g * ldq, ldq, strip.k + t, shape.d, strip.v + t, g == 0 ? shape.dv : 0,
                         scores_of(g) + t * kQuad);
      };
      int g = 0;
      for (; g + 4 <= set.count; g += 4) dots.template operator()<4>(g);
      if (g + 3 == set.count) dots.template operator()<3>(g), g += 3;
      for (; g + 2 <= set.count; g += 2) dots.template operator()<2>(g);
      if (g < set.count) dots.template operator()<1>(g);
    };
    int t = 0;
    for (; t + kStreams <= strip.count; t += kStreams) block.template operator()<kStreams>(t);
    for (; t < strip.count; ++t) block.template operator()<1>(t);
  }

  void terms(const KeyStrip& strip) {
    const ScoreTerms& terms = set.a.terms;
    const AttentionPlan& plan = *set.a.plan;
    const int words = (set.tile.row_count + 31) / 32;
    for (int g = 0; g < set.count; ++g) {
      const Query& query = set.query[g];
      float* x = scores_of(g);
      if (terms.soft_cap > 0)
        for (int t = 0; t < strip.count; ++t)
          x[t * kQuad] = terms.soft_cap * kLog2e * __builtin_tanhf(x[t * kQuad]);
      if (terms.alibi)
        for (int t = 0; t < strip.count; ++t)
          x[t * kQuad] -= terms.alibi[query.h] * kLog2e *
                          __builtin_fabsf(query.position - static_cast<float>(strip.keys[t]));
      if (terms.bias.data) {
        const float* bias =
            terms.bias.data + set.b * terms.bias.batch + query.h * terms.bias.head + query.i * terms.bias.row;
        for (int t = 0; t < strip.count; ++t)
          x[t * kQuad] += bias[strip.keys[t] * terms.bias.column] * kLog2e;
      }
      if (strip.segment->mask == SegmentMask::interval) {
        const int32_t* range = plan.intervals.data() + strip.segment->mask_offset + 2 * query.row;
        for (int t = 0; t < strip.count; ++t)
          if (strip.local[t] < range[0] || strip.local[t] >= range[1]) x[t * kQuad] = -__builtin_inff();
      } else if (strip.segment->mask == SegmentMask::bits) {
        const uint32_t* bits = plan.bits.data() + strip.segment->mask_offset + query.row / 32;
        for (int t = 0; t < strip.count; ++t)
          if (!(bits[int64_t{strip.local[t]} * words] >> (query.row % 32) & 1))
            x[t * kQuad] = -__builtin_inff();
      }
    }
  }

  // Scores to weights; what was gathered so far is rescaled where the maximum grew.
  void softmax(const KeyStrip& strip) {
    const hn::FixedTag<float, kQuad> quad_tag;
    const int64_t padded = round_up(strip.count * kQuad, kLanes);
    for (int g = 0; g < set.count; g += kQuad) {
      float *x = scores_of(g), *max = partial.max + g;
      for (int64_t n = strip.count * kQuad; n < padded; ++n) x[n] = -__builtin_inff();
      Vec top = hn::LoadDup128(kTag, max), highest = top;
      for (int64_t n = 0; n < padded; n += kLanes) highest = hn::Max(highest, hn::LoadU(kTag, x + n));
      Vec sum = hn::LoadU(kTag, sums + g / kQuad * kLanes);
      if (!hn::AllTrue(kTag, hn::Eq(highest, top))) {
        HWY_ALIGN float raised[kLanes], factor[kLanes];
        hn::Store(highest, kTag, raised);
        auto most = hn::Load(quad_tag, raised);
        for (int n = kQuad; n < kLanes; n += kQuad) most = hn::Max(most, hn::Load(quad_tag, raised + n));
        hn::StoreU(most, quad_tag, max);
        highest = hn::LoadDup128(kTag, max);
        const Vec shrink = exp2_nonpositive(hn::Sub(top, highest));
        top = highest;
        sum = hn::Mul(sum, shrink);
        hn::Store(shrink, kTag, factor);
        for (int n = 0; n < kQuad && g + n < set.count; ++n)
          if (factor[n] != 1) scale_out(g + n, hn::Set(kTag, factor[n]));
      }
      for (int64_t n = 0; n < padded; n += kLanes) {
        const Vec p = exp2_nonpositive(hn::Sub(hn::LoadU(kTag, x + n), top));
        sum = hn::Add(sum, p);
        hn::StoreU(p, kTag, x + n);
      }
      hn::StoreU(sum, kTag, sums + g / kQuad * kLanes);
    }
    if (set.a.terms.dropout > 0) dropout(strip);
  }
  void scale_out(int g, Vec factor) {
    float* out = partial.out + g * ldo;
    for (int64_t c = 0; c < ldo; c += kLanes)
      hn::StoreU(hn::Mul(hn::LoadU(kTag, out + c), factor), kTag, out + c);
  }
  void dropout(const KeyStrip& strip) {
    const float p = set.a.terms.dropout, kept = 1 / (1 - p);
    const uint32_t threshold = dropout_threshold(p);
    for (int g = 0; g < set.count; ++g)
      for (int t = 0; t < strip.count; ++t)
        scores_of(g)[t * kQuad] *= dropout_draw(set.query[g].dropout, strip.keys[t]) < threshold ? 0 : kept;
  }

  template <bool kCareful, int NQ>
  void value_columns(const KeyStrip& strip, int g, Ahead& ahead) {
    const float* p = scores_of(g);
    float* out = partial.out + g * ldo;
    const int vectors = static_cast<int>(shape.dv / kLanes);
    const int rows = static_cast<int>((ahead.count * 3 + vectors - 1) / larger(1, vectors));
    const auto block = [&]<int NV>(int first) FOVEA_INLINE {
      ahead.ask(rows);
      value_block<kCareful, NQ, NV>(p, strip.v, strip.count, first * kLanes, kLanes, out, ldo);
    };
    int first = 0;
    if constexpr (NQ == 1)
      for (; first + 8 <= vectors; first += 8) block.template operator()<8>(first);
    for_vector_chunks(vectors - first,
                      [&]<int NV>(int v) FOVEA_INLINE { block.template operator()<NV>(first + v); });
    const int64_t c = int64_t{vectors} * kLanes;
    if (c < shape.dv) value_block<kCareful, NQ, 1>(p, strip.v, strip.count, c, shape.dv - c, out, ldo);
  }

  // `ahead`: the keys that come next.
  template <bool kCareful>
  void values(const KeyStrip& strip, Ahead ahead) {
    int g = 0;
    for (; g + 4 <= set.count; g += 4) value_columns<kCareful, 4>(strip, g, ahead);
    if (g == 0 && set.count == 3) value_columns<kCareful, 3>(strip, g, ahead), g = 3;
    for (; g + 2 <= set.count; g += 2) value_columns<kCareful, 2>(strip, g, ahead);
    if (g < set.count) value_columns<kCareful, 1>(strip, g, ahead);
  }

  // Keys [begin, end) of the tile's segments, counted through all of them.
  template <bool kCareful>
  void run(int64_t begin, int64_t end) {
    for (int g = 0; g < quads() * kQuad; ++g) partial.max[g] = kLowest;
    for (int n = 0; n < quads(); ++n) hn::StoreU(hn::Zero(kTag), kTag, sums + n * kLanes);
    for (int g = 0; g < set.count; ++g) {
      for (int64_t c = 0; c < ldo; ++c) partial.out[g * ldo + c] = 0;
    }
    KeyStrip strips[2];
    StripWalk walk(set.a, set.b, set.kv_head, set.tile, begin, end);
    walk.next(strips[0]);
    for (int n = 0; strips[n % 2].count > 0; ++n) {
      const KeyStrip& strip = strips[n % 2];
      KeyStrip& following = strips[(n + 1) % 2];
      walk.next(following);
      scores(strip);
      terms(strip);
      softmax(strip);
      values<kCareful>(strip, Ahead{following.k, following.count, shape.d});
    }
    for (int g = 0; g < set.count; ++g) {
      partial.sum[g] = 0;
      for (int n = g % kQuad; n < kLanes; n += kQuad) partial.sum[g] += sums[g / kQuad * kLanes + n];
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
  if (a.shape.queries == 0 || a.shape.queries > kMostQueries || a.shape.keys < kLeastKeys) return false;
  const int64_t heads = a.plan->head_groups > 1 ? 1 : a.shape.heads / a.shape.kv_heads;
  return heads * a.shape.queries <= kMostQueries;
}

void decode(const AttentionForward& a) {
  const DecodePlan plan(a);
  const int64_t size = Partial::floats(a.shape.dv), sets = plan.sets();
  float* partials = scratch_floats(kAttentionCallSlot, sets * plan.chunks * size);
  parallel_chunks(sets * plan.chunks, [&](int64_t n) {
    int64_t b, head;
    const PlanTile* tile = plan.find(n / plan.chunks, b, head);
    const int64_t begin = n % plan.chunks * kChunkKeys;
    if (!tile || begin >= plan.keys_of(*tile)) return;
    const QuerySet set(a, b, head, plan.heads_together, *tile);
    DecodeChunk chunk(set, partials + n * size,
                      scratch_floats(kAttentionTileSlot, DecodeChunk::scratch_floats(a.shape)));
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
