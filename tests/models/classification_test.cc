// The text classifiers: against PyTorch, and packed texts against each text alone.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "autograd/ops.h"
#include "io/safetensors.h"
#include "models/bert_classifier.h"
#include "models/bert_names.h"
#include "models/golden_training.h"
#include "models/registry/classifiers.h"
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
    nn::Context context{.training = true};
    expect_golden_training(*network, golden_training(file, prefix, "grad/"), [&](int64_t) {
      return cross_entropy(network->logits({batch.tokens, batch.lengths}, context), batch.labels,
                           {.smoothing = 0.1f});
    });
  }
}

// A vocabulary whose word of id 5 is "w5".
std::unique_ptr<data::Tokenizer> numbered_words(int64_t count) {
  std::string lines = "<pad>\n<s>\n</s>\n<unk>\n";
  for (int64_t id = data::kSpecials; id < count; ++id) lines += message("w", id, "\n");
  return data::parse_words(lines, "test");
}

// The texts or pairs of reading.json in the form that a model takes, and their targets.
struct Reading {
  std::vector<int32_t> tokens, lengths, firsts;
  data::Targets targets;
};
Reading read_texts(const Json& json, data::TextForm form, bool pairs, data::LabelForm target, int32_t begin,
                   int32_t end) {
  Reading batch;
  batch.targets.form = target;
  if (target == data::LabelForm::several)
    batch.targets.width = static_cast<int64_t>(json["texts"][0][3].size());
  for (const Json& row : json["texts"]) {
    const size_t start = batch.tokens.size();
    if (form == data::TextForm::marked) batch.tokens.push_back(begin);
    for (size_t side = 0; side < (pairs ? 2u : 1u); ++side) {
      for (const Json& sentence : row[side]) {
        for (const Json& word : sentence) batch.tokens.push_back(word.get<int32_t>());
        if (form == data::TextForm::sentences) batch.tokens.push_back(end);
      }
      if (form != data::TextForm::sentences) batch.tokens.push_back(end);
      if (pairs && side == 0) batch.firsts.push_back(static_cast<int32_t>(batch.tokens.size() - start));
    }
    batch.lengths.push_back(static_cast<int32_t>(batch.tokens.size() - start));
    if (target == data::LabelForm::one) batch.targets.labels.push_back(row[2].get<int32_t>());
    if (target == data::LabelForm::several)
      for (const Json& one : row[3]) batch.targets.values.push_back(one.get<float>());
    if (target == data::LabelForm::number) batch.targets.values.push_back(row[4].get<float>());
  }
  return batch;
}

void expect_ten_steps(const ClassificationModel& network, const Reading& batch, float smoothing,
                      const SafetensorsFile& file, const std::string& prefix,
                      const std::function<Tensor(const std::string&)>& gradient) {
  const Tensor losses = file->tensor(prefix + "losses");
  train::Optimizer optimizer(network.parameters(), train::Adam{.learning_rate = 0.01});
  nn::Context context{.training = true};
  for (int64_t step = 0; step < losses.count(); ++step) {
    optimizer.clear_grad();
    const Var loss =
        network.loss({batch.tokens, batch.lengths, batch.firsts}, batch.targets, smoothing, context);
    loss.backward();
    EXPECT_NEAR(loss.value().item(), losses.data()[step],
                1e-4 * (1 + static_cast<double>(step)) * std::max(1.0f, std::abs(losses.data()[step])))
        << "step " << step;
    if (step == 0)
      for (const auto& [name, parameter] : network.parameters()) {
        const Tensor got = parameter.grad(), wanted = gradient(name);
        ASSERT_TRUE(got.defined()) << name;
        ASSERT_EQ(got.count(), wanted.count()) << name;
        for (int64_t e = 0; e < wanted.count(); ++e)
          ASSERT_NEAR(got.data()[e], wanted.data()[e], 5e-5) << name << " element " << e;
      }
    optimizer.step();
  }
}

data::LabelForm form_named(const std::string& name) {
  return name == "one"       ? data::LabelForm::one
         : name == "several" ? data::LabelForm::several
                             : data::LabelForm::number;
}

