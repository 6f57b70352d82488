// Flags that several verbs share, declared once.
#pragma once

#include <CLI/CLI.hpp>

#include "base/parallel.h"

namespace fovea::cli {

// --threads N: how many threads everything after the command line uses.
inline void add_threads(CLI::App& verb) {
  verb.add_option_function<int>(
          "--threads", [](int count) { set_num_threads(count); }, "threads to use; 0 is one per core")
      ->type_name("N");
}

// --json: one line of JSON instead of text for people.
inline void add_json(CLI::App& verb, bool& json) {
  verb.add_flag("--json", json, "print one line of JSON");
}

}  // namespace fovea::cli
