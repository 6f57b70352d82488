// Geometry of ships seen from above, the label maps drawn from them, and scenes turned or fitted to a size.
#include "data/ships.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/error.h"
#include "data/image_formats.h"

namespace fovea::data {
namespace {

// Where the taper of a hull begins, and how wide its stern is, as shares of half the length and of the width.
constexpr double kTaper = 0.5, kSternWidth = 0.84;

double distance(const Point& a, const Point& b) {
  return std::hypot(a.x - b.x, a.y - b.y);
}

// The colour that fills the border of a fitted picture.
std::array<uint8_t, 3> mean_colour(const Image& image) {
  std::array<double, 3> sum{};
  for (size_t i = 0; i < image.pixels.size(); ++i) sum[i % 3] += image.pixels[i];
  std::array<uint8_t, 3> mean{};
  for (size_t c = 0; c < 3; ++c)
    mean[c] = static_cast<uint8_t>(std::lround(sum[c] / static_cast<double>(image.height * image.width)));
  return mean;
}

// Height and width of what is shown of a picture whose longer side becomes `size`.
std::array<int64_t, 2> fitted_sides(const Image& image, int64_t size) {
  const double scale = static_cast<double>(size) / static_cast<double>(std::max(image.height, image.width));
  const auto side = [&](int64_t from) {
    return std::clamp<int64_t>(std::llround(static_cast<double>(from) * scale), 1, size);
  };
  return {side(image.height), side(image.width)};
}

}  // namespace

Point at(const Ship& ship, double along, double across) {
  const double c = std::cos(ship.heading), s = std::sin(ship.heading);
  return {ship.x + along * c - across * s, ship.y + along * s + across * c};
}

std::array<Point, 4> corners(const Ship& ship) {
  const double l = ship.length / 2, w = ship.width / 2;
  return {at(ship, l, w), at(ship, -l, w), at(ship, -l, -w), at(ship, l, -w)};
}

std::array<Point, 5> hull(const Ship& ship) {
  const double l = ship.length / 2, w = ship.width / 2, s = kSternWidth * w;
  return {at(ship, l, 0), at(ship, kTaper * l, w), at(ship, -l, s), at(ship, -l, -s),
          at(ship, kTaper * l, -w)};
}

bool inside(std::span<const Point> convex, const Point& p) {
  bool left = false, right = false;
  for (size_t i = 0; i < convex.size(); ++i) {
    const Point &a = convex[i], &b = convex[(i + 1) % convex.size()];
    const double side = (b.x - a.x) * (p.y - a.y) - (b.y - a.y) * (p.x - a.x);
    left |= side > 0;
    right |= side < 0;
  }
  return !(left && right);
}

ShipMaps label_maps(const ShipScene& scene, int64_t stride) {
  const int64_t height = scene.image.height, width = scene.image.width;
  require(stride > 0 && height % stride == 0 && width % stride == 0, "ships: a picture of ", height, " x ",
          width, " cannot be cut into cells of ", stride);
  ShipMaps maps{.height = height / stride, .width = width / stride, .coarse = {}, .fine = {}};
  // Of each ship once, not at every cell.
  struct Ends {
    Point bow, stern;
    double radius;
    std::array<Point, 5> hull;
  };
  std::vector<Ends> ends;
  for (const Ship& ship : scene.ships)
    ends.push_back({at(ship, kEndPlace * ship.length, 0), at(ship, -kEndPlace * ship.length, 0),
                    kEndRadius * ship.width, hull(ship)});
  const auto side = static_cast<double>(stride);
  for (int64_t row = 0; row < maps.height; ++row)
    for (int64_t column = 0; column < maps.width; ++column) {
      const Point p{(static_cast<double>(column) + 0.5) * side, (static_cast<double>(row) + 0.5) * side};
      const int64_t pixel = (row * stride + stride / 2) * width + column * stride + stride / 2;
      const bool land = !scene.land.empty() && scene.land[static_cast<size_t>(pixel)] != 0;
      CoarseClass coarse = land ? CoarseClass::land : CoarseClass::sea;
      int32_t fine = kIgnoredLabel;
      double nearest = std::numeric_limits<double>::infinity();
      for (const Ends& ship : ends) {
        const double to_bow = distance(p, ship.bow), to_stern = distance(p, ship.stern);
        const double to_end = std::min(to_bow, to_stern);
        if (to_end < nearest) {
          nearest = to_end;
          fine = static_cast<int32_t>(to_bow < to_stern ? FineClass::bow : FineClass::stern);
        }
        if (to_end <= ship.radius)
          coarse = CoarseClass::end;
        else if (coarse != CoarseClass::end && inside(ship.hull, p))
          coarse = CoarseClass::body;
      }
      maps.coarse.push_back(static_cast<int32_t>(coarse));
      maps.fine.push_back(fine);
    }
  return maps;
}

ShipScene turned(const ShipScene& scene, int turn) {
  const int64_t side = scene.image.height;
  require(scene.image.width == side, "ships: only a square can be turned; got ", side, " x ",
          scene.image.width);
  const bool mirror = (turn & 4) != 0;
  const double full = static_cast<double>(side);
  ShipScene to{.image = {side, side, std::vector<uint8_t>(scene.image.pixels.size())},
               .ships = scene.ships,
               .land = std::vector<uint8_t>(scene.land.size())};
  for (int64_t y = 0; y < side; ++y)
    for (int64_t x = 0; x < side; ++x) {
      int64_t u = mirror ? side - 1 - x : x, v = y;
      for (int i = 0; i < turn % 4; ++i) {
        const int64_t before = u;
        u = side - 1 - v;
        v = before;
      }
      const auto from = static_cast<size_t>(y * side + x), into = static_cast<size_t>(v * side + u);
      for (size_t c = 0; c < 3; ++c) to.image.pixels[3 * into + c] = scene.image.pixels[3 * from + c];
      if (!scene.land.empty()) to.land[into] = scene.land[from];
    }
  for (Ship& ship : to.ships) {
    if (mirror) {
      ship.x = full - ship.x;
      ship.heading = std::numbers::pi - ship.heading;
    }
    for (int i = 0; i < turn % 4; ++i) {
      const double before = ship.x;
      ship.x = full - ship.y;
      ship.y = before;
      ship.heading += std::numbers::pi / 2;
    }
  }
  return to;
}

Image fitted(const Image& image, int64_t size) {
  const int64_t longest = std::max(image.height, image.width);
  if (image.height == size && image.width == size) return image;
  // By a whole factor first: the mean of pixels instead of some of them, and no floats for all of a large picture.
  Shrinker shrinker(image.height, image.width, std::max<int64_t>(1, longest / size));
  for (int64_t y = 0; y < image.height; ++y) shrinker.add(image.pixels.data() + 3 * y * image.width);
  const auto [h, w] = fitted_sides(image, size);
  const Tensor small = resize(to_floats(shrinker.take(), 1), h, w).contiguous();
  const std::array<uint8_t, 3> around = mean_colour(image);
  Image to{size, size, std::vector<uint8_t>(static_cast<size_t>(3 * size * size))};
  for (int64_t y = 0; y < size; ++y)
    for (int64_t x = 0; x < size; ++x)
      for (int64_t c = 0; c < 3; ++c)
        to.pixels[static_cast<size_t>((y * size + x) * 3 + c)] =
            y < h && x < w ? static_cast<uint8_t>(std::lround(small.data()[(y * w + x) * 3 + c]))
                           : around[static_cast<size_t>(c)];
  return to;
}

ShipScene fitted(const ShipScene& scene, int64_t size) {
  const int64_t height = scene.image.height, width = scene.image.width;
  ShipScene to{.image = fitted(scene.image, size), .ships = scene.ships, .land = {}};
  if (!scene.land.empty()) {
    to.land.resize(static_cast<size_t>(size * size));
    const auto [h, w] = fitted_sides(scene.image, size);
    for (int64_t y = 0; y < h; ++y)
      for (int64_t x = 0; x < w; ++x)
        to.land[static_cast<size_t>(y * size + x)] =
            scene.land[static_cast<size_t>(y * height / h * width + x * width / w)];
  }
  const double scale = static_cast<double>(size) / static_cast<double>(std::max(height, width));
  for (Ship& ship : to.ships) {
    ship.x *= scale;
    ship.y *= scale;
    ship.length *= scale;
    ship.width *= scale;
  }
  return to;
}

}  // namespace fovea::data
