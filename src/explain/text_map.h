// A text whose words are shaded by their attention weight: as a picture, in a terminal, on a page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "explain/picture.h"

namespace fovea {

struct WeighedWord {
  std::string text;
  float weight = 0;      // within its sentence
  bool global = false;   // a global token, which sees and is seen by the whole text: shown in a frame
  bool unknown = false;  // not in the model's vocabulary: shown as "‹word›"
};

struct WeighedSentence {
  float weight = 1;  // within the text
  std::vector<WeighedWord> words = {};
  int64_t text = 0;  // of a pair of texts that were read apart: 0 or 1
};

// Words and sentences are shaded by the square root of the size of their weight (root_share), so that small weights stay
// visible beside a large one; negative weights have a colour of their own. Pictures, terminal and page show the scale.
// Where sentences are of two texts, each text has a heading.
struct TextMap {
  std::string title;
  std::vector<WeighedSentence> sentences;
  bool sentences_weigh = false;         // show the weight of each sentence, too
  std::vector<std::string> notes = {};  // said below the scale, a line each

  // The largest size of a word's weight in the text. That weight is the product of the word's weight in its sentence
  // and the weight of the sentence.
  float largest() const;
  bool has_negative() const;
  bool has_two_texts() const;
  bool has_global() const;
  bool has_unknown() const;
};

// The heading of a text of a pair.
const char* text_heading(int64_t text);

// The file's bytes. A word too long for a line is broken, and cut after three lines.
std::string draw(const TextMap& map, PictureFormat format);

// Lines of at most `columns` columns for a terminal, each followed by a line of blocks, and a legend.
std::string shade(const TextMap& map, size_t columns = 100);

}  // namespace fovea
