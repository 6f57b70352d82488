// Scores of captions against several references: BLEU of every order and CIDEr, number for number what
// coco-caption's scorers compute on the same words.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "infer/bleu.h"

namespace fovea::infer {

struct CaptionScores {
  // BLEU-1 ... BLEU-4 of the corpus, 0 ... 100, without smoothing: with the brevity penalty (of the reference nearest
  // in length), and without it, as Show, Attend and Tell reports.
  std::array<double, 4> bleu{}, bleu_without_penalty{};
  double brevity_penalty = 1;
  int64_t hypothesis_length = 0, reference_length = 0;  // words
  // CIDEr as the field reports it: clipped counts, a Gaussian penalty on lengths (sigma 6), times 10 (CIDEr-D of
  // Vedantam et al. 2015). An n-gram's weight comes from how many of these pictures have it in a reference; with a
  // single picture it is 0.
  double cider = 0;
};

// hypotheses: one a picture. references: one list per set of references, each as long as hypotheses. Throws Error as
// bleu() does.
CaptionScores caption_scores(std::span<const std::string> hypotheses,
                             std::span<const std::vector<std::string>> references,
                             const BleuOptions& options = {.tokenize = "caption"});

}  // namespace fovea::infer
