// Tells people about lines that ask a MarianMT translator for a target language (">>fra<<") that its vocabulary lacks. Such
// a token is read as <unk>, as in transformers, and the translation is then in whatever language the model prefers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/folder_contents.h"

namespace fovea::tasks {

class LanguageNotice {
 public:
  // For a folder with another tokenizer than MarianMT's nothing is noticed: there, ">>fra<<" is a text like any other.
  explicit LanguageNotice(const FolderContents& contents);

  void count(std::string_view line);
  // One line, without its end; empty: no such line was counted.
  std::string text() const;

 private:
  bool marian_;
  std::vector<std::string> languages_;
  int64_t lines_ = 0;
  std::string first_;
};

}  // namespace fovea::tasks
