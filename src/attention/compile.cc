// The plan compiler: rows into tiles, keys into segments. What it needs to know of a pattern is in
// pattern_records.h; compile.h says what a plan is.
#include "attention/compile.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <numeric>
#include <span>
#include <tuple>

#include "attention/match.h"
#include "attention/row_keys.h"
#include "base/error.h"

namespace fovea {
namespace {

using namespace patterns;
using kernels::AttentionPlan;
using kernels::PlanSegment;
using kernels::PlanTile;
using kernels::SegmentMask;

// Kernels take keys eight at a time: a FULL stretch beside a masked one ends on a multiple.
constexpr int64_t kKeyStrip = 8;
// Runs shorter than this are gathered into one segment when there are several.
constexpr int64_t kShortRun = 16;
// Besides, a tile's last rows join the tile before when there are no more than kFewRows.

// After how many heads the pattern repeats.
int64_t head_period(const Pattern& pattern, int64_t heads) {
  if (any_member(pattern, [](auto record, const auto&) { return record.by_head; }))
    return std::max<int64_t>(heads, 1);
  return std::visit(
      [&](const auto& member) -> int64_t {
        using Member = std::remove_cvref_t<decltype(member)>;
        int64_t period = 1;
        if constexpr (requires { member.parts; }) {
          if constexpr (std::is_same_v<Member, PerHead>) {
            const auto count = static_cast<int64_t>(member.parts.size());
            require(heads % count == 0, "heads(...): got ", count, " patterns for ", heads,
                    " heads; the number of heads must be a multiple of ", count);
            period = count;
          }
          for (const Pattern& part : member.parts) period = std::lcm(period, head_period(part, heads));
        }
        return period;
      },
      pattern.node());
}

// The pattern as one head sees it: without heads(...).
Pattern for_head(const Pattern& pattern, int64_t head) {
  return std::visit(
      [&](const auto& member) -> Pattern {
        using Member = std::remove_cvref_t<decltype(member)>;
        if constexpr (std::is_same_v<Member, PerHead>) {
          return for_head(member.parts[head % member.parts.size()], head);
        } else if constexpr (requires { member.parts; }) {
          Member joined = member;
          joined.parts.clear();
          for (const Pattern& part : member.parts) joined.parts.push_back(for_head(part, head));
          return Pattern(std::move(joined));
        } else {
          return pattern;
        }
      },
      pattern.node());
}

void check_fit(const Pattern& pattern, const PlanSizes& sizes) {
  constexpr int64_t kLargest = int64_t{1} << 30;
  require(sizes.queries >= 0 && sizes.keys >= 0 && sizes.batch >= 0 && sizes.heads >= 0,
          "attention sizes: got a negative one, wanted 0 or more");
  require(sizes.queries <= kLargest && sizes.keys <= kLargest, "attention: got ", sizes.queries,
          " queries and ", sizes.keys, " keys, wanted at most ", kLargest);
  for_each_member(pattern, [&](const auto& member) {
    Record<std::remove_cvref_t<decltype(member)>>::fit(member, sizes);
  });
}

// Rows first + r * step of one residue class.
struct Rows {
  int64_t first = 0, step = 1, count = 0;
  int64_t operator[](int64_t r) const { return first + r * step; }
};

// How rows are taken into tiles.
struct Tiling {
  int64_t modulus = 1;
  Align align = Align::bottom_right;
  int64_t rows = 48;
};

// Compiles one group: one batch entry, one head.
class Group {
 public:
  // mask: null, or limits the pattern.
  Group(const Pattern& pattern, const PlanSizes& sizes, const KeyMask* mask, int64_t batch, int64_t head,
        AttentionPlan& plan)
      : pattern_(pattern),
        sizes_(sizes),
        mask_(mask),
        batch_(batch),
        head_(head),
        plan_(plan),
        keys_(pattern, sizes, batch, head) {}

  void compile() {
    const std::vector<int64_t> cuts = row_cuts();
    const Tiling tiling = choose_tiling(cuts);
    for (size_t run = 0; run + 1 < cuts.size(); ++run)
      for_each_tile(tiling, cuts[run], cuts[run + 1],
                    [&](const Rows& rows, const ResidueClass& residue) { add_tile(rows, residue); });
  }

 private:
  // Rows where the pattern's behaviour changes, from 0 to the number of queries.
  std::vector<int64_t> row_cuts() const {
    std::vector<int64_t> cuts{0, sizes_.queries};
    add_cuts(pattern_, {0, sizes_.queries}, keys_.position(0), cuts);
    if (mask_ != nullptr && mask_->row_block() > 0)
      RowCuts{{0, sizes_.queries}, 0, batch_, cuts}.grid(mask_->row_block(), 0);
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    return cuts;
  }

