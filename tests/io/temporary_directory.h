// A directory for one test, removed with everything in it; in memory where the system has such a place, since
// what is tested is the order of things, not the disk.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace fovea {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    for (const std::filesystem::path& place :
         {std::filesystem::path("/dev/shm"), std::filesystem::temp_directory_path()}) {
      std::string name = (place / "fovea-test-XXXXXX").string();
      if (mkdtemp(name.data()) == nullptr) continue;
      path_ = name;
      return;
    }
    std::abort();
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

// Names of what a directory holds, hidden entries too.
inline size_t entry_count(const std::filesystem::path& directory) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory)) ++count;
  return count;
}

}  // namespace fovea
