// Showing which frames of a clip its label rests on: a film strip with the weight of every frame.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "explain/film_strip.h"
#include "tasks/clip_classifier.h"

namespace fovea::tasks {

struct ClipExplanation {
  std::string model;  // its pooling
  std::vector<std::string> labels;
  Prediction prediction;
  data::PictureForm form;
  std::vector<std::vector<uint8_t>> frames;  // as the network saw them: [height, width, channels]
  std::vector<float> weights;                // of each frame
  std::vector<std::string> names = {};       // of the frames' files; empty: not known
};

// frames: in the model's form, at least one. Throws Error when the model has no weights to show.
ClipExplanation explain_clip(const LoadedClipClassifier& loaded, std::vector<std::vector<uint8_t>> frames);

FilmStrip film_strip(const ClipExplanation& explanation);
// The file's bytes, by its ending: .png, .svg, .pdf (the film strip), .html (strip and numbers), .json (everything),
// .txt (a frame's number, weight and, where it is known, file name on each line).
std::string explain_clip_file(const ClipExplanation& explanation, const std::filesystem::path& path);
// The label and the lines of .txt with a bar each, for a terminal of `columns` columns.
std::string explain_clip_text(const ClipExplanation& explanation, size_t columns);

}  // namespace fovea::tasks
