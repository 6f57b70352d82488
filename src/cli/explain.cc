// fovea explain: what a model attends to as it translates a sentence, labels a text or a picture, or captions one.
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
    R"help(Without --out, one map is printed in shaded blocks: rows are queries (what attends), columns are keys (what is attended
to). With --out, the extension of the file selects the format.

Translator:
  .png .svg .pdf  every layer and head of --kind, their average, and rollout; --layer and --head choose among them
  .html           a page that works without a network, with all kinds, layers and heads to choose from
  .json           all texts, tokens and weights
  .txt            alignment pairs i-j of source and target words, counted from 0: for each target word its strongest
                  source word, in the layer that shows alignments best (averaged over heads) or as --layer and --head
                  say

Text classifier: the text with every word shaded by its weight; .txt has a word and its weight on each line. With
--kind encoder, the heads of a Transformer: a map, .png, .svg, .pdf or .html.

Image classifier: the weight of each place as a heat map over the picture, or the gate of each channel; .txt has the
probabilities.

Number sequences: each feature of a table (or of the first case of a .ts file) as a curve, with the forecast, and below
it the weight of every step; .txt has a step, a feature and a weight on each line.

Glimpse classifier: the windows on the picture in order, what each showed, and the probabilities after every glimpse.

Clip classifier: the frames of a folder as a film strip with the weight of each; .txt has a frame, its weight and
its file name on each line.

Captioner: the picture once for every word, with the weight of each place and the gate beta of the word; .html shows
the weights of a word while you point at it; .json has all weights; .txt has a word, its gate and its strongest place
(row, column, weight) on each line.

Ship detector: the picture, its coarse map, the gate, its fine map and the boxes side by side; .json has all maps; .txt
has score, bow, stern and width of a ship on each line, in pixels of the file.

Maps include the ends of sentences, <s> and </s>: models put spare attention there (an attention sink), and rows would
not sum to 1 without them. Alignment pairs leave them out.

  fovea explain translator "the red boat sails home" --out map.png
  fovea explain translator "the red boat sails home" --kind encoder --layer 0 --head 1 --out head.svg
  fovea explain classifier "a film of rare beauty" --out words.html
  fovea explain image-model cat.jpg --out places.png)help";

struct Flags {
  std::string folder, input, out, global;
  bool pairs = false;
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
  const bool text = contents.input() == tasks::InputForm::text;
  if (text) refuse_file_name(flags, contents);
  const tasks::Input input =
      text ? tasks::Input{flags.input} : tasks::read_input(flags.input, contents.input());
  const auto model = tasks::open(flags.folder, {.global = flags.global, .pairs = flags.pairs});
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
      "explain", "show what a model attends to as it translates, labels, describes or forecasts its input");
  const auto flags = std::make_shared<Flags>();
  add_folder(*verb, flags->folder);
  verb->add_option(
          "input", flags->input,
          "the sentence to translate, the text to label, the file of a picture, table or .ts cases, or a folder of "
          "frames")
      ->required()
      ->type_name("TEXT");
  verb->add_option("--out", flags->out,
                   "write a file instead of printing: .png, .svg, .pdf, .html, .json or .txt")
      ->type_name("FILE");
  add_options(*verb, flags->options);
  verb->add_flag(
      "--pairs", flags->pairs,
      "published text classifier: the input is a text, a tab and a text (default: as the folder says)");
  add_global(*verb, flags->global);
  add_threads(*verb);
  verb->footer(kFooter);
  verb->callback([flags] { run(*flags); });
}

}  // namespace fovea::cli
