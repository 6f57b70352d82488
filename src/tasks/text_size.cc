#include "tasks/text_size.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "data/text.h"

namespace fovea::tasks {
namespace {

// A word with punctuation at its end, as ordinary text has them: "film," but not ",".
bool has_punctuation(std::string_view word) {
  constexpr std::string_view kMarks = ".,;:!?)\"";
  return word.size() > 1 && kMarks.find(word.back()) != std::string_view::npos &&
         static_cast<unsigned char>(word[word.size() - 2]) >= 'A';
}

}  // namespace

TextSize text_size(std::span<const std::string> texts, int64_t max_tokens) {
  TextSize size;
  std::unordered_map<std::string_view, int> seen;
  std::unordered_set<char32_t> characters;
  int64_t words = 0, letters = 0, punctuated = 0;
  for (const std::string& text : texts) {
    int64_t own = 0, own_letters = 0;
    for (const std::string_view word : data::split_words(text)) {
      ++own;
      punctuated += has_punctuation(word);
      int& count = seen[word];
      size.repeated_words += ++count == 2;
      const std::u32string spelled = data::characters(word);
      own_letters += static_cast<int64_t>(spelled.size());
      characters.insert(spelled.begin(), spelled.end());
    }
    words += own;
    letters += own_letters;
    // Scripts without spaces have long "words": there a token is about a character and a half.
    const int64_t own_tokens = 1 + (own_letters > 12 * own ? own_letters * 2 / 3 : own);
    size.tokens += max_tokens > 0 ? std::min(own_tokens, max_tokens) : own_tokens;
  }
  size.characters = static_cast<int64_t>(characters.size());
  size.ready_tokenized = words > 0 && letters <= 12 * words && punctuated * 50 < words;
  return size;
}

TextSize joined(const TextSize& a, const TextSize& b) {
  return {.tokens = a.tokens + b.tokens,
          .repeated_words = a.repeated_words + b.repeated_words,
          .characters = a.characters + b.characters,
          .ready_tokenized = a.ready_tokenized && b.ready_tokenized};
}

int64_t vocabulary_for(const TextSize& size, int64_t most) {
  constexpr int64_t kBytes = 256, kRoom = 200;  // every byte is a token, and some pairs should be
  return std::max(std::clamp<int64_t>(size.tokens / 25, 500, most), size.characters + kBytes + kRoom);
}

}  // namespace fovea::tasks
