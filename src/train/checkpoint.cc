#include "train/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string>
#include <utility>

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

constexpr std::string_view kWeightsEnding = ".safetensors";

// The step in "step-000100.safetensors"; nothing for any other name.
std::optional<int64_t> step_of(const fs::path& file) {
  const std::string name = file.filename().string();
  const std::string_view prefix = kPrefix;
  if (!name.starts_with(prefix) || !name.ends_with(kWeightsEnding)) return std::nullopt;
  int64_t step = 0;
  const char* end = name.data() + name.size() - kWeightsEnding.size();
  const auto [stop, error] = std::from_chars(name.data() + prefix.size(), end, step);
  if (error != std::errc() || stop != end) return std::nullopt;
  return step;
}

// Sorted by step.
std::vector<std::pair<int64_t, fs::path>> weights_in(const fs::path& directory) {
  std::vector<std::pair<int64_t, fs::path>> found;
  if (!fs::is_directory(directory)) return found;
  for (const auto& entry : fs::directory_iterator(directory))
    if (const auto step = step_of(entry.path())) found.emplace_back(*step, entry.path());
  std::sort(found.begin(), found.end());
  return found;
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
          ", which is gone; point it at another checkpoint or remove it to start again");
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

RecentWeights::RecentWeights(const fs::path& run, int64_t keep)
    : directory_(run / "checkpoints" / "recent"), keep_(keep < 2 ? 0 : keep) {
  if (fs::is_directory(directory_)) remove_leftovers(directory_);
  remove_surplus();
}

void RecentWeights::forget_after(int64_t step) {
  std::error_code ignored;
  for (const auto& [at, file] : weights_in(directory_))
    if (at > step) fs::remove(file, ignored);
}

void RecentWeights::add(int64_t step, std::vector<TensorToWrite> weights, const Metadata& metadata) {
  if (keep_ == 0) return;
  make_directories(directory_);
  save_safetensors(directory_ / (set_name(step, 1) + std::string(kWeightsEnding)), std::move(weights),
                   metadata);
  remove_surplus();
}

std::vector<fs::path> RecentWeights::files() const {
  std::vector<fs::path> files;
  for (auto& [step, file] : weights_in(directory_)) files.push_back(std::move(file));
  return files;
}

void RecentWeights::remove_surplus() const {
  const auto found = weights_in(directory_);
  std::error_code ignored;
  for (size_t i = 0; i + static_cast<size_t>(keep_) < found.size(); ++i) fs::remove(found[i].second, ignored);
  if (keep_ == 0) fs::remove(directory_, ignored);
}

}  // namespace fovea::train
