// Checkpoints of a run: sets of files that appear whole, and links that say which is the last and which the
// best.
//
//   DIR/checkpoints/step-000100/   a set
//   DIR/checkpoints/last, best     links to sets; replaced in one step once the set is on the disk
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "io/file.h"

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

}  // namespace fovea::train
