// Opens translators, own folders and MarianMT ones, saves them, and translates lines.
#include "tasks/translator.h"

#include <algorithm>

#include "base/stop_check.h"
#include "data/marian_tokenizer.h"
#include "infer/decode_all.h"
#include "io/file.h"
#include "io/safetensors.h"
#include "models/marian.h"
#include "models/registry/translators.h"
#include "nn/int8_weights.h"
#include "nn/weights.h"
#include "tasks/model_folder.h"

namespace fovea::tasks {
namespace {

std::string compute_of(const FolderConfig& config, const std::filesystem::path& folder) {
  std::string compute = "float32";
  if (!config.all.contains("compute")) return compute;
  const std::string where = (folder / "config.json").string();
  value_from_json(config.all["compute"], compute, where + ": compute");
  require(compute == "float32" || compute == "int8", where, ": compute is ", in_quotes(compute),
          ", wanted float32 or int8");
  return compute;
}

// "alignment": {"layer": 2, "head": 1, "agreement": 0.8}; the head may be "average".
std::optional<AlignmentChoice> alignment_of(const FolderConfig& config, const std::filesystem::path& folder) {
  if (!config.all.contains("alignment")) return {};
  const Json& json = config.all["alignment"];
  const std::string where = (folder / "config.json").string() + ": alignment";
  require(json.is_object() && json.contains("layer") && json.contains("head"), where,
          ": wanted an object with layer and head");
  AlignmentChoice choice;
  value_from_json(json["layer"], choice.layer, where + ": layer");
  if (json["head"] != "average") value_from_json(json["head"], choice.head, where + ": head");
  if (json.contains("agreement")) value_from_json(json["agreement"], choice.agreement, where + ": agreement");
  require(choice.layer >= 0 && choice.head >= -1, where, ": got layer ", choice.layer, " and head ",
          choice.head, ", wanted numbers from 0");
  return choice;
}

}  // namespace

namespace {

void check_vocabularies(const LoadedTranslator& loaded, const std::filesystem::path& folder) {
  const int64_t source = loaded.config.value("source_vocabulary", int64_t{0});
  const int64_t target = loaded.config.value("target_vocabulary", int64_t{0});
  require(loaded.tokenizers.source->size() == source && loaded.tokenizers.target->size() == target,
          folder.string(), ": the tokenizer has ", loaded.tokenizers.source->size(), " and ",
          loaded.tokenizers.target->size(), " tokens, but config.json says ", source, " and ", target);
}

// A folder of MarianMT, as Hugging Face's libraries save it.
LoadedTranslator read_published(const std::filesystem::path& folder, const std::string& compute,
                                bool for_use) {
  const std::string where = (folder / "config.json").string();
  LoadedTranslator loaded;
  if (!compute.empty()) loaded.compute = compute_named(compute);
  loaded.published = load_json(folder / "config.json");
  const models::MarianConfig config = models::marian_config(loaded.published, where);
  loaded.model = "transformer";
  loaded.config = fields_to_json(config.network);
  loaded.alignment = alignment_of({.all = loaded.published}, folder);
  loaded.tokenizers = data::load_marian_tokenizers(folder);
  check_vocabularies(loaded, folder);
  const data::SequenceMarks marks = loaded.tokenizers.target->sequence_marks();
  require(marks.begin == config.begin && marks.never == config.pad && marks.end == config.end, where,
          ": decoder_start_token_id, pad_token_id and eos_token_id are ", config.begin, ", ", config.pad,
          " and ", config.end, ", but <pad> and </s> of the vocabulary ", marks.begin, " and ", marks.end);
  loaded.network =
      models::load_marian(folder, config, for_use ? std::optional(loaded.compute) : std::nullopt);
  return loaded;
}

LoadedTranslator read_own(const std::filesystem::path& folder, const std::string& compute) {
  const FolderConfig config = read_folder_config(folder, "translate");
  LoadedTranslator loaded;
  loaded.compute = compute_named(compute.empty() ? compute_of(config, folder) : compute);
  loaded.model = config.model;
  loaded.config = config.settings;
  loaded.alignment = alignment_of(config, folder);
  if (config.all.contains("published")) loaded.published = config.all["published"];
  loaded.tokenizers = data::load_tokenizers(folder);
  check_vocabularies(loaded, folder);
  loaded.network = nn::load_network(folder / "model.safetensors", [&] {
    Rng rng(0);
    return models::make_model<models::Translators>(config.model, config.settings, rng);
  });
  return loaded;
}

LoadedTranslator read(const std::filesystem::path& folder, const std::string& compute, bool for_use) {
  return is_foreign_folder(folder) ? read_published(folder, compute, for_use) : read_own(folder, compute);
}

std::string weights_of(const std::filesystem::path& folder) {
  return (folder / "model.safetensors").string();
}

}  // namespace

LoadedTranslator read_translation(const std::filesystem::path& folder, const std::string& compute) {
  LoadedTranslator loaded = read(folder, compute, false);
  if (loaded.compute == Compute::int8) nn::round_to_int8(*loaded.network, weights_of(folder));
  return loaded;
}

LoadedTranslator load_translation(const std::filesystem::path& folder, const std::string& compute) {
  LoadedTranslator loaded = read(folder, compute, true);
  loaded.prepared = nn::prepare_for_use(*loaded.network, loaded.compute, weights_of(folder));
  return loaded;
}

namespace {

void add_alignment(Json& config, const LoadedTranslator& loaded) {
  if (!loaded.alignment) return;
  config["alignment"] = {
      {"layer", loaded.alignment->layer},
      {"head", loaded.alignment->head < 0 ? Json("average") : Json(loaded.alignment->head)},
      {"agreement", loaded.alignment->agreement}};
}

}  // namespace

void save_translation_config(const std::filesystem::path& folder, const LoadedTranslator& loaded) {
  data::save_tokenizers(folder, loaded.tokenizers);
  Json config{{"task", "translate"}, {"model", loaded.model}, {"settings", loaded.config}};
  if (loaded.compute == Compute::int8) config["compute"] = "int8";
  if (!loaded.published.is_null()) config["published"] = loaded.published;
  add_alignment(config, loaded);
  save_json(folder / "config.json", config);
}

void save_translation(const std::filesystem::path& folder, const LoadedTranslator& loaded) {
  make_directories(folder);
  if (!loaded.published.is_null() && loaded.compute == Compute::float32) {
    Json config = loaded.published;
    add_alignment(config, loaded);
    data::save_tokenizers(folder, loaded.tokenizers);
    models::save_marian(folder, dynamic_cast<const models::Transformer&>(*loaded.network), config);
    return;
  }
  const std::filesystem::path weights = folder / "model.safetensors";
  if (loaded.compute == Compute::int8)
    nn::save_int8_weights(*loaded.network, weights, {{"format", "fovea"}});
  else
    save_safetensors(weights, nn::weights_of(*loaded.network), {{"format", "fovea"}});
  save_translation_config(folder, loaded);
}

Translator::Translator(const models::TranslationModel& network, const data::Tokenizers& tokenizers,
                       Compute compute)
    : tokenizers_(tokenizers), inference_(network, compute) {}

std::vector<std::vector<Translation>> Translator::translate(std::span<const std::string> lines,
                                                            const TranslateOptions& options) const {
  require(options.max_length_factor > 0 && options.max_length_factor <= 1000, "max_length_factor: got ",
          options.max_length_factor, ", wanted a number above 0, such as 2");
  require(options.max_tokens >= 1, "max_tokens: got ", options.max_tokens, ", wanted 1 or more");
  const auto most = static_cast<size_t>(options.max_tokens);
  const data::SequenceMarks marks = tokenizers_.target->sequence_marks();
  const BeamOptions beam{.beam = static_cast<int>(options.beam),
                         .n_best = static_cast<int>(options.n_best),
                         .length_penalty = options.length_penalty,
                         .scores = options.scores,
                         .begin = marks.begin,
                         .end = marks.end,
                         .never = marks.never};
  std::vector<std::vector<int32_t>> sources;
  std::vector<int32_t> limits;
  std::vector<int64_t> cut_to;
  for (const std::string& line : lines) {
    check_stop();
    std::vector<int32_t>& source = sources.emplace_back(tokenizers_.source->encode(line));
    // The work grows with the square of a line's length: without a bound one line stops all that follow.
    cut_to.push_back(source.size() > most ? options.max_tokens : 0);
    if (source.size() > most) source.resize(most);
    const double limit = options.max_length_factor * static_cast<double>(source.size()) + 10;
    limits.push_back(source.empty() ? 0 : static_cast<int32_t>(std::min(limit, 1e6)));
    source.push_back(tokenizers_.source->sequence_marks().end);
  }
  const auto found = decode_all(inference_, sources, limits, beam, {.tokens = options.batch_tokens});
  std::vector<std::vector<Translation>> results(lines.size());
  for (size_t i = 0; i < lines.size(); ++i)
    for (const Hypothesis& hypothesis : found[i])
      results[i].push_back(
          {tokenizers_.target->decode(hypothesis.tokens), hypothesis.score, hypothesis.tokens, cut_to[i]});
  return results;
}

}  // namespace fovea::tasks
