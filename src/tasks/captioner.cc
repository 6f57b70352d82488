#include "tasks/captioner.h"

#include <algorithm>

#include "infer/decode_all.h"
#include "io/file.h"
#include "models/registry/captioners.h"
#include "nn/int8_weights.h"
#include "nn/weights.h"
#include "tasks/model_folder.h"

namespace fovea::tasks {

LoadedCaptioner load_captioner(const std::filesystem::path& folder, const std::string& compute) {
  const FolderConfig config = read_folder_config(folder, "caption");
  const std::string where = (folder / "config.json").string();
  LoadedCaptioner loaded;
  loaded.compute = compute_named(compute);
  loaded.model = config.model;
  loaded.config = config.settings;
  require(config.all.contains("encoder"), where, ": a captioner without encoder");
  loaded.encoder = load_encoder(folder, config.all["encoder"]);
  loaded.tokenizer = data::load_tokenizers(folder).target;
  const auto number = [&](const char* name) {
    int64_t value = 0;
    require(config.settings.is_object() && config.settings.contains(name), where, ": settings without ",
            name);
    value_from_json(config.settings[name], value, where + ": settings: " + name);
    return value;
  };
  const int64_t vocabulary = number("vocabulary"), channels = number("channels");
  require(loaded.tokenizer->size() == vocabulary, folder.string(), ": the tokenizer has ",
          loaded.tokenizer->size(), " tokens, but config.json says ", vocabulary);
  require(loaded.encoder.channels() == channels, folder.string(), ": the encoder gives ",
          loaded.encoder.channels(), " features of a place, but config.json says ", channels);
  const std::filesystem::path weights = folder / "model.safetensors";
  loaded.network = nn::load_network(weights, [&] {
    Rng rng(0);
    return models::make_model<models::Captioners>(config.model, config.settings, rng);
  });
  loaded.prepared = nn::prepare_for_use(*loaded.network, loaded.compute, weights.string());
  return loaded;
}

void save_captioner_config(const std::filesystem::path& folder, const LoadedCaptioner& loaded) {
  data::save_tokenizers(folder, {loaded.tokenizer, loaded.tokenizer});
  save_encoder(folder, loaded.encoder);
  save_json(folder / "config.json", Json{{"task", "caption"},
                                         {"model", loaded.model},
                                         {"settings", loaded.config},
                                         {"encoder", encoder_json(loaded.encoder)}});
}

void save_captioner(const std::filesystem::path& folder, const LoadedCaptioner& loaded) {
  make_directories(folder);
  nn::save_weights(*loaded.network, folder / "model.safetensors");
  save_captioner_config(folder, loaded);
}

void check(const CaptionOptions& options) {
  require(options.beam >= 1 && options.beam <= 1024, "--beam: got ", options.beam, ", wanted 1 to 1024");
  require(options.n_best >= 1 && options.n_best <= options.beam, "--n-best: got ", options.n_best,
          ", wanted 1 to the beam's ", options.beam);
  require(options.max_length >= 1 && options.max_length <= 10'000, "--max-length: got ", options.max_length,
          ", wanted 1 to 10000");
}

std::vector<std::vector<Caption>> write_captions(const LoadedCaptioner& loaded, size_t pictures,
                                                 ReadFeatures features, const CaptionOptions& options) {
  check(options);
  const BeamOptions beam{.beam = static_cast<int>(options.beam),
                         .n_best = static_cast<int>(options.n_best),
                         .length_penalty = options.length_penalty,
                         .begin = data::kBegin,
                         .end = data::kEnd};
  const InferenceOf<models::CaptionModel> inference(*loaded.network, loaded.compute);
  const std::vector<int64_t> lengths(pictures, 1);
  const std::vector<int32_t> limits(pictures, static_cast<int32_t>(options.max_length));
  const auto found =
      decode_batches(lengths, limits, beam, {.sentences = 16},
                     [&](std::span<const size_t> members) { return inference.start(features(members)); });
  std::vector<std::vector<Caption>> captions(pictures);
  for (size_t i = 0; i < pictures; ++i)
    for (const Hypothesis& hypothesis : found[i])
      captions[i].push_back(
          {loaded.tokenizer->decode(hypothesis.tokens), hypothesis.score, hypothesis.tokens});
  return captions;
}

models::CaptionBatch caption_batch(const Tensor& features, std::span<const int32_t> tokens) {
  models::CaptionBatch batch{.features = features,
                             .in = {data::kBegin},
                             .out = {tokens.begin(), tokens.end()},
                             .lengths = {static_cast<int32_t>(tokens.size()) + 1}};
  batch.in.insert(batch.in.end(), tokens.begin(), tokens.end());
  batch.out.push_back(data::kEnd);
  return batch;
}

}  // namespace fovea::tasks
