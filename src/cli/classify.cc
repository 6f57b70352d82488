// fovea classify: lines or pictures in, labels out, in the same order.
#include <cstdio>
#include <iostream>

#include "base/error.h"
#include "cli/answer_lines.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "tasks/line_source.h"

namespace fovea::cli {
namespace {

constexpr const char* kFooter =
    "A text model reads standard input and prints the label of each line, as soon as it is known. A line has "
    "at most "
    "1048576\n"
    "bytes. An image model prints a line for each picture: its file name, a tab and its label; a picture "
    "that cannot "
    "be read\n"
    "is named on standard error, the others are answered, and the exit status is 2.\n\n"
    "--scores prints the label's probability and a tab before it. --json makes each line an object with "
    "label and\n"
    "probabilities (and the file of a picture); --weights adds the words of a text and their attention "
    "weights.\n\n"
    "A model of pairs reads lines of a text, a tab and a text. A model of several labels prints those of at least "
    "50 %, between\n"
    "the separator of its training file; a model of numbers prints the number.\n\n"
    "--test reads the files that `fovea train classify` and `fovea train image` read and prints accuracy, "
    "precision, "
    "recall\n"
    "and F1; for several labels micro and macro F1, for numbers Pearson's and Spearman's correlation and errors; "
    "for attention\n"
    "pooling also the share of the words that carry 90 % of the weight.\n"
    "  echo \"a film of rare beauty\" | fovea classify model --scores\n"
    "  fovea classify model a.png b.jpg";

struct Flags {
  std::string folder, compute;
  std::vector<std::string> pictures;
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

// Pictures are read a few at a time, so that memory does not grow with their number.
void run_pictures(const Flags& flags, const tasks::OpenFolder& model) {
  constexpr size_t kAtOnce = 32;
  require(!flags.pictures.empty(), flags.folder,
          " is an image classifier: name pictures, as in fovea classify ", flags.folder, " picture.png");
  model.check(flags.options);
  const OnError on_error = flags.error_chosen ? flags.lines.on_error : OnError::skip;
  InputReport report("picture");
  for (size_t first = 0; first < flags.pictures.size(); first += kAtOnce) {
    const size_t count = std::min(kAtOnce, flags.pictures.size() - first);
    std::vector<tasks::Input> inputs(count);
    std::vector<std::string> faults(count);
    for (size_t i = 0; i < count; ++i) try {
        inputs[i].name = flags.pictures[first + i];
        inputs[i] = tasks::read_input(flags.pictures[first + i]);
      } catch (const Error& error) {
        faults[i] = error.what();
      }
    std::vector<tasks::Answer> answers = model.answer(inputs, flags.options);
    for (size_t i = 0; i < count; ++i) {
      if (!faults[i].empty()) answers[i].error = faults[i];
      const std::string& error = answers[i].error;
      if (error.empty() || on_error == OnError::empty) print(flags, model, inputs[i], answers[i]);
      if (error.empty()) continue;
      if (on_error == OnError::stop) fail(error);
      std::cerr << "fovea: " << error << '\n';
      report.count_bad(error);
    }
    if (!flush_output()) break;
  }
  if (report.bad() > 0 && !flags.error_chosen) throw CLI::RuntimeError(2);
}

void run(const Flags& flags) {
  require(!flags.test.paths.empty() || (flags.test.label_column.empty() && flags.test.text_column.empty() &&
                                        flags.test.pair_column.empty()),
          "--label-column, --text-column and --pair-column describe the file of --test; there is none");
  const auto model =
      tasks::open(flags.folder, {.purpose = tasks::Ability::classify, .compute = flags.compute});
  if (!flags.test.paths.empty()) return run_test(flags, *model);
  if (model->contents().input() == tasks::InputForm::picture) return run_pictures(flags, *model);
  run_texts(flags, *model);
}

}  // namespace

void add_classify(CLI::App& app) {
  CLI::App* verb =
      app.add_subcommand("classify", "label the lines of standard input, or pictures, with a trained model");
  const auto flags = std::make_shared<Flags>();
  add_folder(*verb, flags->folder);
  verb->add_option("pictures", flags->pictures, "image model: .png and .jpg files to label")
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
          "--pair-column", flags->test.pair_column,
          "--test on pairs: column of the second texts, by name or number from 1 (default: found by its "
          "name)")
      ->type_name("COLUMN");
  add_on_error(*verb, flags->lines.on_error);
  verb->get_option("--on-error")
      ->description(
          "what to do with a line or picture that cannot be used: stop, empty (answer without a label) or skip (no "
          "answer) (default: stop at a line; skip a picture, name it, and end with exit status 2)");
  verb->add_option(
          "--compute", flags->compute,
          "arithmetic of the matrix products: float32, or int8 (faster, slightly less exact) (default "
          "float32)")
      ->type_name("FORM");
  add_threads(*verb);
  verb->footer(kFooter);
  verb->callback([flags, verb] {
    flags->error_chosen = given(*verb, "--on-error");
    run(*flags);
  });
}

}  // namespace fovea::cli
