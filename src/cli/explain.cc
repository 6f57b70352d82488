// fovea explain: what a model looks at as it translates a sentence or labels a text or a picture.
#include <iostream>

#include "cli/fields_flags.h"
#include "cli/flags.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "io/file.h"
#include "tasks/explain.h"
#include "tasks/explain_classifier.h"
#include "tasks/explain_image.h"
#include "tasks/model_folder.h"

namespace fovea::cli {
namespace {

constexpr const char* kFooter =
    "Rows look, columns are looked at. Without --target the model's own translation is shown.\n\n"
    "  .png .svg .pdf  every layer and head of --kind, their average, and rollout; --layer and --head narrow "
    "it\n"
    "  .html           one page without a network: all kinds, layers and heads to choose from\n"
    "  .json           all texts, tokens and weights\n"
    "  .txt            alignment pairs i-j of source and target words, counted from 0: for each target word "
    "its\n"
    "                  strongest source word, in the average of heads of the last layer but one, or as "
    "--layer\n"
    "                  and --head say\n"
    "Without --out one map is printed in shaded blocks.\n\n"
    "Of a classifier: the text with every word as dark as its weight; .txt has a word and its weight a line. "
    "With --kind encoder,\n"
    "the heads of a Transformer as above.\n"
    "Of a classifier of pictures: the picture with what each block looks at left bright, or how far each "
    "channel's gate is\n"
    "open; .txt has the probabilities.\n\n"
    "Maps include the ends of sentences, <s> and </s>: models put spare attention there (an attention sink), "
    "and\n"
    "rows would not sum to 1 without them. Alignment pairs leave them out.";

struct Line {
  std::string folder, source, out;
  std::optional<std::string> target;
  tasks::ExplainOptions options;
};

// A text, and what each of its words weighs.
void run_classifier(const Line& line) {
  require(!line.target, "--target is of translators; ", line.folder, " holds a classifier");
  const auto explanation = tasks::explain_classifier(tasks::load_classifier(line.folder), line.source);
  if (line.out.empty()) {
    std::cout << tasks::explain_classifier_text(explanation, output_columns());
    return;
  }
  write_atomically(line.out, tasks::explain_classifier_file(explanation, line.options, line.out));
  std::cout << explanation.words.title << '\n';
}

// A picture, and where a model with gates looks.
void run_image(const Line& line) {
  require(!line.target, "--target is of translators; ", line.folder, " holds a classifier of pictures");
  const auto explanation = tasks::explain_image(tasks::load_image_classifier(line.folder), line.source);
  if (line.out.empty()) {
    std::cout << tasks::explain_image_text(explanation, output_columns());
    return;
  }
  write_atomically(line.out, tasks::explain_image_file(explanation, line.out));
  std::cout << tasks::told_text(explanation.prediction, explanation.labels) << '\n';
}

void run(const Line& line) {
  if (!line.out.empty()) tasks::check_explain_ending(line.out);
  const std::string task = tasks::task_of(line.folder);
  if (task == "classify") return run_classifier(line);
  if (task == "image") return run_image(line);
  const tasks::TranslationParts parts = tasks::load_translation(line.folder);
  const AttentionRecord record = tasks::explain_translation(parts, line.source, line.target, line.options);
  if (line.out.empty()) {
    const std::string map = tasks::explain_text(record, line.options, output_columns());
    std::cout << record.source_text << '\n' << record.target_text << "\n\n" << map;
    return;
  }
  write_atomically(line.out, tasks::explain_file(record, line.options, line.out));
  std::cout << record.target_text << '\n';
}

}  // namespace

void add_explain(CLI::App& app) {
  CLI::App* verb =
      app.add_subcommand("explain", "show what a model looks at as it translates or labels a text");
  const auto line = std::make_shared<Line>();
  verb->add_option("folder", line->folder, "model folder")->required()->type_name("DIR");
  verb->add_option("source", line->source, "the sentence to translate, the text to label, or a picture file")
      ->required()
      ->type_name("TEXT");
  verb->add_option("--target", line->target, "explain this translation instead of the model's own")
      ->type_name("TEXT");
  verb->add_option("--out", line->out, "file to write: .png, .svg, .pdf, .html, .json or .txt")
      ->type_name("FILE");
  add_fields(*verb, line->options);
  add_threads(*verb);
  verb->footer(kFooter);
  verb->callback([line] { run(*line); });
}

}  // namespace fovea::cli