  // Those of a pattern whose rows are `rows` of all; its first row is at position `shift`.
  void add_cuts(const Pattern& pattern, Interval rows, int64_t shift, std::vector<int64_t>& cuts) const {
    RowCuts into{rows, shift, batch_, cuts};
    const auto join = [&](const std::vector<Pattern>& parts) {
      for (const Pattern& part : parts) add_cuts(part, rows, shift, cuts);
    };
    std::visit(
        Match{
            [&](const Within& w) {
              int64_t begin = 0;
              for (size_t d = 0; d < w.documents.queries.size(); ++d) {
                const int64_t end = begin + w.documents.queries[d];
                into.at(end);
                add_cuts(w.part(d), {begin, end}, w.documents.keys[d] - w.documents.queries[d], cuts);
                begin = end;
              }
            },
            [&](const AnyOf& any) { join(any.parts); },
            [&](const AllOf& all) { join(all.parts); },
            [](const PerHead&) { FOVEA_ASSERT(!"heads(...) was resolved before"); },
            [&](const auto& member) { Record<std::remove_cvref_t<decltype(member)>>::cuts(member, into); },
        },
        pattern.node());
  }

  // Calls f(rows, residue) for every tile of rows [begin, end).
  template <class F>
  void for_each_tile(const Tiling& tiling, int64_t begin, int64_t end, const F& f) const {
    for (int64_t start = 0; start < std::min(tiling.modulus, end - begin); ++start) {
      Rows rows{begin + start, tiling.modulus, 0};
      const int64_t residue = modulo(keys_.position(rows.first, tiling.align), tiling.modulus);
      int64_t left = (end - rows.first + tiling.modulus - 1) / tiling.modulus;
      while (left > 0) {
        rows.count = std::min(left, tiling.rows);
        if (left - rows.count <= kFewRows && left <= kernels::kMaxTileRows) rows.count = left;
        f(rows, ResidueClass{tiling.modulus, residue, sizes_.keys});
        rows.first += rows.count * rows.step;
        left -= rows.count;
      }
    }
  }

  // Larger tiles read keys less often; smaller ones waste less at the edges of windows.
  int64_t default_rows(int64_t visible) const {
    if (sizes_.tile_rows > 0) return std::min<int64_t>(sizes_.tile_rows, kernels::kMaxTileRows);
    return visible >= 2048 ? 192 : visible >= 512 ? 96 : 48;
  }

  Tiling choose_tiling(const std::vector<int64_t>& cuts) {
    if (sizes_.queries == 0) return {};
    size_t longest = 0;
    for (size_t run = 0; run + 1 < cuts.size(); ++run)
      if (cuts[run + 1] - cuts[run] > cuts[longest + 1] - cuts[longest]) longest = run;
    const int64_t begin = cuts[longest], end = cuts[longest + 1];

    Tiling dilated;
    for_each_member(pattern_, [&](const auto& member) {
      const Stride stride = Record<std::remove_cvref_t<decltype(member)>>::stride(member);
      if (stride.modulus > dilated.modulus) dilated = {stride.modulus, stride.align};
    });
    if (dilated.modulus == 1) {
      // Beyond this no larger tile is chosen, so long runs need not be counted.
      int64_t visible = std::min<int64_t>(sizes_.keys, 4096);
      if (visible >= 1024) {
        const RowSet row = row_keys(begin + (end - begin) / 2, {1, 0, sizes_.keys});
        visible = 0;
        for (const Interval& piece : row.plain) visible += piece.end - piece.begin;
      }
      return {1, Align::bottom_right, default_rows(visible)};
    }
    // Beside a dilated window other members may want neighbouring rows together: compare on one tile each.
    Tiling best;
    double best_cost = 0;
    for (const int64_t modulus : {dilated.modulus, int64_t{1}})
      for (const int64_t rows : {default_rows(0), kFewRows}) {
        const Tiling tiling{modulus, dilated.align, rows};
        const double cost = sample_cost(tiling, begin, end);
        if (best_cost == 0 || cost < best_cost) {
          best = tiling;
          best_cost = cost;
        }
        if (sizes_.tile_rows > 0) break;
      }
    return best;
  }

