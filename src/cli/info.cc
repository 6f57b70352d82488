// fovea info: the machine and the libraries in use, or what a model folder holds.
#include <iostream>

#include "cli/flags.h"
#include "cli/verbs.h"
#include "tasks/folder_contents.h"
#include "tasks/machine_info.h"

namespace fovea::cli {
namespace {

struct Flags {
  std::string folder;
  bool json = false;
};

void print_machine(bool json) {
  const Json info = tasks::machine_info();
  if (json) {
    std::cout << info << '\n';
    return;
  }
  const auto text = [&](const char* name) { return info[name].get<std::string>(); };
  std::cout << "fovea     " << text("fovea") << "\ncpu       " << text("cpu") << "\nlevel     "
            << text("level") << " (available:";
  for (const Json& level : info["levels"]) std::cout << ' ' << level.get<std::string>();
  std::cout << "; force one with FOVEA_ISA)\nthreads   " << info["threads"] << "\nHighway   "
            << text("highway") << "\ncompiler  " << text("compiler") << '\n';
}

// "3 labels: a, b, c"
void print_list(const char* what, const std::vector<std::string>& names) {
  if (names.empty()) return;
  constexpr size_t kShown = 20;
  std::cout << names.size() << ' ' << what << ':';
  for (size_t i = 0; i < std::min(kShown, names.size()); ++i) std::cout << (i > 0 ? ", " : " ") << names[i];
  std::cout << (names.size() > kShown ? ", ...\n" : "\n");
}

void print_folder(const Flags& flags) {
  const tasks::FolderContents contents = tasks::look_into(flags.folder);
  if (flags.json) {
    std::cout << to_json(contents) << '\n';
    return;
  }
  std::cout << flags.folder << ": " << name_of(contents.kind) << " (" << contents.model << "), "
            << contents.parameters << " parameters, stored as " << contents.compute << '\n';
  print_list("labels", contents.labels);
  print_list("target languages (first in a line)", contents.languages);
  for (const tasks::Ability ability : contents.abilities)
    std::cout << "  " << contents.command(ability) << '\n';
  for (const std::string& lack : contents.lacks) std::cout << "lacks " << lack << '\n';
}

}  // namespace

void add_info(CLI::App& app) {
  CLI::App* verb = app.add_subcommand(
      "info",
      "print what a model folder contains and can do; without one, CPU, threads and libraries in use");
  const auto flags = std::make_shared<Flags>();
  verb->add_option("folder", flags->folder, "model folder")->type_name("DIR");
  add_threads(*verb);
  add_json(*verb, flags->json);
  verb->footer("  fovea info\n  fovea info model");
  verb->callback([flags, verb] {
    if (!flags->folder.empty() && given(*verb, "--threads"))
      throw CLI::ValidationError("--threads does not apply to a model folder");
    flags->folder.empty() ? print_machine(flags->json) : print_folder(*flags);
  });
}

}  // namespace fovea::cli
