// How much text there is to learn from, counted before a tokenizer exists: what defaults go by.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace fovea::tasks {

struct TextSize {
  int64_t tokens = 0;          // about as many as a tokenizer would make
  int64_t repeated_words = 0;  // different words (between spaces) that occur more than once
  int64_t characters = 0;      // different ones
  // Words and punctuation are separated by spaces already, as in many published data sets: words are then better
  // tokens than pieces of them where there is little text.
  bool ready_tokenized = false;
};

// max_tokens: what is read of a text; 0: all.
TextSize text_size(std::span<const std::string> texts, int64_t max_tokens = 0);
// The sum of both, for a vocabulary that two languages share.
TextSize joined(const TextSize& a, const TextSize& b);

// Sub-words to learn: one for about twenty-five tokens of text, at most `most`, and enough for every
// character.
int64_t vocabulary_for(const TextSize& size, int64_t most);

}  // namespace fovea::tasks
