// Text and picture files.
//
// Cairo writes the text of an SVG file as outlines of letters: exact everywhere, but not selectable. So
// show_text() notes every text it draws, and an SVG file gets a second, invisible layer of <text> elements in
// the same places, stretched to the same widths.
#include "explain/canvas.h"

#include <cairo-pdf.h>
#include <cairo-svg.h>

#include <cmath>
#include <sstream>
#include <vector>

#include "base/error.h"

namespace fovea {
namespace {

constexpr const char* kFonts = "Noto Sans, DejaVu Sans, Noto Sans CJK SC, sans-serif";
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

// A line of text, in the coordinates of the picture.
struct ShownText {
  std::string text;
  cairo_matrix_t place;  // of the start of its baseline
  double width, size;
};
using TextLayer = std::vector<ShownText>;
const cairo_user_data_key_t kTextLayer{};

std::string for_xml(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else if (c == '&')
      safe += "&amp;";
    else
      safe += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;  // XML has no other control characters
  }
  return safe;
}

void note_lines(TextLayer& layer, cairo_t* canvas, PangoLayout* layout, double x, double y) {
  const double size =
      pango_units_to_double(pango_font_description_get_size(pango_layout_get_font_description(layout)));
  const std::string_view text = pango_layout_get_text(layout);
  PangoLayoutIter* line = pango_layout_get_iter(layout);
  do {
    PangoRectangle box;
    pango_layout_iter_get_line_extents(line, nullptr, &box);
    const PangoLayoutLine* part = pango_layout_iter_get_line_readonly(line);
    ShownText shown{.text = std::string(text.substr(static_cast<size_t>(part->start_index),
                                                    static_cast<size_t>(part->length))),
                    .place = {},
                    .width = pango_units_to_double(box.width),
                    .size = size};
    cairo_get_matrix(canvas, &shown.place);
    cairo_matrix_translate(&shown.place, x + pango_units_to_double(box.x),
                           y + pango_units_to_double(pango_layout_iter_get_baseline(line)));
    if (!shown.text.empty() && box.width > 0) layer.push_back(std::move(shown));
  } while (pango_layout_iter_next_line(line));
  pango_layout_iter_free(line);
}

std::string svg_of(const TextLayer& layer) {
  std::ostringstream svg;
  svg << "<g fill=\"#000\" fill-opacity=\"0\" font-family=\"" << kFonts << "\">\n";
  for (const ShownText& shown : layer) {
    // A rotation by 90 degrees leaves 6e-17 where 0 belongs.
    const auto rounded = [](double value) { return std::round(value * 1e4) / 1e4 + 0.0; };
    const cairo_matrix_t& m = shown.place;
    svg << "<text xml:space=\"preserve\" font-size=\"" << shown.size << "\" textLength=\"" << shown.width
        << "\" lengthAdjust=\"spacingAndGlyphs\" transform=\"matrix(" << rounded(m.xx) << ' ' << rounded(m.yx)
        << ' ' << rounded(m.xy) << ' ' << rounded(m.yy) << ' ' << rounded(m.x0) << ' ' << rounded(m.y0)
        << ")\">" << for_xml(shown.text) << "</text>\n";
  }
  svg << "</g>\n";
  return svg.str();
}

void append_text_layer(std::string& svg, const TextLayer& layer) {
  const size_t end = svg.rfind("</svg>");
  FOVEA_ASSERT(end != std::string::npos);
  if (!layer.empty()) svg.insert(end, svg_of(layer));
}

}  // namespace

PictureFormat picture_format(const std::filesystem::path& path) {
  const std::string ending = path.extension().string();
  if (ending == ".png") return PictureFormat::png;
  if (ending == ".svg") return PictureFormat::svg;
  if (ending == ".pdf") return PictureFormat::pdf;
  fail("cannot draw '", path.string(), "': got the ending '", ending, "', wanted .png, .svg or .pdf");
}

Layout layout_text(cairo_t* canvas, const std::string& text, double size, const TextRoom& room) {
  Layout layout(pango_cairo_create_layout(canvas));
  PangoFontDescription* font = pango_font_description_from_string(kFonts);
  pango_font_description_set_absolute_size(font, size * PANGO_SCALE);
  pango_layout_set_font_description(layout.get(), font);
  pango_font_description_free(font);
  pango_layout_set_single_paragraph_mode(layout.get(), true);
  pango_layout_set_text(layout.get(), text.data(), static_cast<int>(text.size()));
  if (room.width > 0 && size_of(layout.get()).width > room.width) {
    pango_layout_set_width(layout.get(), static_cast<int>(room.width * PANGO_SCALE));
    pango_layout_set_wrap(layout.get(), PANGO_WRAP_WORD_CHAR);
    pango_layout_set_height(layout.get(), -room.lines);
    pango_layout_set_ellipsize(layout.get(), PANGO_ELLIPSIZE_END);
  }
  return layout;
}

PictureSize size_of(PangoLayout* layout) {
  int width = 0, height = 0;
  pango_layout_get_pixel_size(layout, &width, &height);
  return {static_cast<double>(width), static_cast<double>(height)};
}

void show_text(cairo_t* canvas, PangoLayout* layout, double x, double y) {
  cairo_move_to(canvas, x, y);
  pango_cairo_show_layout(canvas, layout);
  cairo_new_path(canvas);
  if (auto* layer = static_cast<TextLayer*>(cairo_get_user_data(canvas, &kTextLayer)))
    note_lines(*layer, canvas, layout, x, y);
}

std::string draw_picture(PictureFormat format,
                         const std::function<PictureSize(cairo_t* canvas, bool paint)>& drawing) {
  const Surface ruler(cairo_image_surface_create(CAIRO_FORMAT_ARGB32, 1, 1));
  const PictureSize size = drawing(Canvas(cairo_create(ruler.get())).get(), false);
  require(size.width <= kLargestSide && size.height <= kLargestSide, "picture: ", size.width, " x ",
          size.height, " pixels is too large, wanted at most ", kLargestSide,
          " a side; draw fewer rows or panels");
  std::string bytes;
  TextLayer layer;
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
    if (format == PictureFormat::svg) cairo_set_user_data(canvas.get(), &kTextLayer, &layer, nullptr);
    drawing(canvas.get(), true);
    require(cairo_status(canvas.get()) == CAIRO_STATUS_SUCCESS,
            "picture: ", cairo_status_to_string(cairo_status(canvas.get())));
  }
  if (format == PictureFormat::png) cairo_surface_write_to_png_stream(surface.get(), append_bytes, &bytes);
  cairo_surface_finish(surface.get());
  const cairo_status_t status = cairo_surface_status(surface.get());
  require(status == CAIRO_STATUS_SUCCESS, "picture: ", cairo_status_to_string(status));
  if (format == PictureFormat::svg) append_text_layer(bytes, layer);
  return bytes;
}

}  // namespace fovea
