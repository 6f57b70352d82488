// The text classifiers: against PyTorch, and packed texts against each text alone.
#include <gtest/gtest.h>

#include "autograd/ops.h"
#include "io/safetensors.h"
#include "models/registry.h"
#include "train/optimizer.h"

namespace fovea::models {
namespace {

struct Batch {
  std::vector<int32_t> tokens, lengths, labels;
};

// The texts of a file in the form that a model takes.
Batch read_batch(const Json& json, data::TextForm form) {
  Batch batch;
  for (const Json& text : json["texts"]) {
    const size_t begin = batch.tokens.size();
    if (form == data::TextForm::marked) batch.tokens.push_back(data::kBegin);
    for (const Json& sentence : text[0]) {
      for (const Json& word : sentence) batch.tokens.push_back(word.get<int32_t>());
      if (form == data::TextForm::sentences) batch.tokens.push_back(data::kEnd);
    }
    if (form != data::TextForm::sentences) batch.tokens.push_back(data::kEnd);
    batch.lengths.push_back(static_cast<int32_t>(batch.tokens.size() - begin));
    batch.labels.push_back(text[1].get<int32_t>());
  }
  return batch;
}

TEST(ClassificationModels, EqualPyTorchsLossGradientsAndTenSteps) {
  const SafetensorsFile file(FOVEA_GOLDEN "/classification.safetensors");
  const Json list = load_json(FOVEA_GOLDEN "/classification.json");
  const Json counted = vocabulary_and_classes(list["batch"]["vocabulary"].get<int64_t>(),
                                              list["batch"]["classes"].get<int64_t>());
  ASSERT_EQ(list["cases"].size(), 12u);
  for (size_t i = 0; i < list["cases"].size(); ++i) {
    const std::string model = list["cases"][i]["model"], prefix = std::to_string(i) + "/";
    const Json& settings = list["cases"][i]["settings"];
    SCOPED_TRACE(model + settings.dump());
    Rng rng(1);
    const auto network =
        make_model<Classifiers>(model, model_config<Classifiers>(model, settings, counted), rng);
    nn::load_parameters(*network, [&](std::string_view name) {
      return file->tensor(prefix + "weight/" + std::string(name));
    });
    const Batch batch = read_batch(list["batch"], network->form());
    const Tensor losses = file->tensor(prefix + "losses");
    train::Optimizer optimizer(network->parameters(), train::Adam{.learning_rate = 0.01});
    nn::Context context{.training = true};
    for (int64_t step = 0; step < losses.count(); ++step) {
      optimizer.clear_grad();
      const Var loss = cross_entropy(network->logits({batch.tokens, batch.lengths}, context), batch.labels,
                                     {.smoothing = 0.1f});
      loss.backward();
      EXPECT_NEAR(loss.value().item(), losses.data()[step], 1e-4 * (1 + static_cast<double>(step)))
          << "step " << step;
      if (step == 0) {
        for (const auto& [name, parameter] : network->parameters()) {
          const Tensor got = parameter.grad(), wanted = file->tensor(prefix + "grad/" + name);
          ASSERT_TRUE(got.defined()) << name;
          for (int64_t e = 0; e < wanted.count(); ++e)
            ASSERT_NEAR(got.data()[e], wanted.data()[e], 2e-5) << name << " element " << e;
        }
      }
      optimizer.step();
    }
  }
}

struct Seen : AttentionObserver {
  Wish wish(const Call& call) override {
    if (call.name != "words" && call.name != "sentences") return {};
    Wish all{{0}, {}};
    for (int64_t i = 0; i < call.queries; ++i) all.rows.push_back(static_cast<int32_t>(i));
    return all;
  }
  void see(const Call& call, const Wish&, const Sight& sight) override {
    shown.emplace_back(call.name, sight.weights.contiguous());
  }
  std::vector<std::pair<std::string, Tensor>> shown;
};

// Texts of these lengths, in sentences of at most four tokens.
Batch random_texts(const std::vector<int32_t>& lengths) {
  Batch batch;
  batch.lengths = lengths;
  Rng rng(9);
  for (const int32_t length : lengths)
    for (int32_t i = 0; i < length; ++i)
      batch.tokens.push_back(i % 4 == 3 || i + 1 == length ? data::kEnd
                                                           : 4 + static_cast<int32_t>(rng.below(26)));
  return batch;
}

class EveryClassifier : public testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<ClassificationModel> make() const {
    const Json choice = parse_json(GetParam(), "test");
    Rng rng(4);
    return make_model<Classifiers>(
        choice["model"],
        model_config<Classifiers>(choice["model"], choice["settings"], vocabulary_and_classes(30, 4)), rng);
  }
};

TEST_P(EveryClassifier, GivesATextTheSameScoresAloneAndAmongOthers) {
  const auto network = make();
  const std::vector<int32_t> lengths{7, 1, 40, 3, 90, 12};
  const Batch all = random_texts(lengths);
  const NoGrad no_grad;
  nn::Context context;
  const Tensor together = network->logits({all.tokens, all.lengths}, context).value();
  int32_t begin = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const std::span<const int32_t> own(all.tokens.data() + begin, static_cast<size_t>(lengths[i]));
    const Tensor alone = network->logits({own, {&lengths[i], 1}}, context).value();
    for (int64_t c = 0; c < 4; ++c)
      EXPECT_NEAR(together.data()[static_cast<int64_t>(i) * 4 + c], alone.data()[c], 2e-6)
          << "text " << i << ", class " << c;
    begin += lengths[i];
  }
}

