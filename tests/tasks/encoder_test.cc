// From a Hugging Face folder and lines of text to vectors, and to words for masked places.
#include "tasks/encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/parallel.h"
#include "data/encoder_tokenizer.h"
#include "io/safetensors.h"
#include "io/temporary_directory.h"
#include "tasks/folder_contents.h"
#include "tasks/untrained_encoder.h"
#include "tensor/allocator.h"

namespace fovea::tasks {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using Ids = std::vector<int32_t>;

class EncoderTest : public testing::Test {
 protected:
  void SetUp() override { write_untrained_encoder(model()); }
  fs::path model() const { return folder_ / "m"; }
  LoadedEncoder load(const models::BertHeads& heads = {}) const { return load_encoder(model(), heads); }
  void save(const std::string& name, const Json& json) const {
    make_directories((model() / name).parent_path());
    save_json(model() / name, json);
  }

  template <class Call>
  std::string complaint(Call&& call) const {
    try {
      call();
    } catch (const Error& error) {
      std::string text = error.what();
      const std::string prefix = model().string();
      for (size_t at; (at = text.find(prefix)) != std::string::npos;) text.replace(at, prefix.size(), "M");
      EXPECT_EQ(text.find('\n'), std::string::npos) << text;
      return text;
    }
    return "no error";
  }
  std::string loading() const {
    return complaint([&] { load(); });
  }

  // The states of one marked text, by the network itself.
  static Tensor states(const LoadedEncoder& loaded, const Ids& ids) {
    const NoGrad no_grad;
    nn::Context context;
    const int32_t length[] = {static_cast<int32_t>(ids.size())};
    return loaded.network->hidden({ids, length}, {}, context).value();
  }
  static std::vector<float> embed_one(const LoadedEncoder& loaded, const std::string& line,
                                      const EmbedOptions& options = {}) {
    return Embedder(loaded, options).embed({&line, 1}).rows.to_vector();
  }

  TemporaryDirectory folder_;
};

void expect_near(const std::vector<float>& got, const std::vector<float>& wanted, float tolerance = 2e-5f) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], wanted[i], tolerance) << i;
}

TEST_F(EncoderTest, AVectorIsTheMeanTheFirstOrTheLargestOfTheStates) {
  const LoadedEncoder loaded = load();
  const Tensor hidden = states(loaded, {2, 10, 11, 14, 19, 22, 3});  // [CLS] six ##teen like 我 . [SEP]
  const std::string line = "Sixteen like 我.";
  const int64_t width = 24;
  std::vector<float> mean(width), largest(width, -1e9f), first(width);
  for (int64_t i = 0; i < width; ++i) {
    for (int64_t t = 0; t < 7; ++t) {
      mean[i] += hidden.data()[t * width + i] / 7;
      largest[i] = std::max(largest[i], hidden.data()[t * width + i]);
    }
    first[i] = hidden.data()[i];
  }
  expect_near(embed_one(loaded, line), mean);
  expect_near(embed_one(loaded, line, {.pooling = "mean"}), mean);
  expect_near(embed_one(loaded, line, {.pooling = "max"}), largest);
  expect_near(embed_one(loaded, line, {.pooling = "cls"}), first);
  float squares = 0;
  for (const float x : mean) squares += x * x;
  std::vector<float> unit = mean;
  for (float& x : unit) x /= std::sqrt(squares);
  expect_near(embed_one(loaded, line, {.normalize = "yes"}), unit);
  EXPECT_EQ(Embedder(loaded, {}).embed({}).rows.shape(), (Shape{0, width}));
}

TEST_F(EncoderTest, CompanyThreadsAndBatchesChangeNoBit) {
  const LoadedEncoder loaded = load();
  std::vector<std::string> lines;
  Rng rng(4);
  const char* words[] = {"one", "two", "sixty", "food", "我喜欢", ".", "unheard", "[MASK]", "café"};
  for (int i = 0; i < 60; ++i) {
    std::string& line = lines.emplace_back();
    for (uint64_t count = rng.below(25); count > 0; --count) line += std::string(words[rng.below(9)]) + " ";
  }
  std::vector<float> alone;
  const int before = num_threads();
  set_num_threads(1);
  for (const std::string& line : lines) {
    const std::vector<float> one = embed_one(loaded, line);
    alone.insert(alone.end(), one.begin(), one.end());
  }
  for (const int threads : {1, 2, 5}) {
    set_num_threads(threads);
    for (const int64_t batch : {1, 50, 2048}) {
      const std::vector<float> all = Embedder(loaded, {.batch_tokens = batch}).embed(lines).rows.to_vector();
      ASSERT_EQ(all.size(), alone.size());
      EXPECT_EQ(std::memcmp(all.data(), alone.data(), all.size() * sizeof(float)), 0)
          << threads << " threads, batches of " << batch;
    }
  }
  set_num_threads(before);
}

