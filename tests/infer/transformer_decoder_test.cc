#include "infer/inference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograd/ops.h"
#include "infer/beam_walk.h"
#include "models/transformer.h"

namespace fovea {
namespace {

models::TransformerConfig config(bool norm_first) {
  return {.source_vocabulary = 30,
          .target_vocabulary = 30,
          .width = 24,
          .heads = 3,
          .hidden = 40,
          .encoder_layers = 2,
          .decoder_layers = 2,
          .dropout = 0.3f,
          .norm_first = norm_first,
          .positions = norm_first ? "learned" : "sinusoid",
          .activation = norm_first ? "gelu" : "relu"};
}

struct Sources {
  std::vector<int32_t> ids, lengths;
  models::Sentences sentences() const { return {ids, lengths}; }
};

Sources draw_sources(Rng& rng, int count) {
  Sources sources;
  for (int i = 0; i < count; ++i) {
    const auto length = static_cast<int32_t>(1 + rng.below(9));
    for (int32_t j = 0; j + 1 < length; ++j) sources.ids.push_back(static_cast<int32_t>(4 + rng.below(26)));
    sources.ids.push_back(data::kEnd);
    sources.lengths.push_back(length);
  }
  return sources;
}

// Logits of the next token by the training code, from the whole prefix.
std::vector<float> uncached(const models::Transformer& model, std::vector<int32_t> source,
                            std::vector<int32_t> prefix) {
  const NoGrad no_grad;
  nn::Context context;
  data::Batch batch;
  batch.source_lengths = {static_cast<int32_t>(source.size())};
  batch.target_lengths = {static_cast<int32_t>(prefix.size())};
  batch.source = std::move(source);
  batch.target_in = batch.target_out = std::move(prefix);
  const Var hidden = model.states(batch, context);
  const Var last = slice(hidden, 0, hidden.size(0) - 1, 1);
  return linear(last, model.output).value().to_vector();
}

TEST(TransformerDecoding, CachedLogitsEqualThoseOfTheWholePrefix) {
  for (const bool norm_first : {false, true}) {
    Rng rng(4);
    const models::Transformer model(config(norm_first), rng);
    const Inference inference(model);
    const Sources sources = draw_sources(rng, 3);
    const auto decoder = inference.start(sources.sentences());
    testing::walk_as_a_beam(
        *decoder, rng, [&](size_t sentence, const std::vector<int32_t>& prefix, const float* logits) {
          const auto begin = std::accumulate(
              sources.lengths.begin(), sources.lengths.begin() + static_cast<long>(sentence), int64_t{0});
          const auto first = sources.ids.begin() + begin;
          const auto wanted = uncached(model, {first, first + sources.lengths[sentence]}, prefix);
          for (size_t c = 0; c < wanted.size(); ++c)
            ASSERT_NEAR(logits[c], wanted[c], 2e-5 * (1 + std::abs(wanted[c])));
        });
  }
}

TEST(TransformerDecoding, WeightsOfEightBitsSayNearlyTheSame) {
  Rng rng(4);
  const models::Transformer model(config(false), rng);
  const Sources sources = draw_sources(rng, 3);
  std::vector<std::vector<float>> said(2);
  for (const Compute compute : {Compute::float32, Compute::int8}) {
    const Inference inference(model, compute);
    const auto decoder = inference.start(sources.sentences());
    Rng moves(11);
    testing::walk_as_a_beam(*decoder, moves, [&](size_t, const std::vector<int32_t>&, const float* logits) {
      auto& all = said[compute == Compute::int8 ? 1 : 0];
      all.insert(all.end(), logits, logits + 30);
    });
  }
  EXPECT_NE(said[0], said[1]);
  EXPECT_LT(testing::relative_difference(said[1], said[0]), 0.05);
}

TEST(TransformerDecoding, ALineIsTranslatedTheSameInAnyBatch) {
  Rng rng(9);
  const models::Transformer model(config(false), rng);
  const Sources sources = draw_sources(rng, 12);
  const std::vector<int32_t> limits(12, 15);
  for (const Compute compute : {Compute::float32, Compute::int8}) {
    const Inference inference(model, compute);
    for (const int beam : {1, 4}) {
      const BeamOptions options{.beam = beam, .begin = data::kBegin, .end = data::kEnd};
      const auto together = beam_search(*inference.start(sources.sentences()), limits, options);
      size_t begin = 0;
      for (size_t s = 0; s < 12; ++s) {
        Sources one;
        one.lengths = {sources.lengths[s]};
        one.ids.assign(sources.ids.begin() + static_cast<long>(begin),
                       sources.ids.begin() + static_cast<long>(begin) + sources.lengths[s]);
        begin += static_cast<size_t>(sources.lengths[s]);
        const auto alone =
            beam_search(*inference.start(one.sentences()), std::span(limits).subspan(0, 1), options);
        EXPECT_EQ(alone[0][0].tokens, together[s][0].tokens);
        EXPECT_EQ(alone[0][0].score, together[s][0].score);
      }
    }
  }
}

}  // namespace
}  // namespace fovea
