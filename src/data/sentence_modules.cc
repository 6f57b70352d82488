#include "data/sentence_modules.h"

#include "io/file.h"
#include "io/json.h"

namespace fovea::data {
namespace fs = std::filesystem;
namespace {

struct Module {
  std::string type;  // "Pooling"
  fs::path folder;
};

Module read_module(const Json& json, const fs::path& folder, const std::string& where) {
  require(json.is_object() && json.contains("type") && json["type"].is_string() && json.contains("path") &&
              json["path"].is_string(),
          where, ": wanted a type and a path for every module");
  const auto& type = json["type"].get_ref<const std::string&>();
  const auto& path = json["path"].get_ref<const std::string&>();
  require(path.find("..") == std::string::npos && !path.starts_with('/'), where, ": got the path ",
          in_quotes(path), ", wanted one inside the folder");
  const size_t dot = type.rfind('.');
  return {dot == std::string::npos ? type : type.substr(dot + 1), path.empty() ? folder : folder / path};
}

void read_pooling(const fs::path& path, SentenceModules& modules) {
  const Json json = load_json(path);
  const std::string where = path.string();
  require(json.is_object(), where, ": wanted an object of named options");
  int chosen = 0;
  for (const auto& item : json.items()) {
    const std::string& name = item.key();
    if (!name.starts_with("pooling_mode_") || item.value() != true) continue;
    ++chosen;
    if (name == "pooling_mode_cls_token")
      modules.pooling = Pooling::cls;
    else if (name == "pooling_mode_mean_tokens")
      modules.pooling = Pooling::mean;
    else if (name == "pooling_mode_max_tokens")
      modules.pooling = Pooling::max;
    else
      fail(where, ": ", in_quotes(name), " is not known, wanted cls, mean or max");
  }
  require(chosen == 1, where, ": ", chosen, " pooling modes are set, wanted one");
  require(!json.contains("include_prompt") || json["include_prompt"] == true, where,
          ": include_prompt is false, which is not supported");
}

void read_text_settings(const fs::path& path, SentenceModules& modules) {
  const Json json = load_json(path);
  const std::string where = path.string();
  require(json.is_object(), where, ": wanted an object of named options");
  if (json.contains("max_seq_length") && !json["max_seq_length"].is_null()) {
    value_from_json(json["max_seq_length"], modules.max_tokens, where + ": max_seq_length");
    require(modules.max_tokens >= 2, where, ": max_seq_length is ", modules.max_tokens,
            ", wanted at least 2");
  }
  if (json.contains("do_lower_case"))
    value_from_json(json["do_lower_case"], modules.lowercase, where + ": do_lower_case");
}

void read_prompt(const fs::path& path, SentenceModules& modules) {
  const Json json = load_json(path);
  if (!json.is_object() || !json.contains("default_prompt_name") || json["default_prompt_name"].is_null())
    return;
  std::string name;
  value_from_json(json["default_prompt_name"], name, path.string() + ": default_prompt_name");
  require(json.contains("prompts") && json["prompts"].is_object() && json["prompts"].contains(name),
          path.string(), ": no prompt named ", in_quotes(name));
  value_from_json(json["prompts"][name], modules.prompt, path.string() + ": prompts");
}

}  // namespace

Pooling pooling_named(const std::string& name) {
  if (name == "mean") return Pooling::mean;
  if (name == "cls") return Pooling::cls;
  if (name == "max") return Pooling::max;
  fail("pooling: got ", in_quotes(name), ", wanted mean, cls or max");
}

SentenceModules read_sentence_modules(const fs::path& folder) {
  SentenceModules modules;
  modules.model = folder;
  const fs::path path = folder / "modules.json";
  if (!path_exists(path)) return modules;
  const Json list = load_json(path);
  const std::string where = path.string();
  require(list.is_array() && !list.empty(), where, ": wanted a list of modules");
  for (size_t i = 0; i < list.size(); ++i) {
    const Module module = read_module(list[i], folder, where);
    require((module.type == "Transformer") == (i == 0), where, ": module ", i, " is a ",
            in_quotes(module.type), ", wanted a Transformer first and no other");
    if (i == 0)
      modules.model = module.folder;
    else if (module.type == "Pooling")
      read_pooling(module.folder / "config.json", modules);
    else if (module.type == "Normalize")
      modules.normalize = true;
    else
      fail(where, ": module ", i, " is a ", in_quotes(module.type),
           ", wanted Transformer, Pooling or Normalize");
  }
  if (const fs::path file = modules.model / "sentence_bert_config.json"; path_exists(file))
    read_text_settings(file, modules);
  if (const fs::path file = folder / "config_sentence_transformers.json"; path_exists(file))
    read_prompt(file, modules);
  return modules;
}

}  // namespace fovea::data
