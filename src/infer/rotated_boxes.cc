#include "infer/rotated_boxes.h"

#include <algorithm>
#include <cmath>

namespace fovea::infer {
namespace {

using data::Point;

double distance(const Point& a, const Point& b) {
  return std::hypot(a.x - b.x, a.y - b.y);
}

double area(const std::vector<Point>& polygon) {
  double twice = 0;
  for (size_t i = 0; i < polygon.size(); ++i) {
    const Point &a = polygon[i], &b = polygon[(i + 1) % polygon.size()];
    twice += a.x * b.y - b.x * a.y;
  }
  return std::abs(twice) / 2;
}

// The part of a polygon on the inner side of the line from a to b (Sutherland and Hodgman); `turn` is 1 or -1, as
// the box runs.
std::vector<Point> clipped(const std::vector<Point>& polygon, const Point& a, const Point& b, double turn) {
  const auto side = [&](const Point& p) {
    return turn * ((b.x - a.x) * (p.y - a.y) - (b.y - a.y) * (p.x - a.x));
  };
  std::vector<Point> kept;
  for (size_t i = 0; i < polygon.size(); ++i) {
    const Point &p = polygon[i], &q = polygon[(i + 1) % polygon.size()];
    const double at_p = side(p), at_q = side(q);
    if (at_p >= 0) kept.push_back(p);
    if ((at_p > 0 && at_q < 0) || (at_p < 0 && at_q > 0)) {
      const double share = at_p / (at_p - at_q);
      kept.push_back({p.x + share * (q.x - p.x), p.y + share * (q.y - p.y)});
    }
  }
  return kept;
}

}  // namespace

double rotated_iou(const data::Ship& a, const data::Ship& b) {
  if (!(a.length > 0 && a.width > 0 && b.length > 0 && b.width > 0)) return 0;
  const auto box = corners(a), other = corners(b);
  std::vector<Point> overlap(box.begin(), box.end());
  // corners() runs the same way round for every ship.
  const double turn = (other[1].x - other[0].x) * (other[2].y - other[1].y) >
                              (other[1].y - other[0].y) * (other[2].x - other[1].x)
                          ? 1
                          : -1;
  for (size_t i = 0; i < other.size() && !overlap.empty(); ++i)
    overlap = clipped(overlap, other[i], other[(i + 1) % other.size()], turn);
  const double both = overlap.size() < 3 ? 0 : area(overlap);
  return both / (a.length * a.width + b.length * b.width - both);
}

DetectionCounts& DetectionCounts::operator+=(const DetectionCounts& other) {
  ships += other.ships;
  found += other.found;
  matched += other.matched;
  bow_error += other.bow_error;
  stern_error += other.stern_error;
  reversed += other.reversed;
  return *this;
}

double DetectionCounts::f1() const {
  return ships + found > 0 ? 2 * static_cast<double>(matched) / static_cast<double>(ships + found) : 0;
}

double DetectionCounts::localisation() const {
  return matched > 0 ? (bow_error + stern_error) / (2 * static_cast<double>(matched)) : 0;
}

DetectionCounts match_ships(std::span<const FoundShip> found, std::span<const data::Ship> truth,
                            double least) {
  DetectionCounts counts{.ships = static_cast<int64_t>(truth.size()),
                         .found = static_cast<int64_t>(found.size())};
  std::vector<const FoundShip*> order;
  for (const FoundShip& one : found) order.push_back(&one);
  std::stable_sort(order.begin(), order.end(),
                   [](const FoundShip* a, const FoundShip* b) { return a->score > b->score; });
  std::vector<bool> taken(truth.size());
  for (const FoundShip* one : order) {
    size_t best = truth.size();
    double best_iou = 0;
    for (size_t i = 0; i < truth.size(); ++i) {
      const double iou = taken[i] ? 0 : rotated_iou(one->ship, truth[i]);
      if (iou >= least && iou > best_iou) {
        best = i;
        best_iou = iou;
      }
    }
    if (best == truth.size()) continue;
    taken[best] = true;
    ++counts.matched;
    const double to_bow = distance(bow(one->ship), bow(truth[best])),
                 to_stern = distance(stern(one->ship), stern(truth[best]));
    counts.bow_error += to_bow;
    counts.stern_error += to_stern;
    counts.reversed += distance(bow(one->ship), stern(truth[best])) < to_bow ? 1 : 0;
  }
  return counts;
}

}  // namespace fovea::infer
