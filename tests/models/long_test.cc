// Longformer and BigBird against Hugging Face's: outputs, every gradient, the losses of ten steps of Adam; what
// a text's neighbours change (nothing); and folders that do not fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>

#include "autograd/ops.h"
#include "base/error_of.h"
#include "base/parallel.h"
#include "data/wordpiece.h"
#include "io/temporary_directory.h"
#include "models/bert_folder.h"
#include "models/golden_check.h"

namespace fovea::models {
namespace {

using testing::HasSubstr;

const GoldenBerts& golden() {
  static const GoldenBerts berts("long");
  return berts;
}

// 32 tokens that can be named: "t7" is the token of id 7.
const data::Tokenizer& tokenizer() {
  static const auto made = [] {
    std::vector<std::string> tokens{"[CLS]", "[SEP]", "[UNK]"};
    for (int i = 3; i < 32; ++i) tokens.push_back("t" + std::to_string(i));
    return data::make_wordpiece(tokens, {}, "test");
  }();
  return *made;
}

LoadedBert load(size_t i, const std::filesystem::path& folder) {
  golden().write(i, folder);
  Rng rng(1);
  LoadedBert loaded = load_bert(folder, rng);
  if (!golden().global(i).empty()) loaded.network->choose_global(golden().global(i), tokenizer());
  return loaded;
}

TEST(LongGolden, FoldersEqualHuggingFacesOutputsGradientsAndTenSteps) {
  ASSERT_EQ(golden().size(), 9u);
  for (size_t i = 0; i < golden().size(); ++i) {
    SCOPED_TRACE(message(i, " ", golden().name(i)));
    const TemporaryDirectory folder;
    const LoadedBert loaded = load(i, folder.path());
    ASSERT_THAT(loaded.fresh, testing::IsEmpty());
    expect_golden(golden(), i, *loaded.network, {});
  }
}

TEST(LongGolden, AClassifiersFirstTokenIsGlobalUnlessItIsToldOtherwise) {
  const size_t i = golden().find("LongformerForSequenceClassification");
  const TemporaryDirectory folder;
  golden().write(i, folder.path());
  Rng rng(1);
  const LoadedBert loaded = load_bert(folder.path(), rng);
  nn::Context context;
  const NoGrad no_grad;
  const auto logits = [&] {
    return run_golden(golden(), *loaded.network, context).outputs[0].second.value();
  };
  expect_near(logits(), golden().tensor(i, "logits"), 2e-5f, "logits");
  loaded.network->choose_global("none", tokenizer());
  EXPECT_NE(logits().to_vector(), golden().tensor(i, "logits").to_vector());
}

TEST(LongFolders, AreWrittenAsTheyWereRead) {
  for (size_t i = 0; i < golden().size(); ++i) {
    SCOPED_TRACE(message(i, " ", golden().name(i)));
    const TemporaryDirectory folder;
    const LoadedBert loaded = load(i, folder / "a");
    save_bert(folder / "b", *loaded.network);
    const Json before = load_json(folder / "a/config.json"), after = load_json(folder / "b/config.json");
    EXPECT_EQ(after["architectures"][0], golden().name(i));
    for (const auto& [key, value] : after.items()) {
      if (!before.contains(key) || key == "architectures" || key == "attention_window") continue;
      if (value.is_number_float())
        EXPECT_NEAR(value.get<double>(), before[key].get<double>(), 1e-8) << key;
      else
        EXPECT_EQ(value, before[key]) << key;
    }
    const SafetensorsFile a(folder / "a/model.safetensors"), b(folder / "b/model.safetensors");
    for (const TensorEntry& entry : b->entries()) {
      // A model without heads has no prefix there.
      const std::string bare = entry.name.substr(entry.name.find('.') + 1);
      EXPECT_EQ(a->tensor(a->contains(entry.name) ? entry.name : bare).to_vector(),
                b->tensor(entry.name).to_vector())
          << entry.name;
    }
    // BigBird's classifier leaves the encoder's pooler, which it does not use, behind.
    const bool leaves_pooler = golden().name(i) == "BigBirdForSequenceClassification";
    EXPECT_EQ(b->entries().size() + (leaves_pooler ? 2 : 0), a->entries().size());
  }
}

BertConfig small_config(const std::string& type) {
  BertConfig config;
  config.model_type = type;
  config.vocab_size = 32;
  config.hidden_size = 36;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 3;
  config.intermediate_size = 52;
  config.max_position_embeddings = 700;
  config.pad_token_id = 1;
  config.block_size = 16;
  config.num_random_blocks = 1;
  config.initializer_range = 0.2f;
  if (type == "longformer") config.attention_window = {16, 64};
  return config;
}

class LongInUse : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, LongInUse, testing::Values("longformer", "big_bird"));

// Long and short texts, texts with and without global tokens: alone and together, on one thread and on three.
TEST_P(LongInUse, NeighboursAndThreadsChangeNoBit) {
  Rng rng(1);
  Bert model(small_config(GetParam()), {.masked_lm = true, .labels = 3}, rng);
  model.choose_global("first t7", tokenizer());
  const std::vector<int32_t> lengths{5, 1, 170, 2, 130, 33, 600, 64, 113, 112};
  std::vector<int32_t> ids;
  for (const int32_t length : lengths)
    for (int32_t i = 0; i < length; ++i) ids.push_back(static_cast<int32_t>(2 + rng.below(30)));
  const NoGrad no_grad;
  nn::Context context;
  const int before = num_threads();
  for (const Compute compute : {Compute::float32, Compute::int8}) {
    const nn::Prepared prepared(model, compute);
    for (const int threads : {1, 3}) {
      set_num_threads(threads);
      const Sentences all(ids, lengths);
      const Tensor together = model.hidden(all, {}, context).value();
      const Tensor classes = model.class_logits(Var(together), all.lengths, context).value();
      set_num_threads(1);
      size_t begin = 0, text = 0;
      for (const int32_t length : lengths) {
        const auto own = static_cast<size_t>(length);
        const std::span<const int32_t> tokens(ids.data() + begin, own);
        const Sentences one(tokens, {&length, 1});
        const Var alone = model.hidden(one, {}, context);
        EXPECT_EQ(std::memcmp(alone.value().data(), together.data() + begin * 36, own * 36 * sizeof(float)),
                  0)
            << "states of the text of " << length << " tokens";
        EXPECT_EQ(std::memcmp(model.class_logits(alone, one.lengths, context).value().data(),
                              classes.data() + 3 * text++, 3 * sizeof(float)),
                  0)
            << "classes of the text of " << length << " tokens";
        begin += own;
      }
    }
  }
  set_num_threads(before);
}

TEST_P(LongInUse, PreparedWeightsComputeWhatTheParametersDo) {
  Rng rng(1);
  Bert model(small_config(GetParam()), {.labels = 3}, rng);
  const std::vector<int32_t> lengths{5, 300, 130};
  std::vector<int32_t> ids;
  for (const int32_t length : lengths)
    for (int32_t i = 0; i < length; ++i) ids.push_back(static_cast<int32_t>(2 + rng.below(30)));
  const NoGrad no_grad;
  nn::Context context;
  const Tensor hidden = model.hidden({ids, lengths}, {}, context).value();
  const nn::Prepared prepared(model);
  expect_near(model.hidden({ids, lengths}, {}, context).value(), hidden, 2e-4f, "states");
}

// BigBird's rows that are no global ones, by what reaches them: a change of a token changes those that see it.
TEST(BigBird, RandomBlocksAreDrawnInTrainingUnlessToldOtherwise) {
  Rng rng(1);
  BertConfig config = small_config("big_bird");
  config.num_hidden_layers = 1;
  config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0;
  Bert model(config, {}, rng);
  const int32_t tokens = 16 * 16;
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < tokens; ++i) ids.push_back(static_cast<int32_t>(2 + rng.below(30)));
  // How many blocks a token of block 8 sees.
  const auto blocks_seen = [&](bool training) {
    nn::Context context{.training = training};
    const NoGrad no_grad;
    const auto state = [&](const std::vector<int32_t>& text) {
      const Tensor hidden = model.hidden({text, {&tokens, 1}}, {}, context).value();
      return std::vector<float>(hidden.data() + 8 * 16 * 36, hidden.data() + (8 * 16 + 1) * 36);
    };
    const std::vector<float> before = state(ids);
    int count = 0;
    for (int32_t block = 0; block < 16; ++block) {
      std::vector<int32_t> changed = ids;
      for (int32_t i = 0; i < 16; ++i)
        if (int32_t& id = changed[static_cast<size_t>(block * 16 + i)]; block != 8 || i > 0)
          id = 2 + (id + 5) % 30;
      count += state(changed) != before;
    }
    return count;
  };
  EXPECT_EQ(blocks_seen(false), 5);  // first, last, and three around
  // Each of three heads draws one block, which may be one that is seen anyway.
  EXPECT_GT(blocks_seen(true), 5);
  EXPECT_LE(blocks_seen(true), 8);
  for (const char* choice : {"hf-eval", "none"}) {
    model.choose_random_blocks(choice);
    EXPECT_EQ(blocks_seen(true), 5) << choice;
  }
}

