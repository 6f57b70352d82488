#include "tasks/explain_image.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "explain/report.h"
#include "tasks/explain.h"

namespace fovea::tasks {
namespace {

class GateRecorder : public AttentionObserver {
 public:
  Wish wish(const Call& call) override {
    if (call.site.kind != AttentionSite::Kind::gate) return {};
    Wish all{{0}, std::vector<int32_t>(static_cast<size_t>(call.queries))};
    std::iota(all.rows.begin(), all.rows.end(), 0);
    return all;
  }
  void see(const Call& call, const Wish&, const Sight& sight) override {
    const Tensor weights = sight.weights.contiguous();
    const AttentionSite& site = call.site;
    ShownGate gate{std::string(call.name), call.queries, call.keys, {}, site.grid_height > 0};
    if (gate.of_places) {
      gate.rows = site.grid_height;
      gate.columns = site.grid_width;
    }
    gate.weights.assign(weights.data(), weights.data() + call.queries * call.keys);
    gates.push_back(std::move(gate));
  }
  std::vector<ShownGate> gates;
};

// "stages.2.0.gate.spatial" -> "stage 2, block 0".
std::string block_name(const std::string& name) {
  const size_t first = name.find('.'), second = name.find('.', first + 1), third = name.find('.', second + 1);
  return "stage " + name.substr(first + 1, second - first - 1) + ", block " +
         name.substr(second + 1, third - second - 1);
}

std::vector<uint8_t> in_colour(const ImageExplanation& e) {
  if (e.form.channels == 3) return e.pixels;
  std::vector<uint8_t> colour;
  for (const uint8_t value : e.pixels) colour.insert(colour.end(), 3, value);
  return colour;
}

bool weighs_places(const ImageExplanation& e) {
  return std::any_of(e.gates.begin(), e.gates.end(), [](const ShownGate& gate) { return gate.of_places; });
}

Json to_json(const ImageExplanation& e) {
  Json json = prediction_json(e.prediction, e.labels);
  json["gates"] = Json::array();
  for (const ShownGate& gate : e.gates)
    json["gates"].push_back({{"name", gate.name},
                             {"rows", gate.rows},
                             {"columns", gate.columns},
                             {"weights", value_to_json(gate.weights)}});
  return json;
}

std::string page(const ImageExplanation& e) {
  Report report(e.labels[static_cast<size_t>(e.prediction.label)]);
  if (weighs_places(e))
    report.picture(draw(places_figure(e), PictureFormat::svg),
                   "The picture, and where each block looks: what is looked at stays, the rest fades.");
  report.picture(draw(channels_map(e), PictureFormat::svg),
                 "What each block lets through: a column for every channel, dark where its gate is open.");
  report.heading("Probabilities");
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < e.labels.size(); ++i)
    rows.push_back({e.labels[i], probability_text(e.prediction.probabilities[i])});
  report.table({"label", "probability"}, rows);
  return report.html();
}

}  // namespace

ImageExplanation explain_image(const ImageClassifierParts& parts, const std::filesystem::path& picture) {
  return explain_image(parts, data::read_picture_as(picture, parts.form));
}

ImageExplanation explain_image(const ImageClassifierParts& parts, std::vector<uint8_t> pixels) {
  ImageExplanation result;
  result.labels = parts.labels;
  result.form = parts.form;
  result.pixels = std::move(pixels);
  GateRecorder recorder;
  {
    const ObserveAttention observe(recorder);
    const data::Pictures one{
        .form = parts.form, .pixels = result.pixels, .labels = {0}, .classes = parts.labels};
    result.prediction = classify_pictures(parts, one)[0];
  }
  result.gates = std::move(recorder.gates);
  require(!result.gates.empty(), "the model has no attention to show: it was trained with --gate none");
  return result;
}

OverlayFigure places_figure(const ImageExplanation& e) {
  OverlayFigure figure{.title = told_text(e.prediction, e.labels), .panels = {}};
  const std::vector<uint8_t> pixels = in_colour(e);
  figure.panels.push_back({"the picture", e.form.height, e.form.width, pixels});
  for (const ShownGate& gate : e.gates)
    if (gate.of_places)
      figure.panels.push_back({block_name(gate.name), e.form.height, e.form.width, pixels, gate.rows,
                               gate.columns, gate.weights});
  return figure;
}

HeatMap channels_map(const ImageExplanation& e) {
  HeatMap map;
  map.title = told_text(e.prediction, e.labels);
  for (const ShownGate& gate : e.gates)
    if (!gate.of_places)
      map.column_count = std::max(map.column_count, gate.rows > 1 ? gate.rows : gate.columns);
  for (const ShownGate& gate : e.gates) {
    if (gate.of_places) continue;
    map.rows.push_back(block_name(gate.name));
    ++map.row_count;
    const bool branches = gate.rows > 1;
    const int64_t channels = branches ? gate.rows : gate.columns;
    for (int64_t c = 0; c < map.column_count; ++c) {
      const int64_t place = branches ? c * gate.columns + gate.columns - 1 : c;
      map.weights.push_back(c < channels ? gate.weights[static_cast<size_t>(place)]
                                         : std::numeric_limits<float>::quiet_NaN());
    }
  }
  map.cell = map.column_count > 64 ? 6 : 12;
  return map;
}

std::string explain_image_file(const ImageExplanation& explanation, const std::filesystem::path& path) {
  check_explain_ending(path);
  const std::string ending = path.extension().string();
  if (ending == ".json") return to_json(explanation).dump() + "\n";
  if (ending == ".html") return page(explanation);
  if (ending == ".txt") {
    std::string text;
    for (size_t i = 0; i < explanation.labels.size(); ++i)
      text += message(explanation.labels[i], '\t', explanation.prediction.probabilities[i], '\n');
    return text;
  }
  return weighs_places(explanation) ? draw(places_figure(explanation), picture_format(path))
                                    : draw(channels_map(explanation), picture_format(path));
}

std::string explain_image_text(const ImageExplanation& e) {
  const ShownGate* places = nullptr;
  for (const ShownGate& gate : e.gates)
    if (gate.of_places && gate.rows >= 8) places = &gate;
  if (places == nullptr) return shade(channels_map(e));
  HeatMap map{.title = told_text(e.prediction, e.labels) + "; " + block_name(places->name) + ":",
              .rows = {},
              .columns = {},
              .row_count = places->rows,
              .column_count = places->columns,
              .weights = places->weights};
  const auto [least, most] = std::minmax_element(map.weights.begin(), map.weights.end());
  const float low = *least;
  map.largest = std::max(1e-6f, *most - low);
  for (float& weight : map.weights) weight -= low;
  return shade(map);
}

}  // namespace fovea::tasks