// Opened for use, the weights are in memory once: packed. Without it, beside what they were packed from.
TEST_F(EncoderTest, AFolderOpenedForUseHoldsItsWeightsOnce) {
  models::BertConfig config = untrained_encoder_config();
  config.hidden_size = 192;
  config.num_hidden_layers = 4;
  config.intermediate_size = 768;
  Rng rng(5);
  models::save_bert(model(), models::Bert(config, {}, rng));
  const std::vector<std::string> lines{"one two", "paris is the food, like three"};
  const int64_t before = memory_use().live_bytes;
  const auto embed = [&](const LoadedEncoder& loaded, int64_t& bytes) {
    const Embedder embedder(loaded, {});
    bytes = memory_use().live_bytes - before;
    return embedder.embed(lines).rows.to_vector();
  };
  for (const std::string compute : {"float32", "int8"}) {
    int64_t once = 0, twice = 0;
    LoadedEncoder loaded = load_encoder(model(), models::BertHeads{});
    loaded.compute = compute_named(compute);
    const std::vector<float> wanted = embed(loaded, twice);
    loaded = {};
    EXPECT_EQ(embed(open_encoder(model(), models::BertHeads{}, compute), once), wanted) << compute;
    const int64_t matrices = 4 * (4 * 192 * 192 + 2 * 192 * 768) * (compute == "int8" ? 1 : 4);
    EXPECT_LT(once, matrices * 5 / 4) << compute;
    // Queries, keys and values are joined: they are a copy, unlike what is read in place.
    EXPECT_GT(twice, once + 4 * 3 * 192 * 192 * 4 - 1) << compute;
  }
}

TEST_F(EncoderTest, WeightsOfWholeNumbersAreRefused) {
  const SafetensorsFile file(model() / "model.safetensors");
  std::vector<TensorToWrite> tensors;
  std::vector<std::vector<std::byte>> kept;
  for (const TensorEntry& entry : file->entries()) {
    const auto bytes = file->bytes(entry);
    kept.emplace_back(bytes.begin(), bytes.end());
    const bool chosen = entry.name.ends_with("intermediate.dense.weight");
    tensors.push_back({entry.name, chosen ? Dtype::i32 : entry.dtype, entry.shape, kept.back()});
  }
  save_safetensors(model() / "model.safetensors", tensors);
  EXPECT_THAT(loading(), HasSubstr("is of I32, wanted F32, F16, BF16 or F64"));
}

TEST_F(EncoderTest, LongLinesAreCutAndCounted) {
  const LoadedEncoder loaded = load();
  std::string long_line, cut_line;
  for (int i = 0; i < 100; ++i) long_line += "one ";
  for (int i = 0; i < 38; ++i) cut_line += "one ";
  const std::vector<std::string> lines{long_line, cut_line, "one", ""};
  const Embeddings found = Embedder(loaded, {}).embed(lines);
  EXPECT_EQ(found.cut, (std::vector<uint8_t>{1, 0, 0, 0}));
  const std::vector<float> rows = found.rows.to_vector();
  EXPECT_TRUE(std::equal(rows.begin(), rows.begin() + 24, rows.begin() + 24))
      << "38 tokens and two marks are read";
  EXPECT_EQ(Embedder(loaded, {.max_tokens = 3}).embed(lines).cut, (std::vector<uint8_t>{1, 1, 0, 0}));
  expect_near(embed_one(loaded, "one two", {.max_tokens = 3}), embed_one(loaded, "one"), 0);
  const auto with = [&](const EmbedOptions& options) {
    return complaint([&] { Embedder(loaded, options); });
  };
  EXPECT_EQ(with({.max_tokens = 41}), "max_tokens: got 41, wanted 2 to 40");
  EXPECT_EQ(with({.max_tokens = 1}), "max_tokens: got 1, wanted 2 to 40");
  EXPECT_EQ(with({.max_tokens = -5}), "max_tokens: got -5, wanted 2 to 40");
  EXPECT_EQ(with({.batch_tokens = 0}), "batch_tokens: got 0, wanted 1 or more");
  EXPECT_EQ(with({.pooling = "sum"}), "pooling: got 'sum', wanted mean, cls or max");
  EXPECT_EQ(with({.normalize = "maybe"}), "normalize: got 'maybe', wanted yes or no");
}

Json module(const std::string& type, const std::string& path) {
  return {{"idx", 0}, {"name", "x"}, {"path", path}, {"type", "sentence_transformers.models." + type}};
}

