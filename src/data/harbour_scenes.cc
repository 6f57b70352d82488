// A scene is painted in layers from below: sea, land, buildings and containers, then ships, each with its shadow.
// Shapes are convex polygons, antialiased by four samples a pixel.
#include "data/harbour_scenes.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace fovea::data {
namespace {

constexpr double kPi = std::numbers::pi;

struct Rgb {
  double r = 0, g = 0, b = 0;
};
Rgb operator*(const Rgb& c, double f) {
  return {c.r * f, c.g * f, c.b * f};
}
Rgb operator+(const Rgb& c, double d) {
  return {c.r + d, c.g + d, c.b + d};
}
Rgb mix(const Rgb& a, const Rgb& b, double share) {
  return {a.r + share * (b.r - a.r), a.g + share * (b.g - a.g), a.b + share * (b.b - a.b)};
}

double between(Rng& rng, double low, double high) {
  return low + (high - low) * double{rng.uniform()};
}

// Smooth noise of -1 to 1: random values on a grid of `cell` pixels, interpolated. A function of the place alone.
class SmoothNoise {
 public:
  SmoothNoise(uint64_t key, double cell) : key_(key), cell_(cell) {}
  double operator()(double x, double y) const {
    const double u = x / cell_, v = y / cell_;
    const double i = std::floor(u), j = std::floor(v);
    const auto ease = [](double t) { return t * t * (3 - 2 * t); };
    const double du = ease(u - i), dv = ease(v - j);
    return (1 - dv) * ((1 - du) * value(i, j) + du * value(i + 1, j)) +
           dv * ((1 - du) * value(i, j + 1) + du * value(i + 1, j + 1));
  }

 private:
  double value(double i, double j) const {
    const auto bits = philox(key_, static_cast<uint64_t>(static_cast<int64_t>(i)),
                             static_cast<uint64_t>(static_cast<int64_t>(j)));
    return 2 * double{uniform_from_bits(bits[0])} - 1;
  }
  uint64_t key_;
  double cell_;
};

class Canvas {
 public:
  explicit Canvas(int64_t size) : size_(size), pixels_(static_cast<size_t>(size * size)) {}
  int64_t size() const { return size_; }
  Rgb& at(int64_t x, int64_t y) { return pixels_[static_cast<size_t>(y * size_ + x)]; }

  // Calls paint(pixel, covered share, x, y) for the pixels that a convex polygon meets.
  template <class Paint>
  void fill(std::span<const Point> polygon, Paint paint) {
    double left = 1e9, right = -1e9, top = 1e9, bottom = -1e9;
    for (const Point& p : polygon) {
      left = std::min(left, p.x), right = std::max(right, p.x);
      top = std::min(top, p.y), bottom = std::max(bottom, p.y);
    }
    const auto clip = [&](double v) {
      return std::clamp<int64_t>(static_cast<int64_t>(std::floor(v)), 0, size_ - 1);
    };
    if (right < 0 || bottom < 0) return;
    for (int64_t y = clip(top); y <= clip(bottom); ++y)
      for (int64_t x = clip(left); x <= clip(right); ++x) {
        int covered = 0;
        for (const double dx : {0.25, 0.75})
          for (const double dy : {0.25, 0.75})
            covered += inside(polygon, {static_cast<double>(x) + dx, static_cast<double>(y) + dy}) ? 1 : 0;
        if (covered > 0) paint(at(x, y), covered / 4.0, x, y);
      }
  }
  void paint(std::span<const Point> polygon, const Rgb& colour) {
    fill(polygon, [&](Rgb& pixel, double share, int64_t, int64_t) { pixel = mix(pixel, colour, share); });
  }
  void darken(std::span<const Point> polygon, double factor) {
    fill(polygon,
         [&](Rgb& pixel, double share, int64_t, int64_t) { pixel = mix(pixel, pixel * factor, share); });
  }

