// The BERT family against Hugging Face's: outputs, every gradient, the losses of ten steps of Adam; and its
// folders, whole and broken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograd/ops.h"
#include "io/temporary_directory.h"
#include "models/bert_folder.h"
#include "models/golden_check.h"

namespace fovea::models {
namespace {

using testing::HasSubstr;

const GoldenBerts& golden(const std::string& file = "bert") {
  static const GoldenBerts berts, encoders("encoders");
  return file == "bert" ? berts : encoders;
}

void expect_equal(const GoldenBerts& golden) {
  for (size_t i = 0; i < golden.size(); ++i) {
    SCOPED_TRACE(message(i, " ", golden.name(i)));
    const TemporaryDirectory folder;
    golden.write(i, folder.path());
    Rng rng(1);
    const LoadedBert loaded = load_bert(folder.path(), rng);
    ASSERT_THAT(loaded.fresh, testing::IsEmpty());
    expect_golden(golden, i, *loaded.network, {.training = true});
  }
}

TEST(BertGolden, FoldersEqualHuggingFacesOutputsGradientsAndTenSteps) {
  ASSERT_EQ(golden().size(), 10u);
  expect_equal(golden());
}

TEST(BertGolden, XlmRobertaAndMpnetFoldersDoTheSame) {
  ASSERT_EQ(golden("encoders").size(), 5u);
  expect_equal(golden("encoders"));
}

class BertFolders : public testing::Test {
 protected:
  // The network of the folder, or what is wrong with it.
  std::string complaint(const std::optional<BertHeads>& heads = {}) {
    try {
      Rng rng(1);
      loaded_ = load_bert(folder_ / "m", rng, heads);
    } catch (const Error& error) {
      std::string text = error.what();
      const std::string prefix = (folder_ / "m").string();
      for (size_t at; (at = text.find(prefix)) != std::string::npos;) text.replace(at, prefix.size(), "M");
      EXPECT_EQ(text.find('\n'), std::string::npos);
      return text;
    }
    return "no error";
  }
  void change_config(const std::function<void(Json&)>& change) {
    Json json = golden().config(0);
    change(json);
    save_json(folder_ / "m/config.json", json);
  }
  std::string complaint_with(const std::string& name, const Json& value) {
    change_config([&](Json& json) { json[name] = value; });
    return complaint();
  }
  Tensor hidden() const {
    nn::Context context;
    return loaded_.network->hidden(golden().texts(), golden().types(loaded_.network->config()), context)
        .value();
  }

