// Weights as colours, as blocks of a terminal and as short numbers; the width of text in a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fovea {

struct Colour {
  double red, green, blue;
};

// From white (share 0) over blue to near black (share 1) in even steps of lightness: readable in print and by
// colour-blind people. A negative share, down to -1, is red in the same steps. NaN is grey.
Colour colour_of(double share);
// Whether text on that colour must be white to be readable.
bool needs_light_text(double share);

// For weights laid over a photograph: from deep blue (share 0) over a pale middle to deep orange (share 1).
// Differs in hue, so that it can be read over dark and light pictures, also by colour-blind people.
Colour heat_colour(double share);

// sqrt(|weight| / largest) with the sign of the weight: a share that keeps small weights visible beside a large one.
double root_share(double weight, double largest);

// "0.31", "0.0042": with so many significant digits, for legends.
std::string weight_text(double weight, int digits = 2);
// "42 %", "0.4 %", "<0.1 %"
std::string percent_text(double weight);

// One column of a terminal: ' ', '░', '▒', '▓' or '█'; ' ', '·', '-', '=' or '≡' for a negative share.
std::string_view block_of(double share);

// A word that the model's vocabulary lacks as pictures, pages and terminals show it, and what they say of such words.
std::string marked_unknown(const std::string& word);
inline constexpr const char* kUnknownLegend =
    "in ‹ ›: words that the model does not know; it read an unknown token there";

// What pictures and pages, and terminals, say where some of the weights shown are negative.
inline constexpr const char* kNegativeColourLegend = "red: negative weights";
inline constexpr const char* kNegativeBlockLegend = "· - = ≡: negative weights";

// A global token as terminals and maps show it, and what they say of such tokens.
std::string marked_global(const std::string& word);
inline constexpr const char* kGlobalLegend =
    "in brackets: global tokens, which see and are seen by the whole text";

// Columns that a terminal uses for a text: wide characters (Chinese, Japanese, Korean, emoji) take two,
// combining marks none.
size_t terminal_width(std::string_view text);
// The text in lines of at most `columns` columns, broken at spaces, each ended; a longer word has a line of its own.
std::string wrapped(std::string_view text, size_t columns);
// The text, or its beginning and an ellipsis where it is wider than `columns`.
std::string shortened(std::string_view text, size_t columns);

}  // namespace fovea
