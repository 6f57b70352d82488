// Showing what an image classifier attends to: the gates of every block, laid over the picture where they speak
// of places; or the self-attention of a vision Transformer's class token over the patches.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "explain/attention_maps.h"
#include "explain/heatmap.h"
#include "explain/overlay.h"
#include "tasks/explain.h"
#include "tasks/image_classifier.h"

namespace fovea::tasks {

// The weights of one gate.
struct ShownGate {
  std::string name;              // "stages.0.1.gate.spatial"
  int64_t stage = 0, block = 0;  // counted from 0
  // Of places: the map's; of channels: 1 and their number; of branches: channels, branches.
  int64_t rows = 0, columns = 0;
  std::vector<float> weights = {};
  bool of_places = false;
};

struct ImageExplanation {
  std::string model;  // its name in the registry
  Prediction prediction;
  std::vector<std::string> labels;
  data::PictureForm form;
  std::vector<uint8_t> pixels;  // as the network saw it: [height, width, channels]
  std::vector<ShownGate> gates;
  // Self-attention over the class token and grid_rows x grid_columns patches: kind encoder; or no layers.
  AttentionRecord attention;
  int64_t grid_rows = 0, grid_columns = 0;
};

// Throws Error when the picture cannot be read or the model has no attention.
ImageExplanation explain_image(const LoadedImageClassifier& loaded, const std::filesystem::path& picture);
// pixels: in the model's form, [height, width, channels].
ImageExplanation explain_image(const LoadedImageClassifier& loaded, std::vector<uint8_t> pixels);

// The picture, and it again under each block's attention to places (CBAM); of a vision Transformer under the
// attention of the class token: options.layer and options.head choose (all heads of one layer, one head of all
// layers, one map), otherwise the average of heads in every layer, and rollout.
OverlayFigure places_figure(const ImageExplanation& explanation, const ExplainOptions& options = {});
// A column for each channel. SE and CBAM: a row for each block, the gate of every channel. SK: a row for each
// branch of each block, named after its kernel: the branch's share of every channel.
HeatMap channels_map(const ImageExplanation& explanation);

// The file's bytes, by its ending: .png, .svg, .pdf (places where the model weighs them, else channels),
// .html (both, and probabilities), .json (everything), .txt (a label and its probability a line).
std::string explain_image_file(const ImageExplanation& explanation, const std::filesystem::path& path,
                               const ExplainOptions& options = {});
// The label, and the last map of places in shaded blocks (or channels), for a terminal of `width` columns.
std::string explain_image_text(const ImageExplanation& explanation, size_t width = 100,
                               const ExplainOptions& options = {});

}  // namespace fovea::tasks
