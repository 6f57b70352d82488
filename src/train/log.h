// train.jsonl: what happened in a run, one JSON object a line, for programs to read.
#pragma once

#include <cstdint>
#include <filesystem>

#include "io/json.h"

namespace fovea::train {

class Log {
 public:
  // Opens DIR/train.jsonl for what comes after `step`: lines of later steps, written by a process that died
  // before its next checkpoint, are dropped.
  Log(const std::filesystem::path& run, int64_t step);
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  ~Log();

  // Appends one line. Throws Error when the disk is full.
  void write(const Json& line);

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace fovea::train
