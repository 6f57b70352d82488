// A text whose words are shaded by what they weigh in a decision: as a picture, in a terminal, on a page.
#pragma once

#include <string>
#include <vector>

#include "explain/picture.h"

namespace fovea {

struct WeighedWord {
  std::string text;
  float weight = 0;  // within its sentence
};

struct WeighedSentence {
  float weight = 1;  // within the text
  std::vector<WeighedWord> words = {};
};

struct TextMap {
  std::string title;
  std::vector<WeighedSentence> sentences;
  bool sentences_weigh = false;  // show what each sentence weighs, too

  // A word's share of the whole text is its weight times its sentence's; the largest is drawn darkest.
  float largest() const;
};

// The file's bytes.
std::string draw(const TextMap& map, PictureFormat format);

// Lines of at most `columns` columns, each followed by one of blocks: for a terminal.
std::string shade(const TextMap& map, size_t columns = 100);

}  // namespace fovea