TEST_F(EncoderTest, SentenceTransformersFoldersSayHowTheyAreRead) {
  const LoadedEncoder plain = load();
  const std::string line = "One two";
  // The model in a folder of its own, the first token's vector, length 1, four tokens at most, a prompt.
  fs::rename(model(), folder_ / "inner");
  make_directories(model());
  fs::rename(folder_ / "inner", model() / "0_Transformer");
  save("modules.json", Json::array({module("Transformer", "0_Transformer"), module("Pooling", "1_Pooling"),
                                    module("Normalize", "2_N")}));
  save("1_Pooling/config.json", {{"word_embedding_dimension", 24},
                                 {"pooling_mode_cls_token", true},
                                 {"pooling_mode_mean_tokens", false},
                                 {"pooling_mode_max_tokens", false}});
  save("0_Transformer/sentence_bert_config.json", {{"max_seq_length", 4}, {"do_lower_case", false}});
  save("config_sentence_transformers.json",
       {{"prompts", {{"query", "three "}}}, {"default_prompt_name", "query"}});
  const LoadedEncoder loaded = load();
  EXPECT_EQ(loaded.modules.max_tokens, 4);
  const std::vector<float> wanted =
      embed_one(plain, "three one two", {.pooling = "cls", .normalize = "yes", .max_tokens = 4});
  EXPECT_EQ(embed_one(loaded, line), wanted);
  EXPECT_NE(embed_one(loaded, line, {.normalize = "no"}), wanted);
  EXPECT_NE(embed_one(loaded, line, {.pooling = "mean"}), wanted);

  save("config_sentence_transformers.json",
       {{"prompts", {{"query", "three "}}}, {"default_prompt_name", "other"}});
  EXPECT_EQ(loading(), "M/config_sentence_transformers.json: no prompt named 'other'");
  save("config_sentence_transformers.json", {{"prompts", Json::object()}, {"default_prompt_name", nullptr}});
  EXPECT_EQ(loading(), "no error");
  save("0_Transformer/sentence_bert_config.json", {{"max_seq_length", 1}});
  EXPECT_EQ(loading(), "M/0_Transformer/sentence_bert_config.json: max_seq_length is 1, wanted at least 2");
  save("0_Transformer/sentence_bert_config.json", {{"max_seq_length", 4000}});
  EXPECT_EQ(load().modules.max_tokens, 40) << "no more than there are places";
}

TEST_F(EncoderTest, CaseIsLoweredBeforeTheTokenizerWhereAFolderAsksForIt) {
  save("tokenizer_config.json", {{"do_lower_case", false}});
  const std::vector<float> upper = embed_one(load(), "One"), lower = embed_one(load(), "one");
  EXPECT_NE(upper, lower);
  save("modules.json", Json::array({module("Transformer", "")}));
  save("sentence_bert_config.json", {{"do_lower_case", true}});
  EXPECT_EQ(embed_one(load(), "One"), lower);
}

TEST_F(EncoderTest, RefusesModulesItDoesNotKnow) {
  const auto with = [&](const Json& json) {
    save("modules.json", json);
    return loading();
  };
  EXPECT_EQ(with({}), "M/modules.json: wanted a list of modules");
  EXPECT_EQ(with(Json::array({1})), "M/modules.json: wanted a type and a path for every module");
  EXPECT_EQ(
      with(Json::array({module("Transformer", ""), module("Dense", "2_Dense")})),
      "M/modules.json: module 1 is a 'Dense', wanted Transformer, Pooling, Dense and Normalize in this order");
  EXPECT_EQ(
      with(Json::array({module("Transformer", ""), module("CNN", "1")})),
      "M/modules.json: module 1 is a 'CNN', wanted Transformer, Pooling, Dense and Normalize in this order");
  EXPECT_EQ(with(Json::array({module("WordEmbeddings", "")})),
            "M/modules.json: module 0 is a 'WordEmbeddings', wanted a Transformer first and no other");
  for (const char* path : {"../x", "/etc", "a/../../b"})
    EXPECT_THAT(with(Json::array({module("Transformer", path)})), HasSubstr("wanted one inside the folder"));
  const auto pooling = [&](const Json& json) {
    save("1_Pooling/config.json", json);
    return with(Json::array({module("Transformer", ""), module("Pooling", "1_Pooling")}));
  };
  EXPECT_EQ(pooling({{"pooling_mode_mean_tokens", true}}), "no error");
  EXPECT_EQ(pooling({{"pooling_mode_mean_tokens", true}, {"pooling_mode_cls_token", true}}),
            "M/1_Pooling/config.json: 2 pooling modes are set, wanted one");
  EXPECT_EQ(pooling({{"pooling_mode_mean_tokens", false}}),
            "M/1_Pooling/config.json: 0 pooling modes are set, wanted one");
  EXPECT_EQ(pooling({{"pooling_mode_lasttoken", true}}),
            "M/1_Pooling/config.json: the pooling mode is 'lasttoken', wanted cls, mean or max");
  // As sentence-transformers 6 writes it.
  EXPECT_EQ(pooling({{"embedding_dimension", 24}, {"pooling_mode", "max"}, {"include_prompt", true}}),
            "no error");
  EXPECT_EQ(load().modules.pooling, data::Pooling::max);
  EXPECT_EQ(pooling({{"pooling_mode", Json::array({"cls", "mean"})}}),
            "M/1_Pooling/config.json: 2 pooling modes are set, wanted one");
  EXPECT_EQ(pooling({{"pooling_mode", "weightedmean"}}),
            "M/1_Pooling/config.json: the pooling mode is 'weightedmean', wanted cls, mean or max");
  EXPECT_THAT(pooling({{"pooling_mode", 3}}), HasSubstr("M/1_Pooling/config.json: pooling_mode"));
  EXPECT_THAT(pooling({{"pooling_mode_mean_tokens", true}, {"include_prompt", false}}),
              HasSubstr("include_prompt"));
}