 private:
  int64_t size_;
  std::vector<Rgb> pixels_;
};

// A rectangle in the same form as a ship; its heading is that of its long side.
using Block = Ship;

bool inside_box(const Ship& box, const Point& p, double margin) {
  const double c = std::cos(box.heading), s = std::sin(box.heading);
  const double along = (p.x - box.x) * c + (p.y - box.y) * s, across = (p.y - box.y) * c - (p.x - box.x) * s;
  return std::abs(along) <= box.length / 2 + margin && std::abs(across) <= box.width / 2 + margin;
}

// Whether two boxes come nearer than `gap`: points of each, half a width apart, held against the other.
bool overlap(const Ship& a, const Ship& b, double gap) {
  for (const auto& [from, to] : {std::pair{&a, &b}, std::pair{&b, &a}}) {
    const int steps = std::max(2, static_cast<int>(std::ceil(2 * from->length / std::max(1.0, from->width))));
    for (int i = 0; i <= steps; ++i)
      for (const double across : {-0.5, 0.0, 0.5})
        if (inside_box(*to,
                       at(*from, from->length * (static_cast<double>(i) / steps - 0.5), across * from->width),
                       gap))
          return true;
  }
  return false;
}

class Harbour {
 public:
  Harbour(Rng rng, int64_t size)
      : rng_(rng), canvas_(size), side_(static_cast<double>(size)), land_(static_cast<size_t>(size * size)) {
    const double sun = between(rng_, 0, 2 * kPi), height = between(rng_, 0.6, 2.2);
    shadow_ = {height * std::cos(sun), height * std::sin(sun)};
  }

  ShipScene draw() {
    choose_land();
    paint_sea();
    paint_land();
    if (has_land_) {
      paint_clutter();
      moor_along_quays();
    }
    const int64_t free_ships = rng_.below(3) + (ships_.empty() ? 1 : 0);
    for (int64_t i = 0; i < free_ships; ++i) add_free_ship();
    for (const Ship& ship : ships_) paint_ship(ship);
    return finished();
  }

 private:
  double uniform(double low, double high) { return between(rng_, low, high); }
  bool chance(double probability) { return double{rng_.uniform()} < probability; }

  // The quay is a line: land lies at its left, seen along `along_`. Piers stand out from it into the sea.
  void choose_land() {
    has_land_ = chance(0.85);
    if (!has_land_) return;
    const double angle = uniform(0, 2 * kPi);
    along_ = {std::cos(angle), std::sin(angle)};
    out_ = {-along_.y, along_.x};
    const double offset = uniform(-0.22, 0.12) * side_;
    origin_ = {side_ / 2 + offset * out_.x, side_ / 2 + offset * out_.y};
    const int64_t piers = rng_.below(3);
    for (int64_t i = 0; i < piers; ++i) {
      const double length = uniform(0.2, 0.45) * side_, width = uniform(0.05, 0.1) * side_;
      const double place = uniform(-0.45, 0.45) * side_;
      Block pier{.x = origin_.x + place * along_.x + (length / 2 - 2) * out_.x,
                 .y = origin_.y + place * along_.y + (length / 2 - 2) * out_.y,
                 .length = length,
                 .width = width,
                 .heading = std::atan2(out_.y, out_.x)};
      const bool near = std::any_of(piers_.begin(), piers_.end(),
                                    [&](const Block& other) { return overlap(pier, other, 0.18 * side_); });
      if (!near) piers_.push_back(pier);
    }
  }

  // Above 0 in the sea.
  double off_shore(const Point& p) const { return (p.x - origin_.x) * out_.x + (p.y - origin_.y) * out_.y; }
  bool is_land(const Point& p, double margin = 0) const {
    if (!has_land_) return false;
    if (off_shore(p) < margin) return true;
    return std::any_of(piers_.begin(), piers_.end(),
                       [&](const Block& pier) { return inside_box(pier, p, margin); });
  }

