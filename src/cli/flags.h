// Flags that several verbs share, declared once.
#pragma once

#include <CLI/CLI.hpp>

#include "base/parallel.h"

namespace fovea::cli {

// --threads N: how many threads everything after the command line uses.
inline void add_threads(CLI::App& verb) {
  verb.add_option_function<int>(
          "--threads", [](int count) { set_num_threads(count); },
          "number of threads; 0: one per core; does not change results (default 0)")
      ->type_name("N");
}

// --json: one line of JSON instead of text for people.
inline void add_json(CLI::App& verb, bool& json) {
  verb.add_flag("--json", json, "print one line of JSON");
}

// The model folder, first argument of every verb that uses one.
inline void add_folder(CLI::App& verb, std::string& folder) {
  verb.add_option("folder", folder, "model folder")->required()->type_name("DIR");
}

// --compute: how the matrix products of a model in use are computed.
inline void add_compute(CLI::App& verb, std::string& compute,
                        const std::string& standard = "(default float32)") {
  verb.add_option(
          "--compute", compute,
          "arithmetic of the matrix products: float32, or int8 (faster, slightly less exact) " + standard)
      ->type_name("FORM");
}

// --global: of a model that reads long texts.
inline void add_global(CLI::App& verb, std::string& choice) {
  verb.add_option(
          "--global", choice,
          "Longformer and BigBird: global tokens, which attend to the whole text and are attended to by all of "
          "it: none, first, punctuation, [SEP], or a list of tokens separated by spaces (default: as the "
          "folder says)")
      ->type_name("TOKENS");
}

// Whether the line names the flag.
inline bool given(const CLI::App& verb, const std::string& flag) {
  return verb.get_option(flag)->count() > 0;
}

}  // namespace fovea::cli
