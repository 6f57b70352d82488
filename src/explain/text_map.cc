// Draws TextMap: words on coloured ground, wrapped into lines, with the scale of colours below.
#include "explain/text_map.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "explain/canvas.h"
#include "explain/shades.h"

namespace fovea {
namespace {

constexpr double kMargin = 16, kRight = 760, kPad = 3, kLead = 10;
constexpr double kFontSize = 15, kTitleSize = 15, kSmallSize = 11;
constexpr double kSentenceBox = 52;  // the box with a sentence's weight
constexpr double kScaleWidth = 160, kScaleHeight = 10;
constexpr const char* kLegend = "weight of a word in the text";
constexpr const char* kFrameLegend = "in a frame: global tokens, which see and are seen by the whole text";

std::string shown_text(const WeighedWord& word) {
  return word.unknown ? marked_unknown(word.text) : word.text;
}

template <class Has>
bool any_word(const TextMap& map, Has&& has) {
  for (const WeighedSentence& sentence : map.sentences)
    if (std::any_of(sentence.words.begin(), sentence.words.end(), has)) return true;
  return false;
}

void show(cairo_t* canvas, PangoLayout* layout, double x, double y, bool light) {
  const double ink = light ? 1 : 0.1;
  cairo_set_source_rgb(canvas, ink, ink, ink);
  show_text(canvas, layout, x, y);
}

void fill(cairo_t* canvas, double share, double x, double y, double width, double height) {
  const Colour colour = colour_of(share);
  cairo_set_source_rgb(canvas, colour.red, colour.green, colour.blue);
  cairo_rectangle(canvas, x, y, width, height);
  cairo_fill(canvas);
}

double baseline_of(PangoLayout* layout) {
  return pango_units_to_double(pango_layout_get_baseline(layout));
}

// A line of mixed scripts.
struct LineSize {
  explicit LineSize(cairo_t* canvas) {
    const Layout layout = layout_text(canvas, "Ág我", kFontSize);
    height = size_of(layout.get()).height;
    baseline = baseline_of(layout.get());
  }
  double height, baseline;
};

// Paints a map from top to bottom, or only measures it.
class TextPainter {
 public:
  TextPainter(cairo_t* canvas, const TextMap& map, bool paint)
      : canvas_(canvas),
        map_(map),
        paint_(paint),
        largest_(map.largest()),
        line_(canvas),
        left_(kMargin + (map.sentences_weigh ? kSentenceBox + kLead : 0)) {}

  PictureSize draw() {
    if (!map_.title.empty()) {
      const PictureSize size = text(map_.title, kTitleSize, kMargin, y_, false, {kRight - kMargin, 2});
      y_ += size.height + kLead;
    }
    int64_t before = -1;
    for (const WeighedSentence& sentence : map_.sentences) {
      if (map_.has_two_texts() && sentence.text != before)
        y_ += text(text_heading(sentence.text), kSmallSize, kMargin, y_, false).height + kPad;
      before = sentence.text;
      draw_sentence(sentence);
    }
    if (largest_ > 0) draw_scale();
    if (map_.has_global()) draw_legend(kFrameLegend);
    if (map_.has_unknown()) draw_legend(kUnknownLegend);
    for (const std::string& note : map_.notes) draw_legend(note);
    return {std::ceil(right_ + kMargin), std::ceil(y_ - kLead + kMargin)};
  }

 private:
  PictureSize text(const std::string& words, double size, double x, double y, bool light,
                   const TextRoom& room = {}) {
    const Layout layout = layout_text(canvas_, words, size, room);
    if (paint_) show(canvas_, layout.get(), x, y, light);
    const PictureSize taken = size_of(layout.get());
    right_ = std::max(right_, x + taken.width);
    return taken;
  }

  void draw_legend(const std::string& words) {
    y_ += text(words, kSmallSize, kMargin, y_ - kPad, false, {kRight - kMargin, 3}).height + kLead;
  }

  void draw_sentence(const WeighedSentence& sentence) {
    const double top = y_;
    double x = left_, height = 0;
    for (const WeighedWord& word : sentence.words) {
      const TextRoom room{kRight - left_ - 2 * kPad, 3};
      const Layout layout = layout_text(canvas_, shown_text(word), kFontSize, room);
      const PictureSize size = size_of(layout.get());
      if (x > left_ && x + size.width + 2 * kPad > kRight) {
        x = left_;
        y_ += height + kPad;
        height = 0;
      }
      // Scripts differ in height: all words of a line share its baseline.
      const double lower = line_.baseline - baseline_of(layout.get());
      const double box = std::max(line_.height, lower + size.height) + kPad;
      height = std::max(height, box);
      if (paint_) {
        const double share = root_share(double{sentence.weight} * word.weight, largest_);
        fill(canvas_, share, x, y_, size.width + 2 * kPad, box);
        show(canvas_, layout.get(), x + kPad, y_ + kPad / 2 + lower, needs_light_text(share));
        if (word.global) frame(x, y_, size.width + 2 * kPad, box);
      }
      x += size.width + 2 * kPad + 1;
      right_ = std::max(right_, x);
    }
    if (map_.sentences_weigh) {
      const double share = root_share(sentence.weight, 1);
      const std::string number = percent_text(sentence.weight);
      const PictureSize size = size_of(layout_text(canvas_, number, kSmallSize).get());
      height = std::max(height, size.height + 2 * kPad);
      if (paint_) fill(canvas_, share, kMargin, top, kSentenceBox, size.height + 2 * kPad);
      text(number, kSmallSize, kMargin + kPad, top + kPad, needs_light_text(share));
    }
    y_ += height + kLead;
  }

