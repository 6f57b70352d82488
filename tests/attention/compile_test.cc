#include "attention/compile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <set>

#include "attention/spec.h"
#include "base/error.h"
#include "base/rng.h"

namespace fovea {
namespace {

using kernels::AttentionPlan;
using kernels::SegmentMask;
using testing::HasSubstr;

// How often a group's tiles visit each pair, and how often each row stands in a tile.
struct Visits {
  std::vector<int> rows;   // [queries]
  std::vector<int> pairs;  // [queries, keys]
};

Visits visits(const AttentionPlan& plan, int64_t group) {
  Visits seen{std::vector<int>(plan.query_count), std::vector<int>(plan.query_count * plan.key_count)};
  for (int32_t t = plan.group_tiles[group]; t < plan.group_tiles[group + 1]; ++t) {
    const auto& tile = plan.tiles[t];
    EXPECT_LE(tile.row_count, kernels::kMaxTileRows);
    EXPECT_GT(tile.row_count, 0);
    for (int32_t r = 0; r < tile.row_count; ++r) {
      const int64_t row = tile.row_first + int64_t{r} * tile.row_step;
      ++seen.rows.at(row);
      for (int32_t s = tile.segment_begin; s < tile.segment_end; ++s) {
        const auto& segment = plan.segments[s];
        EXPECT_GT(segment.key_count, 0);
        for (int32_t j = 0; j < segment.key_count; ++j) {
          const int64_t key = segment.gather >= 0 ? plan.indices.at(segment.gather + j)
                                                  : segment.key_first + int64_t{j} * segment.key_step;
          bool visible = true;
          if (segment.mask == SegmentMask::interval) {
            visible = plan.intervals.at(segment.mask_offset + 2 * r) <= j &&
                      j < plan.intervals.at(segment.mask_offset + 2 * r + 1);
          } else if (segment.mask == SegmentMask::bits) {
            const int32_t words = (tile.row_count + 31) / 32;
            visible = plan.bits.at(segment.mask_offset + j * words + r / 32) >> r % 32 & 1;
          }
          if (visible) ++seen.pairs.at(row * plan.key_count + key);
        }
      }
    }
  }
  return seen;
}

// Keys a tile's segments name, visible or not: none may be named twice.
void expect_no_repeated_key(const AttentionPlan& plan, const std::string& what) {
  for (const auto& tile : plan.tiles) {
    std::vector<int> named(plan.key_count);
    for (int32_t s = tile.segment_begin; s < tile.segment_end; ++s) {
      const auto& segment = plan.segments[s];
      for (int32_t j = 0; j < segment.key_count; ++j)
        ++named.at(segment.gather >= 0 ? plan.indices[segment.gather + j]
                                       : segment.key_first + int64_t{j} * segment.key_step);
    }
    for (const int count : named) ASSERT_LE(count, 1) << what;
  }
}

void expect_exact(const Pattern& pattern, const PlanSizes& sizes) {
  const AttentionPlan plan = compile(pattern, sizes);
  const std::string what = message(pattern, " on ", sizes.queries, " x ", sizes.keys, ", batch ", sizes.batch,
                                   ", heads ", sizes.heads, ", tile ", sizes.tile_rows);
  ASSERT_EQ(plan.group_tiles.size(), static_cast<size_t>(plan.batch_groups * plan.head_groups + 1)) << what;
  expect_no_repeated_key(plan, what);
  int64_t pairs = 0;
  for (int64_t b = 0; b < sizes.batch; ++b)
    for (int64_t h = 0; h < sizes.heads; ++h) {
      const int64_t group =
          (plan.batch_groups > 1 ? b : 0) * plan.head_groups + (plan.head_groups > 1 ? h : 0);
      const Visits seen = visits(plan, group);
      for (int64_t i = 0; i < sizes.queries; ++i) {
        ASSERT_EQ(seen.rows[i], 1) << what << ", row " << i;
        for (int64_t j = 0; j < sizes.keys; ++j) {
          const bool wanted = allowed(
              pattern,
              {.queries = sizes.queries, .keys = sizes.keys, .batch = b, .head = h, .query = i, .key = j});
          pairs += wanted;
          ASSERT_EQ(seen.pairs[i * sizes.keys + j], wanted)
              << what << ", batch " << b << ", head " << h << ", query " << i << ", key " << j;
        }
      }
    }
  ASSERT_EQ(visited_pairs(plan, sizes.batch, sizes.heads), pairs) << what;
}

std::vector<int64_t> cut_into(Rng& rng, int64_t tokens, int64_t pieces) {
  std::vector<int64_t> out;
  for (; pieces > 1; --pieces) {
    out.push_back(rng.below(tokens + 1));
    tokens -= out.back();
  }
  out.push_back(tokens);
  return out;
}

Pattern random_pattern(Rng& rng, const PlanSizes& sizes, int depth) {
  const auto n = [&](int64_t bound) { return rng.below(bound); };
  const auto align = [&] { return n(3) == 0 ? Align::top_left : Align::bottom_right; };
  const auto part = [&] { return random_pattern(rng, sizes, depth - 1); };
  switch (n(depth > 0 ? 21 : 13)) {
    case 0:
      return full();
    case 1:
      return causal(align());
    case 2:
      return window(n(40), n(40), 1, align());
    case 3:
      return window(n(9), n(9), 1 + n(7), align());
    case 4:
      return strided(1 + n(40), align());
    case 5: {
      const int64_t stride = 1 + n(60);
      return fixed(stride, n(std::min<int64_t>(stride, 5) + 1));
    }
    case 6:
      return block_window(1 + n(70), n(3), n(3));
    case 7:
      if (n(2)) return global_keys({{n(9), 9 + n(9)}, {n(sizes.keys + 9), sizes.keys + 9}});
      return global({n(sizes.keys + 9), n(sizes.keys + 1), n(9)});
    case 8:
      return random_blocks(1 + n(50), 1 + n(4), n(1000));
    case 9: {
      const int64_t block = 1 + n(60);
      std::vector<std::string> rows((sizes.queries + block) / block,
                                    std::string((sizes.keys + block) / block, '0'));
      for (std::string& row : rows)
        for (char& bit : row) bit = n(3) ? '0' : '1';
      return layout(block, rows);
    }
    case 10: {
      std::vector<int64_t> keys(sizes.batch);
      for (int64_t& length : keys) length = n(sizes.keys + 1);
      return lengths(keys);
    }
    case 11: {
      const int64_t count = 1 + n(6);
      return documents(cut_into(rng, sizes.queries, count), cut_into(rng, sizes.keys, count));
    }
    case 12: {
      const int64_t a = 1 + n(5), b = n(7);
      return predicate("p", [a, b](int64_t h, int64_t i, int64_t j) { return (i * a + j * 3 + h) % 7 <= b; });
    }
    case 13:
    case 14:
      return part() | part();
    case 15:
    case 16:
      return part() & part();
    case 17: {
      std::vector<int64_t> queries(sizes.batch);
      for (int64_t& length : queries) length = n(sizes.queries + 1);
      return query_lengths(queries) & part();
    }
    case 18: {
      // Lengths of the whole mean nothing inside a document.
      const auto tokens = cut_into(rng, sizes.queries, 1 + n(6));
      if (sizes.queries != sizes.keys) return part();
      try {
        std::vector<Pattern> parts;
        for (size_t d = 0; d < (n(2) ? 1 : tokens.size()); ++d) parts.push_back(part());
        return within(tokens, std::move(parts));
      } catch (const Error&) {
        return within(tokens, window(n(9), n(9)) | global({n(9)}) | random_blocks(1 + n(20), 1, n(9)));
      }
    }
    case 19: {
      if (sizes.queries != sizes.keys) return part();
      const auto tokens = cut_into(rng, sizes.queries, 1 + n(6));
      std::vector<Pattern> each;
      for (size_t i = 0; i < tokens.size(); ++i)
        each.push_back(n(2) ? window(n(9), n(9)) | global({n(9), n(40)}) : causal() & window(n(20), 0));
      return within(tokens, each);
    }
    default:
      return heads(n(2) ? std::vector{part(), part()} : std::vector{part()});
  }
}

TEST(Compile, VisitsExactlyTheAllowedPairsOnce) {
  Rng rng(11);
  for (int i = 0; i < 2500; ++i) {
    PlanSizes sizes{.queries = 1 + rng.below(i % 8 ? 70 : 300), .batch = 1 + rng.below(2), .heads = 2};
    sizes.keys = rng.below(2) ? sizes.queries : 1 + rng.below(150);
    if (rng.below(3) == 0) sizes.tile_rows = 1 + rng.below(192);
    expect_exact(random_pattern(rng, sizes, static_cast<int>(rng.below(4))), sizes);
    if (HasFatalFailure()) return;
  }
}

TEST(Compile, VisitsExactlyTheAllowedPairsOfTheNamedShapes) {
  const PlanSizes sizes{.queries = 500, .keys = 500, .heads = 2};
  for (const char* text :
       {"full", "causal", "window(64,64)", "causal & window(100,0)", "window(16,16,4) | global(0,250)",
        "causal & (window(32,0) | strided(32))", "causal & strided(32)", "causal & fixed(64,4)",
        "block_window(64,1,1) | random_blocks(64,3,1) | global(0..63)",
        "causal & (window(50,0) | global(0..3))", "heads(window(10,10); window(10,10,3))"}) {
    expect_exact(parse_pattern(text), sizes);
    if (HasFatalFailure()) return;
  }
}

TEST(Compile, EmptySidesGiveTilesThatSeeNothing) {
  for (const int64_t queries : {0, 3})
    for (const int64_t keys : {0, 5})
      for (const char* text : {"full", "causal", "window(2,2,3)", "strided(3)", "fixed(4,1)", "global(0)",
                               "block_window(2,1,1)", "random_blocks(2,3,1)", "lengths(0)"})
        expect_exact(parse_pattern(text), {.queries = queries, .keys = keys});
}

// What a kernel is handed decides its speed: these shapes are the reason the plan looks as it does.
TEST(Compile, ADilatedWindowIsAPlainOneInItsResidueClass) {
  const AttentionPlan plan = compile(window(8, 8, 4), {.queries = 400, .keys = 400});
  for (const auto& tile : plan.tiles) EXPECT_EQ(tile.row_step, 4);
  for (const auto& segment : plan.segments) {
    EXPECT_EQ(segment.key_step, 4);
    EXPECT_NE(segment.mask, SegmentMask::bits);
  }
}

TEST(Compile, BigBirdBlocksAreFullSegments) {
  const AttentionPlan plan = compile(block_window(64, 1, 1) | random_blocks(64, 3, 1) | global_range(0, 63),
                                     {.queries = 2048, .keys = 2048});
  for (const auto& segment : plan.segments) EXPECT_EQ(segment.mask, SegmentMask::full);
  EXPECT_TRUE(plan.indices.empty());
}

TEST(Compile, GlobalTokensAreGatheredAndTheirRowsStandApart) {
  const AttentionPlan plan = compile(window(32, 32) | global({0, 100, 900}), {.queries = 1024, .keys = 1024});
  int64_t all_seeing = 0;
  for (const auto& tile : plan.tiles)
    for (int32_t s = tile.segment_begin; s < tile.segment_end; ++s)
      if (plan.segments[s].key_count == 1024) all_seeing += tile.row_count;
  EXPECT_EQ(all_seeing, 3);
  EXPECT_FALSE(plan.indices.empty());
}

TEST(Compile, OnlyTheDiagonalOfACausalPlanIsMasked) {
  const AttentionPlan plan = compile(causal(), {.queries = 4096, .keys = 4096});
  int64_t masked = 0, full_keys = 0;
  for (const auto& segment : plan.segments)
    (segment.mask == SegmentMask::full ? full_keys : masked) += segment.key_count;
  EXPECT_LE(masked, 4096);
  EXPECT_GT(full_keys, 4 * masked);
}

TEST(Compile, LargeStructuredPatternsStayLinear) {
  const int64_t n = 65536;
  const PlanSizes sizes{.queries = n, .keys = n};
  for (const char* text : {"causal", "window(256,256)", "window(256,256) | global(0..7)", "window(64,64,4)",
                           "block_window(64,1,1) | random_blocks(64,3,1) | global(0..127)"}) {
    const auto start = std::chrono::steady_clock::now();
    const AttentionPlan plan = compile(parse_pattern(text), sizes);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    EXPECT_LT(seconds, 2) << text;
    const size_t bytes = plan.tiles.size() * sizeof plan.tiles[0] +
                         plan.segments.size() * sizeof plan.segments[0] +
                         4 * (plan.indices.size() + plan.intervals.size() + plan.bits.size());
    EXPECT_LT(bytes, 64 * n) << text;
    RecordProperty(text, static_cast<int>(seconds * 1e6));
    if (std::getenv("FOVEA_SHOW_TIMES"))
      std::printf("%-60s %.0f us, %zu bytes\n", text, seconds * 1e6, bytes);
  }
}

TEST(Compile, EqualPatternsShareOnePlan) {
  const PlanSizes sizes{.queries = 64, .keys = 64};
  EXPECT_EQ(compiled(causal() & window(9, 0), sizes), compiled(parse_pattern("causal & window(9,0)"), sizes));
  EXPECT_EQ(compiled(documents({60, 4}), sizes), compiled(documents({60, 4}), sizes));
  EXPECT_NE(compiled(documents({60, 4}), sizes), compiled(documents({59, 5}), sizes));
  EXPECT_NE(compiled(causal(), sizes), compiled(causal(), {.queries = 64, .keys = 65}));
}

std::string error_of(const Pattern& pattern, const PlanSizes& sizes) {
  try {
    compile(pattern, sizes);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Compile, APatternThatDoesNotFitIsOneError) {
  const PlanSizes sizes{.queries = 10, .keys = 20, .batch = 2, .heads = 4};
  EXPECT_THAT(error_of(lengths({1}), sizes), HasSubstr("got 1 for a batch of 2"));
  EXPECT_THAT(error_of(lengths({1, 21}), sizes), HasSubstr("got 21 of 20 keys"));
  EXPECT_THAT(error_of(documents({10}, {19}), sizes), HasSubstr("got 19 tokens for 20 keys"));
  EXPECT_THAT(error_of(heads({full(), full(), full()}), sizes), HasSubstr("got 3 patterns for 4 heads"));
  EXPECT_THAT(error_of(layout(8, {"1"}), sizes), HasSubstr("got 1 x 1 blocks of 8"));
}

TEST(RandomBlocks, AreDrawnInTimeThatGrowsWithTheirNumber) {
  const std::clock_t before = std::clock();
  const AttentionPlan plan = compile(random_blocks(1, 2000, 1), {.queries = 4096, .keys = 4096, .heads = 64});
  EXPECT_LT(static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC, 3);
  EXPECT_EQ(visited_pairs(plan, 1, 64), int64_t{64} * 4096 * 2000);
}

// Many blocks are drawn by another way than few: the same sets, sorted.
TEST(RandomBlocks, ManyAreThoseOfFloydsSampling) {
  for (const int64_t count : {1, 31, 32, 33, 40, 90, 99, 100, 500}) {
    const patterns::RandomBlocks random{.block = 1, .count = count, .seed = 7};
    Rng rng = Rng(7).split(3);
    std::set<int64_t> wanted;
    for (int64_t last = 100 - std::min<int64_t>(count, 100); last < 100; ++last) {
      const int64_t draw = rng.below(last + 1);
      wanted.insert(wanted.count(draw) ? last : draw);
    }
    EXPECT_EQ(random_choice(random, 3, 100), std::vector<int64_t>(wanted.begin(), wanted.end())) << count;
  }
}

TEST(RandomBlocks, AreTheSameForTheSameSeedAndFairOverAll) {
  const patterns::RandomBlocks random{.block = 1, .count = 3, .seed = 7};
  std::vector<int> seen(10);
  for (int64_t block = 0; block < 3000; ++block) {
    const auto chosen = random_choice(random, block, 10);
    ASSERT_EQ(chosen.size(), 3u);
    ASSERT_EQ(chosen, random_choice(random, block, 10));
    for (const int64_t b : chosen) ++seen[b];
  }
  for (const int count : seen) EXPECT_NEAR(count, 900, 120);
}

// A mask of arbitrary bits, and what it says.
struct Bits {
  explicit Bits(const KeyMask::Sizes& s, uint64_t seed)
      : sizes(s), bytes(s.batches * s.heads * s.queries * s.keys) {
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = (i * 2654435761u + seed * 97) >> 7 & 3 ? 1 : 0;
  }
  KeyMask mask() const {
    return KeyMask::from_bools(
        {bytes.data(), {sizes.heads * sizes.queries * sizes.keys, sizes.queries * sizes.keys, sizes.keys, 1}},
        sizes);
  }
  bool at(int64_t b, int64_t h, int64_t i, int64_t j) const {
    b = sizes.batches == 1 ? 0 : b;
    h = sizes.heads == 1 ? 0 : h;
    i = sizes.queries == 1 ? 0 : i;
    return bytes[((b * sizes.heads + h) * sizes.queries + i) * sizes.keys + j] != 0;
  }
  KeyMask::Sizes sizes;
  std::vector<uint8_t> bytes;
};

TEST(KeyMask, APlanVisitsWhatMaskAndPatternBothAllow) {
  const PlanSizes sizes{.queries = 61, .keys = 75, .batch = 2, .heads = 4};
  const Pattern patterns[] = {full(),
                              causal(),
                              window(9, 3),
                              window(4, 4, 3),
                              strided(5) | global({0}),
                              lengths({40, 75}),
                              heads({window(7, 0), full()}),
                              within({20, 41}, causal()) /* fits 61 keys alone */};
  for (const KeyMask::Sizes& m : {KeyMask::Sizes{1, 1, 1, 75}, {2, 1, 1, 75}, {1, 4, 61, 75}, {2, 4, 61, 75}})
    for (const Pattern& pattern : patterns) {
      PlanSizes own = sizes;
      KeyMask::Sizes of_mask = m;
      if (std::holds_alternative<patterns::Within>(pattern.node())) own.keys = of_mask.keys = 61;
      const Bits bits(of_mask, 3);
      const KeyMask mask = bits.mask();
      const kernels::AttentionPlan plan = compile(pattern, own, &mask);
      for (int64_t b = 0; b < own.batch; ++b)
        for (int64_t h = 0; h < own.heads; ++h) {
          const int64_t group =
              (plan.batch_groups > 1 ? b : 0) * plan.head_groups + (plan.head_groups > 1 ? h : 0);
          const Visits seen = visits(plan, group);
          EXPECT_THAT(seen.rows, testing::Each(1));
          for (int64_t i = 0; i < own.queries; ++i)
            for (int64_t j = 0; j < own.keys; ++j)
              ASSERT_EQ(seen.pairs[i * own.keys + j] == 1,
                        bits.at(b, h, i, j) && allowed(pattern, {own.queries, own.keys, b, h, i, j}))
                  << pattern << " mask " << m.batches << 'x' << m.heads << 'x' << m.queries << " at " << b
                  << ' ' << h << ' ' << i << ' ' << j;
        }
    }
}

TEST(KeyMask, ABatchWithoutEntriesHasAPlanThatVisitsNothing) {
  const KeyMask mask = Bits({.batches = 0, .heads = 1, .queries = 5, .keys = 9}, 1).mask();
  const kernels::AttentionPlan plan =
      compile(causal(), {.queries = 5, .keys = 9, .batch = 0, .heads = 2}, &mask);
  EXPECT_EQ(visited_pairs(plan, 1, 1), 0);
}

TEST(KeyMask, RowsAreJoinedInOrder) {
  const Bits all({.batches = 2, .heads = 3, .queries = 10, .keys = 9}, 5);
  const KeyMask whole = all.mask();
  const auto part = [&](int64_t first, int64_t count) {
    return KeyMask::from_bools({all.bytes.data() + first * 9, {270, 90, 9, 1}},
                               {.batches = 2, .heads = 3, .queries = count, .keys = 9});
  };
  const KeyMask a = part(0, 4), b = part(4, 6), other = Bits({.keys = 9}, 5).mask();
  const KeyMask* parts[] = {&a, &b};
  const KeyMask joined = KeyMask::join_rows(parts);
  for (int64_t i = 0; i < 60; ++i) {
    const auto found = joined.row(i / 30, i / 10 % 3, i % 10), wanted = whole.row(i / 30, i / 10 % 3, i % 10);
    EXPECT_TRUE(std::equal(found.begin(), found.end(), wanted.begin(), wanted.end())) << i;
  }
  const KeyMask* wrong[] = {&a, &other};
  EXPECT_THROW(KeyMask::join_rows(wrong), Error);
}

TEST(KeyMask, BlocksAreReadAsListed) {
  // Two blocks of 4 rows (the last cut to 3) and three of 5 keys (the last cut to 2).
  const std::vector<int32_t> full_counts{1, 0}, full_indices{0, 0, 0, 0, 0, 0}, partial_counts{1, 2},
      partial_indices{2, 0, 0, 1, 2, 0};
  std::vector<uint8_t> bits(3 * 20);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = i % 3 == 0;
  const KeyMask mask = KeyMask::from_blocks({.query_block = 4,
                                             .key_block = 5,
                                             .full = {full_counts, full_indices, 3},
                                             .partial = {partial_counts, partial_indices, 3},
                                             .bits = bits},
                                            {.queries = 7, .keys = 12});
  for (int64_t i = 0; i < 7; ++i)
    for (int64_t j = 0; j < 12; ++j) {
      const int64_t r = i % 4, block = j / 5;
      bool wanted = false;
      if (i < 4)
        wanted = block == 0 || (block == 2 && bits[r * 5 + j % 5]);
      else if (block > 0)
        wanted = bits[20 * block + r * 5 + j % 5];
      bool found = false;
      for (const Interval& piece : mask.row(0, 0, i)) found |= piece.begin <= j && j < piece.end;
      EXPECT_EQ(found, wanted) << i << ' ' << j;
    }
  const std::vector<int32_t> wrong{0, 7, 0, 1, 9, 0};
  EXPECT_THROW(KeyMask::from_blocks({.query_block = 4,
                                     .key_block = 5,
                                     .full = {full_counts, full_indices, 3},
                                     .partial = {partial_counts, wrong, 3},
                                     .bits = bits},
                                    {.queries = 7, .keys = 12}),
               Error);
  EXPECT_THROW(KeyMask::from_blocks({.query_block = 4,
                                     .key_block = 5,
                                     .full = {full_counts, full_indices, 3},
                                     .partial = {partial_counts, partial_indices, 3},
                                     .bits = {}},
                                    {.queries = 7, .keys = 12}),
               Error);
}

}  // namespace
}  // namespace fovea
