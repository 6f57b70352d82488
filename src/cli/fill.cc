// fovea fill: which words belong where a text is masked.
#include <iomanip>
#include <iostream>

#include "base/error.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "tasks/open.h"

namespace fovea::cli {
namespace {

constexpr const char* kFooter =
    R"help(Prints one line for each candidate: its probability, a tab, and the token; a token that begins with ## continues a
word. If the text has several masked places, the number of the place, counted from 0, and a tab come first.

  fovea fill bert-base-uncased "Paris is the [MASK] of France.")help";

struct Flags {
  std::string folder, text, compute, global;
  tasks::AnswerOptions options;
  bool json = false;
};

void run(const Flags& flags) {
  const auto model = tasks::open(
      flags.folder, {.purpose = tasks::Ability::fill, .compute = flags.compute, .global = flags.global});
  const tasks::Input input{flags.text};
  const tasks::Answer answer = model->answer({&input, 1}, flags.options)[0];
  require(answer.error.empty(), answer.error);
  if (flags.json) {
    std::cout << model->to_json(input, answer).dump() << '\n';
    return;
  }
  std::cout << std::fixed << std::setprecision(4);
  for (size_t i = 0; i < answer.masks.size(); ++i)
    for (const tasks::MaskCandidate& candidate : answer.masks[i]) {
      if (answer.masks.size() > 1) std::cout << i << '\t';
      std::cout << candidate.probability << '\t' << candidate.text << '\n';
    }
}

}  // namespace

void add_fill(CLI::App& app) {
  CLI::App* verb =
      app.add_subcommand("fill", "find words for the masked places of a text, with a BERT-family model");
  const auto flags = std::make_shared<Flags>();
  add_folder(*verb, flags->folder);
  verb->add_option("text", flags->text, "the text, with [MASK] (RoBERTa: <mask>) where a word is missing")
      ->required()
      ->type_name("TEXT");
  verb->add_option("--top", flags->options.top, "candidates printed for each masked place (default 5)")
      ->type_name("N");
  add_json(*verb, flags->json);
  add_compute(*verb, flags->compute);
  add_global(*verb, flags->global);
  add_threads(*verb);
  verb->footer(kFooter);
  verb->callback([flags] { run(*flags); });
}

}  // namespace fovea::cli
