// Showing the glimpses of a glimpse classifier: where each is, what it sees, and the probabilities after it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "explain/glimpse_figure.h"
#include "explain/overlay.h"
#include "tasks/glimpse_classifier.h"

namespace fovea::tasks {

struct GlimpseExplanation {
  std::string model;  // its name in the registry
  std::vector<std::string> labels;
  data::PictureForm form;
  std::vector<uint8_t> pixels;  // as the network saw it: [height, width, channels]
  int64_t patch = 0;
  struct Step {
    float location[2] = {};              // ram: vertical, horizontal, -1 to 1
    std::vector<GlimpseWindow> windows;  // ram
    std::vector<float> weights;          // soft: [grid, grid]
    Prediction prediction;               // after this glimpse
  };
  std::vector<Step> steps;
  int64_t grid = 0;  // soft

  const Prediction& prediction() const { return steps.back().prediction; }
};

// pixels: in the model's form.
GlimpseExplanation explain_glimpses(const LoadedGlimpseClassifier& loaded, std::vector<uint8_t> pixels);

// The windows on the picture and beside it (ram), or the weights over the picture after each glimpse (soft).
std::string draw(const GlimpseExplanation& explanation, PictureFormat format);
// The file's bytes, by its ending: .png, .svg, .pdf, .html (drawing and numbers), .json (everything), .txt (a line for
// each glimpse: its number, location or strongest place, label and probability).
std::string explain_glimpse_file(const GlimpseExplanation& explanation, const std::filesystem::path& path);
// The lines of .txt with a heading, for a terminal.
std::string explain_glimpse_text(const GlimpseExplanation& explanation);

}  // namespace fovea::tasks
