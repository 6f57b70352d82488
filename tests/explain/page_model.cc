// page_model DIR: leaves an untrained translator in DIR/model, for tests that need a folder and no sense.
#include <cstdio>
#include <filesystem>

#include "tasks/untrained_translator.h"

int main(int count, char** words) {
  if (count != 2) return 2;
  fovea::tasks::save_translation(std::filesystem::path(words[1]) / "model",
                                 fovea::tasks::untrained_translator("bpe"));
}
