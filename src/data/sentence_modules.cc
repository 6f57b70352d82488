// Reads modules.json and the settings of its modules: Transformer, Pooling, Dense and Normalize.
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

// How the pooling is named: sentence-transformers 6 has one key, "pooling_mode": "mean", earlier versions have a flag for
// each, "pooling_mode_mean_tokens": true.
std::vector<std::string> pooling_modes(const Json& json, const std::string& where) {
  std::vector<std::string> modes;
  if (json.contains("pooling_mode")) {
    const Json& mode = json["pooling_mode"];
    if (mode.is_array())
      value_from_json(mode, modes, where + ": pooling_mode");
    else
      value_from_json(mode, modes.emplace_back(), where + ": pooling_mode");
    return modes;
  }
  constexpr std::string_view kFlag = "pooling_mode_";
  for (const auto& item : json.items())
    if (item.key().starts_with(kFlag) && item.value() == true)
      modes.push_back(item.key().substr(kFlag.size()));
  return modes;
}

void read_pooling(const fs::path& path, SentenceModules& modules) {
  const Json json = load_json(path);
  const std::string where = path.string();
  require(json.is_object(), where, ": wanted an object of named options");
  const std::vector<std::string> modes = pooling_modes(json, where);
  require(modes.size() == 1, where, ": ", modes.size(), " pooling modes are set, wanted one");
  const std::string& mode = modes[0];
  if (mode == "cls" || mode == "cls_token")
    modules.pooling = Pooling::cls;
  else if (mode == "mean" || mode == "mean_tokens")
    modules.pooling = Pooling::mean;
  else if (mode == "max" || mode == "max_tokens")
    modules.pooling = Pooling::max;
  else
    fail(where, ": the pooling mode is ", in_quotes(mode), ", wanted cls, mean or max");
  require(!json.contains("include_prompt") || json["include_prompt"] == true, where,
          ": include_prompt is false, which is not supported");
}

DenseModule read_dense(const fs::path& folder) {
  const fs::path path = folder / "config.json";
  const Json json = load_json(path);
  const std::string where = path.string();
  require(json.is_object() && json.contains("in_features") && json.contains("out_features"), where,
          ": wanted in_features and out_features");
  DenseModule dense{.folder = folder};
  value_from_json(json["in_features"], dense.in, where + ": in_features");
  value_from_json(json["out_features"], dense.out, where + ": out_features");
  constexpr int64_t kWidest = 1 << 20;
  for (const int64_t size : {dense.in, dense.out})
    require(size >= 1 && size <= kWidest, where, ": ", dense.in, " inputs and ", dense.out,
            " outputs, wanted 1 to ", kWidest);
  if (json.contains("bias")) value_from_json(json["bias"], dense.bias, where + ": bias");
  if (json.contains("activation_function")) {
    std::string name;
    value_from_json(json["activation_function"], name, where + ": activation_function");
    dense.tanh = name == "torch.nn.modules.activation.Tanh";
    require(dense.tanh || name == "torch.nn.modules.linear.Identity", where, ": activation_function is ",
            in_quotes(name), ", wanted torch.nn.modules.activation.Tanh or torch.nn.modules.linear.Identity");
  }
  // The vector of a text in, the vector of a text out.
  for (const char* name : {"module_input_name", "module_output_name"})
    require(!json.contains(name) || json[name] == "sentence_embedding", where, ": ", name,
            " is not sentence_embedding, which is not supported");
  return dense;
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
    else if (module.type == "Pooling" && modules.dense.empty() && !modules.normalize)
      read_pooling(module.folder / "config.json", modules);
    else if (module.type == "Dense" && i > 1 && !modules.normalize)
      modules.dense.push_back(read_dense(module.folder));
    else if (module.type == "Normalize")
      modules.normalize = true;
    else
      fail(where, ": module ", i, " is a ", in_quotes(module.type),
           ", wanted Transformer, Pooling, Dense and Normalize in this order");
  }
  if (const fs::path file = modules.model / "sentence_bert_config.json"; path_exists(file))
    read_text_settings(file, modules);
  if (const fs::path file = folder / "config_sentence_transformers.json"; path_exists(file))
    read_prompt(file, modules);
  return modules;
}

}  // namespace fovea::data