// tests/golden/make_reading.py: pairs, several labels, numbers, selections, gated scores, global tokens, the last
// output, patterns that differ between heads.
TEST(ReadingModels, EqualPyTorchsLossGradientsAndTenSteps) {
  const SafetensorsFile file(FOVEA_GOLDEN "/reading.safetensors");
  const Json list = load_json(FOVEA_GOLDEN "/reading.json");
  const Json& data = list["batch"];
  const auto vocabulary = data["vocabulary"].get<int64_t>(), classes = data["classes"].get<int64_t>();
  const auto tokenizer = numbered_words(vocabulary);
  ASSERT_EQ(list["cases"].size(), 20u);
  for (size_t i = 0; i < list["cases"].size(); ++i) {
    const Json& described = list["cases"][i];
    const std::string model = described["model"], prefix = std::to_string(i) + "/";
    if (model == "bert") continue;
    SCOPED_TRACE(described.dump());
    const bool pairs = described["pairs"].get<bool>();
    const data::LabelForm form = form_named(described["target"].get<std::string>());
    Rng rng(1);
    const auto network = make_model<Classifiers>(
        model,
        model_config<Classifiers>(
            model, described["settings"],
            vocabulary_and_classes(vocabulary, form == data::LabelForm::number ? 1 : classes, pairs)),
        rng);
    nn::load_parameters(*network, [&](std::string_view name) {
      return file->tensor(prefix + "weight/" + std::string(name));
    });
    network->read_as(form);
    network->use_tokenizer(*tokenizer);
    if (form == data::LabelForm::number)
      network->set_target_scale(data["mean"].get<float>(), data["deviation"].get<float>());
    const Reading batch = read_texts(data, network->form(), pairs, form, data::kBegin, data::kEnd);
    expect_ten_steps(*network, batch, form == data::LabelForm::one ? 0.1f : 0, file, prefix,
                     [&](const std::string& name) { return file->tensor(prefix + "grad/" + name); });
  }
}

// The same of Hugging Face's BertForSequenceClassification, with its own losses by problem_type.
TEST(ReadingModels, EqualHuggingFacesRegressionAndSeveralLabels) {
  const SafetensorsFile file(FOVEA_GOLDEN "/reading.safetensors");
  const Json list = load_json(FOVEA_GOLDEN "/reading.json");
  int tried = 0;
  for (size_t i = 0; i < list["cases"].size(); ++i) {
    const Json& described = list["cases"][i];
    if (described["model"] != "bert") continue;
    SCOPED_TRACE(described["target"].dump());
    ++tried;
    const std::string prefix = std::to_string(i) + "/";
    const data::LabelForm form = form_named(described["target"].get<std::string>());
    const BertConfig config = bert_config(described["config"], "golden");
    EXPECT_EQ(config.problem_type, described["config"]["problem_type"].get<std::string>());
    const BertHeads heads{.labels = static_cast<int64_t>(config.labels.size())};
    Rng rng(1);
    auto bert = std::make_unique<Bert>(config, heads, rng);
    // Our names of their tensors, joined where one of ours is made of several.
    std::map<std::string, BertName> names;
    for (const BertName& name : bert_names(config, bert->heads())) names.emplace(name.ours, name);
    const auto golden = [&](const std::string& kind, const std::string& ours) {
      std::vector<Var> parts;
      for (const std::string& theirs : names.at(ours).theirs) {
        const std::string plain = prefix + kind + theirs;
        parts.emplace_back(
            file->tensor(file->contains(plain) ? plain : prefix + kind + bert_prefix(config) + theirs));
      }
      return concat(parts, 0).value();
    };
    nn::load_parameters(*bert, [&](std::string_view name) { return golden("weight/", std::string(name)); });
    BertClassifier network(std::move(bert));
    network.read_as(form);
    const Reading batch =
        read_texts(list["batch"], data::TextForm::marked, described["pairs"].get<bool>(), form, 2, 3);
    expect_ten_steps(network, batch, 0, file, prefix, [&](const std::string& name) {
      return golden("grad/", name.substr(std::string("bert.").size()));
    });
  }
  EXPECT_EQ(tried, 2);
}

