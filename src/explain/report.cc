// Writes a report as one HTML file with its pictures inside.
#include "explain/report.h"

#include <cstdio>
#include <string_view>

#include "explain/shades.h"

namespace fovea {
namespace {

constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --ink: #20262e; --soft: #69727d; --rule: #e3e2dd; --ground: #fbfaf7; --link: #14508c }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e6e8; --soft: #9aa3ad; --rule: #343a41; --ground: #16191d; --link: #8fbfee }
}
body { margin: 0 auto; max-width: 54rem; padding: 2rem 1.25rem 4rem; color: var(--ink); background: var(--ground);
  font: 16px/1.55 system-ui, "Noto Sans", "Noto Sans CJK SC", sans-serif }
header { display: flex; align-items: baseline; gap: .6rem; color: var(--soft); font-size: .9rem; margin-bottom: 1.4rem }
header b { color: var(--ink); font-weight: 600 }
header svg { width: 1.2rem; height: 1.2rem; align-self: center }
header .model { margin-left: auto }
h1 { font-size: 1.6rem; font-weight: 600; margin: 0 0 1rem; overflow-wrap: anywhere }
h2 { font-size: 1.15rem; font-weight: 600; margin: 2.5rem 0 .75rem }
h3 { font-size: .9rem; font-weight: 500; color: var(--soft); margin: 1rem 0 .2rem }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
.wide { overflow-x: auto; margin: 0 0 1.5rem }
th, td { text-align: left; padding: .3rem 1.1rem .3rem 0; border-bottom: 1px solid var(--rule); vertical-align: top }
th { color: var(--soft); font-weight: 500 }
figure { margin: 1.25rem 0 }
img { max-width: 100%; height: auto; border-radius: 6px; background: #fff }
figcaption { color: var(--soft); font-size: .9rem }
a { color: var(--link) }
.text { overflow-wrap: anywhere }
.scale { display: flex; align-items: center; gap: .5rem; color: var(--soft); font-size: .85rem }
.scale i { width: 8rem; height: .6rem; border-radius: 3px }
.text p { line-height: 1.9; margin: .4rem 0 }
.text span, .text b { padding: .15rem .25rem; border-radius: 3px }
.text b { white-space: nowrap; font-weight: 500; font-size: .8rem; margin-right: .5rem }
.hover { position: relative; margin: 1.25rem 0 }
.hover > img { display: block }
.hover p { display: flex; flex-wrap: wrap; gap: .4rem .3rem; margin: .9rem 0 .4rem }
.hover span { padding: .15rem .45rem; border: 1px solid var(--rule); border-radius: 4px; cursor: default; text-align: center }
.hover span:hover, .hover span:focus { border-color: var(--link); outline: none }
.hover small { display: block; color: var(--soft); font-variant-numeric: tabular-nums }
.hover span img { position: absolute; top: 0; left: 0; visibility: hidden }
.hover span:hover img, .hover span:focus img { visibility: visible; z-index: 1 }
.hover span:hover img { z-index: 2 }
)";

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '&':
        safe += "&amp;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string css_of(double share) {
  const Colour colour = colour_of(share);
  char text[48];
  std::snprintf(text, sizeof text, "rgb(%.0f %.0f %.0f)", 255 * colour.red, 255 * colour.green,
                255 * colour.blue);
  return text;
}

// The same as on the page of explain/page.html.
constexpr std::string_view kHeader =
    "<header><svg viewBox=\"0 0 24 24\" aria-hidden=\"true\"><path d=\"M1 12C5 5.5 19 5.5 23 12 19 18.5 5 "
    "18.5 1 "
    "12Z\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"1.6\"/><circle cx=\"12\" cy=\"12\" r=\"4.2\" "
    "fill=\"var(--link)\"/></svg><b>Fovea</b><span>where the model looks</span>";

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const std::string_view three = bytes.substr(i, 3);
    unsigned bits = 0;
    for (size_t k = 0; k < 3; ++k)
      bits = bits << 8 | (k < three.size() ? static_cast<unsigned char>(three[k]) : 0u);
    for (size_t k = 0; k < 4; ++k) text += k <= three.size() ? kDigits[bits >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

}  // namespace

Report::Report(const std::string& title, const std::string& model)
    : title_(escaped(title)), model_(escaped(model)) {}

void Report::heading(const std::string& text) {
  body_ += "<h2>" + escaped(text) + "</h2>\n";
}

