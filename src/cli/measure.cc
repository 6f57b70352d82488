#include "cli/measure.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>

namespace fovea::cli {
namespace {

// A line of /proc/self/status, in bytes: "VmRSS:  1234 kB".
int64_t status_bytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind(name + ":", 0) == 0) return std::stoll(line.substr(name.size() + 1)) * 1024;
  return 0;
}

double run_once(FunctionRef<void()> step) {
  const auto start = std::chrono::steady_clock::now();
  step();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

MemoryWatch::MemoryWatch() {
  std::ofstream("/proc/self/clear_refs") << "5";  // the high-water mark falls back to what is resident now
  start_ = status_bytes("VmRSS");
}

int64_t MemoryWatch::peak_bytes() const {
  return std::max<int64_t>(0, status_bytes("VmHWM") - start_);
}

Measured measure(FunctionRef<void()> step, double budget) {
  constexpr int kWarmUps = 2, kLeastRuns = 5;
  for (int i = 0; i < kWarmUps; ++i) step();
  Measured result{.seconds = run_once(step), .runs = 1};
  for (double spent = result.seconds; spent < budget || result.runs < kLeastRuns; ++result.runs) {
    const double seconds = run_once(step);
    spent += seconds;
    result.seconds = std::min(result.seconds, seconds);
  }
  return result;
}

}  // namespace fovea::cli