  TemporaryDirectory folder_;
  LoadedBert loaded_;
};

TEST_F(BertFolders, LoadWithOrWithoutPrefixAndInOldSpellings) {
  golden().write(0, folder_ / "m", [](TensorToWrite& tensor) {
    tensor.name = "bert." + tensor.name;
    const auto respell = [&](const std::string& ending, const std::string& old) {
      if (tensor.name.ends_with(ending))
        tensor.name.replace(tensor.name.size() - ending.size(), ending.size(), old);
    };
    respell("LayerNorm.weight", "LayerNorm.gamma");
    respell("LayerNorm.bias", "LayerNorm.beta");
    return true;
  });
  ASSERT_EQ(complaint(), "no error");
  expect_near(hidden(), golden().tensor(0, "hidden"), 2e-5f, "hidden");
}

TEST_F(BertFolders, LoadFromShards) {
  golden().write(0, folder_ / "m");
  const std::filesystem::path whole = folder_ / "m/model.safetensors";
  Json index{{"metadata", {{"total_size", 1}}}, {"weight_map", Json::object()}};
  {
    const SafetensorsFile file(whole);
    std::vector<TensorToWrite> shards[2];
    for (const TensorEntry& entry : file->entries()) {
      const size_t shard = index["weight_map"].size() % 2;
      shards[shard].push_back({entry.name, entry.dtype, entry.shape, file->bytes(entry)});
      index["weight_map"][entry.name] = message("model-", shard, ".safetensors");
    }
    for (int i = 0; i < 2; ++i)
      save_safetensors(folder_ / "m" / message("model-", i, ".safetensors"), shards[i]);
  }
  std::filesystem::remove(whole);
  const auto index_path = folder_ / "m/model.safetensors.index.json";
  save_json(index_path, index);
  ASSERT_EQ(complaint(), "no error");
  expect_near(hidden(), golden().tensor(0, "hidden"), 2e-5f, "hidden");

  Json wrong = index;
  wrong["weight_map"]["more"] = "model-1.safetensors";
  save_json(index_path, wrong);
  EXPECT_EQ(complaint(), "M/model.safetensors.index.json: no shard contains 'more'");
  for (const Json& value :
       {Json("../m/model-1.safetensors"), Json("model-1.bin"), Json("/etc/x.safetensors")}) {
    wrong["weight_map"]["more"] = value;
    save_json(index_path, wrong);
    EXPECT_THAT(complaint(), HasSubstr("wanted a .safetensors file beside it"));
  }
  wrong["weight_map"]["more"] = 7;
  save_json(index_path, wrong);
  EXPECT_THAT(complaint(), HasSubstr("weight_map wants the name of a file"));
  save_json(index_path, Json::array());
  EXPECT_EQ(complaint(), "M/model.safetensors.index.json: wanted an object with weight_map");
  save_json(index_path, index);
  std::filesystem::remove(folder_ / "m/model-1.safetensors");
  EXPECT_EQ(complaint(), "M/model.safetensors.index.json: the shard 'model-1.safetensors' is missing");
  std::filesystem::copy_file(folder_ / "m/model-0.safetensors", folder_ / "m/model-1.safetensors");
  EXPECT_THAT(complaint(), HasSubstr("is in another shard already"));
}

TEST_F(BertFolders, GiveFreshHeadsWhereTheyHaveNone) {
  golden().write(0, folder_ / "m");
  ASSERT_EQ(complaint(BertHeads{.masked_lm = true, .labels = 5}), "no error");
  EXPECT_THAT(loaded_.fresh,
              testing::UnorderedElementsAre("masked_lm.dense.weight", "masked_lm.dense.bias",
                                            "masked_lm.norm.weight", "masked_lm.norm.bias", "masked_lm.bias",
                                            "classifier.weight", "classifier.bias"))
      << "the pooler is the folder's";
  const std::vector<float> drawn = loaded_.network->classifier->weight.value().to_vector();
  double squares = 0;
  for (const float x : drawn) squares += double{x} * x;
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(drawn.size())), 0.02, 0.01);
  EXPECT_EQ(loaded_.network->config().labels.size(), 5u);
  loaded_.network->name_labels({"a", "b", "c", "d", "e"});
  EXPECT_THROW(loaded_.network->name_labels({"a"}), Error);
  expect_near(hidden(), golden().tensor(0, "hidden"), 2e-5f, "hidden");

  // A classifier of other labels is of no use; its pooler is.
  std::filesystem::remove_all(folder_ / "m");
  golden().write(golden().find("BertForSequenceClassification"), folder_ / "m");
  ASSERT_EQ(complaint(BertHeads{.labels = 4}), "no error");
  EXPECT_THAT(loaded_.fresh, testing::UnorderedElementsAre("classifier.weight", "classifier.bias"));
}

TEST_F(BertFolders, ComeBackAsTheyWereSaved) {
  for (size_t i = 0; i < golden().size(); ++i) {
    SCOPED_TRACE(golden().name(i));
    golden().write(i, folder_ / "m");
    ASSERT_EQ(complaint(), "no error");
    save_bert(folder_ / "again", *loaded_.network);
    Rng rng(2);
    const LoadedBert again = load_bert(folder_ / "again", rng);
    EXPECT_THAT(again.fresh, testing::IsEmpty());
    EXPECT_EQ(bert_config_json(again.network->config()), bert_config_json(loaded_.network->config()));
    EXPECT_EQ(load_json(folder_ / "again/config.json")["architectures"][0], golden().name(i));
    const auto before = loaded_.network->parameters(), after = again.network->parameters();
    ASSERT_EQ(before.size(), after.size());
    for (size_t p = 0; p < before.size(); ++p)
      EXPECT_EQ(before[p].value.value().to_vector(), after[p].value.value().to_vector()) << before[p].name;
    std::filesystem::remove_all(folder_ / "m");
    std::filesystem::remove_all(folder_ / "again");
  }
}

