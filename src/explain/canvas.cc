#include "explain/canvas.h"

#include <cairo-pdf.h>
#include <cairo-svg.h>

#include "base/error.h"

namespace fovea {
namespace {

constexpr double kLargestSide = 30000;  // cairo's own limit for images is 32767

struct SurfaceDeleter {
  void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
};
struct CanvasDeleter {
  void operator()(cairo_t* canvas) const { cairo_destroy(canvas); }
};
using Surface = std::unique_ptr<cairo_surface_t, SurfaceDeleter>;
using Canvas = std::unique_ptr<cairo_t, CanvasDeleter>;

cairo_status_t append_bytes(void* text, const unsigned char* bytes, unsigned count) {
  static_cast<std::string*>(text)->append(reinterpret_cast<const char*>(bytes), count);
  return CAIRO_STATUS_SUCCESS;
}

}  // namespace

PictureFormat picture_format(const std::filesystem::path& path) {
  const std::string ending = path.extension().string();
  if (ending == ".png") return PictureFormat::png;
  if (ending == ".svg") return PictureFormat::svg;
  if (ending == ".pdf") return PictureFormat::pdf;
  fail("cannot draw '", path.string(), "': got the ending '", ending, "', wanted .png, .svg or .pdf");
}

Layout layout_text(cairo_t* canvas, const std::string& text, double size) {
  Layout layout(pango_cairo_create_layout(canvas));
  PangoFontDescription* font =
      pango_font_description_from_string("Noto Sans, DejaVu Sans, Noto Sans CJK SC, sans");
  pango_font_description_set_absolute_size(font, size * PANGO_SCALE);
  pango_layout_set_font_description(layout.get(), font);
  pango_font_description_free(font);
  pango_layout_set_text(layout.get(), text.data(), static_cast<int>(text.size()));
  return layout;
}

PictureSize size_of(PangoLayout* layout) {
  int width = 0, height = 0;
  pango_layout_get_pixel_size(layout, &width, &height);
  return {static_cast<double>(width), static_cast<double>(height)};
}

std::string draw_picture(PictureFormat format,
                         const std::function<PictureSize(cairo_t* canvas, bool paint)>& drawing) {
  const Surface ruler(cairo_image_surface_create(CAIRO_FORMAT_ARGB32, 1, 1));
  const PictureSize size = drawing(Canvas(cairo_create(ruler.get())).get(), false);
  require(size.width <= kLargestSide && size.height <= kLargestSide, "picture: ", size.width, " x ",
          size.height, " pixels is too large, wanted at most ", kLargestSide,
          " a side; draw fewer rows or panels");
  std::string bytes;
  Surface surface;
  switch (format) {
    case PictureFormat::png:
      surface.reset(cairo_image_surface_create(CAIRO_FORMAT_ARGB32, static_cast<int>(size.width),
                                               static_cast<int>(size.height)));
      break;
    case PictureFormat::svg:
      surface.reset(cairo_svg_surface_create_for_stream(append_bytes, &bytes, size.width, size.height));
      break;
    case PictureFormat::pdf:
      surface.reset(cairo_pdf_surface_create_for_stream(append_bytes, &bytes, size.width, size.height));
      break;
  }
  {
    const Canvas canvas(cairo_create(surface.get()));
    cairo_set_source_rgb(canvas.get(), 1, 1, 1);
    cairo_paint(canvas.get());
    drawing(canvas.get(), true);
    require(cairo_status(canvas.get()) == CAIRO_STATUS_SUCCESS,
            "picture: ", cairo_status_to_string(cairo_status(canvas.get())));
  }
  if (format == PictureFormat::png) cairo_surface_write_to_png_stream(surface.get(), append_bytes, &bytes);
  cairo_surface_finish(surface.get());
  const cairo_status_t status = cairo_surface_status(surface.get());
  require(status == CAIRO_STATUS_SUCCESS, "picture: ", cairo_status_to_string(status));
  return bytes;
}

}  // namespace fovea
