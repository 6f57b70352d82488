// Drawing with cairo and pango: text in any script, and one drawing written as PNG, SVG or PDF.
#pragma once

#include <pango/pangocairo.h>

#include <functional>
#include <memory>
#include <string>

#include "explain/picture.h"

namespace fovea {

struct PictureSize {
  double width, height;
};

struct LayoutDeleter {
  void operator()(PangoLayout* layout) const { g_object_unref(layout); }
};
using Layout = std::unique_ptr<PangoLayout, LayoutDeleter>;

// How much room a text may take. Text that needs more is cut and ends with an ellipsis.
struct TextRoom {
  double width = 0;  // in pixels; 0: unlimited
  int lines = 1;     // a text that is too wide is broken between characters into at most so many lines
};

// One paragraph of text in any script; line breaks in `text` are drawn as symbols. `size` is the font size in
// pixels.
Layout layout_text(cairo_t* canvas, const std::string& text, double size, const TextRoom& room = {});
PictureSize size_of(PangoLayout* layout);

// Draws the text with its top left corner at (x, y), in the current colour and under the current
// transformation. In an SVG file the text can be selected, copied and searched.
void show_text(cairo_t* canvas, PangoLayout* layout, double x, double y);

// Calls `drawing` twice: to measure, then to paint on white. It returns the size of the picture. Throws Error
// when the picture would be too large.
std::string draw_picture(PictureFormat format,
                         const std::function<PictureSize(cairo_t* canvas, bool paint)>& drawing);

}  // namespace fovea