void Report::paragraph(const std::string& text) {
  body_ += "<p>" + escaped(text) + "</p>\n";
}

void Report::table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows) {
  const auto line = [&](const std::vector<std::string>& cells, const std::string& tag) {
    body_ += "<tr>";
    for (const std::string& cell : cells) body_ += "<" + tag + ">" + escaped(cell) + "</" + tag + ">";
    body_ += "</tr>\n";
  };
  body_ += "<div class=\"wide\"><table>\n";
  line(head, "th");
  for (const auto& row : rows) line(row, "td");
  body_ += "</table></div>\n";
}

// As an image of its own, because the ids inside one drawing must not clash with those of another.
void Report::picture(const std::string& svg, const std::string& meaning) {
  body_ += "<figure><img src=\"data:image/svg+xml;base64," + base64(svg) + "\" alt=\"" + escaped(meaning) +
           "\"><figcaption>" + escaped(meaning) + "</figcaption></figure>\n";
}

void Report::text(const TextMap& map) {
  const double largest = map.largest();
  const auto shaded = [&](const char* tag, double share, double weight, const std::string& inner,
                          bool global = false) {
    char title[32];
    std::snprintf(title, sizeof title, "%.4f", weight);
    body_ += std::string("<") + tag + " style=\"background:" + css_of(share) +
             ";color:" + (needs_light_text(share) ? "#fff" : "#20262e") +
             (global ? ";outline:2px solid #d96a1a" : "") + "\" title=\"" + title + "\">" + inner + "</" +
             tag + "> ";
  };
  body_ += "<div class=\"text\">\n";
  int64_t before = -1;
  for (const WeighedSentence& sentence : map.sentences) {
    if (map.has_two_texts() && sentence.text != before)
      body_ += std::string("<h3>") + text_heading(sentence.text) + "</h3>\n";
    before = sentence.text;
    body_ += "<p>";
    if (map.sentences_weigh)
      shaded("b", root_share(sentence.weight, 1), sentence.weight, escaped(percent_text(sentence.weight)));
    for (const WeighedWord& word : sentence.words) {
      const double weight = double{sentence.weight} * word.weight;
      shaded("span", root_share(weight, largest), weight,
             escaped(word.unknown ? marked_unknown(word.text) : word.text), word.global);
    }
    body_ += "</p>\n";
  }
  body_ += "</div>\n";
  if (!(largest > 0)) return;
  const auto scale = [&](double from, double to) {
    std::string colours;
    for (const int step : {0, 1, 2, 3, 4}) colours += "," + css_of(from + step * (to - from) / 4);
    body_ += "<i style=\"background:linear-gradient(to right" + colours + ")\"></i>";
  };
  body_ += "<div class=\"scale\">";
  if (map.has_negative()) {
    body_ += "<span>" + weight_text(-largest) + "</span>";
    scale(-1, 0);
  }
  body_ += "<span>0</span>";
  scale(0, 1);
  body_ += "<span>" + weight_text(largest) + "</span><span>weight of a word in the text (shade: square root" +
           (map.has_negative() ? std::string("; ") + kNegativeColourLegend : "") + ")</span></div>\n";
}

void Report::hover(const std::string& png, const std::string& meaning, const std::vector<HoverWord>& words) {
  const auto image = [&](const std::string& file, const std::string& text) {
    body_ += "<img src=\"data:image/png;base64," + base64(file) + "\" alt=\"" + escaped(text) + "\">";
  };
  body_ += "<div class=\"hover\">";
  image(png, meaning);
  body_ += "<p>\n";
  for (const HoverWord& word : words) {
    body_ += "<span tabindex=\"0\">" + escaped(word.text) + "<small>" + escaped(word.note) + "</small>";
    image(word.png, "where the model looked for " + word.text);
    body_ += "</span>\n";
  }
  body_ += "</p><figcaption>" + escaped(meaning) + "</figcaption></div>\n";
}

void Report::link(const std::string& file, const std::string& text) {
  body_ += "<p><a href=\"" + escaped(file) + "\">" + escaped(text) + "</a></p>\n";
}

std::string Report::html() const {
  return "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
         title_ + "</title>\n<style>" + std::string(kStyle) + "</style>\n</head>\n<body>\n" +
         std::string(kHeader) + "<span class=\"model\">" + model_ + "</span></header>\n<h1>" + title_ +
         "</h1>\n" + body_ + "</body>\n</html>\n";
}

}  // namespace fovea
