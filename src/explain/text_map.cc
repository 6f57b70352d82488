#include "explain/text_map.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "explain/canvas.h"
#include "explain/shades.h"

namespace fovea {
namespace {

constexpr double kMargin = 16, kWidth = 760, kFontSize = 15, kTitleSize = 15, kPad = 3, kLead = 10, kBar = 44;

void show(cairo_t* canvas, PangoLayout* layout, double x, double y, bool light) {
  const double ink = light ? 1 : 0.1;
  cairo_set_source_rgb(canvas, ink, ink, ink);
  cairo_move_to(canvas, x, y);
  pango_cairo_show_layout(canvas, layout);
}

void fill(cairo_t* canvas, double share, double x, double y, double width, double height) {
  const Colour colour = colour_of(share);
  cairo_set_source_rgb(canvas, colour.red, colour.green, colour.blue);
  cairo_rectangle(canvas, x, y, width, height);
  cairo_fill(canvas);
}

std::string percent(float weight) {
  char text[16];
  std::snprintf(text, sizeof text, "%.0f %%", 100 * static_cast<double>(weight));
  return text;
}

PictureSize draw_map(cairo_t* canvas, const TextMap& map, bool paint) {
  const float largest = map.largest();
  double y = kMargin;
  if (!map.title.empty()) {
    const Layout title = layout_text(canvas, map.title, kTitleSize);
    if (paint) show(canvas, title.get(), kMargin, y, false);
    y += size_of(title.get()).height + kLead;
  }
  const double left = kMargin + (map.sentences_weigh ? kBar + kLead : 0);
  for (const WeighedSentence& sentence : map.sentences) {
    double x = left, height = 0;
    const double top = y;
    for (const WeighedWord& word : sentence.words) {
      const Layout layout = layout_text(canvas, word.text, kFontSize);
      const PictureSize size = size_of(layout.get());
      if (x > left && x + size.width + 2 * kPad > kWidth) {
        x = left;
        y += height + kPad;
      }
      height = size.height + kPad;
      if (paint) {
        const double share = largest > 0 ? double{sentence.weight} * word.weight / largest : 0;
        fill(canvas, share, x, y, size.width + 2 * kPad, height);
        show(canvas, layout.get(), x + kPad, y + kPad / 2, needs_light_text(share));
      }
      x += size.width + 2 * kPad + 1;
    }
    if (map.sentences_weigh) {
      const Layout number = layout_text(canvas, percent(sentence.weight), 11);
      height = std::max(height, size_of(number.get()).height + kPad);
      if (paint) {
        fill(canvas, sentence.weight, kMargin, top, kBar, height);
        show(canvas, number.get(), kMargin + kPad, top + kPad, needs_light_text(sentence.weight));
      }
    }
    y += height + kLead;
  }
  return {kWidth + kMargin, std::ceil(y - kLead + kMargin)};
}

}  // namespace

float TextMap::largest() const {
  float most = 0;
  for (const WeighedSentence& sentence : sentences)
    for (const WeighedWord& word : sentence.words) most = std::max(most, sentence.weight * word.weight);
  return most;
}

std::string draw(const TextMap& map, PictureFormat format) {
  return draw_picture(format, [&](cairo_t* canvas, bool paint) { return draw_map(canvas, map, paint); });
}

std::string shade(const TextMap& map, size_t columns) {
  const float largest = map.largest();
  std::string text = map.title.empty() ? "" : map.title + "\n";
  for (const WeighedSentence& sentence : map.sentences) {
    std::string prefix, words, blocks;
    if (map.sentences_weigh) {
      prefix = percent(sentence.weight) + "  ";
      prefix.insert(0, 7 - std::min<size_t>(7, prefix.size()), ' ');
    }
    size_t at = prefix.size();
    words = prefix;
    blocks = std::string(at, ' ');
    const auto end_line = [&] {
      text += words + "\n" + blocks + "\n";
      words = blocks = std::string(prefix.size(), ' ');
      at = prefix.size();
    };
    for (const WeighedWord& word : sentence.words) {
      const size_t width = terminal_width(word.text);
      if (at > prefix.size() && at + width > columns) end_line();
      const double share = largest > 0 ? double{sentence.weight} * word.weight / largest : 0;
      words += word.text + " ";
      for (size_t i = 0; i < width; ++i) blocks += block_of(share);
      blocks += " ";
      at += width + 1;
    }
    end_line();
  }
  return text;
}

}  // namespace fovea
