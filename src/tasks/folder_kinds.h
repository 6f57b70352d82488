// What there is to know about each kind of model folder and about each thing that one can do: a new kind, or a
// new ability, is one record here.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tasks/open.h"

namespace fovea::tasks {

struct KindRecord {
  FolderKind kind;
  const char* task;        // its name in config.json; null: a kind of Hugging Face folders alone
  const char* name;        // with its article: "an image classifier"
  const char* trained_by;  // the verb that makes one: "fovea train image"; null: none does
  Ability ability;         // what it is for
  InputForm input;
  // Whether a model with these settings has weights to show. Throws Error beginning with `where`.
  bool (*has_attention)(const std::string& model, const Json& settings, const std::string& where);
  // Throws Error for an option of explain that has no meaning for this kind. `is`: "DIR is an image classifier".
  void (*check_explain)(const ExplainOptions& options, const std::string& form, const std::string& is);
  // Opens it for `ability` or to explain.
  std::unique_ptr<OpenFolder> (*open)(FolderContents contents, const OpenOptions& options);
};
const KindRecord& record_of(FolderKind kind);
// The kind of a task named in config.json. Throws Error beginning with `where` when there is none.
const KindRecord& kind_of_task(const std::string& task, const std::string& where);

struct AbilityRecord {
  Ability ability;
  const char* verb;   // "classify"
  const char* needs;  // what it needs: "a translator"
};
const AbilityRecord& record_of(Ability ability);
// The ability of that verb. Throws Error with the nearest name when there is none.
Ability ability_of_verb(std::string_view verb);

}  // namespace fovea::tasks
