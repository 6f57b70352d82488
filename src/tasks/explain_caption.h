// Showing what a captioner attends to: for every word of a caption the weight of each place of the picture, and the gate that
// says how much the picture mattered.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "explain/overlay.h"
#include "tasks/captioner.h"

namespace fovea::tasks {

struct ShownCaptionWord {
  std::string word;
  float gate = 1;              // 1 where the model has none
  std::vector<float> weights;  // [rows, columns]
  bool unknown = false;        // not in the model's vocabulary: shown as "‹word›"
};

struct CaptionExplanation {
  std::string model;  // its name in the registry
  Caption caption;
  bool gated = false;
  int64_t rows = 0, columns = 0;  // of the grid of places
  int64_t size = 0;               // of the picture
  std::vector<uint8_t> pixels;    // as the network saw it: [size, size, 3]
  std::vector<ShownCaptionWord> words;
};

// pixels: in the encoder's form. Without a caption, of the one that the model writes with this beam; a word in several
// pieces has their mean. Throws Error for a caption without words.
CaptionExplanation explain_caption(const LoadedCaptioner& loaded, std::vector<uint8_t> pixels,
                                   const std::optional<std::string>& caption, int64_t beam);

// The picture, and it again under the weights of each word. smooth: blended between places, else the true grid.
OverlayFigure words_figure(const CaptionExplanation& explanation, bool smooth);

// The file's bytes, by its ending: .png, .svg, .pdf (an overlay for each word), .html (point at a word to see where the
// model looked), .json (everything), .txt (a word, its gate, and its strongest place a line).
std::string explain_caption_file(const CaptionExplanation& explanation, bool smooth,
                                 const std::filesystem::path& path);
// The caption, and a line for each word.
std::string explain_caption_text(const CaptionExplanation& explanation);

}  // namespace fovea::tasks
