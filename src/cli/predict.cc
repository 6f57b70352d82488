// fovea predict: rows or cases in, a forecast, labels or numbers out.
#include <cstdio>
#include <iostream>

#include "base/error.h"
#include "cli/answer_lines.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "tasks/series_lines.h"

namespace fovea::cli {
namespace {

constexpr const char* kFooter =
    R"help(A forecasting model reads a table with a header, as in training, from standard input or FILE. From the last steps of
the table it forecasts the next ones and prints them as CSV, in the units of the table.

A model trained on .ts cases reads lines of a .ts file, with or without its header, and prints the label or the number
of each case as soon as it is known; a label at the end of a line is ignored.

--test prints scores: for forecasts the mean squared and mean absolute error of standardised values, for labels
accuracy and F1, for numbers the root of the mean squared error.

  fovea predict model < rows.csv
  fovea predict model --test ETTh1.csv --split 8640/2880/2880
  fovea predict vowels --scores < JapaneseVowels_TEST.ts)help";

struct Flags {
  std::string folder, file, test, split, compute;
  bool scores = false, json = false, error_chosen = false;
  LineFlags lines{.lines_at_once = 256, .max_line_bytes = size_t{64} << 20};
};

void refuse(bool given, const char* flag, const std::string& why) {
  require(!given, flag, " does not apply ", why);
}

void run_forecast(const Flags& flags, const tasks::OpenFolder& model) {
  refuse(flags.scores, "--scores", "to a forecast");
  refuse(flags.error_chosen, "--on-error", "to a forecast, which reads one table");
  const tasks::Input table = tasks::read_table(flags.file.empty() ? "-" : flags.file);
  const tasks::Answer answer = model.answer({&table, 1}, {})[0];
  require(answer.error.empty(), answer.error);
  const Json json = model.to_json(table, answer);
  std::cout << (flags.json ? json.dump() + "\n" : tasks::forecast_csv(json));
}

void run_cases(const Flags& flags, const tasks::OpenFolder& model) {
  LineFlags lines = flags.lines;
  lines.path = flags.file.empty() ? "-" : flags.file;
  lines.skip = tasks::is_case_header;
  answer_lines(model, {}, lines, [&](const tasks::Input& line, const tasks::Answer& answer, int64_t) {
    if (flags.json) {
      std::cout << model.to_json(line, answer).dump() << '\n';
      return;
    }
    if (answer.error.empty() && answer.numbers.empty()) {
      const auto label = static_cast<size_t>(answer.prediction.label);
      if (flags.scores) {
        char text[32];
        std::snprintf(text, sizeof text, "%.4f\t", double{answer.prediction.probabilities[label]});
        std::cout << text;
      }
      std::cout << model.contents().labels[label];
    } else if (answer.error.empty()) {
      std::cout << answer.numbers[0];
    }
    std::cout << '\n';
  });
}

void run(const Flags& flags) {
  require(flags.split.empty() || !flags.test.empty(), "--split describes the file of --test; there is none");
  if (!flags.test.empty()) {
    for (const auto& [flag, given] : {std::pair{"--scores", flags.scores},
                                      {"--on-error", flags.error_chosen},
                                      {"a file to predict", !flags.file.empty()},
                                      {"--compute", !flags.compute.empty()}})
      refuse(given, flag, "with --test, which prints scores only");
    tasks::look_into(flags.folder).require_can(tasks::Ability::predict);
    std::cout << tasks::series_test(flags.folder, flags.test, flags.split, flags.json);
    return;
  }
  const auto model =
      tasks::open(flags.folder, {.purpose = tasks::Ability::predict, .compute = flags.compute});
  if (tasks::is_forecaster(model->contents())) return run_forecast(flags, *model);
  require(!flags.scores || !model->contents().labels.empty(),
          "--scores does not apply to a model that gives numbers");
  run_cases(flags, *model);
}

}  // namespace

void add_predict(CLI::App& app) {
  CLI::App* verb =
      app.add_subcommand("predict", "forecast, label or score number sequences with a trained model");
  const auto flags = std::make_shared<Flags>();
  add_folder(*verb, flags->folder);
  verb->add_option("file", flags->file, "table or .ts file (default: standard input)")->type_name("FILE");
  verb->add_flag("--scores", flags->scores, "classes: print the probability of each label before it");
  verb->add_flag("--json", flags->json, "print JSON: the forecast, or an object for each case");
  verb->add_option("--test", flags->test, "print scores on a file that is read as training reads it")
      ->type_name("FILE");
  verb->add_option("--split", flags->split,
                   "--test on a table: parts as in training, such as 8640/2880/2880; the last one counts")
      ->type_name("PARTS");
  add_on_error(*verb, flags->lines.on_error);
  add_compute(*verb, flags->compute);
  add_threads(*verb);
  verb->footer(kFooter);
  verb->callback([flags, verb] {
    flags->error_chosen = given(*verb, "--on-error");
    run(*flags);
  });
}

}  // namespace fovea::cli
