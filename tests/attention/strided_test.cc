// Masks given as data, and attention on raw memory: against the definition and against attend().
#include "attention/strided.h"

#include <gtest/gtest.h>

#include <numeric>

#include "attention/attention.h"
#include "attention/compile.h"
#include "base/error.h"
#include "base/rng.h"

namespace fovea {
namespace {

// Which keys each row of a group visits, read from the plan.
std::vector<std::vector<bool>> visited(const kernels::AttentionPlan& plan, int64_t batch, int64_t head) {
  std::vector<std::vector<bool>> rows(plan.query_count, std::vector<bool>(plan.key_count));
  const int64_t group =
      (plan.batch_groups > 1 ? batch : 0) * plan.head_groups + (plan.head_groups > 1 ? head : 0);
  for (int32_t t = plan.group_tiles[group]; t < plan.group_tiles[group + 1]; ++t) {
    const kernels::PlanTile& tile = plan.tiles[t];
    for (int32_t s = tile.segment_begin; s < tile.segment_end; ++s) {
      const kernels::PlanSegment& segment = plan.segments[s];
      const int32_t words = (tile.row_count + 31) / 32;
      for (int32_t r = 0; r < tile.row_count; ++r)
        for (int32_t j = 0; j < segment.key_count; ++j) {
          bool sees = true;
          if (segment.mask == kernels::SegmentMask::interval) {
            const int32_t* pair = plan.intervals.data() + segment.mask_offset + 2 * r;
            sees = pair[0] <= j && j < pair[1];
          } else if (segment.mask == kernels::SegmentMask::bits) {
            sees = plan.bits[segment.mask_offset + j * words + r / 32] >> r % 32 & 1;
          }
          const int32_t key = segment.gather >= 0 ? plan.indices[segment.gather + j]
                                                  : segment.key_first + j * segment.key_step;
          if (sees) rows[tile.row_first + r * tile.row_step][key] = true;
        }
    }
  }
  return rows;
}

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
          const auto rows = visited(plan, b, h);
          for (int64_t i = 0; i < own.queries; ++i)
            for (int64_t j = 0; j < own.keys; ++j)
              ASSERT_EQ(rows[i][j],
                        bits.at(b, h, i, j) && allowed(pattern, {own.queries, own.keys, b, h, i, j}))
                  << pattern << " mask " << m.batches << 'x' << m.heads << 'x' << m.queries << " at " << b
                  << ' ' << h << ' ' << i << ' ' << j;
        }
    }
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

StridedInput input_of(const Tensor& t) {
  StridedInput in{.data = t.data(), .rank = t.rank(), .present = true};
  for (int i = 0; i < t.rank(); ++i) {
    in.sizes[i] = t.size(i);
    in.strides[i] = t.stride(i);
  }
  return in;
}
StridedOutput output_of(const Tensor& t) {
  const StridedInput in = input_of(t);
  return {t.data(), in.rank, in.sizes, in.strides, true};
}

Tensor random_tensor(const Shape& shape, uint64_t seed) {
  const Tensor t(shape);
  for (int64_t i = 0; i < t.count(); ++i)
    t.data()[i] = static_cast<float>((i * 7919 + static_cast<int64_t>(seed) * 104729) % 2003) / 1001.5f - 1;
  return t;
}

// attention/attention.h says what is right, on the same numbers.
class AgainstAttend : public testing::TestWithParam<const char*> {};

