// fovea: reads the command line, runs one verb, and turns errors into one line and an exit status.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <iostream>

#include "base/error.h"
#include "base/fields.h"
#include "cli/output.h"
#include "cli/verbs.h"

namespace fovea::cli {
namespace {

constexpr int kOurFault = 1, kUsersFault = 2;

constexpr const char* kIntroduction =
    "Attention on ordinary machines: train it, run it, see it.\n\n"
    "Start with `fovea demo`; `fovea VERB --help` explains a verb.";

// In the order of the help: training, use, what a model looks at, files, the machine.
void add_verbs(CLI::App& app) {
  add_demo(app);
  add_train(app);
  add_pretrain(app);
  add_translate(app);
  add_classify(app);
  add_caption(app);
  add_predict(app);
  add_partition(app);
  add_embed(app);
  add_fill(app);
  add_rerank(app);
  add_explain(app);
  add_score(app);
  add_convert(app);
  add_info(app);
  add_pattern(app);
  add_kernels(app);
  add_scene(app);
  add_bench(app);
}

// The verb the line had reached: the innermost subcommand that was named.
const CLI::App& innermost(const CLI::App& app) {
  const auto named = app.get_subcommands();
  return named.empty() ? app : innermost(*named.back());
}

std::string full_name(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name() : full_name(*app.get_parent()) + " " + app.get_name();
}

// "no such flag --thread for fovea bench peak; did you mean --threads?"
std::string explain_unknown(const CLI::App& verb, const std::string& word) {
  const bool flag = word.size() > 1 && word[0] == '-';
  std::vector<std::string> names;
  if (flag) {
    for (const CLI::Option* option : verb.get_options())
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  } else {
    for (const CLI::App* below : verb.get_subcommands([](const CLI::App*) { return true; }))
      names.push_back(below->get_name());
  }
  const std::string name = flag ? word.substr(0, word.find('=')) : word;
  const std::vector<std::string_view> known(names.begin(), names.end());
  const std::string meant(nearest_name(name, known));
  std::string text = flag            ? "no such flag " + name + " for " + full_name(verb)
                     : names.empty() ? full_name(verb) + " takes no argument '" + word + "'"
                                     : "no such verb '" + full_name(verb) + " " + word + "'";
  text += meant.empty() ? "; see " + full_name(verb) + " --help" : "; did you mean " + meant + "?";
  return text;
}

std::string explain(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& verb = innermost(app);
  for (const CLI::App* at = &verb; at != nullptr; at = at->get_parent())
    if (!at->remaining().empty()) return explain_unknown(*at, at->remaining().front());
  std::string text = error.what();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text + "; see " + full_name(verb) + " --help";
}

int complain(const std::string& text, int status) {
  std::cerr << "fovea: " << text << '\n';
  return status;
}

int run(int argc, char** argv) {
  CLI::App app(kIntroduction, "fovea");
  app.set_version_flag("--version", "fovea " FOVEA_VERSION, "print the version");
  app.set_help_flag("--help,-h", "print this help");
  app.require_subcommand(0, 1);
  add_verbs(app);
  if (argc <= 1) {
    std::cout << app.help();
    return 0;
  }
  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::Success& finished) {  // --help and --version
    return app.exit(finished);
  } catch (const CLI::RuntimeError& ended) {  // a verb that has said all and asks for a status
    return ended.get_exit_code();
  } catch (const CLI::ParseError& error) {
    return complain(explain(app, error), kUsersFault);
  }
}

int close_output(int status) {
  const std::string fault = output_fault();
  if (fault.empty() || status != 0) return status;
  return complain("cannot write to standard output: " + fault, kOurFault);
}

int guarded(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const Error& error) {
    return complain(error.what(), kUsersFault);
  } catch (const std::filesystem::filesystem_error& error) {  // a loop of links, no permission...
    return complain(message("cannot read ", error.path1().string(), ": ", error.code().message()),
                    kUsersFault);
  } catch (const std::bad_alloc&) {
    return complain("out of memory", kOurFault);
  } catch (const std::exception& error) {
    return complain(message("internal error: ", error.what()), kOurFault);
  }
}

}  // namespace
}  // namespace fovea::cli

int main(int argc, char** argv) {
  // Some parents hand on an ignored SIGPIPE; a reader that goes away then looks like a broken disk.
  std::signal(SIGPIPE, SIG_DFL);
  return fovea::cli::close_output(fovea::cli::guarded(argc, argv));
}
