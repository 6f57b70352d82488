// fovea explain: what a model looks at as it translates a sentence or labels a text or a picture.
#include <filesystem>
#include <iostream>

#include "base/error.h"
#include "cli/answer_lines.h"
#include "cli/flags.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "tasks/open.h"
#include "tasks/output_file.h"

namespace fovea::cli {
namespace {

constexpr const char* kFooter =
    "Without --out one map is printed in shaded blocks. Rows look, columns are looked at. The ending of "
    "--out says what "
    "is written.\n\n"
    "Translator:\n"
    "  .png .svg .pdf  every layer and head of --kind, their average, and rollout; --layer and --head choose "
    "among "
    "them\n"
    "  .html           a page that works without a network, with all kinds, layers and heads to choose from\n"
    "  .json           all texts, tokens and weights\n"
    "  .txt            alignment pairs i-j of source and target words, counted from 0: for each target word "
    "its "
    "strongest\n"
    "                  source word, in the layer of alignments (averaged over heads) or as --layer and "
    "--head say\n\n"
    "Text classifier: the text with every word as dark as its weight; .txt has a word and its weight on each "
    "line. With\n"
    "--kind encoder, the heads of a Transformer: a map, .png, .svg, .pdf or .html.\n\n"
    "Image classifier: the weight of each place as a heat map over the picture, or the gate of each channel; .txt has "
    "the\n"
    "probabilities.\n\n"
    "Maps include the ends of sentences, <s> and </s>: models put spare attention there (an attention sink), "
    "and rows "
    "would\n"
    "not sum to 1 without them. Alignment pairs leave them out.";

struct Flags {
  std::string folder, input, out;
  tasks::ExplainOptions options;
};

// A text model reads the argument itself: a file's name in its place is a mistake.
void refuse_file_name(const Flags& flags, const tasks::FolderContents& contents) {
  const std::filesystem::path path = flags.input;
  const std::string ending = path.extension().string();
  const bool picture = ending == ".png" || ending == ".jpg" || ending == ".jpeg";
  const bool one_word = flags.input.find(' ') == std::string::npos;
  std::error_code ignored;
  require(!(picture && one_word), flags.folder, " is a ", name_of(contents.kind),
          " and explains a text; got the picture '", flags.input, "'");
  require(!(one_word && !ending.empty() && std::filesystem::is_regular_file(path, ignored)), flags.folder,
          " is a ", name_of(contents.kind), " and explains a text; got the file name '", flags.input,
          "': give the text itself, as in \"$(cat ", flags.input, ")\"");
}

void run(const Flags& flags) {
  const tasks::FolderContents contents = tasks::look_into(flags.folder);
  if (!flags.out.empty()) tasks::check_explain_ending(flags.out);
  const std::string form = std::filesystem::path(flags.out).extension().string();
  check_explain(contents, flags.options, form);
  const bool picture = contents.input() == tasks::InputForm::picture;
  if (!picture) refuse_file_name(flags, contents);
  const tasks::Input input = picture ? tasks::read_input(flags.input) : tasks::Input{flags.input};
  const auto model = tasks::open(flags.folder);
  const tasks::Explanation shown = model->explain(input, flags.options, form, output_columns());
  if (flags.out.empty()) {
    std::cout << shown.content;
  } else {
    tasks::write_output(flags.out, shown.content);
    std::cout << shown.title << '\n';
  }
  if (shown.cut_to == 0) return;
  InputReport report("text");
  report.count_cut(shown.cut_to);
  report.print("");
}

// A flag for each option, which stays empty unless it is given.
void add_options(CLI::App& verb, tasks::ExplainOptions& options) {
  for_each_field<tasks::ExplainOptions>([&](const auto& field) {
    auto& value = options.*field.member;
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, bool>)
      verb.add_flag(flag_name(field.name), value, field.meaning);
    else
      verb.add_option(flag_name(field.name), value, field.meaning);
  });
}

}  // namespace

void add_explain(CLI::App& app) {
  CLI::App* verb = app.add_subcommand(
      "explain", "show what a model looks at as it translates or labels a text or a picture");
  const auto flags = std::make_shared<Flags>();
  add_folder(*verb, flags->folder);
  verb->add_option("input", flags->input, "the sentence to translate, the text to label, or a picture file")
      ->required()
      ->type_name("TEXT");
  verb->add_option("--out", flags->out,
                   "write a file instead of printing: .png, .svg, .pdf, .html, .json or .txt")
      ->type_name("FILE");
  add_options(*verb, flags->options);
  add_threads(*verb);
  verb->footer(kFooter);
  verb->callback([flags] { run(*flags); });
}

}  // namespace fovea::cli
