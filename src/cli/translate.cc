// fovea translate: lines in, lines out, in the same order.
#include <iomanip>
#include <iostream>

#include "cli/answer_lines.h"
#include "cli/fields_flags.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "tasks/language_notice.h"
#include "tasks/line_source.h"

namespace fovea::cli {
namespace {

constexpr const char* kFooter =
    R"help(Prints one line for each line of standard input, as soon as it is translated. --scores prints the score and a tab
before it. --n-best N with N above 1 prints N lines `line ||| translation ||| score`, with lines counted from 0.

--alignment hard adds ` ||| 0-0 1-2`: for each word of the translation the source word it comes from, source first,
both counted from 0. --alignment soft makes each line a JSON object with text, score, source words, target words and
weights, one row for each target word; </s> is the end of a sentence. Words are separated by spaces; Chinese characters
and kana count one by one unless the vocabulary joins them.

A line should be one sentence: at most --max-tokens tokens of it are read, and it has at most 65536 bytes.

  fovea translate model < source.txt > translation.txt
  echo "the red boat sails home" | fovea translate model --n-best 3
  fovea translate model --compute int8 < source.txt | fovea score --ref reference.txt)help";

struct Flags {
  std::string folder, compute;
  tasks::AnswerOptions options;
  LineFlags lines{.lines_at_once = 512,
                  .max_line_bytes = tasks::LineSource::kLongestLine,
                  .cut_hint = "; --max-tokens reads more"};
};

void print(const Flags& flags, const tasks::Answer& answer, int64_t number) {
  const bool listed = flags.options.translate.n_best > 1;
  std::vector<tasks::AnsweredTranslation> translations = answer.translations;
  if (!answer.error.empty()) {  // an empty line in its place
    translations.resize(1);
    if (flags.options.alignment != "none") translations[0].alignment.emplace();
  }
  for (const tasks::AnsweredTranslation& one : translations) {
    const tasks::Translation& translation = one.translation;
    if (flags.options.alignment == "soft") {
      Json json = listed ? Json{{"line", number}} : Json::object();
      json.update(answer.error.empty() ? tasks::to_json(one) : Json{{"error", answer.error}});
      std::cout << json.dump() << '\n';
      continue;
    }
    if (listed)
      std::cout << number << " ||| " << translation.text << " ||| " << translation.score;
    else if (flags.options.translate.scores)
      std::cout << translation.score << '\t' << translation.text;
    else
      std::cout << translation.text;
    if (one.alignment) std::cout << " ||| " << pharaoh(aligned_pairs(one.alignment->weights));
    std::cout << '\n';
  }
}

void run(const Flags& flags) {
  const auto model =
      tasks::open(flags.folder, {.purpose = tasks::Ability::translate, .compute = flags.compute});
  std::cout << std::fixed << std::setprecision(4);
  tasks::LanguageNotice notice(model->contents());
  answer_lines(*model, flags.options, flags.lines,
               [&](const tasks::Input& line, const tasks::Answer& answer, int64_t number) {
                 notice.count(line.content);
                 print(flags, answer, number);
               });
  if (const std::string text = notice.text(); !text.empty()) std::cerr << "fovea: " << text << '\n';
}

}  // namespace

void add_translate(CLI::App& app) {
  CLI::App* verb =
      app.add_subcommand("translate", "translate standard input with a trained model, line by line");
  const auto flags = std::make_shared<Flags>();
  add_folder(*verb, flags->folder);
  add_fields(*verb, flags->options.translate);
  add_compute(*verb, flags->compute, "(default: as the folder says)");
  verb->add_flag("--scores", flags->options.translate.scores,
                 "print the score of each translation before it");
  verb->add_option(
          "--alignment", flags->options.alignment,
          "print which words belong together: hard (pairs), soft (weights, as JSON) or none (default none)")
      ->check(CLI::IsMember({"hard", "soft", "none"}))
      ->type_name("WORD");
  add_on_error(*verb, flags->lines.on_error);
  add_threads(*verb);
  verb->footer(kFooter);
  verb->callback([flags] { run(*flags); });
}

}  // namespace fovea::cli
