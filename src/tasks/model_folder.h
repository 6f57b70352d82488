// What every model folder begins with: config.json, which says what the model is for and how it is made.
#pragma once

#include <filesystem>
#include <string>

#include "io/json.h"

namespace fovea::tasks {

struct FolderConfig {
  std::string task = {};   // "translate", "classify"
  std::string model = {};  // its name in the registry
  Json settings = Json::object();
  Json all = Json::object();  // the whole file, with what a task has of its own
};

// Throws Error, with a hint where a training has not finished, when the folder is no model folder; naming
// both tasks, when it is one for another than `task` (empty: any will do).
FolderConfig read_folder_config(const std::filesystem::path& folder, const std::string& task = "");

// Whether the folder's config.json is one of Hugging Face's rather than Fovea's.
bool is_foreign_folder(const std::filesystem::path& folder);

}  // namespace fovea::tasks