TEST_F(BertFolders, SayHowToConvertOtherWeights) {
  golden().write(0, folder_ / "m");
  std::filesystem::rename(folder_ / "m/model.safetensors", folder_ / "m/pytorch_model.bin");
  EXPECT_THAT(complaint(),
              testing::AllOf(HasSubstr("has pytorch_model.bin but no model.safetensors; convert it"),
                             HasSubstr("safetensors.torch.save_file")));
  std::filesystem::remove(folder_ / "m/pytorch_model.bin");
  EXPECT_EQ(complaint(), "M has no weights, wanted model.safetensors");
  std::filesystem::remove(folder_ / "m/config.json");
  EXPECT_EQ(complaint(), "M is no model folder: it has no config.json");
  std::filesystem::remove(folder_ / "m");
  EXPECT_EQ(complaint(), "model folder 'M' does not exist");
}

TEST_F(BertFolders, AreRefusedWithOneLineWhenTheConfigIsWrong) {
  golden().write(0, folder_ / "m");
  EXPECT_EQ(complaint_with("something_of_next_year", Json{{"a", {1, 2}}}), "no error");
  EXPECT_EQ(complaint_with("hidden_size", "big"),
            "M/config.json: hidden_size: got '\"big\"', wanted a whole number");
  EXPECT_EQ(complaint_with("hidden_size", -4), "M/config.json: hidden_size is -4, wanted 1 to 2147483647");
  EXPECT_EQ(complaint_with("num_attention_heads", 5), "M/config.json: 5 heads do not divide the width 12");
  EXPECT_EQ(complaint_with("num_attention_heads", 0),
            "M/config.json: num_attention_heads is 0, wanted 1 to 2147483647");
  EXPECT_EQ(complaint_with("hidden_act", "mish"),
            "M/config.json: hidden_act is 'mish', wanted gelu, gelu_new, relu or silu");
  EXPECT_EQ(
      complaint_with("model_type", "gpt2"),
      "M/config.json: model_type is 'gpt2', wanted bert, distilbert, roberta, xlm-roberta, mpnet, longformer or big_bird");
  EXPECT_EQ(complaint_with("hidden_dropout_prob", 1.5),
            "M/config.json: hidden_dropout_prob is 1.5, wanted 0 or more and less than 1");
  EXPECT_EQ(complaint_with("layer_norm_eps", 0),
            "M/config.json: layer_norm_eps is 0, wanted a small number above 0");
  EXPECT_EQ(complaint_with("is_decoder", true),
            "M/config.json: is_decoder is set: a decoder, wanted an encoder");
  EXPECT_THAT(complaint_with("position_embedding_type", "relative_key"), HasSubstr("the only one known"));
  EXPECT_THAT(complaint_with("pruned_heads", Json{{"0", {1}}}), HasSubstr("heads were pruned"));
  EXPECT_THAT(complaint_with("id2label", Json{{"0", "a"}, {"7", "b"}}),
              HasSubstr("names the label '7' of 2"));
  EXPECT_THAT(complaint_with("id2label", Json{{"-1", "a"}}), HasSubstr("names the label '-1' of 1"));
  EXPECT_THAT(complaint_with("num_labels", int64_t{1} << 60), HasSubstr("labels, wanted 1 to"));
  save_json(folder_ / "m/config.json", Json{{"task", "translate"}, {"model", "transformer"}});
  EXPECT_EQ(
      complaint(),
      "M/config.json: not the config of a BERT-family model; wanted model_type bert, distilbert, roberta, xlm-roberta, mpnet, longformer or big_bird");
  save_json(folder_ / "m/config.json", Json::array());
  EXPECT_THAT(complaint(), HasSubstr("not the config of a BERT-family model"));
}

