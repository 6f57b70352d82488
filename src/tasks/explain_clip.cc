#include "tasks/explain_clip.h"

#include <algorithm>
#include <cmath>

#include "explain/report.h"
#include "explain/shades.h"
#include "tasks/explain.h"
#include "tasks/picture_files.h"

namespace fovea::tasks {
namespace {

std::string lines(const ClipExplanation& e) {
  std::string text;
  for (size_t t = 0; t < e.weights.size(); ++t)
    text += message(t, '\t', weight_text(e.weights[t], 4), e.names.empty() ? "" : "\t" + e.names[t], '\n');
  return text;
}

std::string page(const ClipExplanation& e) {
  Report report(e.labels[static_cast<size_t>(e.prediction.label)], e.model);
  report.picture(draw(film_strip(e), PictureFormat::svg),
                 "The frames of the clip, each with its number and its weight in the answer.");
  report.heading("Weights");
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> head{"frame", "weight"};
  if (!e.names.empty()) head.emplace_back("file");
  for (size_t t = 0; t < e.weights.size(); ++t) {
    rows.push_back({std::to_string(t), weight_text(e.weights[t], 4)});
    if (!e.names.empty()) rows.back().push_back(e.names[t]);
  }
  report.table(head, rows);
  return report.html();
}

}  // namespace

ClipExplanation explain_clip(const LoadedClipClassifier& loaded, std::vector<std::vector<uint8_t>> frames) {
  data::Clips clip{.form = loaded.form, .pixels = {}, .labels = {0}, .classes = loaded.labels, .names = {""}};
  for (const std::vector<uint8_t>& frame : frames)
    clip.pixels.insert(clip.pixels.end(), frame.begin(), frame.end());
  clip.starts.push_back(static_cast<int64_t>(frames.size()));
  ClipPredictions found = classify_clips(loaded, clip);
  require(!found.weights.empty(), "the model has no attention to show: it was trained with --pooling ",
          loaded.network->config().pooling);
  return {.model = loaded.network->config().pooling,
          .labels = loaded.labels,
          .prediction = std::move(found.clips[0]),
          .form = loaded.form,
          .frames = std::move(frames),
          .weights = std::move(found.weights)};
}

FilmStrip film_strip(const ClipExplanation& e) {
  FilmStrip strip{.title = prediction_text(e.prediction, e.labels),
                  .height = e.form.height,
                  .width = e.form.width,
                  .frames = {},
                  .weights = e.weights};
  for (const std::vector<uint8_t>& frame : e.frames)
    strip.frames.push_back(in_colour(frame, e.form.channels));
  return strip;
}

std::string explain_clip_file(const ClipExplanation& explanation, const std::filesystem::path& path) {
  check_explain_ending(path);
  const std::string ending = path.extension().string();
  if (ending == ".html") return page(explanation);
  if (ending == ".txt") return lines(explanation);
  if (ending == ".json") {
    Json json = prediction_json(explanation.prediction, explanation.labels);
    json["weights"] = value_to_json(explanation.weights);
    if (!explanation.names.empty()) json["frames"] = explanation.names;
    return json.dump() + "\n";
  }
  return draw(film_strip(explanation), picture_format(path));
}

std::string explain_clip_text(const ClipExplanation& e, size_t columns) {
  std::string text = prediction_text(e.prediction, e.labels) + "\n";
  const size_t room = std::clamp<size_t>(columns, 30, 200) - 20;
  float most = 0;
  for (const float weight : e.weights) most = std::max(most, std::abs(weight));
  for (size_t t = 0; t < e.weights.size(); ++t) {
    text += message("frame ", t, '\t', weight_text(e.weights[t]), '\t');
    const auto bar = static_cast<size_t>(
        most > 0 ? std::lround(static_cast<float>(room) * std::abs(e.weights[t]) / most) : 0);
    for (size_t i = 0; i < bar; ++i) text += block_of(e.weights[t] < 0 ? -1 : 1);
    text += '\n';
  }
  return text;
}

}  // namespace fovea::tasks
