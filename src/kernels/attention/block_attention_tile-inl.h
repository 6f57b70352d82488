// What forward and backward attention share, for X.simd.cc files: how a tile's rows become lanes, which keys
// they see, and the passes that turn raw products into scores and weights.
//
// Lanes are queries. A tile's rows are cut into lane groups of a few vectors; scores of a group against a
// strip of keys stand as s[key][lane], so that maximum, sum and rescale are vertical. Keys and values are
// read in place through row pointers. Scores are kept in units of log 2, because exp2 is what the machine can
// do.
#pragma once

#include "kernels/attention/block_attention_products-inl.h"
#include "kernels/attention/dropout.h"

namespace fovea::kernels {
namespace {

// Rows [first, first + rows) of a tile, padded to whole vectors: lane n is row first + n, padding repeats the
// last.
struct LaneGroup {
  int first = 0, vectors = 0, rows = 0;
  int64_t lanes() const { return int64_t{vectors} * kLanes; }
};

constexpr int kMaxGroups = kMaxTileRows / (kLanes * kTileVectors);

// A tile's rows cut into groups of at most `limit` vectors, in even shares.
struct TileLanes {
  int groups = 0;
  int64_t lanes = 0;
  LaneGroup group[kMaxGroups];

  TileLanes(int rows, int limit) {
    const int vectors = (rows + kLanes - 1) / kLanes;
    lanes = int64_t{vectors} * kLanes;
    for (int first = 0; first < vectors; ++groups) {
      const int rest = vectors - first, shares = (rest + limit - 1) / limit,
                count = (rest + shares - 1) / shares;
      const int begin = first * kLanes;
      group[groups] = {begin, count, static_cast<int>(smaller(rows - begin, int64_t{count} * kLanes))};
      first += count;
    }
  }
};

constexpr int kMaxStrip = 128;

// A run of a segment's keys: segment-local [first, first + count).
struct Strip {
  int first = 0, count = 0;
  bool contiguous = false;  // keys[t] == keys[0] + t
  int32_t keys[kMaxStrip];
  const float* k[kMaxStrip];
  const float* v[kMaxStrip];

  // `k` and `v` point at key 0 of the head.
  void fill(const AttentionPlan& plan, const PlanSegment& segment, int from, int to,
            HeadView<const float> k_head, HeadView<const float> v_head) {
    first = from;
    count = to - from;
    contiguous = segment.gather < 0 && segment.key_step == 1;
    for (int t = 0; t < count; ++t) {
      const int32_t key = segment.gather >= 0 ? plan.indices[segment.gather + from + t]
                                              : segment.key_first + (from + t) * segment.key_step;
      keys[t] = key;
      k[t] = k_head.data + key * k_head.row;
      v[t] = v_head.data + key * v_head.row;
    }
  }
};

// Keys of a strip. Long ones: sums are carried through memory once a strip, and that costs more than keys and
// values that come from the second cache. At d = 128 strips of 32 keys reach 0.85 of the FMA peak, 128 keys
// 0.89.
inline int strip_keys(int64_t d, int64_t dv) {
  return static_cast<int>(larger(16, smaller(kMaxStrip, 16384 / larger(1, larger(d, dv)) / 4 * 4)));
}

// Which of a segment's keys a lane group sees. [low, high) holds every visible key; [full_low, full_high) are
// seen by all rows.
struct GroupView {
  SegmentMask mask = SegmentMask::full;
  int low = 0, high = 0, full_low = 0, full_high = 0;
  const float* begin = nullptr;  // interval: per lane, segment-local
  const float* end = nullptr;
  const uint32_t* bits = nullptr;  // bits of key 0
  int words = 0, first_row = 0, rows = 0;