TEST_F(BertFolders, ClaimsThatTheFileDoesNotKeepTakeNoMemory) {
  golden().write(0, folder_ / "m");
  EXPECT_EQ(
      complaint_with("vocab_size", 2'000'000'000),
      "M/model.safetensors: 'embeddings.word_embeddings.weight' has shape [32, 12], but config.json says "
      "[2000000000, 12]");
  for (const char* name : {"max_position_embeddings", "num_hidden_layers", "intermediate_size"})
    EXPECT_THAT(complaint_with(name, 2'000'000'000),
                HasSubstr("numbers, but config.json describes an encoder of"));
  EXPECT_THAT(complaint_with("type_vocab_size", 1'000'000), HasSubstr("numbers, but config.json describes"));
}

TEST_F(BertFolders, AreRefusedWithOneLineWhenATensorIsWrong) {
  const auto with = [&](const std::function<bool(TensorToWrite&)>& change) {
    golden().write(0, folder_ / "m", change);
    return complaint();
  };
  EXPECT_EQ(with([](TensorToWrite& t) { return t.name != "encoder.layer.1.attention.self.key.bias"; }),
            "M/model.safetensors: no tensor 'encoder.layer.1.attention.self.key.bias'");
  EXPECT_EQ(
      with([](TensorToWrite& t) {
        if (t.name == "encoder.layer.0.attention.self.value.weight") t.shape = {144};
        return true;
      }),
      "M/model.safetensors: 'encoder.layer.0.attention.self.value.weight' has shape [144], wanted [12, 12]");
  EXPECT_THAT(with([](TensorToWrite& t) {
                if (t.name == "embeddings.word_embeddings.weight") t.name = "wte.weight";
                return true;
              }),
              HasSubstr("are these the weights of a bert model?"));
  golden().write(0, folder_ / "m");
  EXPECT_EQ(complaint_with("num_hidden_layers", 1),
            "M/model.safetensors: contains 'encoder.layer.1.attention.output.LayerNorm.bias', which has no "
            "place in the "
            "model that config.json describes");
  const std::string bytes = read_text(folder_ / "m/model.safetensors");
  write_atomically(folder_ / "m/model.safetensors", std::string_view(bytes).substr(0, bytes.size() / 2));
  EXPECT_THAT(complaint(), HasSubstr("M/model.safetensors: "));
  golden().write(golden().find("BertForSequenceClassification"), folder_ / "m");
  Json config = golden().config(golden().find("BertForSequenceClassification"));
  config["id2label"] = Json{{"0", "no"}, {"1", "yes"}};
  save_json(folder_ / "m/config.json", config);
  EXPECT_EQ(complaint(), "M/model.safetensors: a classifier of 3 labels, but config.json has 2");
}

TEST(Bert, RefusesTextsItCannotRead) {
  Rng rng(1);
  const BertConfig config = bert_config(golden().config(0), "config.json");
  const Bert network(config, {}, rng);
  nn::Context context;
  const auto complain = [&](const std::vector<int32_t>& ids,
                            const std::vector<int32_t>& types) -> std::string {
    const int32_t length[] = {static_cast<int32_t>(ids.size())};
    try {
      network.hidden({ids, length}, types, context);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(complain({2, 3}, {}), "no error");
  EXPECT_EQ(complain(std::vector<int32_t>(17, 4), {}),
            "bert: a text of 17 tokens, but places were learned up to 16");
  EXPECT_EQ(complain({2, 3}, {0}), "bert: 1 kinds for 2 tokens");
  EXPECT_THAT(complain({2, 32}, {}), HasSubstr("wanted 0 to 31"));
  EXPECT_THAT(complain({2, 3}, {0, 2}), HasSubstr("wanted 0 to 1"));
  const Var hidden = network.hidden(golden().texts(), {}, context);
  EXPECT_THROW(network.pooled(hidden, golden().texts().lengths), Error);
  EXPECT_THROW(network.token_logits(hidden), Error);
}

TEST(Bert, NamesItsAttentionForObservers) {
  class Names : public AttentionObserver {
   public:
    Capture capture(const Call& call) override {
      seen.emplace_back(call.name);
      return {};
    }
    void observe(const Call&, const Capture&, const Captured&) override {}
    std::vector<std::string> seen;
  };
  Rng rng(1);
  const Bert network(bert_config(golden().config(0), "config.json"), {}, rng);
  Names names;
  const ObserveAttention observe(names);
  nn::Context context;
  network.hidden(golden().texts(), {}, context);
  EXPECT_EQ(names.seen, (std::vector<std::string>{"encoder.0.self", "encoder.1.self"}));
}

TEST(Bert, DropsOnlyInTraining) {
  Rng rng(1);
  Json json = golden().config(0);
  json["hidden_dropout_prob"] = 0.3;
  const Bert network(bert_config(json, "config.json"), {.labels = 2}, rng);
  const auto logits = [&](bool training, uint64_t seed) {
    nn::Context context{.training = training, .rng = Rng(seed)};
    const Sentences texts = golden().texts();
    return network.class_logits(network.hidden(texts, {}, context), texts.lengths, context)
        .value()
        .to_vector();
  };
  EXPECT_EQ(logits(false, 1), logits(false, 2));
  EXPECT_NE(logits(true, 1), logits(false, 1));
  EXPECT_NE(logits(true, 1), logits(true, 2));
  EXPECT_EQ(logits(true, 1), logits(true, 1));
}

}  // namespace
}  // namespace fovea::models
