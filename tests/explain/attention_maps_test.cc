#include "explain/attention_maps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"
#include "nn/init.h"

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;

constexpr float kClose = 1e-5f;

TokenLine line_of(std::vector<std::string> tokens) {
  TokenLine line;
  line.tokens = line.words = std::move(tokens);
  for (size_t i = 0; i < line.tokens.size(); ++i) line.word_of.push_back(static_cast<int32_t>(i));
  return line;
}

// Rows that sum to 1; causal ones see no later column.
WeightMatrix random_weights(int64_t rows, int64_t columns, bool causal, Rng& rng) {
  WeightMatrix weights = WeightMatrix::zeros(rows, columns);
  for (int64_t i = 0; i < rows; ++i) {
    float sum = 0;
    const int64_t end = causal ? i + 1 : columns;
    for (int64_t j = 0; j < end; ++j) sum += weights.at(i, j) = rng.uniform();
    for (int64_t j = 0; j < end; ++j) weights.at(i, j) /= sum;
  }
  return weights;
}

AttentionRecord random_record(int64_t layers, int64_t heads, Rng& rng) {
  AttentionRecord record;
  record.source = line_of({"a", "b", "c", "</s>"});
  record.target = line_of({"A", "B", "</s>"});
  record.fed = line_of({"<s>", "A", "B"});
  const int64_t rows[] = {4, 3, 3}, columns[] = {4, 3, 4};
  for (size_t k = 0; k < 3; ++k)
    for (int64_t l = 0; l < layers; ++l) {
      record.layers.push_back({kAttentionKinds[k], l, {}});
      for (int64_t h = 0; h < heads; ++h)
        record.layers.back().heads.push_back(random_weights(rows[k], columns[k], k == 1, rng));
    }
  return record;
}

void expect_rows_sum_to_one(const WeightMatrix& weights) {
  for (int64_t i = 0; i < weights.rows; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < weights.columns; ++j) {
      EXPECT_GE(weights.at(i, j), 0);
      sum += weights.at(i, j);
    }
    EXPECT_NEAR(sum, 1, 1e-5) << "row " << i;
  }
}

TEST(Rollout, RowsSumToOneForEveryKindAndDepth) {
  Rng rng(1);
  for (const int64_t layers : {1, 2, 6}) {
    const AttentionRecord record = random_record(layers, 3, rng);
    for (const AttentionKind kind : kAttentionKinds) {
      const WeightMatrix reached = rollout(record, kind);
      EXPECT_EQ(reached.rows, static_cast<int64_t>(record.rows(kind).tokens.size()));
      EXPECT_EQ(reached.columns, static_cast<int64_t>(record.columns(kind).tokens.size()));
      expect_rows_sum_to_one(reached);
    }
    const WeightMatrix back = rollout(record, AttentionKind::decoder);
    EXPECT_EQ(back.at(0, 1), 0) << "nothing reaches a word from later ones";
    EXPECT_EQ(back.at(1, 2), 0);
  }
}

TEST(Rollout, IsTheProductOfLayersHalvedWithTheIdentity) {
  AttentionRecord record;
  record.source = line_of({"a", "</s>"});
  record.layers = {{AttentionKind::encoder, 0, {{2, 2, {1, 0, 0.5f, 0.5f}}}},
                   {AttentionKind::encoder, 1, {{2, 2, {0, 1, 0, 1}}, {2, 2, {1, 0, 0, 1}}}}};
  // (A0 + 1) / 2 = [1 0; .25 .75]; A1 = [.5 .5; 0 1], (A1 + 1) / 2 = [.75 .25; 0 1].
  EXPECT_THAT(rollout(record, AttentionKind::encoder).values,
              ElementsAre(FloatNear(0.8125f, kClose), FloatNear(0.1875f, kClose), FloatNear(0.25f, kClose),
                          FloatNear(0.75f, kClose)));
}

