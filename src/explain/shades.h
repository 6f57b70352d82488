// Weights as colours of pictures and as blocks of a terminal.
#pragma once

#include <cstddef>
#include <string_view>

namespace fovea {

struct Colour {
  double red, green, blue;
};

// White over blue to near black: even steps of lightness, readable in print and by colour-blind eyes. A share
// of 0 is white, of 1 darkest; NaN is grey.
Colour colour_of(double share);
// Whether text on that colour must be white to be read.
bool needs_light_text(double share);

// One column of a terminal: ' ', '░', '▒', '▓' or '█'.
std::string_view block_of(double share);

// Columns that a terminal uses for a text: Chinese, Japanese and Korean letters take two.
size_t terminal_width(std::string_view text);

}  // namespace fovea
