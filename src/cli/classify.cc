// fovea classify: lines or pictures in, labels out, in the same order.
#include <cstdio>
#include <iostream>

#include "base/error.h"
#include "cli/answer_lines.h"
#include "cli/flags.h"
#include "cli/picture_answers.h"
#include "cli/verbs.h"
#include "tasks/line_source.h"

namespace fovea::cli {
namespace {

constexpr const char* kFooter =
    R"help(A text model reads standard input and prints the label of each line, as soon as it is known. A line has at most 1048576
bytes. An image model prints a line for each picture: its file name, a tab and its label; a picture that cannot be read
is named on standard error, the others are answered, and the exit status is 2.

--scores prints the probability of the label and a tab before it. --json makes each line an object with label and
probabilities (and the file of a picture); --weights adds the words of a text and their attention weights.

A model that reads pairs expects lines of a text, a tab and a text. Such models are cross-encoders, models trained with
--pairs, and any published classifier used with --pairs. A multi-label model prints the labels with a probability of at
least 50 %, separated as in its training file. A regression model prints a number.

--test reads the files that `fovea train classify` and `fovea train image` read and prints accuracy, precision, recall
and F1; for a multi-label model micro and macro F1; for a regression model Pearson's and Spearman's correlation and
errors; with attention pooling also the share of the words that carry 90 % of the weight.

  echo "a film of rare beauty" | fovea classify model --scores
  fovea classify model a.png b.jpg)help";

struct Flags {
  std::string folder, compute, global;
  std::vector<std::string> pictures;
  int64_t rollouts = 0;
  bool pairs = false;
  tasks::TestFiles test;
  bool json = false;
  bool error_chosen = false;  // --on-error was given
  tasks::AnswerOptions options;
  LineFlags lines{.lines_at_once = 2048, .max_line_bytes = tasks::LineSource::kLongestText};
};

void print(const Flags& flags, const tasks::OpenFolder& model, const tasks::Input& input,
           const tasks::Answer& answer) {
  if (flags.json || flags.options.words) {
    std::cout << model.to_json(input, answer).dump() << '\n';
    return;
  }
  if (!input.name.empty()) std::cout << input.name << '\t';
  if (answer.error.empty()) std::cout << model.to_line(answer, flags.options);
  std::cout << '\n';
}

void run_test(const Flags& flags, const tasks::OpenFolder& model) {
  const char* unused = flags.options.scores      ? "--scores"
                       : flags.options.words     ? "--weights"
                       : flags.error_chosen      ? "--on-error"
                       : !flags.pictures.empty() ? "a list of pictures"
                                                 : nullptr;
  require(unused == nullptr, unused == nullptr ? "" : unused,
          " does not apply with --test, which prints scores only");
  const tasks::Evaluation evaluation = model.evaluate(flags.test);
  std::cout << (flags.json ? to_json(evaluation).dump() + "\n" : to_text(evaluation));
  InputReport report("text");
  for (int64_t i = 0; i < evaluation.cut; ++i) report.count_cut(evaluation.cut_to);
  report.print("");
}

void run_texts(const Flags& flags, const tasks::OpenFolder& model) {
  require(flags.pictures.empty(), flags.folder,
          " is a text classifier and reads texts from standard input; got the argument '",
          flags.pictures.empty() ? "" : flags.pictures[0], "'");
  answer_lines(model, flags.options, flags.lines,
               [&](const tasks::Input& line, const tasks::Answer& answer, int64_t) {
                 print(flags, model, line, answer);
               });
}

void run_pictures(const Flags& flags, const tasks::OpenFolder& model) {
  const bool clips = model.contents().input() == tasks::InputForm::clip;
  require(!flags.pictures.empty(), model.contents().description(), ": name ",
          clips ? "folders of frames" : "pictures", ", as in ",
          model.contents().command(tasks::Ability::classify));
  answer_pictures(
      model, flags.options, tasks::PictureSource::files(flags.pictures, model.contents().input()),
      {.on_error = flags.lines.on_error, .chosen = flags.error_chosen},
      [&](const tasks::Input& input, const tasks::Answer& answer) { print(flags, model, input, answer); });
}

void run(const Flags& flags) {
  require(!flags.test.paths.empty() || (flags.test.label_column.empty() && flags.test.text_column.empty() &&
                                        flags.test.pair_column.empty()),
          "--label-column, --text-column and --pair-column describe the file of --test; there is none");
  const auto model = tasks::open(flags.folder, {.purpose = tasks::Ability::classify,
                                                .compute = flags.compute,
                                                .global = flags.global,
                                                .pairs = flags.pairs,
                                                .rollouts = flags.rollouts});
  if (!flags.test.paths.empty()) return run_test(flags, *model);
  if (model->contents().input() != tasks::InputForm::text) return run_pictures(flags, *model);
  run_texts(flags, *model);
}

}  // namespace

void add_classify(CLI::App& app) {
  CLI::App* verb =
      app.add_subcommand("classify", "label the lines of standard input, or pictures, with a trained model");
  const auto flags = std::make_shared<Flags>();
  add_folder(*verb, flags->folder);
  verb->add_option("pictures", flags->pictures,
                   "image models: .png and .jpg files to label; clip model: folders of frames")
      ->type_name("FILE");
  verb->add_flag("--scores", flags->options.scores, "print the probability of each label before it");
  verb->add_flag("--json", flags->json,
                 "print a JSON object with all probabilities for each line or picture");
  verb->add_flag(
      "--weights", flags->options.words,
      "text model: print a JSON object with all probabilities, the words and their attention weights");
  verb->add_option(
          "--test", flags->test.paths,
          "print scores on labelled data: a file of texts, a folder of pictures, or two IDX files (pictures, "
          "labels)")
      ->expected(1, 2)
      ->type_name("PATH");
  verb->add_option(
          "--label-column", flags->test.label_column,
          "--test on texts: column of the labels, by name or number from 1 (default: found by its name)")
      ->type_name("COLUMN");
  verb->add_option(
          "--text-column", flags->test.text_column,
          "--test on texts: column of the texts, by name or number from 1 (default: found by its name)")
      ->type_name("COLUMN");
  verb->add_option(
          "--rollouts", flags->rollouts,
          "glimpse model (ram): draw this many paths for each picture and average their probabilities "
          "(default 0: the most likely path)")
      ->type_name("INT");
  verb->add_option(
          "--pair-column", flags->test.pair_column,
          "--test on pairs: column of the second texts, by name or number from 1 (default: found by its "
          "name)")
      ->type_name("COLUMN");
  add_on_error(*verb, flags->lines.on_error);
  verb->get_option("--on-error")
      ->description(
          "what to do with a line or picture that cannot be used: stop, empty (answer without a label) or skip (no "
          "answer) (default: stop at a line; skip a picture, name it, and end with exit status 2)");
  add_compute(*verb, flags->compute);
  verb->add_flag("--pairs", flags->pairs,
                 "published text model: lines are a text, a tab and a text (default: as the folder says)");
  add_global(*verb, flags->global);
  add_threads(*verb);
  verb->footer(kFooter);
  verb->callback([flags, verb] {
    flags->error_chosen = given(*verb, "--on-error");
    run(*flags);
  });
}

}  // namespace fovea::cli
