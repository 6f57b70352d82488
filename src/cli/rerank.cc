// fovea rerank: lines in, the same lines out by how well they answer a query.
#include <algorithm>
#include <cstdio>
#include <iostream>

#include "cli/answer_lines.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "tasks/line_source.h"

namespace fovea::cli {
namespace {

constexpr const char* kFooter =
    "The folder is a cross-encoder of the BERT family with one label, as sentence-transformers and Hugging Face's\n"
    "libraries save it. It reads the query and each line of standard input as a pair of texts. When the input has\n"
    "ended, the lines are printed by their scores, the best first; lines of equal scores keep their order. A line has\n"
    "at most 65536 bytes.\n\n"
    "  fovea rerank ms-marco-MiniLM-L6-v2 --query \"how tall is the tower\" --top 10 < passages.txt";

struct Flags {
  std::string folder, compute;
  int64_t top = 0;
  bool json = false;
  tasks::AnswerOptions options;
  LineFlags lines{.lines_at_once = 512, .max_line_bytes = tasks::LineSource::kLongestLine};
};

struct Scored {
  tasks::Input line;
  tasks::Answer answer;
};

void print(const Flags& flags, const tasks::OpenFolder& model, const Scored& one) {
  if (flags.json) {
    std::cout << model.to_json(one.line, one.answer).dump() << '\n';
    return;
  }
  char score[32];
  std::snprintf(score, sizeof score, "%.6f", double{one.answer.score});
  std::cout << score << '\t' << one.line.content << '\n';
}

void run(const Flags& flags) {
  require(flags.top >= 0, "--top: got ", flags.top, ", wanted 1 or more, or 0 for all lines");
  require(
      flags.lines.on_error != OnError::empty,
      "--on-error empty does not apply: lines are sorted, and one without a score has no place; wanted stop or "
      "skip");
  const auto model = tasks::open(flags.folder, {.purpose = tasks::Ability::rerank, .compute = flags.compute});
  std::vector<Scored> all;
  answer_lines(*model, flags.options, flags.lines,
               [&](const tasks::Input& line, const tasks::Answer& answer, int64_t) {
                 if (answer.error.empty()) all.push_back({line, answer});
               });
  std::stable_sort(all.begin(), all.end(),
                   [](const Scored& a, const Scored& b) { return a.answer.score > b.answer.score; });
  const size_t shown = flags.top == 0 ? all.size() : std::min(all.size(), static_cast<size_t>(flags.top));
  for (size_t i = 0; i < shown; ++i) print(flags, *model, all[i]);
  flush_output();
}

}  // namespace

void add_rerank(CLI::App& app) {
  CLI::App* verb =
      app.add_subcommand("rerank", "sort the lines of standard input by how well they answer a query");
  const auto flags = std::make_shared<Flags>();
  add_folder(*verb, flags->folder);
  verb->add_option("--query", flags->options.query, "text that each line is compared to")
      ->required()
      ->type_name("TEXT");
  verb->add_option("--top", flags->top, "number of lines printed; 0: all (default 0)")->type_name("N");
  verb->add_flag("--json", flags->json, "print a JSON object with score and text for each line");
  add_compute(*verb, flags->compute);
  add_on_error(*verb, flags->lines.on_error);
  add_threads(*verb);
  verb->footer(kFooter);
  verb->callback([flags] { run(*flags); });
}

}  // namespace fovea::cli