TEST(Rollout, OfOneRowIsThatRowOfTheWhole) {
  Rng rng(8);
  for (const int64_t layers : {1, 3}) {
    AttentionRecord record = random_record(layers, 2, rng);
    // A row that sees nothing stays where it is.
    for (WeightMatrix& head : record.layers[0].heads) std::fill_n(head.values.begin() + 4, 4, 0.0f);
    for (const AttentionKind kind : {AttentionKind::encoder, AttentionKind::decoder}) {
      const WeightMatrix all = rollout(record, kind);
      for (int64_t i = 0; i < all.rows; ++i) {
        const std::vector<float> row = rollout_row(record, kind, i);
        ASSERT_EQ(static_cast<int64_t>(row.size()), all.columns);
        for (int64_t j = 0; j < all.columns; ++j)
          EXPECT_NEAR(row[static_cast<size_t>(j)], all.at(i, j), 1e-6);
      }
    }
  }
}

TEST(Rollout, OfOneRowNeedsOnlyTheRowsThatReachIt) {
  RolloutRow reached(3, 1);
  EXPECT_THAT(reached.rows(), ElementsAre(1));
  // Two heads that see token 2, which then reaches the row by a half.
  reached.add(reached.rows(), std::vector<float>{0, 0, 1, 0, 0, 1});
  reached.end_layer();
  EXPECT_THAT(reached.rows(), ElementsAre(1, 2));
  // The rows of a layer may come one by one.
  reached.add(std::vector<int32_t>{2}, std::vector<float>{0, 0, 1});
  reached.add(std::vector<int32_t>{1}, std::vector<float>{1, 0, 0});
  reached.end_layer();
  EXPECT_THAT(reached.shares(), ElementsAre(0.25f, 0.25f, 0.5f));
}

TEST(Rollout, OfOneCrossLayerWithoutAnEncoderIsThatLayer) {
  Rng rng(2);
  AttentionRecord record = random_record(1, 2, rng);
  record.layers.erase(record.layers.begin());
  const WeightMatrix want = head_average(*record.layers_of(AttentionKind::cross)[0]);
  const WeightMatrix got = rollout(record, AttentionKind::cross);
  for (size_t i = 0; i < want.values.size(); ++i) EXPECT_NEAR(got.values[i], want.values[i], kClose);
}

TEST(Rollout, IsRefusedWhereLayersDoNotStandOnEachOther) {
  Rng rng(3);
  AttentionRecord record = random_record(1, 1, rng);
  record.layers.erase(record.layers.begin(), record.layers.begin() + 2);
  EXPECT_FALSE(has_rollout(record, AttentionKind::cross));
  EXPECT_THROW(rollout(record, AttentionKind::cross), Error);
}

TEST(MergeWords, SumsOverWhatIsLookedAtAndAveragesOverWhatLooks) {
  const TokenLine rows{{"x1", "x2", "y"}, {"x", "y"}, {0, 0, 1}};
  const TokenLine columns{{"a", "b1", "b2"}, {"a", "b"}, {0, 1, 1}};
  const WeightMatrix merged = merge_words({3, 3, {0.2f, 0.3f, 0.5f, 0.6f, 0.4f, 0, 0, 0, 1}}, rows, columns);
  EXPECT_EQ(merged.rows, 2);
  EXPECT_THAT(merged.values, ElementsAre(FloatNear(0.4f, kClose), FloatNear(0.6f, kClose),
                                         FloatNear(0, kClose), FloatNear(1, kClose)));
  expect_rows_sum_to_one(merged);
}

TEST(AlignedPairs, TakeTheStrongestOrAllAboveAThresholdAndNeverAnEnd) {
  // The last row and column are the ends; the strongest weight of row 1 lies there.
  const WeightMatrix weights{3, 4, {0.1f, 0.5f, 0.4f, 0, 0.2f, 0.1f, 0.1f, 0.6f, 1, 0, 0, 0}};
  EXPECT_EQ(pharaoh(aligned_pairs(weights)), "1-0 0-1");
  EXPECT_EQ(pharaoh(aligned_pairs(weights, 0.15)), "1-0 2-0 0-1");
  EXPECT_EQ(pharaoh(aligned_pairs({1, 1, {1}})), "");
}

