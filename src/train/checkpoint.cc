#include "train/checkpoint.h"

#include <cstdio>
#include <string>

#include "base/error.h"

namespace fovea::train {
namespace fs = std::filesystem;
namespace {

constexpr const char* kPrefix = "step-";

// "step-000100", and "step-000100-2" for a second set of the same step.
std::string set_name(int64_t step, int attempt) {
  char name[64];
  if (attempt == 1)
    std::snprintf(name, sizeof name, "%s%06lld", kPrefix, static_cast<long long>(step));
  else
    std::snprintf(name, sizeof name, "%s%06lld-%d", kPrefix, static_cast<long long>(step), attempt);
  return name;
}

}  // namespace

CheckpointStore::CheckpointStore(const fs::path& run) : directory_(run / "checkpoints") {
  make_directories(directory_);
  remove_leftovers(run);
  remove_leftovers(directory_);
  remove_unlinked();
}

std::optional<fs::path> CheckpointStore::linked(const char* link) const {
  std::error_code error;
  const fs::path target = fs::read_symlink(directory_ / link, error);
  if (error) return std::nullopt;
  const fs::path set = directory_ / target.filename();
  require(fs::is_directory(set, error), (directory_ / link).string(), " names ", target.string(),
          ", which is gone; point it at another checkpoint or remove it to start anew");
  return set;
}

void CheckpointStore::save(int64_t step, bool is_best, const std::function<void(DirectorySet&)>& fill) {
  int attempt = 1;
  while (fs::exists(directory_ / set_name(step, attempt))) ++attempt;
  const std::string name = set_name(step, attempt);
  DirectorySet set(directory_ / name);
  fill(set);
  set.commit();
  if (is_best) replace_link(directory_ / "best", name);
  replace_link(directory_ / "last", name);
  remove_unlinked();
}

void CheckpointStore::remove_unlinked() const {
  const auto last_set = last(), best_set = best();
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory_)) {
    if (!entry.path().filename().string().starts_with(kPrefix)) continue;
    if (entry.path() != last_set && entry.path() != best_set) fs::remove_all(entry.path(), ignored);
  }
}

}  // namespace fovea::train
