#include "infer/decode_all.h"

#include <gtest/gtest.h>

#include "base/parallel.h"
#include "infer/transformer_decoder.h"

namespace fovea {
namespace {

TEST(DecodeAll, BatchesAndThreadsChangeNothing) {
  Rng rng(4);
  const models::Transformer model({.source_vocabulary = 30,
                                   .target_vocabulary = 30,
                                   .width = 24,
                                   .heads = 3,
                                   .hidden = 40,
                                   .encoder_layers = 1,
                                   .decoder_layers = 1},
                                  rng);
  const TransformerInference inference(model);
  std::vector<std::vector<int32_t>> sources;
  std::vector<int32_t> limits;
  for (int i = 0; i < 23; ++i) {
    std::vector<int32_t>& source = sources.emplace_back();
    for (uint64_t j = rng.below(9); j > 0; --j) source.push_back(static_cast<int32_t>(4 + rng.below(26)));
    limits.push_back(source.empty() ? 0 : 12);
    source.push_back(data::kEnd);
  }
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
