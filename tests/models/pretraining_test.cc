// Pre-training of BERT against transformers' BertForPreTraining and the optimiser of the original code.
#include <gtest/gtest.h>

#include <cmath>

#include "autograd/ops.h"
#include "base/parallel.h"
#include "io/safetensors.h"
#include "models/bert_names.h"
#include "models/bert_pretraining.h"
#include "models/registry/encoders.h"
#include "train/optimizer.h"

namespace fovea::models {
namespace {

PretrainingBatch read_batch(const Json& pairs) {
  PretrainingBatch batch;
  for (const Json& pair : pairs) {
    const auto tokens = pair[0].get<std::vector<int32_t>>();
    const auto begin = static_cast<int32_t>(batch.tokens.size());
    for (size_t i = 0; i < tokens.size(); ++i) batch.types.push_back(i >= pair[1].get<size_t>());
    batch.tokens.insert(batch.tokens.end(), tokens.begin(), tokens.end());
    batch.lengths.push_back(static_cast<int32_t>(tokens.size()));
    for (const Json& place : pair[2]) batch.places.push_back(begin + place.get<int32_t>());
    for (const Json& target : pair[3]) batch.targets.push_back(target.get<int32_t>());
    batch.next.push_back(pair[4].get<int32_t>());
  }
  return batch;
}

// A parameter of ours as the file has it: one tensor, or several one below the other.
Tensor joined(const SafetensorsFile& file, const std::string& part, const BertName& name) {
  std::vector<Var> parts;
  for (const std::string& theirs : name.theirs)
    parts.emplace_back(file->tensor(part + (name.of_head ? "" : "bert.") + theirs));
  return parts.size() == 1 ? parts[0].value() : concat(parts, 0).value().contiguous();
}

TEST(Pretraining, EqualsTransformersLossGradientsAndTenSteps) {
  const SafetensorsFile file(FOVEA_GOLDEN "/pretraining.safetensors");
  const Json json = load_json(FOVEA_GOLDEN "/pretraining.json");
  const BertConfig config = bert_config(json["config"], "golden");
  const BertHeads heads{.pooler = true, .masked_lm = true, .next_sentence = true};
  Rng rng(1);
  const BertPretraining network(std::make_unique<Bert>(config, heads, rng));
  std::map<std::string, BertName> names;
  for (const BertName& name : bert_names(config, heads)) names["bert." + name.ours] = name;
  for (const auto& [name, parameter] : network.parameters())
    parameter.set_value(joined(file, "weight/", names.at(name)));
  const PretrainingBatch batch = read_batch(json["pairs"]);
  const Tensor losses = file->tensor("losses");
  train::Optimizer optimizer(
      train::without_decay_on_vectors(network.parameters()),
      train::AdamW{.learning_rate = 0.01, .weight_decay = 0.01, .epsilon = 1e-6, .bias_correction = false});
  nn::Context context{.training = true};
  for (int64_t step = 0; step < losses.count(); ++step) {
    optimizer.clear_grad();
    const Var loss = network.loss(batch, context);
    loss.backward();
    EXPECT_NEAR(loss.value().item(), losses.data()[step], 1e-4 * (1 + static_cast<double>(step)))
        << "step " << step;
    if (step == 0)
      for (const auto& [name, parameter] : network.parameters()) {
        const Tensor got = parameter.grad(), wanted = joined(file, "grad/", names.at(name));
        ASSERT_TRUE(got.defined()) << name;
        for (int64_t e = 0; e < wanted.count(); ++e)
          ASSERT_NEAR(got.data()[e], wanted.data()[e], 2e-5) << name << " element " << e;
      }
    const double norm = train::gradient_norm(network.parameters()).norm;
    optimizer.step(0.01, static_cast<float>(train::clip_factor(norm, 1)));
  }
}

TEST(Pretraining, ScoresCountWhatIsRight) {
  Rng rng(3);
  const auto network = make_model<Encoders>(
      "bert",
      model_config<Encoders>("bert", {{"width", 8}, {"heads", 2}, {"hidden", 16}, {"layers", 1}},
                             {{"vocabulary", 19}}),
      rng);
  const PretrainingBatch batch = read_batch(load_json(FOVEA_GOLDEN "/pretraining.json")["pairs"]);
  const PretrainingScores scores = network->scores(batch);
  EXPECT_EQ(scores.masked, 6);
  EXPECT_EQ(scores.pairs, 3);
  nn::Context context;
  EXPECT_NEAR(network->loss(batch, context).value().item(), scores.masked_loss / 6 + scores.next_loss / 3,
              1e-5);
  PretrainingBatch unmasked = batch;
  unmasked.places.clear();
  unmasked.targets.clear();
  EXPECT_NEAR(network->loss(unmasked, context).value().item(), scores.next_loss / 3, 1e-5);
}

}  // namespace
}  // namespace fovea::models
