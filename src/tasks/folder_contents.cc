#include "tasks/folder_contents.h"

#include <algorithm>
#include <array>

#include "base/error_kinds.h"
#include "data/marian_tokenizer.h"
#include "data/sentence_modules.h"
#include "io/file.h"
#include "io/weight_folder.h"
#include "models/bert_folder.h"
#include "models/marian.h"
#include "nn/int8_weights.h"
#include "tasks/folder_kinds.h"
#include "tasks/model_folder.h"
#include "tasks/picture_encoder.h"

namespace fovea::tasks {
namespace {

FolderContents marian_contents(const std::filesystem::path& folder, const Json& json) {
  const models::MarianConfig config = models::marian_config(json, (folder / "config.json").string());
  const WeightFolder weights(folder);
  FolderContents contents{.folder = folder,
                          .kind = FolderKind::translator,
                          .model = "marian",
                          .compute = "float32",
                          .parameters = weights.element_count(),
                          .labels = {},
                          .abilities = {},
                          .pretrained = true,
                          .settings = fields_to_json(config.network)};
  for (const std::string& file : data::missing_marian_files(folder))
    contents.lacks.push_back(file + ": nothing can be translated without it");
  if (contents.lacks.empty()) {
    contents.abilities = {Ability::translate, Ability::explain};
    contents.languages = data::target_languages(folder);
  }
  return contents;
}

FolderContents pretrained_contents(const std::filesystem::path& folder) {
  if (const std::filesystem::path path = folder / "config.json"; path_exists(path))
    if (const Json json = load_json(path); json.is_object() && json.value("model_type", Json()) == "marian")
      return marian_contents(folder, json);
  const data::SentenceModules modules = data::read_sentence_modules(folder);
  const std::filesystem::path& model = modules.model;
  const models::BertConfig config = models::read_bert_config(model);
  const WeightFolder weights(model);
  const models::BertHeads heads = models::heads_in(weights, config);
  FolderContents contents{.folder = folder,
                          .kind = heads.labels > 0 ? FolderKind::text_classifier : FolderKind::encoder,
                          .model = config.model_type,
                          .compute = "float32",
                          .parameters = weights.element_count(),
                          .labels = heads.labels > 0 ? config.labels : std::vector<std::string>{},
                          .abilities = {},
                          .pretrained = true,
                          .settings = models::bert_config_json(config)};
  if (!modules.dense.empty()) contents.settings["embedding_features"] = modules.dense.back().out;
  if (heads.labels > 0) contents.abilities = {Ability::classify, Ability::explain};
  if (heads.labels == 1) contents.abilities.push_back(Ability::rerank);
  contents.abilities.push_back(Ability::embed);
  if (heads.masked_lm) contents.abilities.push_back(Ability::fill);
  if (heads.labels == 0)
    contents.lacks.push_back(message("a head for labels: classify needs one; `fovea train classify --from ",
                                     folder.string(), " ...` adds it"));
  if (!heads.masked_lm) contents.lacks.push_back("a head for masked tokens: fill needs one");
  return contents;
}

// Whether no optimiser trains a stored tensor: the buffers of the layers and models (nn::Module::add_buffer), and what
// belongs to the form in which it is stored. A file says nothing of it but by its names.
bool is_buffer(const SafetensorsView& file, std::string_view name) {
  constexpr std::array<std::string_view, 6> kBuffers = {"running_mean", "running_var", "num_batches_tracked",
                                                        "target_scale", "steps",       "baseline"};
  const std::string_view own = name.substr(name.rfind('.') + 1);
  return std::find(kBuffers.begin(), kBuffers.end(), own) != kBuffers.end() || nn::is_scale(file, name);
}

// As training counts parameters.
int64_t stored_parameters(const std::filesystem::path& weights) {
  const SafetensorsFile file(weights);
  int64_t count = 0;
  for (const TensorEntry& entry : (*file).entries())
    if (!is_buffer(*file, entry.name))
      count += static_cast<int64_t>(entry.end - entry.begin) / dtype_size(entry.dtype);
  return count;
}

FolderContents own_contents(const std::filesystem::path& folder) {
  const FolderConfig config = read_folder_config(folder);
  const KindRecord& record = kind_of_task(config.task, (folder / "config.json").string());
  FolderContents contents{.folder = folder,
                          .kind = record.kind,
                          .model = config.model,
                          .compute = "float32",
                          .parameters = stored_parameters(folder / "model.safetensors"),
                          .labels = {},
                          .abilities = {record.ability},
                          .settings = config.settings};
  const std::string where = (folder / "config.json").string();
  if (config.all.contains("compute"))
    value_from_json(config.all["compute"], contents.compute, where + ": compute");
  if (config.all.contains("labels"))
    value_from_json(config.all["labels"], contents.labels, where + ": labels");
  if (record.has_attention(config.model, config.settings, where))
    contents.abilities.push_back(Ability::explain);
  // A MarianMT folder that was converted to int8 has its tokenizer still.
  if (contents.kind == FolderKind::translator && data::has_marian_tokenizers(folder))
    contents.languages = data::target_languages(folder);
  if (contents.kind == FolderKind::captioner && !path_exists(folder / kEncoderFile)) {
    contents.abilities.clear();
    contents.lacks.push_back(
        message(kEncoderFile,
                ": nothing can be captioned without it; copy it from where the model was "
                "trained, where it is beside model.safetensors"));
  }
  return contents;
}

}  // namespace

FolderContents look_into(const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder))
    throw FileError(message("model folder ", in_quotes(folder.string()), " does not exist"));
  return errors_as<ModelError>(
      [&] { return is_foreign_folder(folder) ? pretrained_contents(folder) : own_contents(folder); });
}

Json to_json(const FolderContents& contents) {
  Json json{
      {"folder", contents.folder.string()}, {"kind", name_of(contents.kind)}, {"model", contents.model},
      {"parameters", contents.parameters},  {"compute", contents.compute},    {"abilities", Json::array()}};
  for (const Ability ability : contents.abilities) json["abilities"].push_back(name_of(ability));
  if (!contents.labels.empty()) json["labels"] = contents.labels;
  if (!contents.languages.empty()) json["languages"] = contents.languages;
  if (!contents.lacks.empty()) json["lacks"] = contents.lacks;
  json["settings"] = contents.settings;
  return json;
}

}  // namespace fovea::tasks
