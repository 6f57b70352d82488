#include "bench/measure.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>

#include "base/error.h"
#include "kernels/peak.h"

namespace fovea::bench {
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
  constexpr double kSlow = 2;
  constexpr int kLeastRuns = 5;
  const double first = run_once(step);
  if (first > kSlow) {
    Measured result{.seconds = std::min(first, run_once(step)), .runs = 2};
    for (double spent = 0; spent < budget || result.runs < 3; ++result.runs) {
      const double seconds = run_once(step);
      spent += seconds;
      result.seconds = std::min(result.seconds, seconds);
    }
    return result;
  }
  step();
  Measured result{.seconds = run_once(step), .runs = 1};
  for (double spent = result.seconds; spent < budget || result.runs < kLeastRuns; ++result.runs) {
    const double seconds = run_once(step);
    spent += seconds;
    result.seconds = std::min(result.seconds, seconds);
  }
  return result;
}

Measured measure_beside_peak(FunctionRef<void()> step, double budget) {
  const double before = kernels::measure_fma_gflops();
  Measured result = measure(step, budget);
  result.peak_gflops = std::max(before, kernels::measure_fma_gflops());
  return result;
}

Json work_json(const Measured& measured, double flops) {
  const double gflops = flops / measured.seconds * 1e-9;
  return {{"seconds", measured.seconds},
          {"runs", measured.runs},
          {"flops", flops},
          {"gflops", gflops},
          {"peak_gflops", measured.peak_gflops},
          {"fraction", gflops / measured.peak_gflops},
          {"peak_bytes", measured.peak_bytes}};
}

std::string decimals(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string padded(std::string text, size_t width) {
  if (text.size() < width) text.resize(width, ' ');
  return text;
}

std::string padded_left(const std::string& text, size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

std::string work_text(const Measured& measured, double flops) {
  const double gflops = flops / measured.seconds * 1e-9;
  const std::string rate =
      flops > 0 ? message(", ", decimals(gflops, 1), " GFLOP/s, ", decimals(gflops / measured.peak_gflops, 2),
                          " of the FMA peak ", decimals(measured.peak_gflops, 1))
                : "";
  return message(rate, "; ", decimals(static_cast<double>(measured.peak_bytes) / (1 << 20), 0), " MiB");
}

}  // namespace fovea::bench