// A folder such as LaBSE's: y = tanh(W pooled + b), then length 1.
TEST_F(EncoderTest, DenseModulesBehindThePoolingMakeTheVector) {
  const std::string line = "sixteen like one";
  const std::vector<float> pooled = embed_one(load(), line, {.pooling = "cls"});
  std::vector<float> weight, bias{0.5f, -1, 0.25f};
  for (int i = 0; i < 3 * 24; ++i) weight.push_back(0.03f * static_cast<float>(i % 7) - 0.08f);
  const auto save_weights = [&](const std::vector<float>& values, const Shape& shape) {
    save_safetensors(model() / "2_Dense/model.safetensors",
                     {TensorToWrite::floats("linear.weight", Tensor::from(values, shape)),
                      TensorToWrite::floats("linear.bias", Tensor::from(bias, {3}))});
  };
  save("modules.json", Json::array({module("Transformer", ""), module("Pooling", "1_Pooling"),
                                    module("Dense", "2_Dense"), module("Normalize", "3_Normalize")}));
  save("1_Pooling/config.json", {{"pooling_mode_cls_token", true}});
  const auto dense = [&](const char* activation, const Json& changes = Json::object()) {
    Json json{{"in_features", 24}, {"out_features", 3}, {"bias", true}, {"activation_function", activation}};
    json.update(changes);
    save("2_Dense/config.json", json);
  };
  dense("torch.nn.modules.activation.Tanh");
  save_weights(weight, {3, 24});
  std::vector<float> wanted;
  double squares = 0;
  for (size_t i = 0; i < 3; ++i) {
    double sum = bias[i];
    for (size_t j = 0; j < 24; ++j) sum += weight[i * 24 + j] * pooled[j];
    wanted.push_back(static_cast<float>(std::tanh(sum)));
    squares += double{wanted.back()} * wanted.back();
  }
  expect_near(embed_one(load(), line, {.normalize = "no"}), wanted);
  for (float& value : wanted) value = static_cast<float>(value / std::sqrt(squares));
  expect_near(embed_one(load(), line), wanted);
  EXPECT_EQ(look_into(model()).settings.value("embedding_features", 0), 3)
      << "the width of `embed --format npy`";
  const LoadedEncoder loaded = load();
  EXPECT_EQ(Embedder(loaded, {.tokens = true}).width(), 24) << "a token's vector is its state";
  EXPECT_EQ(
      Embedder(loaded, {.pooling = "mean", .chunks = 2}).embed_spans({&line, 1}).lines[0][0].vector.size(),
      3u);

  dense("torch.nn.modules.linear.Identity");
  EXPECT_NE(embed_one(load(), line), wanted);
  dense("torch.nn.modules.activation.ReLU");
  EXPECT_THAT(loading(),
              HasSubstr("M/2_Dense/config.json: activation_function is 'torch.nn.modules.activation.ReLU'"));
  dense("torch.nn.modules.linear.Identity", {{"in_features", 23}});
  EXPECT_EQ(loading(),
            "M/2_Dense/config.json: in_features is 23, but the vectors that it gets have 24 features");
  dense("torch.nn.modules.linear.Identity", {{"out_features", 1000000}});
  EXPECT_EQ(
      loading(),
      "M/2_Dense/model.safetensors: 'linear.weight' has shape [3, 24], but config.json says [1000000, 24]");
  dense("torch.nn.modules.linear.Identity", {{"out_features", -1}});
  EXPECT_EQ(loading(), "M/2_Dense/config.json: 24 inputs and -1 outputs, wanted 1 to 1048576");
  fs::remove(model() / "2_Dense/model.safetensors");
  dense("torch.nn.modules.linear.Identity");
  EXPECT_THAT(loading(), HasSubstr("M/2_Dense"));
}