// An added token is what a first token of its own word, place and kind would be, whose text's places begin after it.
TEST_P(LongInUse, AddedGlobalTokensAreTokensInFrontThatSeeAllAndAreSeenByAll) {
  constexpr int64_t kAdded = 2, kWidth = 36;
  const std::vector<int32_t> lengths{5, 300, 130, 1};
  std::vector<int32_t> ids, marked, marked_lengths;
  Rng rng(1);
  for (const int32_t length : lengths) {
    marked.insert(marked.end(), {30, 31});
    marked_lengths.push_back(length + static_cast<int32_t>(kAdded));
    for (int32_t i = 0; i < length; ++i) {
      ids.push_back(static_cast<int32_t>(2 + rng.below(28)));
      marked.push_back(ids.back());
    }
  }
  BertConfig config = small_config(GetParam());
  config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0;
  Bert model(config, {.labels = 3}, rng), plain(config, {.labels = 3}, rng);
  model.add_global_tokens(kAdded, rng);
  EXPECT_EQ(model.config().added_global_tokens, kAdded);
  model.choose_global("t7", tokenizer());
  plain.choose_global("t30 t31 t7", tokenizer());
  std::map<std::string, Var> own;
  for (const auto& [name, parameter] : model.parameters()) own.emplace(name, parameter);
  for (const auto& [name, parameter] : plain.parameters()) parameter.set_value(own.at(name).value().clone());
  // In `plain`, places begin kAdded rows later, and the first rows and words sum up to the added tokens.
  const int64_t first = config.first_position();
  const Tensor places = plain.position_embedding.value().clone(),
               words = plain.word_embedding.value().clone();
  const float* const from = model.position_embedding.value().data();
  std::copy(from + first * kWidth, from + (places.size(0) - kAdded) * kWidth,
            places.data() + (first + kAdded) * kWidth);
  for (int64_t i = 0; i < kAdded * kWidth; ++i)
    words.data()[30 * kWidth + i] = model.global_embedding.value().data()[i] -
                                    places.data()[first * kWidth + i] -
                                    model.type_embedding.value().data()[i % kWidth];
  plain.position_embedding.set_value(places);
  plain.word_embedding.set_value(words);

  const auto loss = [](const Bert& network, const std::vector<int32_t>& tokens,
                       const std::vector<int32_t>& sizes, int64_t skipped) {
    nn::Context context;
    const Sentences texts(tokens, sizes);
    const Var hidden = network.hidden(texts, {}, context);
    // Of the texts' own tokens alone.
    std::vector<int32_t> kept;
    int64_t begin = 0;
    for (const int64_t length : texts.lengths) {
      for (int64_t i = skipped; i < length; ++i) kept.push_back(static_cast<int32_t>(begin + i));
      begin += length;
    }
    const Var states = gather(hidden, kept);
    sum(states * states * states).backward();
    return states.value();
  };
  const Tensor got = loss(model, ids, lengths, 0), wanted = loss(plain, marked, marked_lengths, kAdded);
  expect_near(got, wanted, 1e-4f, "states");
  // Every parameter of the layers has the same gradient, and an added token that of its word.
  for (const auto& [name, parameter] : plain.parameters())
    if (name.starts_with("encoder")) expect_near(own.at(name).grad(), parameter.grad(), 2e-3f, name);
  expect_near(model.global_embedding.grad(), plain.word_embedding.grad().narrow(0, 30, kAdded), 2e-3f,
              "embeddings.global");
  // They are seen by the last token of a long text, and are no places of the text itself.
  for (const int64_t place : model.global_places(std::vector<int32_t>{5, 7, 9, 7})) EXPECT_LT(place, 4);
  const Tensor other = model.global_embedding.value().clone();
  for (float& value : other.span()) value += 1;
  model.global_embedding.set_value(other);
  nn::Context context;
  const NoGrad no_grad;
  const Tensor moved = model.hidden({ids, lengths}, {}, context).value();
  const int64_t last = (5 + 300 - 1) * kWidth;
  EXPECT_NE(std::vector<float>(moved.data() + last, moved.data() + last + kWidth),
            std::vector<float>(got.data() + last, got.data() + last + kWidth));
}