  void frame(double x, double y, double width, double height) {
    cairo_set_source_rgb(canvas_, 0.85, 0.4, 0.1);
    cairo_set_line_width(canvas_, 1.5);
    cairo_rectangle(canvas_, x + 0.75, y + 0.75, width - 1.5, height - 1.5);
    cairo_stroke(canvas_);
  }

  // A quarter of the largest weight is in the middle of the scale: shades are square roots. With negative weights the
  // scale is as long again to the left of 0.
  void draw_scale() {
    constexpr int kSteps = 64;
    const bool negative = map_.has_negative();
    const double width = negative ? 2 * kScaleWidth : kScaleWidth, zero = width - kScaleWidth;
    for (int i = negative ? -kSteps : 0; paint_ && i < kSteps; ++i)
      fill(canvas_, (i + 0.5) / kSteps, kMargin + zero + i * kScaleWidth / kSteps, y_,
           kScaleWidth / kSteps + 0.5, kScaleHeight);
    if (paint_) {
      cairo_set_source_rgb(canvas_, 0.6, 0.6, 0.6);
      cairo_set_line_width(canvas_, 0.5);
      cairo_rectangle(canvas_, kMargin, y_, width, kScaleHeight);
      cairo_stroke(canvas_);
    }
    const double below = y_ + kScaleHeight + 1;
    double height = 0;
    for (const double share : {-1.0, -0.5, 0.0, 0.5, 1.0}) {
      if (share < 0 && !negative) continue;
      const std::string number = share == 0 ? "0" : weight_text(largest_ * share * std::abs(share));
      const double taken = size_of(layout_text(canvas_, number, kSmallSize).get()).width;
      // The outer numbers end where the scale ends.
      const double place = (zero + share * kScaleWidth) / width;
      const PictureSize size = text(number, kSmallSize, kMargin + place * (width - taken), below, false);
      height = size.height;
    }
    text(negative ? message(kLegend, " (", kNegativeColourLegend, ")") : kLegend, kSmallSize,
         kMargin + width + kLead, y_ - kPad, false);
    y_ = below + height + kLead;
  }

  cairo_t* canvas_;
  const TextMap& map_;
  bool paint_;
  double largest_;
  LineSize line_;
  double left_, y_ = kMargin, right_ = kMargin;
};

// "weight of a word in the text: ░ from 0.01  ▒ from 0.1 ..."; sign: 1 or -1.
std::string block_legend(const std::string& legend, double largest, double sign = 1) {
  std::string text = legend + ":";
  for (const int block : {1, 2, 3, 4}) {
    const double share = (block - 0.5) / 4;  // where block_of() begins to use it
    text.append(block == 1 ? " " : "  ").append(block_of(sign * block / 4.0));
    text += " from " + weight_text(sign * largest * share * share);
  }
  return text + "\n";
}

std::string spaces(size_t count) {
  return std::string(count, ' ');
}

}  // namespace

bool TextMap::has_global() const {
  return any_word(*this, [](const WeighedWord& word) { return word.global; });
}

bool TextMap::has_unknown() const {
  return any_word(*this, [](const WeighedWord& word) { return word.unknown; });
}

float TextMap::largest() const {
  float most = 0;
  for (const WeighedSentence& sentence : sentences)
    for (const WeighedWord& word : sentence.words)
      most = std::max(most, std::abs(sentence.weight * word.weight));
  return most;
}

bool TextMap::has_negative() const {
  for (const WeighedSentence& sentence : sentences) {
    if (sentences_weigh && sentence.weight < 0) return true;
    for (const WeighedWord& word : sentence.words)
      if (sentence.weight * word.weight < 0) return true;
  }
  return false;
}

bool TextMap::has_two_texts() const {
  return !sentences.empty() && sentences.back().text > 0;
}

const char* text_heading(int64_t text) {
  return text == 0 ? "first text" : "second text";
}

std::string draw(const TextMap& map, PictureFormat format) {
  return draw_picture(format,
                      [&](cairo_t* canvas, bool paint) { return TextPainter(canvas, map, paint).draw(); });
}

std::string shade(const TextMap& map, size_t columns) {
  const double largest = map.largest();
  std::string text = map.title.empty() ? "" : map.title + "\n";
  int64_t before = -1;
  for (const WeighedSentence& sentence : map.sentences) {
    if (map.has_two_texts() && sentence.text != before)
      text += message(sentence.text > 0 ? "\n" : "", text_heading(sentence.text), ":\n");
    before = sentence.text;
    std::string number = map.sentences_weigh ? percent_text(sentence.weight) : "";
    if (map.sentences_weigh) number = spaces(6 - std::min<size_t>(6, number.size())) + number + "  ";
    const size_t left = number.size(), room = columns > left + 8 ? columns - left : 8;
    std::string words = number, blocks = spaces(left);
    size_t at = 0;
    const auto end_line = [&] {
      text += words + "\n" + blocks + "\n";
      words = blocks = spaces(left);
      at = 0;
    };
    for (const WeighedWord& word : sentence.words) {
      const std::string shown =
          shortened(word.global ? marked_global(shown_text(word)) : shown_text(word), room);
      const size_t width = terminal_width(shown);
      if (at > 0 && at + width > room) end_line();
      words += shown + " ";
      for (size_t i = 0; i < width; ++i)
        blocks += block_of(root_share(double{sentence.weight} * word.weight, largest));
      blocks += " ";
      at += width + 1;
    }
    end_line();
  }
  if (largest > 0) text += block_legend(kLegend, largest);
  if (map.has_negative()) text += block_legend("negative weight", largest, -1);
  if (map.has_global()) text += wrapped(kGlobalLegend, columns);
  if (map.has_unknown()) text += wrapped(kUnknownLegend, columns);
  for (const std::string& note : map.notes) text += wrapped(note, columns);
  return text;
}

}  // namespace fovea
