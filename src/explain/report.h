// A page of findings: text, tables and pictures in one self-contained HTML file.
#pragma once

#include <string>
#include <vector>

#include "explain/text_map.h"

namespace fovea {

// Everything given is text and stays text: nothing in it is taken for markup.
class Report {
 public:
  explicit Report(const std::string& title);

  void heading(const std::string& text);
  void paragraph(const std::string& text);
  void table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows);
  // An SVG picture; `meaning` stands below it and for those who cannot see it.
  void picture(const std::string& svg, const std::string& meaning);
  // Words shaded by their weight, each with its number on hover.
  void text(const TextMap& map);
  // A link to another file.
  void link(const std::string& file, const std::string& text);

  std::string html() const;

 private:
  std::string title_, body_;
};

}  // namespace fovea