TEST_P(LongInUse, AddedGlobalTokensStayInTheFolder) {
  Rng rng(1);
  Bert model(small_config(GetParam()), {.labels = 3}, rng);
  model.add_global_tokens(2, rng);
  const TemporaryDirectory folder;
  save_bert(folder / "m", model);
  const LoadedBert loaded = load_bert(folder / "m", rng);
  EXPECT_THAT(loaded.fresh, testing::IsEmpty());
  EXPECT_EQ(loaded.network->global_embedding.value().to_vector(), model.global_embedding.value().to_vector());
  loaded.network->add_global_tokens(2, rng);
  EXPECT_EQ(loaded.network->global_embedding.value().to_vector(), model.global_embedding.value().to_vector());
  EXPECT_THAT(error_of([&] { loaded.network->add_global_tokens(3, rng); }),
              HasSubstr("got 3, but the model has learned 2 already"));
  // A config that claims others than the file holds.
  Json json = load_json(folder / "m/config.json");
  for (const auto& [claimed, said] : {std::pair{Json(3), "shape"},
                                      {Json(-1), "wanted 0 to 1024"},
                                      {Json(0), "has no place in the model"}}) {
    json["added_global_tokens"] = claimed;
    save_json(folder / "m/config.json", json);
    EXPECT_THAT(error_of([&] { load_bert(folder / "m", rng); }), HasSubstr(said)) << claimed;
  }
  Bert bert(small_config("bert"), {}, rng);
  EXPECT_THAT(error_of([&] { bert.add_global_tokens(2, rng); }), HasSubstr("for Longformer and BigBird"));
}

