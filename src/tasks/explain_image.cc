// Records the gates or the self-attention of an image classifier and draws them over the picture.
#include "tasks/explain_image.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "explain/report.h"
#include "explain/shades.h"
#include "tasks/explain_checks.h"

namespace fovea::tasks {
namespace {

// More patches than this make matrices that are too large to keep of every head.
constexpr int64_t kMostPatches = 1024;

// Gates, and the heads of self-attention.
class GateRecorder : public AttentionObserver {
 public:
  Capture capture(const Call& call) override {
    if (call.site.kind == AttentionSite::Kind::self) return heads.capture(call);
    if (call.site.kind != AttentionSite::Kind::gate) return {};
    Capture all{{0}, std::vector<int32_t>(static_cast<size_t>(call.queries))};
    std::iota(all.rows.begin(), all.rows.end(), 0);
    return all;
  }
  void observe(const Call& call, const Capture& capture, const Captured& captured) override {
    if (call.site.kind == AttentionSite::Kind::self) return heads.observe(call, capture, captured);
    const Tensor weights = captured.weights.contiguous();
    const AttentionSite& site = call.site;
    ShownGate gate{.name = std::string(call.name),
                   .stage = site.layer,
                   .block = site.block,
                   .rows = call.queries,
                   .columns = call.keys,
                   .of_places = site.grid_height > 0};
    if (gate.of_places) {
      gate.rows = site.grid_height;
      gate.columns = site.grid_width;
    }
    gate.weights.assign(weights.data(), weights.data() + call.queries * call.keys);
    gates.push_back(std::move(gate));
  }
  std::vector<ShownGate> gates;
  AttentionRecorder heads{{AttentionKind::encoder}};
};

std::string block_name(const ShownGate& gate) {
  return message("stage ", gate.stage, ", block ", gate.block);
}

std::vector<uint8_t> in_colour(const ImageExplanation& e) {
  if (e.form.channels == 3) return e.pixels;
  std::vector<uint8_t> colour;
  for (const uint8_t value : e.pixels) colour.insert(colour.end(), 3, value);
  return colour;
}

// A row for every channel, a column for every branch.
bool of_branches(const ShownGate& gate) {
  return !gate.of_places && gate.rows > 1;
}

// The branches of a selective kernel are 3x3 kernels; all but the first are dilated and cover 5x5, 7x7 ...
std::string branch_name(int64_t branch) {
  const int64_t side = 2 * branch + 3;
  return message(side, "x", side, branch == 0 ? "" : " dilated");
}

// What the class token attends to, as a map of the patches.
struct PatchMap {
  std::string title;
  std::vector<float> weights;  // [grid_rows, grid_columns]
};

PatchMap patch_map(const ImageExplanation& e, int64_t layer, int64_t head) {
  const WeightMatrix weights = choose(e.attention, {AttentionKind::encoder, layer, head});
  PatchMap map;
  map.title = layer == AttentionChoice::kRollout  ? "rollout through all layers"
              : head == AttentionChoice::kAverage ? message("layer ", layer, ", average of heads")
                                                  : message("layer ", layer, ", head ", head);
  map.weights.assign(weights.values.begin() + 1, weights.values.begin() + weights.columns);
  return map;
}

std::vector<PatchMap> patch_maps(const ImageExplanation& e, const ExplainOptions& options) {
  const std::optional<int64_t> layer = chosen_layer(options), head = chosen_head(options);
  const auto count = static_cast<int64_t>(e.attention.layers.size());
  std::vector<PatchMap> maps;
  if (layer == AttentionChoice::kRollout || (layer && head))
    return {patch_map(e, *layer, head.value_or(AttentionChoice::kAverage))};
  if (layer) {
    maps.push_back(patch_map(e, *layer, AttentionChoice::kAverage));
    const auto heads = static_cast<int64_t>(e.attention.layers[static_cast<size_t>(*layer)].heads.size());
    for (int64_t h = 0; h < heads; ++h) maps.push_back(patch_map(e, *layer, h));
    return maps;
  }
  for (int64_t l = 0; l < count; ++l)
    maps.push_back(patch_map(e, l, head.value_or(AttentionChoice::kAverage)));
  if (!head) maps.push_back(patch_map(e, AttentionChoice::kRollout, AttentionChoice::kAverage));
  return maps;
}

bool weighs_patches(const ImageExplanation& e) {
  return !e.attention.layers.empty();
}

bool weighs_places(const ImageExplanation& e) {
  return weighs_patches(e) ||
         std::any_of(e.gates.begin(), e.gates.end(), [](const ShownGate& gate) { return gate.of_places; });
}

bool weighs_branches(const ImageExplanation& e) {
  return std::any_of(e.gates.begin(), e.gates.end(), [](const ShownGate& gate) { return of_branches(gate); });
}

std::string channels_caption(const ImageExplanation& e) {
  return weighs_branches(e)
             ? "How each block divides every channel (columns) between its kernels (rows): dark is 1, white is 0."
             : "The gate of every channel (columns) in each block (rows): dark is open (1), white is closed (0).";
}

// The map with its caption, for a picture that stands alone.
Figure channels_figure(const ImageExplanation& e) {
  HeatMap map = channels_map(e);
  const std::string title = std::exchange(map.title, channels_caption(e));
  return {title, {std::move(map)}, 1};
}

Json to_json(const ImageExplanation& e) {
  Json json = prediction_json(e.prediction, e.labels);
  json["gates"] = Json::array();
  for (const ShownGate& gate : e.gates)
    json["gates"].push_back({{"name", gate.name},
                             {"rows", gate.rows},
                             {"columns", gate.columns},
                             {"weights", value_to_json(gate.weights)}});
  if (!weighs_patches(e)) return json;
  // Each row: the class token itself, then the patches, row by row.
  json["grid"] = {e.grid_rows, e.grid_columns};
  json["attention"] = Json::array();
  for (const AttentionLayer& layer : e.attention.layers)
    for (size_t h = 0; h < layer.heads.size(); ++h) {
      const WeightMatrix& weights = layer.heads[h];
      const std::vector<float> row(weights.values.begin(), weights.values.begin() + weights.columns);
      json["attention"].push_back({{"layer", layer.layer}, {"head", h}, {"weights", value_to_json(row)}});
    }
  return json;
}

std::string page(const ImageExplanation& e) {
  Report report(e.labels[static_cast<size_t>(e.prediction.label)], e.model);
  if (weighs_places(e))
    report.picture(
        draw(places_figure(e), PictureFormat::svg),
        weighs_patches(e)
            ? "The picture, and the attention of the class token to each patch, averaged over heads: "
              "blue is the smallest weight, orange the largest."
            : "The picture, and the weight of each place in every block: blue is the smallest weight, "
              "orange the largest; the scale below each picture has the numbers.");
  for (const AttentionLayer& layer : e.attention.layers)
    report.picture(draw(places_figure(e, {.layer = std::to_string(layer.layer)}), PictureFormat::svg),
                   message("The heads of layer ", layer.layer, "."));
  if (!e.gates.empty()) report.picture(draw(channels_map(e), PictureFormat::svg), channels_caption(e));
  report.heading("Probabilities");
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < e.labels.size(); ++i)
    rows.push_back({e.labels[i], probability_text(e.prediction.probabilities[i])});
  report.table({"label", "probability"}, rows);
  return report.html();
}

}  // namespace

