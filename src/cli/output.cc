#include "cli/output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

namespace fovea::cli {
namespace {

// The stream remembers that it failed, but not why.
int first_error = 0;

}  // namespace

bool flush_output() {
  const bool failed_before = !std::cout.good();
  errno = 0;
  std::cout.flush();
  const bool arrived = std::cout.good() && std::fflush(stdout) == 0;
  if (!arrived && !failed_before && first_error == 0) first_error = errno;
  return arrived;
}

std::string output_fault() {
  if (flush_output() || first_error == EPIPE) return "";
  return first_error == 0 ? "not all of it was taken; is the disk full?" : std::strerror(first_error);
}

}  // namespace fovea::cli
