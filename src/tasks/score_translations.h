// Scoring of translations or captions against references, line by line: BLEU, chrF, chrF++ and CIDEr.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/json.h"

namespace fovea::tasks {

struct ScoreOptions {
  std::vector<std::string> references;  // files, each with one reference a line
  std::string hypotheses = "-";         // file of translations; "-": standard input
  std::string tokenize = {};  // of BLEU: 13a, zh, char, caption or none; empty: caption of captions, else 13a
  bool lowercase = false;
  bool chrf = false, chrf_words = false;  // score chrF, chrF++ too
  bool captions = false;  // BLEU-1 ... BLEU-4 with and without brevity penalty, and CIDEr, instead of BLEU
  int64_t by_length = 0;  // above 0: BLEU by the references' length, in steps of this many words
};

struct TranslationScores {
  Json json;         // BLEU's object, or a list where there are several scores
  std::string text;  // a line for each score
};

// width: digits after the point in the text. Throws Error when files have different numbers of lines, or
// none, and for chrF or lengths with captions.
TranslationScores score_translations(const ScoreOptions& options, int width = 1);

}  // namespace fovea::tasks
