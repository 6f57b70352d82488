// fovea: reads the command line, runs one verb, and turns errors into one line and an exit status.
#include <algorithm>
#include <cctype>
#include <charconv>
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

// In the order of the help: training, use, explanation, files, the machine.
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

// CLI11 reads "010" as 8 and 99999999999999999999 as the largest number there is.
template <class Value>
std::string whole_number_fault(const std::string& text) {
  const std::string_view digits = std::string_view(text).substr(text.starts_with('-') ? 1 : 0);
  Value value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool plain =
      !digits.empty() && end == text.data() + text.size() && (digits.size() == 1 || digits[0] != '0');
  if (plain && error == std::errc()) return "";
  return "got '" + text + "', wanted a whole number" + (plain ? " of at most 64 bits" : "");
}

// Every option that takes whole numbers refuses what is none.
void check_whole_numbers(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    if (type == "UINT") option->check(CLI::Validator(whole_number_fault<uint64_t>, ""));
    if (type == "N" || type == "INT" || type.starts_with("N:") || type.starts_with("INT:"))
      option->check(CLI::Validator(whole_number_fault<int64_t>, ""));
  }
  for (CLI::App* below : app.get_subcommands([](const CLI::App*) { return true; }))
    check_whole_numbers(*below);
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

// "--train: At Most 2 required but received 3" and "Could not convert: --threshold = much".
std::string in_our_words(const std::string& text) {
  constexpr std::string_view kReceived = " required but received ",
                             kConvert = "Could not convert: ", kIs = " = ";
  const size_t received = text.find(kReceived), colon = text.find(": ");
  if (received != std::string::npos && colon < received) {
    std::string wanted = text.substr(colon + 2, received - colon - 2);
    wanted[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(wanted[0])));
    if (const size_t most = wanted.find(" Most"); most != std::string::npos) wanted[most + 1] = 'm';
    if (const size_t least = wanted.find(" Least"); least != std::string::npos) wanted[least + 1] = 'l';
    const std::string got = text.substr(received + kReceived.size());
    return text.substr(0, colon) + ": got " + got + (got == "1" ? " value" : " values") + ", wanted " +
           wanted;
  }
  const size_t is = text.find(kIs);
  if (text.starts_with(kConvert) && is != std::string::npos)
    return text.substr(kConvert.size(), is - kConvert.size()) + ": got '" + text.substr(is + kIs.size()) +
           "', wanted a number";
  return text;
}

std::string explain(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& verb = innermost(app);
  for (const CLI::App* at = &verb; at != nullptr; at = at->get_parent())
    if (!at->remaining().empty()) return explain_unknown(*at, at->remaining().front());
  std::string text = in_our_words(error.what());
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
  check_whole_numbers(app);
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