  void paint_sea() {
    // Draws are in statements of their own: the order within an expression is the compiler's choice.
    const double green = uniform(0, 1), lightness = uniform(-0.03, 0.06);
    const Rgb deep = mix({0.07, 0.16, 0.22}, {0.13, 0.27, 0.25}, green) + lightness;
    const SmoothNoise broad(rng_.bits64(), 0.4 * side_), fine(rng_.bits64(), 3), waves(rng_.bits64(), 9);
    const double swell = uniform(0, 2 * kPi), period = uniform(5, 11), height = uniform(0, 0.018);
    for (int64_t y = 0; y < canvas_.size(); ++y)
      for (int64_t x = 0; x < canvas_.size(); ++x) {
        const auto u = static_cast<double>(x), v = static_cast<double>(y);
        const double phase = (u * std::cos(swell) + v * std::sin(swell)) / period + waves(u, v);
        canvas_.at(x, y) =
            deep + 0.035 * broad(u, v) + 0.012 * fine(u, v) + height * std::sin(2 * kPi * phase);
      }
  }

  void paint_land() {
    if (!has_land_) return;
    const double age = uniform(0, 1), grass = chance(0.3) ? uniform(0.3, 0.8) : 0,
                 lightness = uniform(-0.05, 0.08);
    const Rgb ground =
        mix(mix({0.46, 0.45, 0.42}, {0.36, 0.34, 0.30}, age), {0.27, 0.33, 0.22}, grass) + lightness;
    const SmoothNoise broad(rng_.bits64(), 0.15 * side_), fine(rng_.bits64(), 2.5);
    const double edge = uniform(0.02, 0.12);
    for (int64_t y = 0; y < canvas_.size(); ++y)
      for (int64_t x = 0; x < canvas_.size(); ++x) {
        const Point p{static_cast<double>(x) + 0.5, static_cast<double>(y) + 0.5};
        if (!is_land(p)) {
          // The shadow of the quay's wall on the water.
          if (is_land({p.x - shadow_.x, p.y - shadow_.y})) canvas_.at(x, y) = canvas_.at(x, y) * 0.72;
          continue;
        }
        land_[static_cast<size_t>(y * canvas_.size() + x)] = 1;
        const bool rim = !is_land({p.x + 1.5 * out_.x, p.y + 1.5 * out_.y});
        canvas_.at(x, y) = ground + 0.05 * broad(p.x, p.y) + 0.025 * fine(p.x, p.y) + (rim ? edge : 0.0);
      }
  }

  void paint_block(const Block& block, const Rgb& colour, double height) {
    Block shade = block;
    shade.x += height * shadow_.x;
    shade.y += height * shadow_.y;
    canvas_.darken(corners(shade), 0.55);
    canvas_.paint(corners(block), colour);
  }

  // Buildings, containers (of a ship's shape and colour, some of them) and roads.
  void paint_clutter() {
    const int64_t roads = rng_.below(3);
    for (int64_t i = 0; i < roads; ++i) {
      const double depth = -uniform(0.05, 0.4) * side_;
      Block road{.x = origin_.x + depth * out_.x,
                 .y = origin_.y + depth * out_.y,
                 .length = 3 * side_,
                 .width = uniform(2, 5),
                 .heading = std::atan2(along_.y, along_.x)};
      canvas_.paint(corners(road), Rgb{0.25, 0.25, 0.26} + uniform(-0.06, 0.1));
    }
    const int64_t count = 4 + rng_.below(22);
    for (int64_t i = 0; i < count; ++i) {
      const bool container = chance(0.55);
      Block block{.x = uniform(0, 1) * side_,
                  .y = uniform(0, 1) * side_,
                  .length = container ? uniform(5, 16) : uniform(0.06, 0.22) * side_,
                  .width = container ? uniform(2, 4.5) : uniform(0.05, 0.13) * side_,
                  .heading = std::atan2(along_.y, along_.x) + (chance(0.5) ? kPi / 2 : 0) +
                             (chance(0.2) ? uniform(-0.5, 0.5) : 0)};
      const auto box = corners(block);
      const bool on_land = std::all_of(box.begin(), box.end(), [&](const Point& p) {
        return is_land({p.x + 2 * out_.x, p.y + 2 * out_.y});
      });
      if (!on_land) continue;
      Rgb colour = Rgb{0.5, 0.5, 0.5} + uniform(-0.25, 0.35);
      if (container) colour = {uniform(0.15, 0.75), uniform(0.15, 0.6), uniform(0.15, 0.6)};
      paint_block(block, colour, container ? 0.8 : 1.6);
    }
  }