TEST(Choose, NamesTheLayersAndHeadsThereAre) {
  Rng rng(4);
  const AttentionRecord record = random_record(2, 3, rng);
  const auto message_of = [&](const AttentionChoice& choice) {
    try {
      choose(record, choice);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message_of({AttentionKind::cross, 1, 2}), "");
  EXPECT_THAT(message_of({AttentionKind::cross, 2, 0}),
              HasSubstr("layer: got 2, but cross attention has 0 to 1"));
  EXPECT_THAT(message_of({AttentionKind::encoder, 0, 3}),
              HasSubstr("head: got 3, but encoder attention has 0 to 2"));
}

TEST(AttentionFigure, HasEveryHeadTheirAverageAndRollout) {
  Rng rng(5);
  const AttentionRecord record = random_record(2, 3, rng);
  const Figure all = attention_figure(record, {AttentionKind::cross}, false);
  EXPECT_EQ(all.across, 4);
  ASSERT_EQ(all.panels.size(), 9u);
  EXPECT_EQ(all.panels[0].title, "layer 0, head 0");
  EXPECT_EQ(all.panels[7].title, "layer 1, average");
  EXPECT_EQ(all.panels[8].title, "rollout");
  EXPECT_THAT(all.panels[0].rows, ElementsAre("A", "B", "</s>"));
  EXPECT_TRUE(all.panels[1].rows.empty()) << "labels stand at the outer edges";
  EXPECT_EQ(attention_figure(record, {AttentionKind::cross, 1, 2}, false).panels.size(), 1u);
  EXPECT_EQ(attention_figure(record, {AttentionKind::cross, 1}, false).panels.size(), 4u);
}

TEST(HeatMapOfARecord, MarksGlobalTokensAndSaysItsNotes) {
  Rng rng(9);
  AttentionRecord record = random_record(1, 1, rng);
  record.source = {{"a1", "a2", "b", "</s>"}, {"a", "b", "</s>"}, {0, 0, 1, 2}};
  record.source.global = {0, 1, 3};
  record.notes = {"a note"};
  const HeatMap words = heat_map(record, {AttentionKind::encoder}, true);
  EXPECT_THAT(words.rows, ElementsAre("[a]", "b", "[</s>]"));
  EXPECT_THAT(words.notes, ElementsAre("a note"));
  EXPECT_THAT(heat_map(record, {AttentionKind::encoder}, false).columns,
              ElementsAre("[a1]", "[a2]", "b", "[</s>]"));
}

TEST(AttentionRecorder, ReadsKindAndLayerFromNamesAndJoinsSteps) {
  Rng rng(6);
  const auto random = [&](const Shape& shape) { return Var(nn::normal(shape, 0, 1, rng)); };
  AttentionRecorder recorder;
  {
    const ObserveAttention observe(recorder);
    EXPECT_EQ(attention_observer(), &recorder);
    const Var keys = random({1, 1, 5, 4});
    for (int step = 0; step < 3; ++step)
      attend(random({1, 1, 1, 4}), keys, keys, {}, {.site = {.kind = AttentionSite::Kind::alignment}});
    const Var heads = random({1, 2, 5, 4});
    attend(heads, heads, heads, {}, {.site = {.kind = AttentionSite::Kind::self, .layer = 11}});
    attend(heads, heads, heads, {.pattern = causal()},
           {.site = {.kind = AttentionSite::Kind::self, .decoder = true}});
    attend(heads, heads, heads, {}, {.name = "encoder.0.self"});
  }
  EXPECT_EQ(attention_observer(), nullptr);
  const std::vector<AttentionLayer> layers = recorder.take();
  ASSERT_EQ(layers.size(), 3u);
  EXPECT_EQ(layers[0].kind, AttentionKind::encoder);
  EXPECT_EQ(layers[0].layer, 11);
  EXPECT_EQ(layers[1].kind, AttentionKind::decoder);
  EXPECT_EQ(layers[1].heads.size(), 2u);
  EXPECT_EQ(layers[2].kind, AttentionKind::cross);
  EXPECT_EQ(layers[2].heads[0].rows, 3);
  EXPECT_EQ(layers[2].heads[0].columns, 5);
  for (const AttentionLayer& layer : layers)
    for (const WeightMatrix& head : layer.heads) expect_rows_sum_to_one(head);
}

}  // namespace
}  // namespace fovea
