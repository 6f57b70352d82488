// fovea score: BLEU and chrF of translations, or BLEU and CIDEr of captions, on standard input.
#include "tasks/score_translations.h"

#include <iostream>

#include "base/error.h"
#include "cli/flags.h"
#include "cli/verbs.h"

namespace fovea::cli {
namespace {

constexpr const char* kFooter =
    R"help(Translations and references are texts as people write them, one on each line; tokenized ones need
--tokenize none. Several --ref give every line several references.

  fovea translate model < test.en | fovea score --ref test.de
  fovea score --ref test.zh --hyp translation.zh --tokenize zh --chrf
  fovea score --captions --ref captions.0 --ref captions.1 --hyp captions.txt)help";

struct Flags {
  tasks::ScoreOptions options;
  int width = 1;
  bool json = false;
};

}  // namespace

void add_score(CLI::App& app) {
  CLI::App* verb = app.add_subcommand(
      "score",
      "print the BLEU score (equal to sacreBLEU's) of translations or captions on standard input, one per line");
  const auto flags = std::make_shared<Flags>();
  tasks::ScoreOptions& options = flags->options;
  verb->add_option("--ref", options.references,
                   "file of reference translations, one per line; may be given several times")
      ->type_name("FILE")
      ->required();
  verb->add_option("--hyp", options.hypotheses, "file of translations to score (default: standard input)")
      ->type_name("FILE");
  verb->add_option(
          "--tokenize", options.tokenize,
          "tokenization used to compute BLEU: 13a (the standard), zh (Chinese), char, caption (lower-case words "
          "without punctuation), or none (the text is tokenized already) (default 13a; caption with --captions)")
      ->check(CLI::IsMember({"13a", "zh", "char", "caption", "none"}))
      ->type_name("WORD");
  verb->add_flag("--lowercase", options.lowercase, "ignore case");
  verb->add_flag("--chrf", options.chrf, "print chrF too");
  verb->add_flag("--chrf++", options.chrf_words, "print chrF++ too");
  verb->add_flag(
      "--captions", options.captions,
      "score captions of pictures: print BLEU-1 to BLEU-4, each with and without the brevity penalty, and "
      "CIDEr (equal to coco-caption's)");
  verb->add_option("--width", flags->width, "digits printed after the decimal point (default 1)")
      ->check(CLI::Range(0, 15))
      ->type_name("N");
  verb->add_option("--by-length", options.by_length,
                   "print BLEU by sentence length too, in groups of N words")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  add_json(*verb, flags->json);
  verb->footer(kFooter);
  verb->callback([flags, verb] {
    require(!flags->json || !given(*verb, "--width"),
            "--width does not apply with --json, which prints numbers in full");
    const tasks::TranslationScores scores = tasks::score_translations(flags->options, flags->width);
    if (flags->json)
      std::cout << scores.json << '\n';
    else
      std::cout << scores.text;
  });
}

}  // namespace fovea::cli