TEST_P(AgainstAttend, ForwardAndGradientsAreTheSameBits) {
  const AttentionSpec spec = parse_spec(GetParam());
  const int64_t batch = 2, heads = 4, queries = 33, keys = 47, d = 8;
  // Heads beside each other in memory: strided views.
  const Tensor q = random_tensor({batch, queries, heads, d}, 1).transpose(1, 2);
  const Tensor k = random_tensor({batch, keys, 2, d}, 2).transpose(1, 2);
  const Tensor v = random_tensor({batch, keys, 2, 6}, 3).transpose(1, 2);
  const Tensor bias = random_tensor({heads, 1, keys}, 4), sink = random_tensor({heads}, 5);
  const Tensor relative = random_tensor({8, heads}, 6), W = random_tensor({d, d}, 7);
  const bool bilinear = spec.score.kind == ScoreKind::bilinear;
  const auto optional = [](bool wanted, const Tensor& t) { return wanted ? Var(t, true) : Var(); };
  const AttentionParameters parameters{.W = optional(bilinear, W),
                                       .bias = optional(spec.terms.bias, bias),
                                       .relative = optional(spec.terms.relative.buckets != 0, relative),
                                       .sink = optional(spec.terms.sink, sink)};
  const Var vq(q, true), vk(k, true), vv(v, true);
  const AttentionResult wanted =
      attend(vq, vk, vv, spec, {.parameters = parameters, .training = true, .seed = 9, .lse = true});
  const Tensor d_out = random_tensor({batch, heads, queries, 6}, 8);
  wanted.output.backward(d_out);

  StridedInputs in{.q = input_of(q), .k = input_of(k), .v = input_of(v)};
  StridedGradients to;
  const auto give = [](const Var& var, StridedInput& input, StridedOutput& gradient, const Tensor& memory) {
    if (!var.defined()) return;
    input = input_of(var.value());
    gradient = output_of(memory);
  };
  const Tensor d_bias(bias.shape()), d_sink(sink.shape()), d_relative(relative.shape()), d_W(W.shape());
  give(parameters.bias, in.bias, to.bias, d_bias);
  give(parameters.sink, in.sink, to.sink, d_sink);
  give(parameters.relative, in.relative, to.relative, d_relative);
  give(parameters.W, in.W, to.W, d_W);
  const Tensor dq = Tensor::laid_out_like(q), dk = Tensor::laid_out_like(k), dv = Tensor::laid_out_like(v);
  to.q = output_of(dq);
  to.k = output_of(dk);
  to.v = output_of(dv);
  PreparedCache cache(2);
  const AttentionText text{.spec = GetParam(), .training = true};
  const auto prepared = cache.prepare(text, attention_sizes(in.q, in.k, in.v));
  EXPECT_EQ(prepared, cache.prepare(text, attention_sizes(in.q, in.k, in.v)));
  const Tensor out({batch, heads, queries, 6}), lse({batch, heads, queries});
  const StridedResults results{.out = output_of(out), .lse = lse.data()};
  prepared->forward(in, results, 9);
  prepared->backward(in, results, input_of(d_out), to, 9);
  EXPECT_EQ(out.to_vector(), wanted.output.value().to_vector());
  EXPECT_EQ(lse.to_vector(), wanted.lse.to_vector());
  EXPECT_EQ(dq.to_vector(), vq.grad().to_vector());
  EXPECT_EQ(dk.to_vector(), vk.grad().to_vector());
  EXPECT_EQ(dv.to_vector(), vv.grad().to_vector());
  if (parameters.bias.defined()) EXPECT_EQ(d_bias.to_vector(), parameters.bias.grad().to_vector());
  if (parameters.sink.defined()) EXPECT_EQ(d_sink.to_vector(), parameters.sink.grad().to_vector());
  if (parameters.relative.defined())
    EXPECT_EQ(d_relative.to_vector(), parameters.relative.grad().to_vector());
  if (bilinear) EXPECT_EQ(d_W.to_vector(), parameters.W.grad().to_vector());
}

INSTANTIATE_TEST_SUITE_P(
    Strided, AgainstAttend,
    testing::Values("scaled_dot / causal / soft", "dot + soft_cap(5) + bias + sink / window(9,2) / soft(0.2)",
                    "scaled_dot + alibi / strided(3) / soft", "scaled_dot + relative(8,20) / full / soft",
                    "scaled_dot + relative(8,20) + bias / causal / soft", "scaled_dot / full / top_k(5)",
                    "scaled_dot / full / sparsemax", "cosine(0.3) / causal / soft", "bilinear / full / soft",
                    "scaled_dot / causal / gumbel(0.5)"));

TEST(Strided, PreparedForOtherSizesIsRefused) {
  const Tensor q = random_tensor({1, 2, 3, 4}, 1), longer = random_tensor({1, 2, 5, 4}, 1);
  PreparedCache cache(2);
  const auto prepared =
      cache.prepare({.spec = "dot"}, attention_sizes(input_of(q), input_of(q), input_of(q)));
  const Tensor out(q.shape());
  EXPECT_THROW(
      prepared->forward({.q = input_of(longer), .k = input_of(q), .v = input_of(q)}, {.out = output_of(out)}),
      Error);
  EXPECT_THROW(cache.prepare({.spec = "dot", .lengths = {9}}, prepared->sizes()), Error);
}

}  // namespace
}  // namespace fovea