  // begin and end: memory for the group's lanes.
  void look(const AttentionPlan& plan, const PlanTile& tile, const PlanSegment& segment,
            const LaneGroup& group, float* begin_lanes, float* end_lanes) {
    mask = segment.mask;
    low = full_low = 0;
    high = full_high = segment.key_count;
    if (mask == SegmentMask::interval) {
      const int32_t* pairs = plan.intervals.data() + segment.mask_offset + 2 * group.first;
      low = segment.key_count;
      high = 0;
      for (int lane = 0; lane < group.lanes(); ++lane) {
        const int row = lane < group.rows ? lane : group.rows - 1;
        const int from = pairs[2 * row], to = pairs[2 * row + 1];
        begin_lanes[lane] = static_cast<float>(from);
        end_lanes[lane] = static_cast<float>(to);
        if (from < to) {
          low = from < low ? from : low;
          high = to > high ? to : high;
        }
        full_low = from > full_low ? from : full_low;
        full_high = to < full_high ? to : full_high;
      }
      begin = begin_lanes;
      end = end_lanes;
    } else if (mask == SegmentMask::bits) {
      words = (tile.row_count + 31) / 32;
      bits = plan.bits.data() + segment.mask_offset;
      first_row = group.first;
      rows = group.rows;
    }
  }

  // Narrows [from, to) to the keys that some row sees; tells whether some row does not see all of those.
  bool clip(int& from, int& to) const {
    from = from > low ? from : low;
    to = to < high ? to : high;
    if (mask == SegmentMask::full) return false;
    if (mask == SegmentMask::interval) return from < full_low || to > full_high;
    while (from < to && seen(from) == 0) ++from;
    while (from < to && seen(to - 1) == 0) --to;
    for (int j = from; j < to; ++j)
      if (seen(j) < rows) return true;
    return false;
  }

  // How many of the group's rows see key j (bits only).
  int seen(int j) const {
    int count = 0;
    for (int row = 0; row < rows; row += kLanes) {
      uint32_t mine = row_bits(j, first_row + row);
      if (rows - row < kLanes) mine &= (1u << (rows - row)) - 1;
      count += __builtin_popcount(mine);
    }
    return count;
  }
  uint32_t row_bits(int j, int row) const {
    return bits[int64_t{j} * words + row / 32] >> (row % 32) & ((1u << kLanes) - 1);
  }
};

// The mask of one vector of lanes at segment-local key j.
FOVEA_INLINE inline hn::Mask<Tag> visible_lanes(const GroupView& view, int j, int vector) {
  if (view.mask == SegmentMask::interval) {
    const Vec key = hn::Set(kTag, static_cast<float>(j));
    const auto before = hn::Lt(key, hn::LoadU(kTag, view.begin + vector * kLanes));
    return hn::AndNot(before, hn::Lt(key, hn::LoadU(kTag, view.end + vector * kLanes)));
  }
  const hn::RebindToUnsigned<Tag> du;
  const auto lane_bits = hn::Shl(hn::Set(du, 1u), hn::Iota(du, 0));
  const uint32_t bits = view.row_bits(j, view.first_row + vector * kLanes);
  return hn::RebindMask(kTag, hn::TestBit(hn::Set(du, bits), lane_bits));
}

// The score terms of one (batch, head), in units of log 2.
struct HeadTerms {
  float q_scale = 1;  // what packed queries are multiplied with
  float cap = 0;      // 0: none; else q_scale holds 1 / cap
  bool alibi = false;
  float slope = 0;
  const float* bias = nullptr;  // of query 0 and key 0
  int64_t bias_row = 0, bias_column = 0;
  float dropout = 0;