ImageExplanation explain_image(const LoadedImageClassifier& loaded, const std::filesystem::path& picture) {
  return explain_image(loaded, data::read_picture_as(picture, loaded.form));
}

ImageExplanation explain_image(const LoadedImageClassifier& loaded, std::vector<uint8_t> pixels) {
  ImageExplanation result;
  result.model = loaded.model;
  result.labels = loaded.labels;
  result.form = loaded.form;
  result.pixels = std::move(pixels);
  const Size2d grid = loaded.network->patch_grid();
  require(grid.h * grid.w <= kMostPatches, "the model reads ", grid.h * grid.w,
          " patches; attention can be shown of at most ", kMostPatches);
  GateRecorder recorder;
  {
    const ObserveAttention observe(recorder);
    const data::Pictures one{
        .form = loaded.form, .pixels = result.pixels, .labels = {0}, .classes = loaded.labels};
    result.prediction = classify_pictures(loaded, one)[0];
  }
  result.gates = std::move(recorder.gates);
  result.attention.model = loaded.model;
  result.attention.layers = recorder.heads.take();
  // Rollout is over tokens: the class token and the patches.
  result.attention.source.tokens.resize(static_cast<size_t>(1 + grid.h * grid.w));
  result.grid_rows = grid.h;
  result.grid_columns = grid.w;
  require(!result.gates.empty() || weighs_patches(result),
          "the model has no attention to show: it was trained with --gate none");
  return result;
}