// In use, and in training with hf-eval, block 0 is seen 1 + r times; with none it is seen once. Dropout is off: training
// and use then differ in the random blocks alone.
TEST(BigBird, HowOftenBlockZeroIsSeenIsChosen) {
  Rng rng(1);
  BertConfig config = small_config("big_bird");
  config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0;
  Bert model(config, {}, rng);
  const int32_t tokens = 16 * 16;
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < tokens; ++i) ids.push_back(static_cast<int32_t>(2 + rng.below(30)));
  const auto states = [&](const char* choice, bool training) {
    model.choose_random_blocks(choice);
    nn::Context context{.training = training};
    const NoGrad no_grad;
    return model.hidden({ids, {&tokens, 1}}, {}, context).value().to_vector();
  };
  const std::vector<float> repeated = states("hf-eval", false), once = states("none", false);
  EXPECT_EQ(states("hf-eval", true), repeated);
  EXPECT_EQ(states("paper", false), repeated);
  EXPECT_NE(states("paper", true), repeated);
  EXPECT_EQ(states("none", true), once);
  EXPECT_NE(once, repeated);
}

class LongConfigs : public testing::Test {
 protected:
  static std::string complaint(const char* kind, const std::function<void(Json&)>& change) {
    const size_t i = golden().find(kind);
    const TemporaryDirectory folder;
    golden().write(i, folder / "m");
    Json json = golden().config(i);
    change(json);
    save_json(folder / "m/config.json", json);
    Rng rng(1);
    return error_of([&] { load_bert(folder / "m", rng); });
  }
};

TEST_F(LongConfigs, RefuseWhatDoesNotFit) {
  const auto longformer = [](const char* name, const Json& value) {
    return complaint("LongformerModel", [&](Json& json) { json[name] = value; });
  };
  EXPECT_EQ(longformer("attention_window", {2, 4}), "no error");
  EXPECT_THAT(longformer("attention_window", 3), HasSubstr("attention_window is 3, wanted an even number"));
  EXPECT_THAT(longformer("attention_window", 0), HasSubstr("wanted an even number"));
  EXPECT_THAT(longformer("attention_window", {2, 4, 6}),
              HasSubstr("has 3 numbers, wanted one for each of the 2"));
  EXPECT_THAT(longformer("attention_window", "wide"), HasSubstr("attention_window"));
  EXPECT_THAT(longformer("attention_window", int64_t{1} << 40), HasSubstr("wanted an even number"));
  EXPECT_THAT(longformer("num_hidden_layers", 1'000'000'000), HasSubstr("num_hidden_layers is 1000000000"));
  EXPECT_THAT(longformer("model_type", "roberta"),
              HasSubstr("key_global.bias', which has no place in the model"));
  const auto big_bird = [](const char* name, const Json& value) {
    return complaint("BigBirdModel", [&](Json& json) { json[name] = value; });
  };
  EXPECT_EQ(big_bird("block_size", 7), "no error");
  EXPECT_THAT(big_bird("block_size", 0), HasSubstr("block_size 0"));
  EXPECT_THAT(big_bird("num_random_blocks", -1), HasSubstr("num_random_blocks -1"));
  EXPECT_THAT(big_bird("attention_type", "sparse"), HasSubstr("wanted block_sparse or original_full"));
  EXPECT_THAT(big_bird("random_blocks", "all"), HasSubstr("wanted paper, hf-eval or none"));
  EXPECT_THAT(big_bird("use_bias", false), HasSubstr("has no place in the model"));
  EXPECT_THAT(big_bird("is_decoder", true), HasSubstr("a decoder, wanted an encoder"));
}

TEST_F(LongConfigs, OtherModelsHaveNoGlobalTokens) {
  Rng rng(1);
  BertConfig config = small_config("bert");
  Bert model(config, {}, rng);
  EXPECT_THROW(model.choose_global("first", tokenizer()), Error);
  EXPECT_THROW(model.choose_random_blocks("none"), Error);
}

}  // namespace
}  // namespace fovea::models
