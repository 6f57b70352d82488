#include "explain/shades.h"

#include <glib.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>

namespace fovea {

namespace {

// share 0 ... 1 along evenly spaced colours.
Colour between(std::span<const Colour> stops, double share) {
  const auto last = static_cast<double>(stops.size() - 1);
  const double place = std::clamp(share, 0.0, 1.0) * last;
  const auto low = std::min(stops.size() - 2, static_cast<size_t>(place));
  const double part = place - static_cast<double>(low);
  const Colour &a = stops[low], &b = stops[low + 1];
  return {a.red + part * (b.red - a.red), a.green + part * (b.green - a.green),
          a.blue + part * (b.blue - a.blue)};
}

// The first character of a UTF-8 text; a byte that is none stands for itself.
struct Character {
  gunichar code;
  size_t bytes;
};
Character first_of(std::string_view text) {
  const gunichar code = g_utf8_get_char_validated(text.data(), static_cast<gssize>(text.size()));
  if (code >= static_cast<gunichar>(-2)) return {static_cast<unsigned char>(text[0]), 1};
  return {code, static_cast<size_t>(g_utf8_skip[static_cast<unsigned char>(text[0])])};
}

size_t columns_of(gunichar code) {
  return g_unichar_iszerowidth(code) ? 0 : g_unichar_iswide(code) ? 2 : 1;
}

}  // namespace

Colour colour_of(double share) {
  if (std::isnan(share)) return {0.85, 0.85, 0.85};
  static constexpr Colour kStops[] = {
      {1, 1, 1}, {0.78, 0.86, 0.94}, {0.42, 0.68, 0.84}, {0.13, 0.44, 0.71}, {0.03, 0.19, 0.42}};
  // As light as the blue ones, so that both signs are read from the same scale.
  static constexpr Colour kNegativeStops[] = {
      {1, 1, 1}, {0.98, 0.83, 0.79}, {0.94, 0.56, 0.49}, {0.74, 0.22, 0.21}, {0.38, 0.05, 0.09}};
  return share < 0 ? between(kNegativeStops, -share) : between(kStops, share);
}

Colour heat_colour(double share) {
  static constexpr Colour kStops[] = {
      {0.05, 0.17, 0.55}, {0.36, 0.58, 0.83}, {0.93, 0.91, 0.82}, {0.97, 0.62, 0.20}, {0.80, 0.22, 0.02}};
  return between(kStops, std::isnan(share) ? 0.5 : share);
}

bool needs_light_text(double share) {
  return std::abs(share) > 0.6;
}

double root_share(double weight, double largest) {
  return largest > 0 ? std::copysign(std::sqrt(std::abs(weight) / largest), weight) : 0;
}

std::string weight_text(double weight, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*g", digits, weight);
  return text;
}

std::string percent_text(double weight) {
  const double percent = 100 * weight;
  if (percent < 0) return percent > -0.05 ? ">-0.1 %" : "-" + percent_text(-weight);
  char text[32];
  std::snprintf(text, sizeof text, percent >= 9.95 ? "%.0f %%" : "%.1f %%", percent);
  return percent > 0 && percent < 0.05 ? "<0.1 %" : text;
}

std::string marked_unknown(const std::string& word) {
  return "‹" + word + "›";
}

std::string marked_global(const std::string& word) {
  return "[" + word + "]";
}

std::string_view block_of(double share) {
  static constexpr std::string_view kBlocks[] = {" ", "░", "▒", "▓", "█"};
  static constexpr std::string_view kNegativeBlocks[] = {" ", "·", "-", "=", "≡"};
  if (std::isnan(share)) return kBlocks[0];
  const auto level = std::min(4, static_cast<int>(std::min(std::abs(share), 1.0) * 4 + 0.5));
  return share < 0 ? kNegativeBlocks[level] : kBlocks[level];
}

size_t terminal_width(std::string_view text) {
  size_t width = 0;
  while (!text.empty()) {
    const Character next = first_of(text);
    width += columns_of(next.code);
    text.remove_prefix(next.bytes);
  }
  return width;
}

std::string wrapped(std::string_view text, size_t columns) {
  std::string lines;
  size_t at = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    const size_t width = terminal_width(word);
    if (at > 0 && at + 1 + width > columns) {
      lines += '\n';
      at = 0;
    }
    lines.append(at > 0 ? " " : "").append(word);
    at += (at > 0 ? 1 : 0) + width;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines + '\n';
}

std::string shortened(std::string_view text, size_t columns) {
  if (terminal_width(text) <= columns) return std::string(text);
  size_t end = 0, width = 1;  // of the ellipsis
  while (true) {
    const Character next = first_of(text.substr(end));
    if (width + columns_of(next.code) > columns) break;
    width += columns_of(next.code);
    end += next.bytes;
  }
  return std::string(text.substr(0, end)) + "…";
}

}  // namespace fovea
