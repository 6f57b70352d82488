#include "explain/shades.h"

#include <algorithm>
#include <cmath>

namespace fovea {

Colour colour_of(double share) {
  if (std::isnan(share)) return {0.85, 0.85, 0.85};
  static constexpr Colour kStops[] = {
      {1, 1, 1}, {0.78, 0.86, 0.94}, {0.42, 0.68, 0.84}, {0.13, 0.44, 0.71}, {0.03, 0.19, 0.42}};
  const double place = std::clamp(share, 0.0, 1.0) * 4;
  const int low = std::min(3, static_cast<int>(place));
  const double part = place - low;
  const Colour &a = kStops[low], &b = kStops[low + 1];
  return {a.red + part * (b.red - a.red), a.green + part * (b.green - a.green),
          a.blue + part * (b.blue - a.blue)};
}

bool needs_light_text(double share) {
  return share > 0.6;
}

std::string_view block_of(double share) {
  static constexpr std::string_view kBlocks[] = {" ", "░", "▒", "▓", "█"};
  if (std::isnan(share)) return kBlocks[0];
  return kBlocks[std::min(4, static_cast<int>(std::clamp(share, 0.0, 1.0) * 4 + 0.5))];
}

size_t terminal_width(std::string_view text) {
  size_t width = 0;
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t bytes = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    width += bytes >= 3 && lead >= 0xE3 ? 2 : 1;
    i += bytes;
  }
  return width;
}

}  // namespace fovea
