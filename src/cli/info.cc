// fovea info: the machine and the libraries in use.
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/cpu.h"
#include "base/parallel.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "kernels/gemm.h"
#include "kernels/versions.h"

namespace fovea::cli {
namespace {

#if defined(__clang__)
constexpr const char* kCompiler = "Clang " __clang_version__;
#else
constexpr const char* kCompiler = "GCC " __VERSION__;
#endif

void print_info(bool json) {
  const std::string level(level_name(current_level()));
  std::vector<std::string> levels;
  for (const Level each : available_levels()) levels.emplace_back(level_name(each));
  if (json) {
    std::cout << nlohmann::ordered_json{{"fovea", FOVEA_VERSION},
                                        {"cpu", cpu_name()},
                                        {"level", level},
                                        {"levels", levels},
                                        {"threads", num_threads()},
                                        {"onednn", kernels::gemm_library_version()},
                                        {"highway", kernels::highway_version()},
                                        {"compiler", kCompiler}}
              << '\n';
    return;
  }
  std::cout << "fovea     " FOVEA_VERSION "\n"
            << "cpu       " << cpu_name() << '\n'
            << "level     " << level << " (available:";
  for (const std::string& each : levels) std::cout << ' ' << each;
  std::cout << "; force one with FOVEA_ISA)\n"
            << "threads   " << num_threads() << '\n'
            << "oneDNN    " << kernels::gemm_library_version() << '\n'
            << "Highway   " << kernels::highway_version() << '\n'
            << "compiler  " << kCompiler << '\n';
}

}  // namespace

void add_info(CLI::App& app) {
  CLI::App* verb =
      app.add_subcommand("info", "print CPU, instruction set, threads and library versions in use");
  auto json = std::make_shared<bool>(false);
  add_threads(*verb);
  add_json(*verb, *json);
  verb->callback([json] { print_info(*json); });
}

}  // namespace fovea::cli
