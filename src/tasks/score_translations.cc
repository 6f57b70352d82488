#include "tasks/score_translations.h"

#include <cstdio>

#include "base/error_kinds.h"
#include "data/corpus.h"
#include "infer/bleu.h"
#include "infer/caption_scores.h"
#include "infer/chrf.h"

namespace fovea::tasks {
namespace {

std::string rounded(double score, int width) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", width, score);
  return text;
}

Json to_json(const infer::BleuScore& score) {
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

Json to_json(const infer::ChrfScore& score) {
  return {{"name", score.name}, {"score", score.score}, {"signature", score.signature}};
}

TranslationScores score_captions(std::span<const std::string> hypotheses,
                                 std::span<const std::vector<std::string>> references,
                                 const infer::BleuOptions& options, int width) {
  const infer::CaptionScores scores = infer::caption_scores(hypotheses, references, options);
  std::string text;
  for (size_t n = 0; n < scores.bleu.size(); ++n)
    text += message("BLEU-", n + 1, " = ", rounded(scores.bleu[n], width), " (without brevity penalty ",
                    rounded(scores.bleu_without_penalty[n], width), ")\n");
  // CIDEr is of the size of 1: two more digits show as much of it.
  text += message("CIDEr = ", rounded(scores.cider, width + 2),
                  "\nbrevity penalty = ", rounded(scores.brevity_penalty, 3), " (", scores.hypothesis_length,
                  " words, references ", scores.reference_length, "), ", references.size(),
                  references.size() == 1 ? " reference" : " references", ", words: ", options.tokenize,
                  options.lowercase ? ", lower case\n" : "\n");
  return {Json{{"name", "captions"},
               {"bleu", scores.bleu},
               {"bleu_without_brevity_penalty", scores.bleu_without_penalty},
               {"cider", scores.cider},
               {"bp", scores.brevity_penalty},
               {"sys_len", scores.hypothesis_length},
               {"ref_len", scores.reference_length},
               {"references", references.size()},
               {"tokenize", options.tokenize}},
          std::move(text)};
}

std::vector<std::string> read(const std::string& path) {
  return errors_as<FileError>([&] { return data::read_lines(path); });
}

}  // namespace

TranslationScores score_translations(const ScoreOptions& options, int width) {
  require(
      !options.captions || (!options.chrf && !options.chrf_words && options.by_length == 0),
      "--captions prints BLEU-1 to BLEU-4 and CIDEr; --chrf, --chrf++ and --by-length do not apply with it");
  std::vector<std::vector<std::string>> references;
  for (const std::string& path : options.references) references.push_back(read(path));
  const std::vector<std::string> hypotheses = read(options.hypotheses);
  const std::string name = options.hypotheses == "-" ? "standard input" : options.hypotheses;
  for (size_t i = 0; i < references.size(); ++i)
    require(references[i].size() == hypotheses.size(), name, " has ", hypotheses.size(), " lines and ",
            options.references[i], " has ", references[i].size(), ", wanted one translation per reference");
  require(!hypotheses.empty(), name, " has no lines, wanted translations to score");

  infer::BleuOptions bleu_options;
  bleu_options.tokenize = !options.tokenize.empty() ? options.tokenize : options.captions ? "caption" : "13a";
  bleu_options.lowercase = options.lowercase;
  if (options.captions) return score_captions(hypotheses, references, bleu_options, width);
  const infer::BleuScore bleu = infer::bleu(hypotheses, references, bleu_options);
  Json scores = Json::array({to_json(bleu)});
  std::string text =
      message("BLEU|", bleu.signature, " = ", rounded(bleu.score, width), ' ', bleu.details(), '\n');
  const auto add_chrf = [&](int word_order) {
    const infer::ChrfScore chrf =
        infer::chrf(hypotheses, references, {.word_order = word_order, .lowercase = options.lowercase});
    scores.push_back(to_json(chrf));
    text += message(chrf.name, '|', chrf.signature, " = ", rounded(chrf.score, width), '\n');
  };
  if (options.chrf) add_chrf(0);
  if (options.chrf_words) add_chrf(2);
  if (options.by_length > 0) {
    Json lengths = Json::array();
    for (const infer::BleuOfLength& part :
         infer::bleu_by_length(hypotheses, references, options.by_length, bleu_options)) {
      lengths.push_back({{"first", part.first},
                         {"last", part.last},
                         {"sentences", part.sentences},
                         {"score", part.bleu.score}});
      text += message(part.first, '-', part.last, " words, ", part.sentences,
                      " sentences: ", rounded(part.bleu.score, width), '\n');
    }
    scores[0]["by_length"] = std::move(lengths);
  }
  return {scores.size() == 1 ? scores[0] : scores, std::move(text)};
}

}  // namespace fovea::tasks