  HeadTerms(const ScoreTerms& terms, int64_t b, int64_t h) {
    q_scale = terms.soft_cap > 0 ? terms.scale / terms.soft_cap : terms.scale * kLog2e;
    cap = terms.soft_cap > 0 ? terms.soft_cap * kLog2e : 0;
    alibi = terms.alibi != nullptr;
    if (alibi) slope = terms.alibi[h] * kLog2e;
    if (terms.bias.data) bias = terms.bias.data + b * terms.bias.batch + h * terms.bias.head;
    bias_row = terms.bias.row;
    bias_column = terms.bias.column;
    dropout = terms.dropout;
  }
  bool plain() const { return cap == 0 && !alibi && !bias; }
  // Whether each query has a row of the bias that runs along the strip's keys.
  bool bias_along(const Strip& strip) const {
    return bias && bias_row != 0 && bias_column == 1 && strip.contiguous;
  }
};

// What the passes below need of a lane group's queries.
struct LaneQueries {
  int64_t query[kMaxTileRows];   // a lane's query; padding repeats the last
  float position[kMaxTileRows];  // query + keys - queries: where the query is among the keys
  uint32_t start[kMaxTileRows], salt[kMaxTileRows];  // DropoutRow, where there is dropout

  void fill(const PlanTile& tile, const TileLanes& lanes, const AttentionShape& shape) {
    for (int lane = 0; lane < lanes.lanes; ++lane) {
      const int row = static_cast<int>(smaller(lane, tile.row_count - 1));
      query[lane] = tile.row_first + int64_t{row} * tile.row_step;
      position[lane] = static_cast<float>(query[lane] + shape.keys - shape.queries);
    }
  }
  void draw_keys(int64_t lanes, uint64_t seed, int64_t b, int64_t h) {
    for (int lane = 0; lane < lanes; ++lane) {
      const DropoutRow row = dropout_row(seed, b, h, query[lane]);
      start[lane] = row.start;
      salt[lane] = row.salt;
    }
  }
};

// Scores of a group against keys [from, to) of a strip (strip-local), s[t * ld + lane].
struct ScoreBlock {
  float* s;
  int64_t ld;
  int from, to;
};

template <class Body>
FOVEA_INLINE inline void for_each_vector(const ScoreBlock& block, Body body) {
  for (int t = block.from; t < block.to; ++t)
    for (int64_t v = 0; v < block.ld; v += kLanes) body(t, v, block.s + t * block.ld + v);
}

// s = cap * tanh(s); slope[t * ld + lane] = 1 - tanh^2 where wanted.
inline void soft_cap_pass(const ScoreBlock& block, float cap, float* slope) {
  const Vec c = hn::Set(kTag, cap), one = hn::Set(kTag, 1.0f);
  for_each_vector(block, [&](int t, int64_t v, float* s) FOVEA_INLINE {
    const Vec y = vmath::tanh(kTag, hn::LoadU(kTag, s));
    hn::StoreU(hn::Mul(c, y), kTag, s);
    if (slope) hn::StoreU(hn::NegMulAdd(y, y, one), kTag, slope + t * block.ld + v);
  });
}

// s = start(v)(t, s) for every vector of the block; max[lane], where given, rises to what it becomes.
template <class Start>
FOVEA_INLINE inline void map_scores(const ScoreBlock& block, float* max, Start start) {
  for (int64_t v = 0; v < block.ld; v += kLanes) {
    const auto body = start(v);
    Vec top = max ? hn::LoadU(kTag, max + v) : hn::Zero(kTag);
    for (int t = block.from; t < block.to; ++t) {
      float* s = block.s + t * block.ld + v;
      const Vec x = body(t, hn::LoadU(kTag, s));
      hn::StoreU(x, kTag, s);
      top = hn::Max(top, x);
    }
    if (max) hn::StoreU(top, kTag, max + v);
  }
}

// s -= slope * |position - key|
inline void alibi_pass(const ScoreBlock& block, const Strip& strip, const float* position, float slope,
                       float* max) {
  const Vec factor = hn::Set(kTag, slope);
  float keys[kMaxStrip];
  for (int t = block.from; t < block.to; ++t) keys[t] = static_cast<float>(strip.keys[t]);
  map_scores(block, max, [&](int64_t v) FOVEA_INLINE {
    return [&, place = hn::LoadU(kTag, position + v)](int t, Vec s) FOVEA_INLINE {
      return hn::NegMulAdd(factor, hn::Abs(hn::Sub(place, hn::Set(kTag, keys[t]))), s);
    };
  });
}

// s += bias * log2e. Rows of bias that run along the keys are transposed, a vector of keys at a time.
inline void bias_pass(const ScoreBlock& block, const Strip& strip, const int64_t* query,
                      const HeadTerms& terms, float* max) {
  const Vec unit = hn::Set(kTag, kLog2e);
  if (terms.bias_row == 0) {
    map_scores(block, max, [&](int64_t) FOVEA_INLINE {
      return [&](int t, Vec s) FOVEA_INLINE {
        return hn::MulAdd(hn::Set(kTag, terms.bias[strip.keys[t] * terms.bias_column]), unit, s);
      };
    });
    return;
  }
  for (int64_t v = 0; v < block.ld; v += kLanes) {
    const float* rows[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) rows[lane] = terms.bias + query[v + lane] * terms.bias_row;
    Vec top = max ? hn::LoadU(kTag, max + v) : hn::Zero(kTag);
    const auto add = [&](int t, Vec bias) FOVEA_INLINE {
      float* s = block.s + t * block.ld + v;
      const Vec x = hn::MulAdd(bias, unit, hn::LoadU(kTag, s));
      hn::StoreU(x, kTag, s);
      top = hn::Max(top, x);
    };
    int t = block.from;
    const auto add_columns = [&]<int C>(Vec(&x)[C]) FOVEA_INLINE {
      for (; t + C <= block.to; t += C) {
        load_columns(rows, strip.keys[t], x);
        for (int n = 0; n < C; ++n) add(t + n, x[n]);
      }
    };
    if (terms.bias_along(strip)) {
      Vec square[kLanes], few[4];
      add_columns(square);
      add_columns(few);
    }
    HWY_ALIGN float lanes[kLanes];
    for (; t < block.to; ++t) {
      const int64_t offset = strip.keys[t] * terms.bias_column;
      for (int lane = 0; lane < kLanes; ++lane) lanes[lane] = rows[lane][offset];
      add(t, hn::Load(kTag, lanes));
    }
    if (max) hn::StoreU(top, kTag, max + v);
  }
}

// s = -inf where a lane does not see a key.
inline void mask_pass(const ScoreBlock& block, const Strip& strip, const GroupView& view, float* max) {
  const Vec hidden = hn::Neg(hn::Inf(kTag));
  map_scores(block, max, [&](int64_t v) FOVEA_INLINE {
    return [&, v](int t, Vec s) FOVEA_INLINE {
      return hn::IfThenElse(visible_lanes(view, strip.first + t, static_cast<int>(v / kLanes)), s, hidden);
    };
  });
}

inline void max_pass(const ScoreBlock& block, float* max) {
  for (int64_t v = 0; v < block.ld; v += kLanes) {
    Vec top = hn::LoadU(kTag, max + v);
    for (int t = block.from; t < block.to; ++t)
      top = hn::Max(top, hn::LoadU(kTag, block.s + t * block.ld + v));
    hn::StoreU(top, kTag, max + v);
  }
}

// Asks for the bias of a block, or for its gradient (`part`), while the block's scores are multiplied. row: of the first of
// `rows` lanes, at key 0; the rows lie `stride` apart.
inline void ask_for_bias(LinesAhead& ahead, LinesAhead::Part part, const ScoreBlock& block,
                         const Strip& strip, const float* row, int64_t stride, int rows) {
  const int vectors = static_cast<int>(block.ld / kLanes), keys = block.to - block.from;
  const int calls = (vectors + kTileVectors - 1) / kTileVectors * ((keys + 7) / 8);
  const int lines = rows * (keys / 16 + 1);
  ahead.set(part, row + strip.keys[block.from], stride, rows, keys, (lines + calls - 1) / calls);
}

// What follows the raw products: all terms, then the mask where there is one (`view`). max[lane], where given, rises to the
// scores that result; cap_slope: as in soft_cap_pass.
inline void terms_pass(const ScoreBlock& block, const Strip& strip, const HeadTerms& terms,
                       const LaneQueries& queries, int first_lane, const GroupView* view, float* cap_slope,
                       float* max) {
  // The last pass looks for the maximum.
  float* const without_mask = view ? nullptr : max;
  float* const without_bias = terms.bias ? nullptr : without_mask;
  if (terms.cap != 0) soft_cap_pass(block, terms.cap, cap_slope);
  if (terms.alibi) alibi_pass(block, strip, queries.position + first_lane, terms.slope, without_bias);
  if (terms.bias) bias_pass(block, strip, queries.query + first_lane, terms, without_mask);
  if (view) mask_pass(block, strip, *view, max);
  if (max && !view && !terms.alibi && !terms.bias) max_pass(block, max);
}

// factor[t * ld + lane] = what dropout multiplies a weight with: 0 or 1 / (1 - p).
inline void dropout_pass(const ScoreBlock& block, const Strip& strip, const LaneQueries& queries,
                         int first_lane, float p, float* factor) {
  const hn::RebindToUnsigned<Tag> du;
  const auto threshold = hn::Set(du, dropout_threshold(p)), low_half = hn::Set(du, 0xFFFFu);
  const auto mix1 = hn::Set(du, kDropoutMix1), mix2 = hn::Set(du, kDropoutMix2);
  const Vec scale = hn::Set(kTag, 1.0f / (1.0f - p));
  for (int64_t v = 0; v < block.ld; v += kLanes) {
    const auto start = hn::LoadU(du, queries.start + first_lane + v);
    const auto salt = hn::LoadU(du, queries.salt + first_lane + v);
    for (int t = block.from; t < block.to; ++t) {
      const uint32_t key = static_cast<uint32_t>(strip.keys[t]);
      auto x = hn::Add(start, hn::Set(du, key / 2 * kDropoutStep));
      x = hn::Mul(hn::Xor(x, hn::ShiftRight<16>(x)), mix1);
      x = hn::Xor(x, salt);
      x = hn::Mul(hn::Xor(x, hn::ShiftRight<15>(x)), mix2);
      x = hn::Xor(x, hn::ShiftRight<16>(x));
      const auto write = [&](auto draw, int at) FOVEA_INLINE {
        const hn::RebindToSigned<Tag> di;
        const auto dropped = hn::Lt(hn::BitCast(di, draw), hn::BitCast(di, threshold));
        hn::StoreU(hn::IfThenZeroElse(hn::RebindMask(kTag, dropped), scale), kTag,
                   factor + at * block.ld + v);
      };
      if (key % 2) {
        write(hn::ShiftRight<16>(x), t);
      } else {
        write(hn::And(x, low_half), t);
        if (t + 1 < block.to && strip.keys[t + 1] == strip.keys[t] + 1) write(hn::ShiftRight<16>(x), ++t);
      }
    }
  }
}

// Where the tiles of (b, h) are in the plan.
inline int64_t plan_group(const AttentionPlan& plan, int64_t b, int64_t h) {
  return (plan.batch_groups > 1 ? b : 0) * plan.head_groups + (plan.head_groups > 1 ? h : 0);
}

// Turns scores into weights 2^(s - max) and adds them to sum.
inline void weights_pass(const ScoreBlock& block, const float* max, float* sum) {
  for_vector_chunks(static_cast<int>(block.ld / kLanes), [&]<int NV>(int first) FOVEA_INLINE {
    Vec top[NV], total[NV];
    for (int v = 0; v < NV; ++v) {
      top[v] = hn::LoadU(kTag, max + (first + v) * kLanes);
      total[v] = hn::LoadU(kTag, sum + (first + v) * kLanes);
    }
    for (int t = block.from; t < block.to; ++t) {
      float* s = block.s + t * block.ld + first * kLanes;
      for (int v = 0; v < NV; ++v) {
        const Vec p = exp2_nonpositive(hn::Sub(hn::LoadU(kTag, s + v * kLanes), top[v]));
        total[v] = hn::Add(total[v], p);
        hn::StoreU(p, kTag, s + v * kLanes);
      }
    }
    for (int v = 0; v < NV; ++v) hn::StoreU(total[v], kTag, sum + (first + v) * kLanes);
  });
}

// Raises max to `raised`; where that changed anything, sum is rescaled, factor filled and true returned.
inline bool raise_max(const float* raised, int64_t lanes, float* max, float* sum, float* factor) {
  bool grew = false;
  for (int64_t v = 0; v < lanes; v += kLanes)
    grew |= !hn::AllTrue(kTag, hn::Eq(hn::LoadU(kTag, raised + v), hn::LoadU(kTag, max + v)));
  if (!grew) return false;
  for (int64_t v = 0; v < lanes; v += kLanes) {
    const Vec top = hn::LoadU(kTag, raised + v);
    const Vec f = exp2_nonpositive(hn::Sub(hn::LoadU(kTag, max + v), top));
    hn::StoreU(f, kTag, factor + v);
    hn::StoreU(top, kTag, max + v);
    hn::StoreU(hn::Mul(hn::LoadU(kTag, sum + v), f), kTag, sum + v);
  }
  return true;
}

// Keys first + t * step, t < count.
struct KeyRun {
  int64_t first = 0, step = 1, count = 0;
};

// The keys that a strip holds of a segment from its key `from` on; none where they are gathered.
inline KeyRun run_of(const PlanSegment& segment, int from, int step) {
  if (segment.gather >= 0) return {};
  return {segment.key_first + int64_t{from} * segment.key_step, segment.key_step,
          smaller(step, segment.key_count - from)};
}

// Whether keys and values of a head are more than stays in a core's caches: the next strip's are requested in time.
inline bool far_keys(const AttentionShape& shape) {
  return shape.keys * (shape.d + shape.dv) >= int64_t{1} << 17;
}

// Calls visit(group number, strip, from, to, view, masked) for every strip of keys [from, to) (strip-local)
// that a lane group of the tile sees; all groups meet a strip before the next one comes, so that it is read
// once. Before them it calls ahead(keys of the next strip). begin, end: memory for interval masks, one float a lane.
template <class Ahead, class Visit>
FOVEA_INLINE inline void visit_keys(const AttentionForward& a, int64_t b, int64_t kv_head,
                                    const PlanTile& tile, const TileLanes& lanes, float* begin, float* end,
                                    Ahead ahead, Visit visit) {
  const AttentionPlan& plan = *a.plan;
  const HeadView<const float> k{a.k.at(b, kv_head, 0), 0, 0, a.k.row},
      v{a.v.at(b, kv_head, 0), 0, 0, a.v.row};
  const int step = strip_keys(a.shape.d, a.shape.dv);
  Strip strip;
  GroupView views[kMaxGroups];
  for (int s = tile.segment_begin; s < tile.segment_end; ++s) {
    const PlanSegment& segment = plan.segments[s];
    int low = segment.key_count, high = 0;
    for (int g = 0; g < lanes.groups; ++g) {
      const LaneGroup& group = lanes.group[g];
      views[g].look(plan, tile, segment, group, begin + group.first, end + group.first);
      low = views[g].low < low ? views[g].low : low;
      high = views[g].high > high ? views[g].high : high;
    }
    for (int from = low; from < high; from += step) {
      strip.fill(plan, segment, from, static_cast<int>(smaller(from + step, high)), k, v);
      if (from + step < high)
        ahead(run_of(segment, from + step, step));
      else if (s + 1 < tile.segment_end)
        ahead(run_of(plan.segments[s + 1], 0, step));
      for (int g = 0; g < lanes.groups; ++g) {
        int first = strip.first, last = strip.first + strip.count;
        const bool masked = views[g].clip(first, last);
        if (first < last) visit(g, strip, first - strip.first, last - strip.first, views[g], masked);
      }
    }
  }
}

}  // namespace
}  // namespace fovea::kernels
