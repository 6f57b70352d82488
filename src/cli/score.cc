// fovea score: BLEU and chrF of translations on standard input against references.
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "data/corpus.h"
#include "infer/bleu.h"
#include "infer/chrf.h"

namespace fovea::cli {
namespace {

using nlohmann::ordered_json;

struct ScoreFlags {
  std::vector<std::string> references;
  std::string hypotheses = "-";
  infer::BleuOptions bleu;
  bool chrf = false, chrf_words = false, json = false;
  int width = 1;
  int64_t by_length = 0;
};

std::string rounded(double score, int width) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", width, score);
  return text;
}

ordered_json to_json(const infer::BleuScore& score) {
  return {{"name", "BLEU"},
          {"score", score.score},
          {"signature", score.signature},
          {"verbose_score", score.details()},
          {"precisions", score.precisions},
          {"counts", score.matched},
          {"totals", score.total},
          {"bp", score.brevity_penalty},
          {"sys_len", score.hypothesis_length},
          {"ref_len", score.reference_length}};
}

ordered_json to_json(const infer::ChrfScore& score) {
  return {{"name", score.name}, {"score", score.score}, {"signature", score.signature}};
}

void print_scores(const ScoreFlags& flags) {
  std::vector<std::vector<std::string>> references;
  for (const std::string& path : flags.references) references.push_back(data::read_lines(path));
  const std::vector<std::string> hypotheses = data::read_lines(flags.hypotheses);
  const std::string name = flags.hypotheses == "-" ? "standard input" : flags.hypotheses;
  for (size_t i = 0; i < references.size(); ++i)
    require(references[i].size() == hypotheses.size(), name, " has ", hypotheses.size(), " lines and ",
            flags.references[i], " has ", references[i].size(), ", wanted one translation per reference");
  require(!hypotheses.empty(), name, " has no lines, wanted translations to score");

  const infer::BleuScore bleu = infer::bleu(hypotheses, references, flags.bleu);
  ordered_json scores = ordered_json::array({to_json(bleu)});
  if (!flags.json)
    std::cout << "BLEU|" << bleu.signature << " = " << rounded(bleu.score, flags.width) << ' '
              << bleu.details() << '\n';
  const auto add_chrf = [&](int word_order) {
    const infer::ChrfScore chrf =
        infer::chrf(hypotheses, references, {.word_order = word_order, .lowercase = flags.bleu.lowercase});
    scores.push_back(to_json(chrf));
    if (!flags.json)
      std::cout << chrf.name << '|' << chrf.signature << " = " << rounded(chrf.score, flags.width) << '\n';
  };
  if (flags.chrf) add_chrf(0);
  if (flags.chrf_words) add_chrf(2);
  if (flags.by_length > 0) {
    ordered_json lengths = ordered_json::array();
    for (const infer::BleuOfLength& part :
         infer::bleu_by_length(hypotheses, references, flags.by_length, flags.bleu)) {
      lengths.push_back({{"first", part.first},
                         {"last", part.last},
                         {"sentences", part.sentences},
                         {"score", part.bleu.score}});
      if (!flags.json)
        std::cout << part.first << '-' << part.last << " words, " << part.sentences
                  << " sentences: " << rounded(part.bleu.score, flags.width) << '\n';
    }
    scores[0]["by_length"] = lengths;
  }
  if (flags.json) std::cout << (scores.size() == 1 ? scores[0] : scores) << '\n';
}

}  // namespace

void add_score(CLI::App& app) {
  CLI::App* verb = app.add_subcommand(
      "score", "print BLEU (equal to sacreBLEU's) of the translations on standard input, one a line");
  auto flags = std::make_shared<ScoreFlags>();
  verb->add_option("--ref", flags->references,
                   "reference translations, one a line; may be given several times")
      ->type_name("FILE")
      ->required();
  verb->add_option("--hyp", flags->hypotheses, "read the translations from a file instead")
      ->type_name("FILE");
  verb->add_option("--tokenize", flags->bleu.tokenize,
                   "how BLEU finds words: 13a (the standard), zh (Chinese), char, none (tokenised already)")
      ->check(CLI::IsMember({"13a", "zh", "char", "none"}))
      ->capture_default_str();
  verb->add_flag("--lowercase", flags->bleu.lowercase, "ignore case");
  verb->add_flag("--chrf", flags->chrf, "print chrF too");
  verb->add_flag("--chrf++", flags->chrf_words, "print chrF++ too");
  verb->add_option("--width", flags->width, "digits after the point")
      ->check(CLI::Range(0, 15))
      ->capture_default_str();
  verb->add_option("--by-length", flags->by_length, "print BLEU by length too, in steps of N words")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  add_json(*verb, flags->json);
  verb->callback([flags] { print_scores(*flags); });
}

}  // namespace fovea::cli
