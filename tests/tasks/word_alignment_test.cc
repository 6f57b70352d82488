// The choice of the layer and head that show which words belong together.
#include "tasks/word_alignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "io/temporary_directory.h"
#include "tasks/explain.h"
#include "tasks/untrained_translator.h"

namespace fovea::tasks {
namespace {

// Source word w is target word w + 100; every second pair of neighbours changes places, and words are drawn
// from 60.
struct Dictionary {
  data::ParallelIds pairs;
  std::vector<Links> truth;
};
Dictionary dictionary(int count, uint64_t seed) {
  Rng rng(seed);
  Dictionary made;
  for (int n = 0; n < count; ++n) {
    const auto length = 4 + rng.below(8);
    std::vector<int32_t> source, target;
    Links truth;
    for (int64_t i = 0; i < length; ++i) source.push_back(static_cast<int32_t>(10 + rng.below(60)));
    for (int64_t i = 0; i < length; ++i) truth.push_back(static_cast<int32_t>(i));
    for (int64_t i = 0; i + 1 < length; i += 4)
      std::swap(truth[static_cast<size_t>(i)], truth[static_cast<size_t>(i + 1)]);
    for (const int32_t i : truth) target.push_back(source[static_cast<size_t>(i)] + 100);
    made.pairs.source.append(source);
    made.pairs.target.append(target);
    made.truth.push_back(truth);
  }
  return made;
}

TEST(WordAlignment, CountingFindsTheDictionaryAndTheOrder) {
  const Dictionary made = dictionary(400, 1);
  const std::vector<Links> links = forced_alignment(made.pairs);
  int64_t certain = 0, right = 0, all = 0;
  for (size_t pair = 0; pair < links.size(); ++pair)
    for (size_t j = 0; j < links[pair].size(); ++j) {
      ++all;
      certain += links[pair][j] >= 0;
      right += links[pair][j] == made.truth[pair][j];
    }
  EXPECT_GT(right, 0.95 * static_cast<double>(certain));
  EXPECT_GT(certain, 0.85 * static_cast<double>(all));
}

TEST(WordAlignment, AgreementCountsCertainLinksAndLeavesTheEndOut) {
  WeightMatrix weights = WeightMatrix::zeros(3, 3);
  weights.at(0, 1) = 1;     // right
  weights.at(1, 2) = 0.9f;  // the end is no word: the strongest word counts
  weights.at(1, 0) = 0.1f;
  weights.at(2, 0) = 1;  // the row of the end
  const Links links{1, 0};
  EXPECT_EQ(agreement(weights, links).agreeing, 2);
  EXPECT_EQ(agreement(weights, links).links, 2);
  EXPECT_EQ(agreement(weights, Links{0, -1}).agreeing, 0);
  EXPECT_EQ(agreement(weights, Links{0, -1}).links, 1);
}

TEST(WordAlignment, TheChoiceIsTheBestOfAllLayersAndHeads) {
  const LoadedTranslator model = untrained_translator();
  const auto ids = [&](const std::vector<std::string>& lines) {
    data::PackedSentences packed;
    for (const std::string& line : lines) packed.append(model.tokenizers.source->encode(line));
    return packed;
  };
  const std::vector<std::string> lines{"one two three", "four five", "six one five two", "three four",
                                       "two six"};
  const data::ParallelIds pairs{ids(lines), ids(lines)};
  const std::optional<AlignmentChoice> choice = choose_alignment(model, pairs, pairs);
  ASSERT_TRUE(choice);
  // The same by hand: no layer and head agrees with more links.
  const std::vector<Links> links = forced_alignment(pairs);
  const auto share = [&](const AttentionChoice& one) {
    Agreement sum;
    for (int64_t pair = 0; pair < pairs.size(); ++pair) {
      const AttentionRecord record = record_attention(model, pairs.source[pair], pairs.target[pair]);
      const Agreement found = agreement(choose(record, one), links[static_cast<size_t>(pair)]);
      sum.agreeing += found.agreeing;
      sum.links += found.links;
    }
    return sum.share();
  };
  double best = 0;
  for (int64_t layer = 0; layer < 2; ++layer)
    for (int64_t head = -1; head < 2; ++head)
      best = std::max(best, share({AttentionKind::cross, layer, head}));
  EXPECT_GT(best, 0);
  EXPECT_DOUBLE_EQ(choice->agreement, best);
  EXPECT_DOUBLE_EQ(share({AttentionKind::cross, choice->layer, choice->head}), best);
}

TEST(WordAlignment, AModelOfOneMapOrNoneHasNothingToChoose) {
  data::ParallelIds pairs;
  pairs.source.append(std::vector<int32_t>{4, 5});
  pairs.target.append(std::vector<int32_t>{4, 5});
  for (const std::string model : {"bahdanau", "rnn"})
    EXPECT_FALSE(choose_alignment(untrained_translator("words", model, Json{{"width", 8}, {"embedding", 8}}),
                                  pairs, pairs))
        << model;
}

TEST(WordAlignment, TheChoiceIsStoredAndUsed) {
  const TemporaryDirectory folder;
  LoadedTranslator model = untrained_translator();
  for (const int64_t head : {-1, 1}) {
    model.alignment = AlignmentChoice{1, head, 0.5};
    save_translation(folder / "model", model);
    const LoadedTranslator loaded = load_translation(folder / "model");
    ASSERT_TRUE(loaded.alignment);
    EXPECT_EQ(loaded.alignment->layer, 1);
    EXPECT_EQ(loaded.alignment->head, head);
    const Translation translation{"two three", 0, model.tokenizers.target->encode("two three")};
    const AttentionRecord record =
        record_attention(loaded, loaded.tokenizers.source->encode("one two"), translation.tokens);
    EXPECT_EQ(
        align(loaded, "one two", translation).weights.values,
        merge_words(choose(record, {AttentionKind::cross, 1, head}), record.target, record.source).values);
  }
}

}  // namespace
}  // namespace fovea::tasks