// Every draw of hard attention on a few texts, weighed by its probability, against the mean of what training uses.
TEST(ReadingModels, HardAttentionsGradientIsUnbiased) {
  Rng rng(3);
  const auto network = make_model<Classifiers>("lstm",
                                               model_config<Classifiers>("lstm",
                                                                         {{"embedding", 3},
                                                                          {"width", 2},
                                                                          {"dropout", 0.0},
                                                                          {"selection", "hard"},
                                                                          {"bidirectional", false},
                                                                          {"attention_width", 3}},
                                                                         vocabulary_and_classes(8, 1)),
                                               rng);
  network->read_as(data::LabelForm::number);
  const std::vector<int32_t> tokens{5, 6, 2, 7, 4, 2}, lengths{3, 3};
  const data::Targets targets{.form = data::LabelForm::number, .values = {2.0f, -1.5f}};
  const Sentences texts(tokens, lengths);
  Var query;
  for (const auto& [name, value] : network->parameters())
    if (name == "attention.query") query = value;
  const auto estimate = [&](int64_t draws) {
    std::vector<double> sum(static_cast<size_t>(query.count())), squares(sum.size());
    nn::Context context{.training = true, .rng = Rng(11)};
    for (int64_t i = 0; i < draws; ++i) {
      network->clear_grad();
      network->loss(texts, targets, 0, context).backward();
      const Tensor grad = query.grad();
      for (size_t e = 0; e < sum.size(); ++e) {
        sum[e] += grad.data()[e] / static_cast<double>(draws);
        squares[e] += double{grad.data()[e]} * grad.data()[e] / static_cast<double>(draws);
      }
    }
    for (size_t e = 0; e < sum.size(); ++e)
      squares[e] = std::sqrt((squares[e] - sum[e] * sum[e]) / static_cast<double>(draws));
    return std::pair{sum, squares};
  };
  // The expected loss by enumeration: all nine pairs of draws, found by drawing until each was met.
  const auto expected_loss = [&] {
    const NoGrad no_grad;
    nn::Context context{.training = true, .rng = Rng(5)};
    std::map<std::pair<float, float>, double> seen;  // by log-probabilities: loss
    for (int i = 0; i < 400; ++i) {
      context.choices.clear();
      const Tensor numbers = network->outputs(texts, context).value().contiguous();
      const float* log_p = context.choices.at(0).log_probability.value().contiguous().data();
      double loss = 0;
      for (int64_t t = 0; t < 2; ++t) {
        const double error = numbers.data()[t] - targets.values[static_cast<size_t>(t)];
        loss += error * error / 2;
      }
      seen[{log_p[0], log_p[1]}] = loss;
    }
    EXPECT_EQ(seen.size(), 9u);
    double total = 0, expected = 0;
    for (const auto& [log_p, loss] : seen) {
      const double p = std::exp(double{log_p.first} + log_p.second);
      total += p;
      expected += p * loss;
    }
    EXPECT_NEAR(total, 1, 1e-5);
    return expected;
  };
  const auto [mean, standard_error] = estimate(20000);
  for (int64_t e = 0; e < query.count(); ++e) {
    const Tensor before = query.value().clone(), moved = query.value().clone();
    constexpr float kStep = 0.02f;
    moved.data()[e] = before.data()[e] + kStep;
    query.set_value(moved);
    const double above = expected_loss();
    moved.data()[e] = before.data()[e] - kStep;
    query.set_value(moved);
    const double below = expected_loss();
    query.set_value(before);
    EXPECT_LT(standard_error[static_cast<size_t>(e)], 0.02);
    EXPECT_NEAR(mean[static_cast<size_t>(e)], (above - below) / (2 * kStep),
                4 * standard_error[static_cast<size_t>(e)] + 1e-3)
        << "element " << e;
  }
}

struct Seen : AttentionObserver {
  Capture capture(const Call& call) override {
    if (call.name != "words" && call.name != "sentences") return {};
    Capture all{{0}, {}};
    for (int64_t i = 0; i < call.queries; ++i) all.rows.push_back(static_cast<int32_t>(i));
    return all;
  }
  void observe(const Call& call, const Capture&, const Captured& captured) override {
    shown.emplace_back(call.name, captured.weights.contiguous());
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
    auto network = make_model<Classifiers>(
        choice["model"],
        model_config<Classifiers>(choice["model"], choice["settings"], vocabulary_and_classes(30, 4)), rng);
    network->use_tokenizer(*numbered_words(30));
    return network;
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
            "self_attention": "scaled_dot / block_window(8,1,1) | random_blocks(8,1,3) | global(0..1)"}})j",
        R"j({"model": "lstm", "settings": {"embedding": 8, "width": 6, "score": "gated"}})j",
        R"j({"model": "lstm", "settings": {"embedding": 8, "width": 6, "score": "bilinear"}})j",
        R"j({"model": "transformer", "settings": {"width": 16, "heads": 2, "hidden": 32, "score": "concat",
            "self_attention": "additive / full / soft"}})j",
        R"j({"model": "transformer", "settings": {"width": 16, "heads": 2, "hidden": 32, "global": "first w7 [SEP]",
            "added_global": 2, "self_attention": "scaled_dot / heads(window(2,2); strided(3))"}})j"));

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
  EXPECT_NE(refusal("lstm", {{"score", "location"}}).find("weighs places whatever their states are"),
            std::string::npos);
  EXPECT_EQ(refusal("han", {{"dropout", 1.5}}),
            "model settings: dropout is 1.5, wanted 0 or more and below 1");
  EXPECT_NE(refusal("transformer", {{"self_attention", "dot / documents(3)"}}).find("patterns of positions"),
            std::string::npos);
  EXPECT_NE(refusal("transformers", {}).find("did you mean 'transformer'"), std::string::npos);
}

}  // namespace
}  // namespace fovea::models