TEST_F(EncoderTest, FillsMaskedPlacesWithTheSoftmaxOfTheHeadsLogits) {
  const LoadedEncoder loaded = load(kMaskedHead);
  const MaskFiller filler(loaded);
  const auto found = filler.fill("[MASK] is the [MASK].", 40);
  ASSERT_EQ(found.size(), 2u);
  const Tensor hidden = states(loaded, {2, 4, 17, 18, 4, 22, 3});
  const NoGrad no_grad;
  const Tensor logits = loaded.network->token_logits(Var(hidden)).value();
  for (size_t place = 0; place < 2; ++place) {
    const float* row = logits.data() + (place == 0 ? 1 : 4) * 64;
    double sum = 0;
    for (int i = 0; i < 64; ++i) sum += std::exp(double{row[i]});
    ASSERT_EQ(found[place].size(), 32u) << "rows beyond the vocabulary are no tokens";
    double before = 1;
    for (const MaskCandidate& candidate : found[place]) {
      EXPECT_NEAR(candidate.probability, std::exp(double{row[candidate.token]}) / sum, 1e-5);
      EXPECT_EQ(candidate.text, encoder_vocabulary()[static_cast<size_t>(candidate.token)]);
      EXPECT_LE(candidate.probability, before);
      before = candidate.probability;
    }
  }
  EXPECT_EQ(filler.fill("[MASK] is the [MASK].", 1)[1][0].token, found[1][0].token);

  const auto with = [&](const std::string& text, int64_t top = 3) {
    return complaint([&] { filler.fill(text, top); });
  };
  EXPECT_EQ(with("Paris is the capital."), "no [MASK] in the text; put one where a word is to be found");
  EXPECT_EQ(with("[MASK]", 0), "top: got 0, wanted 1 or more");
  EXPECT_EQ(with("[MASK] \xFF"), "the text is not UTF-8");
  std::string long_text = "[MASK]";
  for (int i = 0; i < 40; ++i) long_text += " one";
  EXPECT_EQ(with(long_text), "the text has 43 tokens, wanted at most 40");
}

TEST_F(EncoderTest, AFolderWithoutTheHeadCannotFill) {
  write_untrained_encoder(model(), {});
  const std::string text = complaint([&] { MaskFiller(load(kMaskedHead)); });
  EXPECT_EQ(text,
            "M: the model was saved without its head for masked tokens; wanted a folder such as "
            "BertForMaskedLM");
}

TEST_F(EncoderTest, DistilbertFoldersAreReadTheSameWay) {
  write_untrained_encoder(folder_ / "d", {.masked_lm = true}, "distilbert");
  const LoadedEncoder loaded = load_encoder(folder_ / "d", kMaskedHead);
  expect_near(embed_one(loaded, "one", {.pooling = "cls"}), [&] {
    const std::vector<float> all = states(loaded, {2, 5, 3}).to_vector();
    return std::vector<float>(all.begin(), all.begin() + 24);
  }());
  EXPECT_EQ(MaskFiller(loaded).fill("one [MASK]", 2)[0].size(), 2u);
}

