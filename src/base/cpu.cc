#include "base/cpu.h"

#include <cstdlib>
#include <fstream>
#include <vector>

#include "base/error.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace fovea {
namespace {

std::vector<Level> find_levels() {
  std::vector<Level> levels{Level::scalar};
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool sse4 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt") &&
                    __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("aes");
  // F16C came before AVX2, and not every compiler can ask for it.
  const bool avx2 = sse4 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi2");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512cd");
  if (sse4) levels.push_back(Level::sse4);
  if (avx2) levels.push_back(Level::avx2);
  if (avx512) levels.push_back(Level::avx512);
#else
  levels.push_back(Level::neon);
#endif
  return levels;
}

Level choose_level() {
  const char* forced = std::getenv("FOVEA_ISA");
  if (forced == nullptr || *forced == '\0') return available_levels().back();
  std::string have;
  for (const Level level : available_levels()) {
    if (level_name(level) == forced) return level;
    have += (have.empty() ? "" : ", ") + std::string(level_name(level));
  }
  fail("FOVEA_ISA is '", forced, "', but this CPU runs only: ", have);
}

}  // namespace

std::string_view level_name(Level level) {
  switch (level) {
    case Level::scalar:
      return "scalar";
    case Level::sse4:
      return "sse4";
    case Level::avx2:
      return "avx2";
    case Level::avx512:
      return "avx512";
    case Level::neon:
      return "neon";
  }
  return "?";
}

std::span<const Level> available_levels() {
  static const std::vector<Level> levels = find_levels();
  return levels;
}

Level current_level() {
  static const Level level = choose_level();
  return level;
}

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) == 0) {
      const size_t colon = line.find(':');
      if (colon != std::string::npos && colon + 2 < line.size()) return line.substr(colon + 2);
    }
  }
  return "unknown CPU";
}

bool has_dot_products(Level level) {
#if defined(__x86_64__)
  struct Features {
    bool avx512 = false, avx = false;
  };
  // Asked of the CPU itself: not every compiler knows the name "avxvnni".
  static const Features features = [] {
    Features found;
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return found;
    found.avx512 = (c >> 11 & 1) != 0;
    if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0) found.avx = (a >> 4 & 1) != 0;
    return found;
  }();
  return (level == Level::avx512 && features.avx512) || (level == Level::avx2 && features.avx);
#else
  (void)level;
  return false;
#endif
}

}  // namespace fovea
