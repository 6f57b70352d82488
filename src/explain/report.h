// A report: text, tables and pictures in one self-contained HTML file.
#pragma once

#include <string>
#include <vector>

#include "explain/text_map.h"

namespace fovea {

// Everything given is shown as text: nothing in it is taken for markup.
class Report {
 public:
  // `model` (optional) is shown at the right of the page's header.
  explicit Report(const std::string& title, const std::string& model = "");

  void heading(const std::string& text);
  void paragraph(const std::string& text);
  void table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows);
  // An SVG picture; `meaning` is its caption and its alternative text.
  void picture(const std::string& svg, const std::string& meaning);
  // Words shaded by their weight, each with its number on hover, and the scale.
  void text(const TextMap& map);
  // A picture, and words under it: while the mouse or the keyboard is on a word, the word's own picture is shown in its
  // place. All are PNG files of one size.
  struct HoverWord {
    std::string text, note;  // the note stands below the word
    std::string png;
  };
  void hover(const std::string& png, const std::string& meaning, const std::vector<HoverWord>& words);
  // A link to another file.
  void link(const std::string& file, const std::string& text);

  std::string html() const;

 private:
  std::string title_, model_, body_;
};

}  // namespace fovea
