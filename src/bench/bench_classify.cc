// Steps of training a text classifier, or of fine-tuning a BERT encoder, on synthetic texts.
#include <memory>

#include "bench/benchmarks.h"
#include "bench/measure.h"
#include "io/json.h"
#include "models/bert_classifier.h"
#include "models/registry/classifiers.h"
#include "tensor/allocator.h"
#include "train/optimizer.h"

namespace fovea::bench {
namespace {

constexpr int64_t kVocabulary = 10000, kClasses = 2;

models::BertConfig bert_shape(const std::string& preset) {
  models::BertConfig config;
  config.vocab_size = kVocabulary;
  config.labels = {"0", "1"};
  if (preset == "base") return config;
  config.hidden_size = preset == "mini" ? 256 : 128;
  config.num_hidden_layers = preset == "mini" ? 4 : 2;
  config.num_attention_heads = preset == "mini" ? 4 : 2;
  config.intermediate_size = 4 * config.hidden_size;
  return config;
}

std::unique_ptr<models::ClassificationModel> make_network(const ClassifyOptions& o, Rng& rng) {
  if (o.model == "bert") {
    require(o.preset == "tiny" || o.preset == "mini" || o.preset == "base", "--preset: got '", o.preset,
            "', wanted tiny, mini or base");
    return std::make_unique<models::BertClassifier>(
        std::make_unique<models::Bert>(bert_shape(o.preset), models::BertHeads{.labels = kClasses}, rng));
  }
  require(o.preset == "small", "--preset: got '", o.preset, "' for the model ", o.model,
          ", whose only size is small; BERT has tiny, mini and base");
  const Json counted = models::vocabulary_and_classes(kVocabulary, kClasses);
  return models::make_model<models::Classifiers>(
      o.model, models::model_config<models::Classifiers>(o.model, Json::object(), counted), rng);
}

}  // namespace

Row bench_classify(const ClassifyOptions& o) {
  require(
      o.texts >= 1 && o.texts <= 1 << 16 && o.shortest >= 2 && o.shortest <= o.longest && o.longest <= 512,
      "--texts, --shortest and --longest: got ", o.texts, " texts of ", o.shortest, " to ", o.longest,
      " tokens, wanted at least 1 of 2 to 512");
  Rng rng(4);
  trim_memory();
  const MemoryWatch memory;
  const auto network = make_network(o, rng);
  std::vector<int32_t> tokens, lengths, labels;
  for (int64_t i = 0; i < o.texts; ++i) {
    const int64_t length = o.shortest + 7 * i % (o.longest - o.shortest + 1);
    for (int64_t t = 0; t < length; ++t)
      tokens.push_back(
          t + 1 == length || t % 20 == 19
              ? data::kEnd
              : static_cast<int32_t>(data::kSpecials + rng.below(kVocabulary - data::kSpecials)));
    lengths.push_back(static_cast<int32_t>(length));
    labels.push_back(static_cast<int32_t>(i % kClasses));
  }
  train::Optimizer optimizer(network->parameters(),
                             train::AdamW{.learning_rate = 5e-5, .weight_decay = 0.01});
  nn::Context context{.training = true, .rng = Rng(4)};
  const auto step = [&] {
    network->loss({tokens, lengths}, labels, 0, context).backward();
    const double norm = train::gradient_norm(optimizer.parameters()).norm;
    optimizer.step(5e-5, static_cast<float>(train::clip_factor(norm, 1)));
    optimizer.clear_grad();
  };
  Measured result = measure_beside_peak(step, o.seconds);
  result.peak_bytes = memory.peak_bytes();
  const auto count = static_cast<double>(tokens.size());
  Json line{{"model", o.model}, {"preset", o.preset}, {"threads", num_threads()},
            {"texts", o.texts}, {"tokens", count},    {"tokens_per_second", count / result.seconds}};
  line.update(work_json(result, 0));
  return {std::move(line),
          message(o.model, " ", o.preset, ": ", decimals(result.seconds * 1e3, 1), " ms a step (best of ",
                  result.runs, "), ", decimals(count / result.seconds, 0), " tokens/s", work_text(result, 0),
                  "\n")};
}

}  // namespace fovea::bench
