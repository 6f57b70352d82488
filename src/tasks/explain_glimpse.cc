// Follows the glimpses of a classifier over a picture and writes them in the requested form.
#include "tasks/explain_glimpse.h"

#include <algorithm>
#include <cmath>

#include "explain/report.h"
#include "kernels/conv/glimpse.h"
#include "tasks/explain.h"
#include "tasks/picture_files.h"

namespace fovea::tasks {
namespace {

std::vector<uint8_t> to_bytes(std::span<const float> values) {
  std::vector<uint8_t> bytes;
  for (const float value : values)
    bytes.push_back(static_cast<uint8_t>(std::lround(255 * std::clamp(value, 0.0f, 1.0f))));
  return bytes;
}

// What the sensor shows at a location.
std::vector<GlimpseWindow> windows_at(const LoadedGlimpseClassifier& loaded, const Tensor& picture,
                                      const float* location) {
  const models::GlimpseSizes& sizes = loaded.network->sizes();
  const kernels::GlimpseShape shape{.pictures = 1,
                                    .height = picture.size(1),
                                    .width = picture.size(2),
                                    .channels = sizes.channels,
                                    .patch = sizes.patch,
                                    .scales = sizes.scales};
  std::vector<float> seen(static_cast<size_t>(shape.features()));
  kernels::glimpses(shape, picture.data(), location, seen.data());
  std::vector<GlimpseWindow> windows;
  const size_t values = seen.size() / static_cast<size_t>(sizes.scales);
  for (int64_t s = 0; s < sizes.scales; ++s) {
    const int64_t side = sizes.patch << s;
    windows.push_back({kernels::glimpse_start(location[0], shape.height, side),
                       kernels::glimpse_start(location[1], shape.width, side), side,
                       in_colour(to_bytes(std::span(seen).subspan(static_cast<size_t>(s) * values, values)),
                                 sizes.channels)});
  }
  return windows;
}

std::string decimals(float value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", double{value});
  return text;
}

// "(0.12, -0.40)", vertical first; of soft attention, the place with the largest weight.
std::string place_text(const GlimpseExplanation& e, const GlimpseExplanation::Step& step) {
  if (e.grid == 0) return message("(", decimals(step.location[0]), ", ", decimals(step.location[1]), ")");
  const auto strongest = std::max_element(step.weights.begin(), step.weights.end()) - step.weights.begin();
  return message("row ", strongest / e.grid, ", column ", strongest % e.grid, " of ", e.grid, " x ", e.grid,
                 ", ", probability_text(step.weights[static_cast<size_t>(strongest)]));
}

const std::string& label_of(const GlimpseExplanation& e, const Prediction& prediction) {
  return e.labels[static_cast<size_t>(prediction.label)];
}

float best_probability(const Prediction& prediction) {
  return prediction.probabilities[static_cast<size_t>(prediction.label)];
}

std::string lines(const GlimpseExplanation& e) {
  std::string text;
  for (size_t t = 0; t < e.steps.size(); ++t) {
    const Prediction& now = e.steps[t].prediction;
    text += message(t + 1, '\t', place_text(e, e.steps[t]), '\t', label_of(e, now), '\t',
                    probability_text(best_probability(now)), '\n');
  }
  return text;
}

Json to_json(const GlimpseExplanation& e) {
  Json json = prediction_json(e.prediction(), e.labels);
  json["height"] = e.form.height;
  json["width"] = e.form.width;
  json["glimpses"] = Json::array();
  for (const auto& step : e.steps) {
    Json one = prediction_json(step.prediction, e.labels);
    if (e.grid > 0) {
      one["grid"] = e.grid;
      one["weights"] = value_to_json(step.weights);
    } else {
      one["location"] = {value_to_json(step.location[0]), value_to_json(step.location[1])};
      one["windows"] = Json::array();
      for (const GlimpseWindow& window : step.windows)
        one["windows"].push_back({{"top", window.top}, {"left", window.left}, {"side", window.side}});
    }
    json["glimpses"].push_back(std::move(one));
  }
  return json;
}

std::string page(const GlimpseExplanation& e) {
  Report report(label_of(e, e.prediction()), e.model);
  report.picture(
      draw(e, PictureFormat::svg),
      e.grid > 0 ? "The weight of each place of the grid at every glimpse, over the picture."
                 : "The windows of the glimpses on the picture, in order; beside it what each window shows, "
                   "the sharpest first, and the probabilities after that glimpse.");
  report.heading("Glimpses");
  std::vector<std::vector<std::string>> rows;
  for (size_t t = 0; t < e.steps.size(); ++t) {
    const Prediction& now = e.steps[t].prediction;
    rows.push_back({std::to_string(t + 1), place_text(e, e.steps[t]), label_of(e, now),
                    probability_text(best_probability(now))});
  }
  report.table(
      {"glimpse", e.grid > 0 ? "strongest place" : "location (vertical, horizontal)", "label", "probability"},
      rows);
  return report.html();
}

}  // namespace

GlimpseExplanation explain_glimpses(const LoadedGlimpseClassifier& loaded, std::vector<uint8_t> pixels) {
  GlimpseExplanation result{.model = loaded.model,
                            .labels = loaded.labels,
                            .form = loaded.form(),
                            .pixels = std::move(pixels),
                            .patch = loaded.network->sizes().patch,
                            .steps = {}};
  const data::Pictures one{
      .form = result.form, .pixels = result.pixels, .labels = {0}, .classes = loaded.labels};
  const Tensor picture = data::to_values(one, 0, 1);
  const models::GlimpseTrace trace = loaded.network->trace(picture);
  for (size_t t = 0; t < trace.logits.size(); ++t) {
    GlimpseExplanation::Step step;
    step.prediction = prediction_of(trace.logits[t].contiguous().span());
    if (!trace.locations.empty()) {
      std::copy_n(trace.locations[t].data(), 2, step.location);
      step.windows = windows_at(loaded, picture, step.location);
    } else {
      step.weights = trace.weights[t].to_vector();
      result.grid = std::llround(std::sqrt(static_cast<double>(step.weights.size())));
    }
    result.steps.push_back(std::move(step));
  }
  return result;
}

std::string draw(const GlimpseExplanation& e, PictureFormat format) {
  const std::string title = prediction_text(e.prediction(), e.labels);
  const std::vector<uint8_t> pixels = in_colour(e.pixels, e.form.channels);
  if (e.grid > 0) {
    OverlayFigure figure{.title = title, .panels = {{"the picture", e.form.height, e.form.width, pixels}}};
    for (size_t t = 0; t < e.steps.size(); ++t)
      figure.panels.push_back(
          {message("glimpse ", t + 1, ": ", prediction_text(e.steps[t].prediction, e.labels)), e.form.height,
           e.form.width, pixels, e.grid, e.grid, e.steps[t].weights});
    return draw(figure, format);
  }
  GlimpseFigure figure{.title = title,
                       .height = e.form.height,
                       .width = e.form.width,
                       .patch = e.patch,
                       .pixels = pixels,
                       .labels = e.labels,
                       .steps = {}};
  for (const auto& step : e.steps) figure.steps.push_back({step.windows, step.prediction.probabilities});
  return draw(figure, format);
}

std::string explain_glimpse_file(const GlimpseExplanation& explanation, const std::filesystem::path& path) {
  check_explain_ending(path);
  const std::string ending = path.extension().string();
  if (ending == ".json") return to_json(explanation).dump() + "\n";
  if (ending == ".html") return page(explanation);
  if (ending == ".txt") return lines(explanation);
  return draw(explanation, picture_format(path));
}

std::string explain_glimpse_text(const GlimpseExplanation& e) {
  return message("glimpse\t", e.grid > 0 ? "strongest place" : "location", "\tlabel\tprobability\n",
                 lines(e));
}

}  // namespace fovea::tasks
