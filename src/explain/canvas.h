// Drawing through cairo and pango: text, and from one drawing the bytes of any kind of picture.
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

// Text in any script; size in pixels.
Layout layout_text(cairo_t* canvas, const std::string& text, double size);
PictureSize size_of(PangoLayout* layout);

// Calls `drawing` twice: to measure, then to paint on white. It returns the size taken. Throws Error when the
// picture would be too large.
std::string draw_picture(PictureFormat format,
                         const std::function<PictureSize(cairo_t* canvas, bool paint)>& drawing);

}  // namespace fovea