  // Key visits for each row in the middle of a run, counting the lanes that a short tile leaves empty.
  double sample_cost(const Tiling& tiling, int64_t begin, int64_t end) {
    const int64_t span = std::min(end - begin, tiling.rows * tiling.modulus);
    const int64_t middle = begin + (end - begin - span) / 2;
    AttentionPlan sample;
    Group group(pattern_, sizes_, mask_, batch_, head_, sample);
    for_each_tile(tiling, middle, middle + span, [&](const Rows& rows, const ResidueClass& residue) {
      if (sample.tiles.empty()) group.add_tile(rows, residue);
    });
    double keys = 0;
    for (const PlanSegment& segment : sample.segments)
      keys += segment.key_count * (segment.mask == SegmentMask::bits ? 1.2 : 1.0);
    const double rows = sample.tiles[0].row_count;
    return (keys + kKeyStrip) * std::ceil(rows / kFewRows) * kFewRows / rows;
  }

  // Whether rows between two cuts (of one residue class) may see different keys.
  static bool varies(const Pattern& pattern, int64_t modulus) {
    return any_member(pattern,
                      [&](auto record, const auto& member) { return record.varies(member, modulus); });
  }

  // The keys that a row sees: what the pattern allows, as far as the mask does.
  RowSet row_keys(int64_t query, const ResidueClass& residue) const {
    RowSet set = keys_.row(query, residue);
    if (mask_ == nullptr) return set;
    const std::span<const Interval> allowed = mask_->row(batch_, head_, query);
    return intersect(set, RowSet{{allowed.begin(), allowed.end()}, {}}, residue);
  }

  void add_tile(const Rows& rows, const ResidueClass& residue) {
    PlanTile tile;
    tile.row_first = static_cast<int32_t>(rows.first);
    tile.row_step = static_cast<int32_t>(rows.step);
    tile.row_count = static_cast<int32_t>(rows.count);
    tile.segment_begin = static_cast<int32_t>(plan_.segments.size());
    row_count_ = rows.count;
    plain_.resize(static_cast<size_t>(rows.count));
    in_class_.resize(static_cast<size_t>(rows.count));
    const bool uniform = !varies(pattern_, rows.step) && (mask_ == nullptr || mask_->sizes().queries == 1);
    const bool simple = rows.step == 1 && mask_ == nullptr && keys_.sees_one_run();
    for (int64_t r = 0; r < rows.count; ++r) {
      if (r > 0 && uniform) {
        plain_[r] = plain_[0];
        in_class_[r] = in_class_[0];
      } else if (simple) {
        const Interval run = keys_.run(rows[r]);
        plain_[r].clear();
        in_class_[r].clear();
        append(plain_[r], run.begin, run.end);
      } else {
        RowSet set = row_keys(rows[r], residue);
        plain_[r] = std::move(set.plain);
        in_class_[r] = std::move(set.in_class);
      }
    }
    add_segments(residue, uniform);
    tile.segment_end = static_cast<int32_t>(plan_.segments.size());
    plan_.tiles.push_back(tile);
  }