Json tokenizer_json() {
  Json vocabulary = Json::object();
  // By name, not by id.
  std::vector<std::pair<std::string, size_t>> sorted;
  for (size_t i = 0; i < encoder_vocabulary().size(); ++i) sorted.emplace_back(encoder_vocabulary()[i], i);
  std::sort(sorted.begin(), sorted.end());
  for (const auto& [token, id] : sorted) vocabulary[token] = id;
  Json added = Json::array();
  for (int id = 0; id < 5; ++id)
    added.push_back({{"id", id},
                     {"content", encoder_vocabulary()[static_cast<size_t>(id)]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  return {{"version", "1.0"},
          {"added_tokens", added},
          {"normalizer",
           {{"type", "BertNormalizer"},
            {"clean_text", true},
            {"handle_chinese_chars", true},
            {"strip_accents", nullptr},
            {"lowercase", true}}},
          {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
          {"model",
           {{"type", "WordPiece"},
            {"unk_token", "[UNK]"},
            {"continuing_subword_prefix", "##"},
            {"max_input_chars_per_word", 100},
            {"vocab", vocabulary}}}};
}

TEST_F(EncoderTest, TokenizerJsonStandsInForVocabTxt) {
  const auto ids = [&](const std::string& text) {
    return data::load_encoder_tokenizer(model(), "bert").tokenizer->encode(text);
  };
  const std::string text = "Sixteen [MASK] 我喜 Café One [X] unheard";
  const Ids lower = ids(text);
  EXPECT_EQ(lower, (Ids{10, 11, 4, 19, 20, 30, 5, 1, 1, 1, 1}));
  fs::remove(model() / "vocab.txt");
  save("tokenizer.json", tokenizer_json());
  EXPECT_EQ(ids(text), lower);
  // tokenizer_config.json has the last word.
  save("tokenizer_config.json", {{"do_lower_case", false},
                                 {"tokenizer_class", "BertTokenizerFast"},
                                 {"model_max_length", 1000000000000000019884624838656.0},
                                 {"mask_token", {{"content", "[MASK]"}, {"lstrip", false}}},
                                 {"additional_special_tokens", {"[X]"}}});
  EXPECT_EQ(ids("One café [X]"), (Ids{28, 29, 31}));
  EXPECT_EQ(data::load_encoder_tokenizer(model(), "bert").max_tokens, 0);
  Json cased = tokenizer_json();
  cased["normalizer"]["lowercase"] = false;
  cased["normalizer"]["strip_accents"] = true;
  save("tokenizer.json", cased);
  fs::remove(model() / "tokenizer_config.json");
  EXPECT_EQ(ids("One café"), (Ids{28, 30}));
  // A token behind the vocabulary's end.
  Json more = tokenizer_json();
  more["added_tokens"].push_back(
      {{"id", 32}, {"content", "[NEW]"}, {"special", true}, {"normalized", false}});
  save("tokenizer.json", more);
  EXPECT_EQ(ids("one[NEW]two"), (Ids{5, 32, 6}));
}

TEST_F(EncoderTest, RefusesBrokenTokenizers) {
  const auto loading_tokenizer = [&] {
    return complaint([&] { data::load_encoder_tokenizer(model(), "bert"); });
  };
  EXPECT_EQ(loading_tokenizer(), "no error");
  const auto with_config = [&](const Json& json) {
    save("tokenizer_config.json", json);
    const std::string text = loading_tokenizer();
    fs::remove(model() / "tokenizer_config.json");
    return text;
  };
  EXPECT_EQ(with_config({{"do_lower_case", "yes"}}),
            "M/tokenizer_config.json: do_lower_case is neither true nor false");
  EXPECT_EQ(with_config({{"tokenizer_class", "BertJapaneseTokenizer"}}),
            "M/tokenizer_config.json: tokenizer_class is 'BertJapaneseTokenizer', wanted BertTokenizer");
  EXPECT_THAT(with_config({{"do_basic_tokenize", false}}), HasSubstr("not supported"));
  EXPECT_THAT(with_config({{"cls_token", 7}}), HasSubstr("cls_token: wanted a token"));
  EXPECT_THAT(with_config({{"cls_token", "a\nb"}}), HasSubstr("without control characters"));
  EXPECT_EQ(with_config({{"cls_token", "<s>"}}),
            "M/vocab.txt: no '<s>' among its 32 tokens; is it the vocabulary of a BERT model?");
  EXPECT_THAT(with_config({{"added_tokens_decoder", {{"5", {{"content", "two"}}}}}}),
              HasSubstr("which is another token of the vocabulary"));
  EXPECT_THAT(with_config({{"added_tokens_decoder", {{"99", {{"content", "new"}}}}}}),
              HasSubstr("has id 99, but the vocabulary ends at 31"));
  EXPECT_THAT(with_config({{"added_tokens_decoder", {{"x", {{"content", "new"}}}}}}),
              HasSubstr("names the id 'x'"));
  EXPECT_THAT(with_config({{"added_tokens_decoder", {{"5", {{"content", "one"}, {"normalized", true}}}}}}),
              HasSubstr("asks for normalized, which is not supported"));
  EXPECT_THAT(with_config({{"model_max_length", -1}}), HasSubstr("model_max_length is -1"));
  EXPECT_THAT(with_config(Json::array()), HasSubstr("wanted an object of named options"));

  write_atomically(model() / "vocab.txt", "[CLS]\n[SEP]\n[UNK]\n\xFF\n");
  EXPECT_EQ(loading_tokenizer(), "M/vocab.txt, line 4: not UTF-8");
  write_atomically(model() / "vocab.txt", "[CLS]\n[SEP]\n[UNK]\n[CLS]\n");
  EXPECT_EQ(loading_tokenizer(), "M/vocab.txt: tokens 0 and 3 are the same");
  fs::resize_file(model() / "vocab.txt", uintmax_t{10} << 30);  // a hole, no disk
  EXPECT_THAT(loading_tokenizer(), HasSubstr("M/vocab.txt"));
  fs::remove(model() / "vocab.txt");
  EXPECT_EQ(loading_tokenizer(), "M has no tokenizer, wanted vocab.txt or tokenizer.json");
  EXPECT_EQ(complaint([&] { data::load_encoder_tokenizer(model(), "roberta"); }),
            "M has no tokenizer, wanted vocab.json with merges.txt, or tokenizer.json");

  const auto with_json = [&](const std::function<void(Json&)>& change) {
    Json json = tokenizer_json();
    change(json);
    save("tokenizer.json", json);
    return loading_tokenizer();
  };
  EXPECT_EQ(with_json([](Json&) {}), "no error");
  EXPECT_EQ(with_json([](Json& json) { json = Json::array(); }),
            "M/tokenizer.json: wanted an object with model, normalizer and pre_tokenizer");
  EXPECT_EQ(with_json([](Json& json) { json["model"]["type"] = "WordLevel"; }),
            "M/tokenizer.json: model is of type 'WordLevel', wanted WordPiece");
  EXPECT_EQ(with_json([](Json& json) { json["normalizer"] = nullptr; }),
            "M/tokenizer.json: no normalizer, wanted one of type BertNormalizer");
  EXPECT_EQ(with_json([](Json& json) { json["pre_tokenizer"]["type"] = 3; }),
            "M/tokenizer.json: pre_tokenizer is of type '3', wanted BertPreTokenizer");
  EXPECT_THAT(with_json([](Json& json) { json["model"]["vocab"]["one"] = 10'000'000'000; }),
              HasSubstr("are not the numbers from 0 to 31"));
  EXPECT_THAT(with_json([](Json& json) { json["model"]["vocab"]["one"] = -1; }),
              HasSubstr("are not the numbers"));
  EXPECT_THAT(with_json([](Json& json) { json["model"]["vocab"]["one"] = 6; }), HasSubstr("have the id 6"));
  EXPECT_THAT(with_json([](Json& json) { json["model"]["vocab"] = {"one"}; }),
              HasSubstr("the vocabulary is no object"));
  EXPECT_THAT(with_json([](Json& json) { json["model"]["max_input_chars_per_word"] = 0; }),
              HasSubstr("words of at most 0 characters"));
  EXPECT_THAT(with_json([](Json& json) { json["added_tokens"][0]["id"] = "x"; }), HasSubstr("has no id"));
  EXPECT_THAT(with_json([](Json& json) { json["added_tokens"][0]["lstrip"] = true; }),
              HasSubstr("asks for lstrip"));
  write_atomically(model() / "tokenizer.json", std::string(100, '['));
  EXPECT_THAT(loading_tokenizer(), HasSubstr("nested deeper"));
}

TEST_F(EncoderTest, RobertaFoldersHaveByteLevelTokenizers) {
  const Json golden = load_json(FOVEA_GOLDEN "/byte_bpe.json");
  models::BertConfig config = untrained_encoder_config("roberta");
  config.vocab_size = static_cast<int64_t>(golden["vocab"].size());
  config.pad_token_id = 1;
  Rng rng(5);
  fs::remove_all(model());
  models::save_bert(model(), models::Bert(config, {.masked_lm = true}, rng));
  save("vocab.json", golden["vocab"]);
  std::string merges = "#version: 0.2\n";
  for (const Json& merge : golden["merges"])
    merges += merge[0].get<std::string>() + " " + merge[1].get<std::string>() + "\n";
  write_atomically(model() / "merges.txt", merges);
  const LoadedEncoder loaded = load(kMaskedHead);
  EXPECT_EQ(loaded.modules.max_tokens, 38) << "places are counted from 2";
  const std::string text = "Paris is the <mask> of 我.";
  const Ids ids = loaded.tokenizer->encode(text);
  EXPECT_EQ(MaskFiller(loaded).fill(text, 3)[0].size(), 3u);
  EXPECT_EQ(complaint([&] { MaskFiller(loaded).fill("[MASK]", 3); }),
            "no <mask> in the text; put one where a word is to be found");
  const std::vector<float> wanted = states(loaded, loaded.tokenizer->mark(ids).ids).to_vector();
  expect_near(embed_one(loaded, text, {.pooling = "cls"}), {wanted.begin(), wanted.begin() + 24});

  // The same from tokenizer.json, with merges in either form.
  fs::remove(model() / "vocab.json");
  Json json{{"normalizer", nullptr},
            {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
            {"added_tokens",
             {{{"id", 0}, {"content", "<s>"}, {"normalized", true}, {"lstrip", false}},
              {{"id", 4}, {"content", "<mask>"}, {"normalized", false}, {"lstrip", true}}}},
            {"model", {{"type", "BPE"}, {"vocab", golden["vocab"]}, {"merges", golden["merges"]}}}};
  const auto again = [&] {
    save("tokenizer.json", json);
    return data::load_encoder_tokenizer(model(), "roberta").tokenizer->encode(text);
  };
  EXPECT_EQ(again(), ids);
  for (Json& merge : json["model"]["merges"])
    merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  EXPECT_EQ(again(), ids);
  json["added_tokens"][1]["lstrip"] = false;
  EXPECT_NE(again(), ids) << "the space before the mask is a token of its own";
  save("tokenizer_config.json",
       {{"mask_token", {{"content", "<mask>"}, {"lstrip", true}}}, {"add_prefix_space", true}});
  EXPECT_NE(again(), ids);
  EXPECT_EQ(data::load_encoder_tokenizer(model(), "roberta").tokenizer->encode("  is <mask>"),
            loaded.tokenizer->encode("  is <mask>"))
      << "a text that begins with a space has it already";

  const auto with = [&](const std::function<void(Json&)>& change) {
    Json wrong = json;
    change(wrong);
    save("tokenizer.json", wrong);
    return complaint([&] { data::load_encoder_tokenizer(model(), "roberta"); });
  };
  EXPECT_EQ(with([](Json&) {}), "no error");
  EXPECT_EQ(with([](Json& j) { j["model"]["type"] = "Unigram"; }),
            "M/tokenizer.json: model is of type 'Unigram', wanted BPE");
  EXPECT_EQ(with([](Json& j) { j["model"]["merges"][0] = "ab"; }),
            "M/tokenizer.json: got the merge 'ab', wanted two parts");
  EXPECT_EQ(with([](Json& j) { j["model"]["merges"][0] = 3; }),
            "M/tokenizer.json: merges is no list of pairs");
  EXPECT_EQ(with([](Json& j) { j["model"].erase("merges"); }),
            "M/tokenizer.json: the model has no vocab or no merges");
  EXPECT_THAT(with([](Json& j) { j["model"]["end_of_word_suffix"] = "</w>"; }), HasSubstr("not supported"));
  EXPECT_THAT(with([](Json& j) { j["normalizer"] = {{"type", "NFC"}}; }), HasSubstr("wanted none"));
  EXPECT_THAT(with([](Json& j) { j["added_tokens"][0]["lstrip"] = true; }), HasSubstr("of the mask alone"));
}

TEST_F(EncoderTest, ATokenizerMustHaveAsManyTokensAsTheModelHasRows) {
  std::string many = encoder_vocabulary_file();
  for (int i = 0; i < 33; ++i) many += "more" + std::to_string(i) + "\n";
  write_atomically(model() / "vocab.txt", many);
  EXPECT_EQ(
      loading(),
      "M: the tokenizer has 65 tokens, but the embedding table 64 rows; they belong to different models");
  models::BertConfig config = untrained_encoder_config();
  config.vocab_size = 32;
  Rng rng(5);
  models::save_bert(model(), models::Bert(config, {}, rng));
  write_atomically(model() / "vocab.txt", encoder_vocabulary_file());
  EXPECT_EQ(loading(), "no error");
  std::string shorter = encoder_vocabulary_file();
  shorter.erase(shorter.rfind('\n', shorter.size() - 2) + 1);
  write_atomically(model() / "vocab.txt", shorter);
  EXPECT_EQ(loading(),
            "M: the tokenizer has 31 tokens, but the embedding table 32 rows; the vocabulary file is cut "
            "short, or of "
            "another model");
}

TEST_F(EncoderTest, WeightsThatAreNoNumbersAreRefusedByName) {
  models::BertConfig config = untrained_encoder_config();
  Rng rng(5);
  models::Bert network(config, {}, rng);
  for (const auto& [name, value] : network.parameters())
    if (name.find("layers.1") != std::string::npos || name.find("layer.1") != std::string::npos) {
      for (const float bad : {std::nanf(""), -INFINITY}) {
        const float kept = value.value().data()[3];
        value.value().data()[3] = bad;
        models::save_bert(model(), network);
        EXPECT_THAT(loading(), testing::AllOf(HasSubstr("M/model.safetensors: 'bert.encoder.layer.1."),
                                              HasSubstr(std::isnan(bad) ? "contains NaN at element"
                                                                        : "contains infinity")));
        value.value().data()[3] = kept;
      }
      return;
    }
  FAIL() << "no parameter of the second layer";
}

TEST_F(EncoderTest, AFolderThatIsMissingOrALoopOfLinksIsOneLine) {
  fs::remove(model() / "config.json");
  fs::create_symlink("config.json", model() / "config.json");
  EXPECT_THAT(loading(), HasSubstr("config.json: Too many levels of symbolic links"));
  fs::remove_all(model());
  EXPECT_EQ(loading(), "model folder 'M' does not exist");
}

}  // namespace
}  // namespace fovea::tasks
