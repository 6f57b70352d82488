// The translation models against PyTorch: loss, every gradient, and the losses of ten steps of Adam.
#include <gtest/gtest.h>

#include "io/safetensors.h"
#include "models/golden_training.h"
#include "models/registry/translators.h"

namespace fovea::models {
namespace {

data::Batch read_batch(const Json& json) {
  data::Batch batch;
  for (const Json& pair : json["sentences"]) {
    const auto source = pair[0].get<std::vector<int32_t>>(), target = pair[1].get<std::vector<int32_t>>();
    batch.source.insert(batch.source.end(), source.begin(), source.end());
    batch.source.push_back(data::kEnd);
    batch.source_lengths.push_back(static_cast<int32_t>(source.size()) + 1);
    batch.target_in.push_back(data::kBegin);
    batch.target_in.insert(batch.target_in.end(), target.begin(), target.end());
    batch.target_out.insert(batch.target_out.end(), target.begin(), target.end());
    batch.target_out.push_back(data::kEnd);
    batch.target_lengths.push_back(static_cast<int32_t>(target.size()) + 1);
    batch.pairs.push_back(static_cast<int64_t>(batch.pairs.size()));
  }
  return batch;
}

TEST(TranslationModels, EqualPyTorchsLossGradientsAndTenSteps) {
  const SafetensorsFile file(FOVEA_GOLDEN "/translation.safetensors");
  const Json list = load_json(FOVEA_GOLDEN "/translation.json");
  const data::Batch batch = read_batch(list["batch"]);
  const int64_t vocabulary = list["batch"]["vocabulary"].get<int64_t>();
  ASSERT_EQ(list["cases"].size(), 32u);
  for (size_t i = 0; i < list["cases"].size(); ++i) {
    const std::string model = list["cases"][i]["model"], prefix = std::to_string(i) + "/";
    const Json& settings = list["cases"][i]["settings"];
    SCOPED_TRACE(model + settings.dump());
    Rng rng(1);
    const auto network = make_model<Translators>(
        model, model_config<Translators>(model, settings, vocabularies(vocabulary, vocabulary)), rng);
    nn::load_parameters(*network, [&](std::string_view name) {
      return file->tensor(prefix + "weight/" + std::string(name));
    });
    nn::Context context{.training = true};
    expect_golden_training(*network, golden_training(file, prefix, "grad/"),
                           [&](int64_t) { return network->loss(batch, 0.1f, context).loss; });
  }
}

}  // namespace
}  // namespace fovea::models