  double ship_length() { return uniform(0.17, 0.42) * std::min(side_, 160.0) * (side_ > 160 ? 1.2 : 1.0); }

  bool add_ship(const Ship& ship, double gap) {
    for (const Point& p : corners(ship))
      if (p.x < 1 || p.y < 1 || p.x > side_ - 1 || p.y > side_ - 1) return false;
    for (int i = 0; i <= 16; ++i)
      for (const double across : {-0.5, 0.0, 0.5})
        if (is_land(at(ship, ship.length * (i / 16.0 - 0.5), across * ship.width), 0.4)) return false;
    for (const Ship& other : ships_)
      if (overlap(ship, other, gap)) return false;
    ships_.push_back(ship);
    return true;
  }

  // A ship along an edge of land, and with some chance more of them outside of it, side by side.
  void moor(const Point& edge, const Point& direction, const Point& away) {
    const double length = ship_length(), ratio = uniform(0.17, 0.27);
    Point place = edge;
    const int64_t abreast = 1 + (chance(0.5) ? 1 + rng_.below(3) : 0);
    for (int64_t i = 0; i < abreast; ++i) {
      Ship ship{.length = length * uniform(0.9, 1.05), .width = 0};
      ship.width = std::max(6.0, ship.length * ratio * uniform(0.92, 1.08));
      const double gap = uniform(0.8, 2.2);
      place = {place.x + (gap + ship.width / 2) * away.x, place.y + (gap + ship.width / 2) * away.y};
      ship.x = place.x;
      ship.y = place.y;
      ship.heading = std::atan2(direction.y, direction.x) + (chance(0.5) ? kPi : 0) + uniform(-0.02, 0.02);
      if (!add_ship(ship, 0.6)) return;
      place = {place.x + ship.width / 2 * away.x, place.y + ship.width / 2 * away.y};
    }
  }

  void moor_along_quays() {
    const int64_t tries = 3 + rng_.below(4);
    for (int64_t i = 0; i < tries; ++i) {
      const double place = uniform(-0.65, 0.65) * side_;
      moor({origin_.x + place * along_.x, origin_.y + place * along_.y}, along_, out_);
    }
    for (const Block& pier : piers_)
      for (const double sign : {-1.0, 1.0}) {
        if (!chance(0.75)) continue;
        const double place = uniform(-0.2, 0.5) * pier.length;
        const Point away{sign * along_.x, sign * along_.y};
        moor({pier.x + place * out_.x + pier.width / 2 * away.x,
              pier.y + place * out_.y + pier.width / 2 * away.y},
             out_, away);
      }
  }

  void add_free_ship() {
    for (int tries = 0; tries < 20; ++tries) {
      Ship ship{.x = uniform(0, side_),
                .y = uniform(0, side_),
                .length = ship_length(),
                .width = 0,
                .heading = uniform(0, 2 * kPi)};
      ship.width = std::max(6.0, ship.length * uniform(0.17, 0.27));
      if (!add_ship(ship, 4)) continue;
      if (chance(0.3)) paint_wake(ship);
      return;
    }
  }