TEST_P(EveryClassifier, ShowsWeightsThatSumToOneAndLeaveOtherTextsOut) {
  const auto network = make();
  const Batch all = random_texts({7, 1, 40, 3});
  const NoGrad no_grad;
  nn::Context context;
  Seen seen;
  {
    const ObserveAttention observe(seen);
    network->logits({all.tokens, all.lengths}, context);
  }
  ASSERT_FALSE(seen.shown.empty());
  for (const auto& [name, weights] : seen.shown) {
    const int64_t rows = weights.size(2), columns = weights.size(3);
    // Rows of "words" are sentences where the model has them, else texts.
    std::vector<int64_t> parts(all.lengths.begin(), all.lengths.end());
    const data::SentenceLengths sentences = data::sentence_lengths(all.tokens, parts);
    if (name == "sentences") parts = sentences.sentences;
    if (name == "words" && network->form() == data::TextForm::sentences) parts = sentences.tokens;
    ASSERT_EQ(rows, static_cast<int64_t>(parts.size()));
    int64_t begin = 0;
    for (int64_t row = 0; row < rows; ++row) {
      double sum = 0;
      for (int64_t column = 0; column < columns; ++column) {
        const float weight = weights.data()[row * columns + column];
        if (column < begin || column >= begin + parts[static_cast<size_t>(row)]) {
          EXPECT_EQ(weight, 0) << name << " row " << row << " column " << column;
        }
        sum += weight;
      }
      EXPECT_NEAR(sum, 1, 1e-5) << name << " row " << row;
      begin += parts[static_cast<size_t>(row)];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, EveryClassifier,
    testing::Values(
        R"j({"model": "lstm", "settings": {"embedding": 8, "width": 6}})j",
        R"j({"model": "lstm", "settings": {"embedding": 8, "width": 6, "pooling": "mean", "layers": 2}})j",
        R"j({"model": "han", "settings": {"embedding": 8, "width": 6}})j",
        R"j({"model": "transformer", "settings": {"width": 16, "heads": 2, "hidden": 32}})j",
        R"j({"model": "transformer", "settings": {"width": 16, "heads": 2, "hidden": 32, "pooling": "mean",
            "self_attention": "scaled_dot / window(2,2) | global(0)"}})j",
        R"j({"model": "transformer", "settings": {"width": 16, "heads": 2, "hidden": 32,
            "self_attention": "scaled_dot / block_window(8,1,1) | random_blocks(8,1,3) | global(0..1)"}})j"));

std::string refusal(const std::string& model, const Json& settings) {
  Rng rng(1);
  try {
    make_model<Classifiers>(model, model_config<Classifiers>(model, settings, vocabulary_and_classes(30, 2)),
                            rng);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ClassificationModels, RefuseSettingsThatMakeNoSense) {
  EXPECT_EQ(refusal("lstm", {{"pooling", "max"}}), "lstm: pooling 'max', wanted attention, mean or last");
  EXPECT_NE(refusal("lstm", {{"score", "bilinear"}}).find("wanted additive, dot, scaled_dot or cosine"),
            std::string::npos);
  EXPECT_EQ(refusal("han", {{"dropout", 1.5}}),
            "model settings: dropout is 1.5, wanted 0 or more and below 1");
  EXPECT_NE(refusal("transformer", {{"self_attention", "dot / documents(3)"}}).find("pattern of positions"),
            std::string::npos);
  EXPECT_NE(refusal("transformers", {}).find("did you mean 'transformer'"), std::string::npos);
}

}  // namespace
}  // namespace fovea::models
