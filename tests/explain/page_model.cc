// page_model DIR: leaves untrained translators in DIR/model and DIR/rnn, for tests that need folders and no
// sense.
#include <filesystem>

#include "tasks/untrained_translator.h"

int main(int count, char** words) {
  if (count != 2) return 2;
  using namespace fovea::tasks;
  const std::filesystem::path folder = words[1];
  save_translation(folder / "model", untrained_translator("bpe"));
  save_translation(folder / "rnn",
                   untrained_translator("bpe", "bahdanau", {{"width", 16}, {"embedding", 16}}));
}