  void paint_wake(const Ship& ship) {
    const double length = uniform(0.4, 1.2) * ship.length;
    const Point wake[] = {at(ship, -ship.length / 2, 0.2 * ship.width),
                          at(ship, -ship.length / 2, -0.2 * ship.width),
                          at(ship, -ship.length / 2 - length, -0.5 * ship.width),
                          at(ship, -ship.length / 2 - length, 0.5 * ship.width)};
    canvas_.fill(wake, [](Rgb& pixel, double share, int64_t, int64_t) { pixel = pixel + 0.10 * share; });
  }

  void paint_ship(const Ship& ship) {
    Ship shade = ship;
    shade.x += shadow_.x;
    shade.y += shadow_.y;
    canvas_.darken(hull(shade), 0.6);
    static constexpr Rgb kHulls[] = {
        {0.52, 0.53, 0.54}, {0.42, 0.20, 0.16}, {0.22, 0.25, 0.30}, {0.62, 0.60, 0.55}, {0.30, 0.36, 0.30}};
    const Rgb paint = kHulls[rng_.below(5)];
    const Rgb rim = paint + uniform(-0.08, 0.1);
    canvas_.paint(hull(ship), rim * 0.72);
    Ship deck = ship;
    deck.length -= 2.2;
    deck.width -= 2.0;
    canvas_.paint(hull(deck), rim);
    paint_superstructure(ship, rim);
  }

  // A bridge anywhere but at the very ends, so that it does not tell bow from stern; hatches or a flight deck.
  void paint_superstructure(const Ship& ship, const Rgb& rim) {
    const auto part = [&](double along, double length, double width) {
      const Point p = at(ship, along * ship.length, 0);
      return Block{.x = p.x,
                   .y = p.y,
                   .length = length * ship.length,
                   .width = width * ship.width,
                   .heading = ship.heading};
    };
    const int64_t hatches = rng_.below(5);
    const double shade = uniform(-0.16, 0.16);
    for (int64_t i = 0; i < hatches; ++i)
      canvas_.paint(corners(part(-0.28 + 0.14 * static_cast<double>(i), 0.09, 0.55)), rim + shade);
    const Block bridge = part(uniform(-0.3, 0.2), uniform(0.08, 0.2), uniform(0.45, 0.8));
    paint_block(bridge, Rgb{0.78, 0.78, 0.76} + uniform(-0.2, 0.15), 0.6);
    if (!chance(0.4)) return;
    canvas_.paint(corners(part(uniform(-0.2, 0.2), 0.05, 0.2)), Rgb{0.2, 0.2, 0.2});
  }

  ShipScene finished() {
    const int64_t size = canvas_.size();
    ShipScene scene{.image = {size, size, {}},
                    .ships = ships_,
                    .land = has_land_ ? land_ : std::vector<uint8_t>(static_cast<size_t>(size * size))};
    const double light = uniform(0.85, 1.15), noise = uniform(0.006, 0.02);
    for (int64_t y = 0; y < size; ++y)
      for (int64_t x = 0; x < size; ++x) {
        const Rgb colour = canvas_.at(x, y) * light + noise * double{rng_.normal()};
        for (const double part : {colour.r, colour.g, colour.b})
          scene.image.pixels.push_back(static_cast<uint8_t>(std::lround(255 * std::clamp(part, 0.0, 1.0))));
      }
    return scene;
  }

  Rng rng_;
  Canvas canvas_;
  double side_;
  Point shadow_;
  bool has_land_ = false;
  Point origin_, along_, out_;
  std::vector<Block> piers_;
  std::vector<Ship> ships_;
  std::vector<uint8_t> land_;
};

}  // namespace

ShipScene draw_harbour(uint64_t seed, uint64_t number, int64_t size) {
  require(size >= 64 && size <= 2048, "harbour scenes: got a size of ", size, ", wanted 64 to 2048");
  return Harbour(Rng(seed).split(number), size).draw();
}

}  // namespace fovea::data
