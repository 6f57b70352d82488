// Finds connected spots of bows and sterns in the maps, pairs them, and measures the width of each ship.
#include "infer/ships_from_maps.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"

namespace fovea::infer {
namespace {

using data::Point;

enum Class : size_t { kBow, kStern, kBody, kClasses = 5 };

constexpr double kLeastBody = 0.5;   // mean probability of body between the ends of a ship
constexpr double kLeastCells = 3;    // distance of two ends
constexpr int64_t kLeastSpot = 2;    // cells
constexpr size_t kMostSpots = 1000;  // of each kind: pairs are compared with each other

class Cells {
 public:
  explicit Cells(const PartitionMap& map) : map_(map) {}
  float at(int64_t cell, size_t k) const {
    return map_.probabilities[static_cast<size_t>(cell) * kClasses + k];
  }
  float end(int64_t cell) const { return at(cell, kBow) + at(cell, kStern); }
  // Of the cell at a place given in cells; 0 outside.
  float ship_at(const Point& p) const {
    const int64_t cell = cell_at(p);
    return cell < 0 ? 0 : end(cell) + at(cell, kBody);
  }
  float body_at(const Point& p) const {
    const int64_t cell = cell_at(p);
    return cell < 0 ? 0 : at(cell, kBody);
  }

 private:
  int64_t cell_at(const Point& p) const {
    const auto x = static_cast<int64_t>(std::floor(p.x)), y = static_cast<int64_t>(std::floor(p.y));
    return x < 0 || y < 0 || x >= map_.width || y >= map_.height ? -1 : y * map_.width + x;
  }
  const PartitionMap& map_;
};

struct Spot {
  Point middle;      // in cells
  double score = 0;  // mean probability of its kind
};

// Connected cells whose likelier end is of this kind.
std::vector<Spot> spots_of(const PartitionMap& map, const Cells& cells, Class kind) {
  const auto belongs = [&](int64_t cell) {
    return cells.end(cell) > 0.5f && cells.at(cell, kind) >= cells.at(cell, kind == kBow ? kStern : kBow);
  };
  std::vector<uint8_t> seen(static_cast<size_t>(map.height * map.width));
  std::vector<Spot> spots;
  std::vector<int64_t> todo;
  for (int64_t first = 0; first < map.height * map.width && spots.size() < kMostSpots; ++first) {
    if (seen[static_cast<size_t>(first)] || !belongs(first)) continue;
    double weight = 0, x = 0, y = 0, score = 0;
    int64_t count = 0;
    todo = {first};
    seen[static_cast<size_t>(first)] = 1;
    while (!todo.empty()) {
      const int64_t cell = todo.back(), row = cell / map.width, column = cell % map.width;
      todo.pop_back();
      const double part = double{cells.end(cell)};
      weight += part;
      x += part * (static_cast<double>(column) + 0.5);
      y += part * (static_cast<double>(row) + 0.5);
      score += double{cells.at(cell, kind)};
      ++count;
      const std::array<std::pair<int64_t, int64_t>, 4> around = {
          {{row - 1, column}, {row + 1, column}, {row, column - 1}, {row, column + 1}}};
      for (const auto& [r, c] : around) {
        const int64_t next = r * map.width + c;
        if (r < 0 || c < 0 || r >= map.height || c >= map.width || seen[static_cast<size_t>(next)] ||
            !belongs(next))
          continue;
        seen[static_cast<size_t>(next)] = 1;
        todo.push_back(next);
      }
    }
    if (count >= kLeastSpot) spots.push_back({{x / weight, y / weight}, score / static_cast<double>(count)});
  }
  return spots;
}

// A ship whose ends have these middles, its width not known yet. In cells.
data::Ship ship_between(const Point& front, const Point& back) {
  const double dx = front.x - back.x, dy = front.y - back.y;
  return {.x = (front.x + back.x) / 2,
          .y = (front.y + back.y) / 2,
          .length = std::hypot(dx, dy) / (2 * data::kEndPlace),
          .width = 0,
          .heading = std::atan2(dy, dx)};
}

// The mean probability of body over the middle half of the way between the ends.
double body_between(const Cells& cells, const data::Ship& ship) {
  constexpr int kSteps = 17;
  double sum = 0;
  for (int i = 0; i < kSteps; ++i)
    sum += double{cells.body_at(
        at(ship, ship.length * data::kEndPlace * (static_cast<double>(i) / (kSteps - 1) - 0.5), 0))};
  return sum / kSteps;
}

// Twice the way from the axis to the side that is nearer: a neighbour may lie close to the other. The median of
// several places along the ship.
double width_of(const Cells& cells, const data::Ship& ship) {
  std::vector<double> widths;
  for (const double along : {-0.2, -0.1, 0.0, 0.1, 0.2}) {
    double nearer = ship.length;
    for (const double sign : {-1.0, 1.0}) {
      constexpr double kStep = 0.1;
      double across = 0;
      while (across < ship.length / 2 && cells.ship_at(at(ship, along * ship.length, sign * across)) > 0.5f)
        across += kStep;
      nearer = std::min(nearer, across);
    }
    widths.push_back(2 * nearer);
  }
  std::nth_element(widths.begin(), widths.begin() + 2, widths.end());
  return std::max(1.0, widths[2]);
}

struct Pair {
  size_t bow, stern;
  data::Ship ship;
  double score;
};

}  // namespace

std::vector<FoundShip> ships_from_map(const PartitionMap& map) {
  require(map.probabilities.size() == static_cast<size_t>(map.height * map.width) * kClasses,
          "ships from maps: got ", map.probabilities.size(), " probabilities for ", map.height, " x ",
          map.width, " cells of ", size_t{kClasses});
  const Cells cells(map);
  const std::vector<Spot> bows = spots_of(map, cells, kBow), sterns = spots_of(map, cells, kStern);
  std::vector<Pair> pairs;
  for (size_t i = 0; i < bows.size(); ++i)
    for (size_t j = 0; j < sterns.size(); ++j) {
      const data::Ship ship = ship_between(bows[i].middle, sterns[j].middle);
      if (2 * data::kEndPlace * ship.length < kLeastCells) continue;
      const double body = body_between(cells, ship);
      if (body >= kLeastBody) pairs.push_back({i, j, ship, body * (bows[i].score + sterns[j].score) / 2});
    }
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const Pair& a, const Pair& b) { return a.score > b.score; });
  std::vector<bool> bow_taken(bows.size()), stern_taken(sterns.size());
  std::vector<FoundShip> found;
  const auto stride = static_cast<double>(map.stride);
  for (Pair& pair : pairs) {
    if (bow_taken[pair.bow] || stern_taken[pair.stern]) continue;
    bow_taken[pair.bow] = stern_taken[pair.stern] = true;
    data::Ship& ship = pair.ship;
    ship.width = width_of(cells, ship);
    found.push_back(
        {{ship.x * stride, ship.y * stride, ship.length * stride, ship.width * stride, ship.heading},
         pair.score});
  }
  return found;
}

}  // namespace fovea::infer