  static IntervalSet union_of(const std::vector<IntervalSet>& rows) {
    IntervalSet pieces;
    for (const IntervalSet& row : rows) pieces.insert(pieces.end(), row.begin(), row.end());
    std::sort(pieces.begin(), pieces.end(),
              [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
    IntervalSet joined;
    for (const Interval& piece : pieces) append(joined, piece.begin, piece.end);
    return joined;
  }

  void add_segments(const ResidueClass& residue, bool uniform) {
    const IntervalSet all = uniform ? plain_[0] : union_of(plain_);
    IntervalSet all_in_class = uniform ? in_class_[0] : union_of(in_class_);
    if (!all.empty() && !all_in_class.empty()) {
      // A key that some row sees plainly belongs to the plain segments, for every row.
      const IntervalSet shared = residue.members(all);
      for (int64_t r = 0; r < row_count_; ++r) {
        plain_[r] = unite(plain_[r], residue.plain(intersect(in_class_[r], shared)));
        in_class_[r] = subtract(in_class_[r], shared);
      }
      all_in_class = subtract(all_in_class, shared);
    }
    add_runs(all, plain_, {1, 0, sizes_.keys});
    add_runs(all_in_class, in_class_, residue);
  }

  // What every row sees, in pieces worth a segment of their own.
  static IntervalSet full_pieces(const IntervalSet& all, const std::vector<IntervalSet>& rows) {
    IntervalSet common = rows[0];
    for (size_t r = 1; r < rows.size() && !common.empty(); ++r)
      if (rows[r] != rows[r - 1]) common = intersect(common, rows[r]);
    IntervalSet pieces;
    size_t run = 0;
    for (Interval piece : common) {
      while (all[run].end < piece.end) ++run;
      const int64_t whole = (piece.end - piece.begin) / kKeyStrip * kKeyStrip;
      if (piece.end < all[run].end)
        piece.end = piece.begin + whole;
      else if (piece.begin > all[run].begin)
        piece.begin = piece.end - whole;
      if (piece.begin < piece.end) pieces.push_back(piece);
    }
    return pieces;
  }

  void add_runs(const IntervalSet& all, const std::vector<IntervalSet>& rows, const ResidueClass& residue) {
    if (all.empty()) return;
    const IntervalSet seen_by_all = full_pieces(all, rows);
    const IntervalSet partial = subtract(all, seen_by_all);
    cursors_.assign(rows.size(), 0);
    std::vector<Interval> short_full, short_partial;
    for (size_t f = 0, p = 0; f < seen_by_all.size() || p < partial.size();) {
      const bool is_full =
          p == partial.size() || (f < seen_by_all.size() && seen_by_all[f].begin < partial[p].begin);
      const Interval run = is_full ? seen_by_all[f++] : partial[p++];
      if (run.end - run.begin < kShortRun)
        (is_full ? short_full : short_partial).push_back(run);
      else
        add_segment({&run, 1}, is_full, rows, residue);
    }
    for (auto* runs : {&short_full, &short_partial}) {
      cursors_.assign(rows.size(), 0);
      if (!runs->empty()) add_segment(*runs, runs == &short_full, rows, residue);
    }
  }

  // One segment over the keys of the runs, in order; gathered where there are several. Rows' cursors only
  // move on.
  void add_segment(std::span<const Interval> runs, bool is_full, const std::vector<IntervalSet>& rows,
                   const ResidueClass& residue) {
    PlanSegment segment;
    segment.key_first = static_cast<int32_t>(residue.key(runs[0].begin));
    segment.key_step = static_cast<int32_t>(residue.modulus);
    int64_t count = 0;
    for (const Interval& run : runs) count += run.end - run.begin;
    segment.key_count = static_cast<int32_t>(count);
    if (runs.size() > 1) {
      segment.gather = offset(plan_.indices.size());
      for (const Interval& run : runs)
        for (int64_t u = run.begin; u < run.end; ++u)
          plan_.indices.push_back(static_cast<int32_t>(residue.key(u)));
    }
    if (!is_full) add_mask(segment, runs, rows);
    plan_.segments.push_back(segment);
  }

  void add_mask(PlanSegment& segment, std::span<const Interval> runs, const std::vector<IntervalSet>& rows) {
    local_.resize(rows.size());
    bool one_piece = true;
    for (size_t r = 0; r < rows.size(); ++r) {
      local_[r].clear();
      int64_t before = 0;
      size_t& cursor = cursors_[r];
      for (const Interval& run : runs) {
        while (cursor < rows[r].size() && rows[r][cursor].end <= run.begin) ++cursor;
        for (size_t piece = cursor; piece < rows[r].size() && rows[r][piece].begin < run.end; ++piece)
          append(local_[r], before + std::max(rows[r][piece].begin, run.begin) - run.begin,
                 before + std::min(rows[r][piece].end, run.end) - run.begin);
        before += run.end - run.begin;
      }
      one_piece &= local_[r].size() <= 1;
    }
    if (one_piece)
      add_intervals(segment);
    else
      add_bits(segment);
  }

  void add_intervals(PlanSegment& segment) {
    segment.mask = SegmentMask::interval;
    pairs_.clear();
    for (const IntervalSet& row : local_) {
      pairs_.push_back(row.empty() ? 0 : static_cast<int32_t>(row[0].begin));
      pairs_.push_back(row.empty() ? 0 : static_cast<int32_t>(row[0].end));
    }
    // The edges of a window are alike in every tile: point at the ones already there.
    for (const int64_t place : recent_intervals_)
      if (place + static_cast<int64_t>(pairs_.size()) <= static_cast<int64_t>(plan_.intervals.size()) &&
          std::memcmp(plan_.intervals.data() + place, pairs_.data(), pairs_.size() * sizeof(int32_t)) == 0) {
        segment.mask_offset = static_cast<int32_t>(place);
        return;
      }
    segment.mask_offset = offset(plan_.intervals.size());
    recent_intervals_[next_recent_++ % std::size(recent_intervals_)] = segment.mask_offset;
    plan_.intervals.insert(plan_.intervals.end(), pairs_.begin(), pairs_.end());
  }

  void add_bits(PlanSegment& segment) {
    segment.mask = SegmentMask::bits;
    segment.mask_offset = offset(plan_.bits.size());
    const auto words = static_cast<size_t>((row_count_ + 31) / 32);
    plan_.bits.resize(plan_.bits.size() + words * segment.key_count);
    uint32_t* bits = plan_.bits.data() + segment.mask_offset;
    for (size_t r = 0; r < local_.size(); ++r)
      for (const Interval& piece : local_[r])
        for (int64_t j = piece.begin; j < piece.end; ++j) bits[j * words + r / 32] |= 1u << r % 32;
  }

  static int32_t offset(size_t place) {
    require(place < size_t{1} << 31,
            "attention: the pattern's plan is too large; use larger blocks or fewer tokens");
    return static_cast<int32_t>(place);
  }

  const Pattern& pattern_;
  const PlanSizes& sizes_;
  const KeyMask* const mask_;
  const int64_t batch_, head_;
  AttentionPlan& plan_;
  const RowKeys keys_;

  // The tile in the making.
  int64_t row_count_ = 0;
  std::vector<IntervalSet> plain_, in_class_, local_;
  std::vector<size_t> cursors_;
  std::vector<int32_t> pairs_;
  int64_t recent_intervals_[4] = {0, 0, 0, 0};
  size_t next_recent_ = 0;
};

// Adds a document's own plan to that of a packed batch, where its first query and key are at these places.
void append_document(const AttentionPlan& own, int64_t first_query, int64_t first_key, AttentionPlan& plan) {
  const auto place = [](size_t before, int64_t within) {
    const int64_t sum = static_cast<int64_t>(before) + within;
    require(sum < int64_t{1} << 31,
            "attention: the pattern's plan is too large; use larger blocks or fewer tokens");
    return static_cast<int32_t>(sum);
  };
  for (PlanTile tile : own.tiles) {
    tile.row_first = place(0, tile.row_first + first_query);
    tile.segment_begin = place(plan.segments.size(), tile.segment_begin);
    tile.segment_end = place(plan.segments.size(), tile.segment_end);
    plan.tiles.push_back(tile);
  }
  for (PlanSegment segment : own.segments) {
    segment.key_first = place(0, segment.key_first + first_key);
    if (segment.gather >= 0) segment.gather = place(plan.indices.size(), segment.gather);
    if (segment.mask == SegmentMask::interval)
      segment.mask_offset = place(plan.intervals.size(), segment.mask_offset);
    if (segment.mask == SegmentMask::bits) segment.mask_offset = place(plan.bits.size(), segment.mask_offset);
    plan.segments.push_back(segment);
  }
  for (const int32_t key : own.indices) plan.indices.push_back(place(0, key + first_key));
  plan.intervals.insert(plan.intervals.end(), own.intervals.begin(), own.intervals.end());
  plan.bits.insert(plan.bits.end(), own.bits.begin(), own.bits.end());
}

// The plan of packed documents is their own plans one after the other: so what a document's rows visit, and
// in which order, does not depend on the documents beside it.
void compile_documents(const Within& packed, const PlanSizes& sizes, int64_t batch, int64_t head,
                       AttentionPlan& plan) {
  // Of the sizes met so far, where all documents have one pattern.
  std::map<std::tuple<int64_t, int64_t, size_t>, AttentionPlan> plans;
  int64_t first_query = 0, first_key = 0;
  for (size_t d = 0; d < packed.documents.queries.size(); ++d) {
    PlanSizes own = sizes;
    own.queries = packed.documents.queries[d];
    own.keys = packed.documents.keys[d];
    const auto [entry, fresh] = plans.try_emplace({own.queries, own.keys, packed.parts.size() == 1 ? 0 : d});
    if (fresh) Group(packed.part(d), own, nullptr, batch, head, entry->second).compile();
    append_document(entry->second, first_query, first_key, plan);
    first_query += own.queries;
    first_key += own.keys;
  }
}

void compile_group(const Pattern& pattern, const PlanSizes& sizes, const KeyMask* mask, int64_t batch,
                   int64_t head, AttentionPlan& plan) {
  const auto* packed = std::get_if<Within>(&pattern.node());
  if (packed != nullptr && mask == nullptr)
    compile_documents(*packed, sizes, batch, head, plan);
  else
    Group(pattern, sizes, mask, batch, head, plan).compile();
}

// Two batch entries whose lengths agree have the same plan.
bool same_batches(const Pattern& pattern, int64_t a, int64_t b) {
  return !any_member(pattern, [&](auto record, const auto& member) { return !record.same(member, a, b); });
}

bool by_batch(const Pattern& pattern) {
  return any_member(pattern, [](auto record, const auto&) { return record.by_batch; });
}

}  // namespace

AttentionPlan compile(const Pattern& pattern, const PlanSizes& sizes, const KeyMask* mask) {
  check_fit(pattern, sizes);
  if (mask != nullptr) mask->fit({sizes.batch, sizes.heads, sizes.queries, sizes.keys});
  const bool mask_by_head = mask != nullptr && mask->sizes().heads > 1;
  const bool mask_by_batch = mask != nullptr && mask->sizes().batches > 1;
  AttentionPlan plan;
  plan.query_count = sizes.queries;
  plan.key_count = sizes.keys;
  const int64_t period = std::max(head_period(pattern, sizes.heads), mask_by_head ? sizes.heads : 1);
  plan.head_groups = static_cast<int32_t>(period > 1 ? sizes.heads : 1);
  plan.batch_groups =
      static_cast<int32_t>(by_batch(pattern) || mask_by_batch ? std::max<int64_t>(sizes.batch, 1) : 1);
  plan.group_tiles.push_back(0);
  const auto end_group = [&] { plan.group_tiles.push_back(static_cast<int32_t>(plan.tiles.size())); };
  const auto repeat_group = [&](int64_t group) {
    for (int32_t tile = plan.group_tiles[group]; tile < plan.group_tiles[group + 1]; ++tile)
      plan.tiles.push_back(PlanTile(plan.tiles[tile]));
  };
  for (int64_t batch = 0; batch < plan.batch_groups; ++batch) {
    int64_t twin = mask_by_batch ? batch : 0;
    while (!same_batches(pattern, twin, batch)) ++twin;
    for (int64_t head = 0; head < plan.head_groups; ++head) {
      if (twin < batch)
        repeat_group(twin * plan.head_groups + head);
      else if (head >= period)
        repeat_group(batch * plan.head_groups + head % period);
      else
        compile_group(for_head(pattern, head), sizes, mask, batch, head, plan);
      end_group();
    }
  }
  return plan;
}

std::shared_ptr<const AttentionPlan> compiled(const Pattern& pattern, const PlanSizes& sizes) {
  const bool has_predicate = any_member(pattern, [](auto, const auto& member) {
    return requires {
      member.sees;
    };
  });
  if (has_predicate) return std::make_shared<const AttentionPlan>(compile(pattern, sizes));
  struct Entry {
    Pattern pattern;
    PlanSizes sizes;
    std::shared_ptr<const AttentionPlan> plan;
  };
  static std::mutex mutex;
  static std::list<Entry> entries;  // the most recently used first
  constexpr size_t kKept = 32;
  PlanSizes key = sizes;
  if (!by_batch(pattern)) key.batch = 1;
  const std::lock_guard lock(mutex);
  for (auto entry = entries.begin(); entry != entries.end(); ++entry)
    if (entry->sizes == key && entry->pattern == pattern) {
      entries.splice(entries.begin(), entries, entry);
      return entry->plan;
    }
  entries.push_front({pattern, key, std::make_shared<const AttentionPlan>(compile(pattern, sizes))});
  if (entries.size() > kKept) entries.pop_back();
  return entries.front().plan;
}

int64_t visited_pairs(const AttentionPlan& plan, int64_t batch, int64_t heads) {
  int64_t pairs = 0;
  for (const PlanTile& tile : plan.tiles)
    for (int32_t s = tile.segment_begin; s < tile.segment_end; ++s) {
      const PlanSegment& segment = plan.segments[s];
      if (segment.mask == SegmentMask::full) {
        pairs += int64_t{tile.row_count} * segment.key_count;
      } else if (segment.mask == SegmentMask::interval) {
        const int32_t* pair = plan.intervals.data() + segment.mask_offset;
        for (int32_t r = 0; r < tile.row_count; ++r) pairs += pair[2 * r + 1] - pair[2 * r];
      } else {
        const int64_t words = (tile.row_count + 31) / 32 * segment.key_count;
        for (int64_t w = 0; w < words; ++w) pairs += std::popcount(plan.bits[segment.mask_offset + w]);
      }
    }
  return pairs * (plan.batch_groups > 1 ? 1 : batch) * (plan.head_groups > 1 ? 1 : heads);
}

}  // namespace fovea
