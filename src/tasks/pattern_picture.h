// Which keys each query sees, drawn: for `fovea pattern`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace fovea::tasks {

struct PatternOptions {
  std::string spec;  // a pattern, or a whole attention spec
  int64_t queries = 64;
  int64_t keys = 0;  // 0: as many as queries
  int64_t heads = 1;
};

struct PatternPicture {
  std::string content;  // blocks for a terminal, or a file's bytes
  std::string summary;  // "causal: 2080 of 4096 pairs (50.8 %), in 2 tiles and 2 segments"
};

// path: its ending says what file to make, .png, .svg or .pdf; empty: for a terminal. Throws Error for a spec
// or an ending that is not known.
PatternPicture draw_pattern(const PatternOptions& options, const std::filesystem::path& path = {});

}  // namespace fovea::tasks
