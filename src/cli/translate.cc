// fovea translate: lines in, lines out, in the same order.
#include <iomanip>
#include <iostream>

#include "cli/fields_flags.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "data/lines.h"
#include "tasks/translator.h"

namespace fovea::cli {
namespace {

constexpr size_t kLinesAtOnce = 512;

struct Line {
  std::string folder;
  tasks::TranslateOptions options;
  bool scores = false;
};

void print(const Line& line, const std::vector<std::vector<tasks::Translation>>& results) {
  for (const auto& translations : results)
    for (const tasks::Translation& translation : translations) {
      if (line.scores) std::cout << std::fixed << std::setprecision(4) << translation.score << '\t';
      std::cout << translation.text << '\n';
    }
  std::cout << std::flush;
}

void run(const Line& line) {
  const tasks::TranslationParts parts = tasks::load_translation(line.folder);
  const tasks::Translator translator(*parts.network, parts.tokenizers);
  data::LineReader reader("-");
  std::vector<std::string> waiting;
  std::string text;
  while (std::cout.good()) {
    const bool more = reader.next(text);
    if (more) {
      require(reader.fault() == data::LineFault::none, reader.fault_text());
      waiting.push_back(text);
    }
    // Whoever typed a line, or waits for the answer to one, gets it at once.
    if (!waiting.empty() && (!more || !reader.waiting() || waiting.size() >= kLinesAtOnce)) {
      print(line, translator.translate(waiting, line.options));
      waiting.clear();
    }
    if (!more) break;
  }
}

}  // namespace

void add_translate(CLI::App& app) {
  CLI::App* verb =
      app.add_subcommand("translate", "translate standard input with a trained model, line by line");
  const auto line = std::make_shared<Line>();
  verb->add_option("folder", line->folder, "model folder")->required()->type_name("DIR");
  add_fields(*verb, line->options);
  verb->add_flag("--scores", line->scores, "print each translation's score before it");
  add_threads(*verb);
  verb->callback([line] { run(*line); });
}

}  // namespace fovea::cli
