#include "tasks/model_folder.h"

#include "base/error.h"
#include "io/file.h"

namespace fovea::tasks {
namespace {

// A training folder becomes a model folder at the end; its checkpoints are model folders before.
std::string unfinished_hint(const std::filesystem::path& folder) {
  for (const char* name : {"best", "last"}) {
    const std::filesystem::path checkpoint = folder / "checkpoints" / name;
    if (path_exists(checkpoint / "config.json"))
      return "; its training has not finished, use " + checkpoint.string() + " until it has";
  }
  return path_exists(folder / "checkpoints") ? "; its training has not finished: run `fovea train` again"
                                             : "";
}

}  // namespace

FolderConfig read_folder_config(const std::filesystem::path& folder, const std::string& task) {
  const std::filesystem::path path = folder / "config.json";
  require(is_folder(folder), "model folder ", in_quotes(folder.string()), " does not exist");
  require(path_exists(path), folder.string(), " is no model folder: it has no config.json",
          unfinished_hint(folder));
  const std::string where = path.string();
  FolderConfig config{.all = load_json(path)};
  const Json& json = config.all;
  require(json.is_object() && json.contains("task") && json.contains("model") && json.contains("settings") &&
              json["task"].is_string() && json["model"].is_string(),
          where, ": not a config of Fovea's; wanted task, model and settings");
  config.task = json["task"].get<std::string>();
  config.model = json["model"].get<std::string>();
  config.settings = json["settings"];
  require(task.empty() || config.task == task, where, ": a model for the task ", in_quotes(config.task),
          ", wanted ", in_quotes(task));
  return config;
}

bool is_foreign_folder(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "config.json";
  // sentence-transformers may keep the model in a folder of its own.
  if (path_exists(folder / "modules.json")) return true;
  if (!path_exists(path)) return false;
  const Json json = load_json(path);
  return json.is_object() && !json.contains("task") && json.contains("model_type");
}

}  // namespace fovea::tasks
