// Checkpoints of a run: sets of files that appear whole, and links that say which is the last and which the
// best.
//
//   DIR/checkpoints/step-000100/   a set
//   DIR/checkpoints/last, best     links to sets; replaced in one step once the set is on the disk
//   DIR/checkpoints/recent/        weights alone, of the last few regular checkpoints, to be averaged
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "io/file.h"
#include "io/safetensors.h"

namespace fovea::train {

class CheckpointStore {
 public:
  // `run` is the run's directory. Removes what a killed process left half-written.
  explicit CheckpointStore(const std::filesystem::path& run);

  // The sets that the links name; nothing when there is none yet.
  std::optional<std::filesystem::path> last() const { return linked("last"); }
  std::optional<std::filesystem::path> best() const { return linked("best"); }

  // Writes a new set by fill(set), makes it the last (and the best), and removes the sets that no link
  // names. When anything fails, the earlier sets and links stay.
  void save(int64_t step, bool is_best, const std::function<void(DirectorySet&)>& fill);

 private:
  std::optional<std::filesystem::path> linked(const char* link) const;
  void remove_unlinked() const;

  std::filesystem::path directory_;
};

// The weights at the last few regular points of a run, for an average of them. Which points these are depends
// on steps alone, so a run that was interrupted keeps the same ones as a run that was not.
class RecentWeights {
 public:
  // Keeps the `keep` latest files, and none when keep is below 2: one is no average.
  RecentWeights(const std::filesystem::path& run, int64_t keep);

  // Forgets what lies after `step`: the run continues from there and reaches those points again.
  void forget_after(int64_t step);
  // Replaces or adds the file of `step`, and removes those that are too many.
  void add(int64_t step, std::vector<TensorToWrite> weights, const Metadata& metadata);
  // Oldest first.
  std::vector<std::filesystem::path> files() const;

 private:
  void remove_surplus() const;

  std::filesystem::path directory_;
  int64_t keep_;
};

}  // namespace fovea::train