OverlayFigure places_figure(const ImageExplanation& e, const ExplainOptions& options) {
  OverlayFigure figure{.title = prediction_text(e.prediction, e.labels), .panels = {}};
  const std::vector<uint8_t> pixels = in_colour(e);
  figure.panels.push_back({"the picture", e.form.height, e.form.width, pixels});
  for (const ShownGate& gate : e.gates)
    if (gate.of_places)
      figure.panels.push_back(
          {block_name(gate), e.form.height, e.form.width, pixels, gate.rows, gate.columns, gate.weights});
  if (!weighs_patches(e)) return figure;
  for (PatchMap& map : patch_maps(e, options))
    figure.panels.push_back({std::move(map.title), e.form.height, e.form.width, pixels, e.grid_rows,
                             e.grid_columns, std::move(map.weights)});
  return figure;
}

HeatMap channels_map(const ImageExplanation& e) {
  HeatMap map;
  map.title = prediction_text(e.prediction, e.labels);
  for (const ShownGate& gate : e.gates)
    if (!gate.of_places)
      map.column_count = std::max(map.column_count, of_branches(gate) ? gate.rows : gate.columns);
  const auto add_row = [&](const std::string& label, const ShownGate& gate, int64_t first, int64_t step) {
    map.rows.push_back(label);
    ++map.row_count;
    const int64_t channels = of_branches(gate) ? gate.rows : gate.columns;
    for (int64_t c = 0; c < map.column_count; ++c)
      map.weights.push_back(c < channels ? gate.weights[static_cast<size_t>(first + c * step)]
                                         : std::numeric_limits<float>::quiet_NaN());
  };
  for (const ShownGate& gate : e.gates) {
    if (gate.of_places) continue;
    if (!of_branches(gate)) add_row(block_name(gate), gate, 0, 1);
    for (int64_t branch = 0; of_branches(gate) && branch < gate.columns; ++branch)
      add_row(block_name(gate) + ", " + branch_name(branch), gate, branch, gate.columns);
  }
  map.cell = map.column_count > 64 ? 6 : 12;
  map.row_height = 16;
  return map;
}

std::string explain_image_file(const ImageExplanation& explanation, const std::filesystem::path& path,
                               const ExplainOptions& options) {
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
  return weighs_places(explanation) ? draw(places_figure(explanation, options), picture_format(path))
                                    : draw(channels_figure(explanation), picture_format(path));
}

std::string explain_image_text(const ImageExplanation& e, size_t width, const ExplainOptions& options) {
  HeatMap map;
  if (weighs_patches(e)) {
    // Of several maps the last layer's average, or what was requested.
    const int64_t last = e.attention.layers.back().layer;
    PatchMap one = patch_map(e, chosen_layer(options).value_or(last),
                             chosen_head(options).value_or(AttentionChoice::kAverage));
    map.title = one.title;
    map.row_count = e.grid_rows;
    map.column_count = e.grid_columns;
    map.weights = std::move(one.weights);
  } else {
    const ShownGate* places = nullptr;
    for (const ShownGate& gate : e.gates)
      if (gate.of_places && gate.rows >= 8) places = &gate;
    if (places == nullptr) return shade(channels_map(e), width) + wrapped(channels_caption(e), width);
    map.title = block_name(*places);
    map.row_count = places->rows;
    map.column_count = places->columns;
    map.weights = places->weights;
  }
  map.title = prediction_text(e.prediction, e.labels) + "; " + map.title + ":";
  const auto [least, most] = std::minmax_element(map.weights.begin(), map.weights.end());
  const float low = *least;
  map.largest = std::max(1e-6f, *most - low);
  map.notes = {message("weight of each place, from ", weight_text(low), " (blank) to ", weight_text(*most),
                       " (", block_of(1), ")")};
  for (float& weight : map.weights) weight -= low;
  return shade(map, width);
}

}  // namespace fovea::tasks
