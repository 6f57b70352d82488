// What trainings have in common, whatever is learnt: tokens from text, and at the end the weights to keep.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "data/tokenizer.h"
#include "nn/module.h"
#include "train/observer.h"

namespace fovea::tasks {

class RunObserver : public train::Observer {
 public:
  // What is being done before and between steps: "learning 8000 pieces from 58000 lines".
  virtual void on_note(const std::string& text) { (void)text; }
};

// tokenizer: "bpe", "unigram" or "words"; vocabulary: tokens to learn. Throws Error on another name.
std::shared_ptr<const data::Tokenizer> learn_tokenizer(const std::string& tokenizer, int64_t vocabulary,
                                                       std::span<const std::span<const std::string>> texts);

// The tokenizers of an earlier run in this directory, or those that `learn` makes, stored at once: a resumed
// run must cut text the same.
data::Tokenizers obtain_tokenizers(const std::filesystem::path& out,
                                   const std::function<data::Tokenizers()>& learn);

// What validation says, the higher the better.
struct ValidationScore {
  std::string name;                    // "BLEU"
  std::function<double()> value = {};  // of the network as it is; empty: there is no validation
  double best = -1;                    // of the best single checkpoint
};

struct ChosenWeights {
  double score = -1;     // of what was chosen; -1 without validation
  int64_t averaged = 0;  // checkpoints whose average was chosen; 0: a single one
};

// Leaves the average of the last `average` checkpoints in the network, or the best single one's weights where
// validation prefers them.
ChosenWeights choose_weights(const std::filesystem::path& out, int64_t average, const nn::Module& network,
                             const ValidationScore& score, RunObserver& observer);

}  // namespace fovea::tasks
