#include "infer/decode_all.h"

#include <gtest/gtest.h>

#include "base/parallel.h"
#include "models/bahdanau.h"
#include "models/luong.h"
#include "models/transformer.h"

namespace fovea {
namespace {

struct Work {
  explicit Work(Rng& rng) {
    for (int i = 0; i < 23; ++i) {
      std::vector<int32_t>& source = sources.emplace_back();
      for (uint64_t j = rng.below(9); j > 0; --j) source.push_back(static_cast<int32_t>(4 + rng.below(26)));
      limits.push_back(source.empty() ? 0 : 12);
      source.push_back(data::kEnd);
    }
  }
  std::vector<std::vector<int32_t>> sources;
  std::vector<int32_t> limits;
};

models::TransformerConfig small_config() {
  return {.source_vocabulary = 30,
          .target_vocabulary = 30,
          .width = 24,
          .heads = 3,
          .hidden = 40,
          .encoder_layers = 1,
          .decoder_layers = 1};
}

template <class Config>
Config small() {
  Config config;
  config.source_vocabulary = config.target_vocabulary = 30;
  config.width = 24;
  config.embedding = 16;
  return config;
}

TEST(DecodeAll, GreedySearchFindsTheSameWithScoresAndWithout) {
  Rng rng(5);
  const models::Transformer transformer(small_config(), rng);
  const models::Bahdanau bahdanau(small<models::BahdanauConfig>(), rng);
  const models::Luong luong(small<models::LuongConfig>(), rng);
  const Work work(rng);
  for (const models::TranslationModel* model :
       std::initializer_list<const models::TranslationModel*>{&transformer, &bahdanau, &luong}) {
    for (const Compute compute : {Compute::float32, Compute::int8}) {
      const Inference inference(*model, compute);
      BeamOptions options{.beam = 1, .begin = data::kBegin, .end = data::kEnd};
      const auto wanted = decode_all(inference, work.sources, work.limits, options);
      options.scores = false;
      const auto found = decode_all(inference, work.sources, work.limits, options);
      for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i][0].tokens, wanted[i][0].tokens);
    }
  }
}

TEST(DecodeAll, BatchesAndThreadsChangeNothing) {
  Rng rng(4);
  const models::Transformer model(small_config(), rng);
  const Inference inference(model);
  const Work work(rng);
  const auto& sources = work.sources;
  const auto& limits = work.limits;
  const BeamOptions options{.beam = 3, .n_best = 2, .begin = data::kBegin, .end = data::kEnd};
  const int before = num_threads();
  std::vector<std::vector<Hypothesis>> alone;
  for (size_t i = 0; i < sources.size(); ++i)
    alone.push_back(
        decode_all(inference, std::span(sources).subspan(i, 1), std::span(limits).subspan(i, 1), options)[0]);
  for (const int threads : {1, 2, 3}) {
    set_num_threads(threads);
    for (const BatchLimits& batches :
         {BatchLimits{}, BatchLimits{.sentences = 4}, BatchLimits{.tokens = 20}}) {
      const auto found = decode_all(inference, sources, limits, options, batches);
      ASSERT_EQ(found.size(), sources.size());
      for (size_t i = 0; i < found.size(); ++i) {
        ASSERT_EQ(found[i].size(), alone[i].size());
        for (size_t j = 0; j < found[i].size(); ++j) {
          EXPECT_EQ(found[i][j].tokens, alone[i][j].tokens);
          EXPECT_EQ(found[i][j].score, alone[i][j].score);
        }
      }
    }
  }
  set_num_threads(before);
  EXPECT_TRUE(decode_all(inference, {}, {}, options).empty());
}

}  // namespace
}  // namespace fovea
