#include "tasks/cross_encoder.h"

#include "io/file.h"
#include "io/json.h"

namespace fovea::tasks {
namespace {

ScoreActivation activation_named(const Json& value, const std::string& where) {
  std::string name;
  value_from_json(value, name, where + ": the activation of scores");
  if (name.starts_with("torch.") && name.ends_with(".Identity")) return ScoreActivation::identity;
  if (name.starts_with("torch.") && name.ends_with(".Sigmoid")) return ScoreActivation::sigmoid;
  fail(where, ": the activation of scores is ", in_quotes(name),
       ", wanted torch.nn.modules.linear.Identity or torch.nn.modules.activation.Sigmoid");
}

}  // namespace

CrossEncoderSettings read_cross_encoder(const std::filesystem::path& folder,
                                        const std::filesystem::path& model) {
  CrossEncoderSettings settings;
  const auto take = [&](const Json& json, const char* name, const std::filesystem::path& path) {
    if (!json.is_object() || !json.contains(name)) return;
    settings.is_one = true;
    if (!settings.activation && !json[name].is_null())
      settings.activation = activation_named(json[name], path.string());
  };
  if (const auto path = folder / "config_sentence_transformers.json"; path_exists(path)) {
    const Json json = load_json(path);
    settings.is_one = json.is_object() && json.value("model_type", Json()) == "CrossEncoder";
    if (settings.is_one) take(json, "activation_fn", path);
  }
  const std::filesystem::path path = model / "config.json";
  const Json json = load_json(path);
  if (json.is_object() && json.contains("sentence_transformers"))
    take(json["sentence_transformers"], "activation_fn", path);
  take(json, "sbert_ce_default_activation_function", path);
  return settings;
}

}  // namespace fovea::tasks
