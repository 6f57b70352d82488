// Draws the maps and boxes of a ship detector beside the picture.
#include "tasks/explain_partition.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "explain/report.h"
#include "tasks/explain.h"

namespace fovea::tasks {
namespace {

enum Class : size_t { kBow, kStern, kBody, kSea, kLand, kClasses };

// They differ in lightness too.
constexpr std::array<std::array<double, 3>, kClasses> kColours = {
    {{0.90, 0.40, 0.05}, {0.10, 0.45, 0.85}, {0.95, 0.85, 0.35}, {0.12, 0.18, 0.28}, {0.62, 0.62, 0.60}}};
constexpr std::array<double, 3> kEndColour = {0.85, 0.15, 0.25}, kNothing = {0.93, 0.93, 0.93};

const float* cell_of(const PartitionMaps& maps, int64_t cell) {
  return maps.probabilities.data() + cell * static_cast<int64_t>(kClasses);
}

// A panel whose cells have these colours. colour: (probabilities of a cell) -> three parts
template <class ColourOf>
Overlay map_panel(const PartitionExplanation& e, std::string title, ColourOf colour) {
  Overlay panel{
      .title = std::move(title), .height = e.picture.height, .width = e.picture.width, .pixels = {}};
  for (int64_t y = 0; y < panel.height; ++y)
    for (int64_t x = 0; x < panel.width; ++x) {
      const int64_t cell = y * e.maps.height / panel.height * e.maps.width + x * e.maps.width / panel.width;
      for (const double part : colour(cell_of(e.maps, cell)))
        panel.pixels.push_back(static_cast<uint8_t>(255 * std::clamp(part, 0.0, 1.0)));
    }
  return panel;
}

std::array<double, 3> coarse_colour(const float* p) {
  const float end = p[kBow] + p[kStern];
  const std::array<std::pair<float, std::array<double, 3>>, 4> classes = {{{end, kEndColour},
                                                                           {p[kBody], kColours[kBody]},
                                                                           {p[kSea], kColours[kSea]},
                                                                           {p[kLand], kColours[kLand]}}};
  return std::max_element(classes.begin(), classes.end(),
                          [](const auto& a, const auto& b) { return a.first < b.first; })
      ->second;
}

// Bow and stern as strong as the gate is open.
std::array<double, 3> fine_colour(const float* p) {
  const double end = double{p[kBow] + p[kStern]}, bow_share = end > 0 ? double{p[kBow]} / end : 0;
  std::array<double, 3> colour{};
  for (size_t c = 0; c < 3; ++c)
    colour[c] = (1 - end) * kNothing[c] +
                end * (bow_share * kColours[kBow][c] + (1 - bow_share) * kColours[kStern][c]);
  return colour;
}

Overlay boxes_panel(const PartitionExplanation& e) {
  Overlay panel{.title = "boxes: bow orange, stern blue",
                .height = e.picture.height,
                .width = e.picture.width,
                .pixels = e.picture.pixels};
  const auto add = [&](std::initializer_list<data::Point> points, const std::array<double, 3>& colour) {
    Outline line{.points = {}, .red = colour[0], .green = colour[1], .blue = colour[2]};
    for (const data::Point& p : points) line.points.push_back({p.x, p.y});
    panel.outlines.push_back(std::move(line));
  };
  for (const infer::FoundShip& found : e.maps.ships) {
    const auto box = corners(found.ship);
    add({box[1], box[0], box[3], box[2], box[1]}, {0.98, 0.9, 0.2});
    add({box[0], bow(found.ship), box[3]}, kColours[kBow]);
    add({box[1], stern(found.ship), box[2]}, kColours[kStern]);
  }
  return panel;
}

// Pixels of the picture given for each one of the fitted picture.
double pixels_back(const PartitionExplanation& e) {
  return static_cast<double>(std::max(e.height, e.width)) / static_cast<double>(e.picture.width);
}

// In pixels of the picture given.
std::vector<infer::FoundShip> ships_of(const PartitionExplanation& e) {
  std::vector<infer::FoundShip> ships = e.maps.ships;
  for (infer::FoundShip& found : ships)
    for (double* value : {&found.ship.x, &found.ship.y, &found.ship.length, &found.ship.width})
      *value *= pixels_back(e);
  return ships;
}

std::string ship_line(const infer::FoundShip& found) {
  const data::Point front = bow(found.ship), back = stern(found.ship);
  char text[160];
  std::snprintf(text, sizeof text, "%.3f\t%.1f %.1f\t%.1f %.1f\t%.1f\n", found.score, front.x, front.y,
                back.x, back.y, found.ship.width);
  return text;
}

std::string ship_lines(const PartitionExplanation& e) {
  std::string text = "score\tbow (x y)\tstern (x y)\twidth\n";
  for (const infer::FoundShip& found : ships_of(e)) text += ship_line(found);
  return text;
}

Json to_json(const PartitionExplanation& e) {
  Json json{{"width", e.width},
            {"height", e.height},
            {"ships", Json::array()},
            {"classes", {"bow", "stern", "body", "sea", "land"}},
            {"rows", e.maps.height},
            {"columns", e.maps.width},
            {"cell", pixels_back(e) * models::Partition::kStride},
            {"probabilities", value_to_json(e.maps.probabilities)}};
  for (const infer::FoundShip& found : ships_of(e)) json["ships"].push_back(ship_json(found));
  return json;
}

}  // namespace

PartitionExplanation explain_partition(const LoadedPartitioner& loaded, const data::Image& picture) {
  PartitionExplanation result;
  result.picture = data::fitted(picture, loaded.size);
  result.maps = partition_pictures(loaded, {&result.picture, 1})[0];
  result.height = picture.height;
  result.width = picture.width;
  result.gated = loaded.network->config().branches == "gated";
  return result;
}

std::string title_of(const PartitionExplanation& e) {
  return message(e.maps.ships.size(), e.maps.ships.size() == 1 ? " ship" : " ships");
}

OverlayFigure partition_figure(const PartitionExplanation& e) {
  OverlayFigure figure{.title = title_of(e), .panels = {}, .across = 5};
  figure.panels.push_back({"the picture", e.picture.height, e.picture.width, e.picture.pixels});
  figure.panels.push_back(map_panel(e, "coarse: end red, body yellow, land grey", coarse_colour));
  Overlay gate{.title = e.gated ? "gate: probability of an end" : "probability of an end",
               .height = e.picture.height,
               .width = e.picture.width,
               .pixels = e.picture.pixels,
               .rows = e.maps.height,
               .columns = e.maps.width};
  for (int64_t i = 0; i < e.maps.height * e.maps.width; ++i)
    gate.weights.push_back(cell_of(e.maps, i)[kBow] + cell_of(e.maps, i)[kStern]);
  figure.panels.push_back(std::move(gate));
  figure.panels.push_back(map_panel(e, "fine: bow orange, stern blue", fine_colour));
  figure.panels.push_back(boxes_panel(e));
  return figure;
}

std::string explain_partition_file(const PartitionExplanation& e, const std::filesystem::path& path) {
  check_explain_ending(path);
  const std::string ending = path.extension().string();
  if (ending == ".json") return to_json(e).dump() + "\n";
  if (ending == ".txt") return ship_lines(e);
  if (ending != ".html") return draw(partition_figure(e), picture_format(path));
  Report report(title_of(e), "partition");
  report.picture(
      draw(partition_figure(e), PictureFormat::svg),
      "The picture; the coarse map (red: bow or stern, yellow: body, dark: sea, grey: land); the probability of "
      "an end of a ship, which gates the fine map; the fine map (orange: bow, blue: stern); the boxes.");
  std::vector<std::vector<std::string>> rows;
  const auto number = [](double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f", value);
    return std::string(text);
  };
  for (const infer::FoundShip& found : ships_of(e)) {
    const data::Point front = bow(found.ship), back = stern(found.ship);
    rows.push_back({number(100 * found.score) + " %", number(front.x) + ", " + number(front.y),
                    number(back.x) + ", " + number(back.y), number(found.ship.length),
                    number(found.ship.width)});
  }
  report.table({"score", "bow", "stern", "length", "width"}, rows);
  return report.html();
}

std::string explain_partition_text(const PartitionExplanation& e, size_t columns) {
  std::string text = title_of(e) + "\n" + (e.maps.ships.empty() ? "" : ship_lines(e));
  text += "B bow, S stern, # body, . land:\n";
  // Letters are about twice as high as wide.
  const int64_t across = std::min<int64_t>(static_cast<int64_t>(columns), e.maps.width),
                down = std::max<int64_t>(1, across * e.maps.height / e.maps.width / 2);
  for (int64_t r = 0; r < down; ++r) {
    for (int64_t c = 0; c < across; ++c) {
      const float* p = cell_of(e.maps, (2 * r + 1) * e.maps.height / (2 * down) * e.maps.width +
                                           (2 * c + 1) * e.maps.width / (2 * across));
      text += "BS# ."[std::max_element(p, p + kClasses) - p];
    }
    text += '\n';
  }
  return text;
}

}  // namespace fovea::tasks
