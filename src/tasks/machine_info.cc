#include "tasks/machine_info.h"

#include "base/cpu.h"
#include "base/parallel.h"
#include "kernels/versions.h"

namespace fovea::tasks {
namespace {

#if defined(__clang__)
constexpr const char* kCompiler = "Clang " __clang_version__;
#else
constexpr const char* kCompiler = "GCC " __VERSION__;
#endif

}  // namespace

Json machine_info() {
  Json levels = Json::array();
  for (const Level level : available_levels()) levels.push_back(level_name(level));
  return {{"fovea", FOVEA_VERSION}, {"cpu", cpu_name()},        {"level", level_name(current_level())},
          {"levels", levels},       {"threads", num_threads()}, {"highway", kernels::highway_version()},
          {"compiler", kCompiler}};
}

}  // namespace fovea::tasks
