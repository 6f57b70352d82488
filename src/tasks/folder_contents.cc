#include "tasks/folder_contents.h"

#include <algorithm>
#include <array>

#include "base/error_kinds.h"
#include "data/sentence_modules.h"
#include "io/weight_folder.h"
#include "models/bert_folder.h"
#include "tasks/model_folder.h"

namespace fovea::tasks {
namespace {

struct Task {
  const char* name;  // in config.json
  FolderKind kind;
  Ability ability;
};
constexpr std::array kTasks = {Task{"translate", FolderKind::translator, Ability::translate},
                               Task{"classify", FolderKind::text_classifier, Ability::classify},
                               Task{"image", FolderKind::image_classifier, Ability::classify}};

const Task& task_named(const std::string& name, const std::filesystem::path& folder) {
  for (const Task& task : kTasks)
    if (name == task.name) return task;
  std::vector<std::string_view> known;
  for (const Task& task : kTasks) known.emplace_back(task.name);
  fail((folder / "config.json").string(), ": unknown task ", in_quotes(name), name_hint(name, known));
}

// The models without attention have nothing to explain.
bool has_attention(FolderKind kind, const std::string& model, const Json& settings) {
  const auto says = [&](const char* name, const char* value) {
    return settings.is_object() && settings.contains(name) && settings[name] == value;
  };
  switch (kind) {
    case FolderKind::translator:
      return model != "rnn";
    case FolderKind::text_classifier:
      return model != "lstm" || says("pooling", "attention");
    case FolderKind::image_classifier:
      return model == "vit" || (settings.is_object() && settings.contains("gate") && !says("gate", "none"));
    case FolderKind::encoder:
      break;
  }
  return false;
}

FolderContents pretrained_contents(const std::filesystem::path& folder) {
  const std::filesystem::path model = data::read_sentence_modules(folder).model;
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
  if (heads.labels > 0) contents.abilities = {Ability::classify, Ability::explain};
  contents.abilities.push_back(Ability::embed);
  if (heads.masked_lm) contents.abilities.push_back(Ability::fill);
  return contents;
}

int64_t stored_numbers(const std::filesystem::path& weights) {
  const SafetensorsFile file(weights);
  int64_t count = 0;
  for (const TensorEntry& entry : (*file).entries())
    count += static_cast<int64_t>(entry.end - entry.begin) / dtype_size(entry.dtype);
  return count;
}

FolderContents own_contents(const std::filesystem::path& folder) {
  const FolderConfig config = read_folder_config(folder);
  const Task& task = task_named(config.task, folder);
  FolderContents contents{.folder = folder,
                          .kind = task.kind,
                          .model = config.model,
                          .compute = "float32",
                          .parameters = stored_numbers(folder / "model.safetensors"),
                          .labels = {},
                          .abilities = {task.ability},
                          .settings = config.settings};
  const std::string where = (folder / "config.json").string();
  if (config.all.contains("compute"))
    value_from_json(config.all["compute"], contents.compute, where + ": compute");
  if (config.all.contains("labels"))
    value_from_json(config.all["labels"], contents.labels, where + ": labels");
  if (has_attention(task.kind, config.model, config.settings)) contents.abilities.push_back(Ability::explain);
  return contents;
}

}  // namespace

std::string_view name_of(FolderKind kind) {
  switch (kind) {
    case FolderKind::translator:
      return "translator";
    case FolderKind::text_classifier:
      return "text classifier";
    case FolderKind::image_classifier:
      return "image classifier";
    case FolderKind::encoder:
      break;
  }
  return "encoder of the BERT family";
}

std::string_view name_of(Ability ability) {
  switch (ability) {
    case Ability::translate:
      return "translate";
    case Ability::classify:
      return "classify";
    case Ability::explain:
      return "explain";
    case Ability::embed:
      return "embed";
    case Ability::fill:
      break;
  }
  return "fill";
}

bool FolderContents::can(Ability ability) const {
  return std::find(abilities.begin(), abilities.end(), ability) != abilities.end();
}

void FolderContents::require_can(Ability ability) const {
  if (can(ability)) return;
  const std::string is =
      message(folder.string(), " is a",
              kind == FolderKind::encoder || kind == FolderKind::image_classifier ? "n " : " ", name_of(kind),
              " (", model, ")");
  switch (ability) {
    case Ability::translate:
      fail(is, "; translate needs a translator, as `fovea train translate` makes");
    case Ability::classify:
      fail(is, "; classify needs a classifier",
           kind == FolderKind::encoder
               ? message(": train one with fovea train classify --from ", folder.string())
               : ", as `fovea train classify` and `fovea train image` make");
    case Ability::explain:
      fail(is, kind == FolderKind::encoder ? "; explain needs a translator or a classifier"
                                           : " without attention: there is nothing to explain");
    case Ability::embed:
      fail(is, "; embed needs a folder of the BERT family, as Hugging Face's libraries save it");
    case Ability::fill:
      break;
  }
  fail(is, pretrained ? " without a head for masked tokens; fill needs a folder of the kind BertForMaskedLM"
                      : "; fill needs a folder of the BERT family with a head for masked tokens");
}

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
  json["settings"] = contents.settings;
  return json;
}

}  // namespace fovea::tasks
