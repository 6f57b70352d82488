// What can be chosen in a training, as data: the command line makes its flags and its help of this list, and
// other front ends make what they need.
#pragma once

#include <string>
#include <vector>

#include "io/json.h"

namespace fovea::tasks {

// The names that the text of a setting may have, "bpe, unigram, words".
struct Choices {
  const char *setting, *names;
};

enum class SettingType { truth, integer, number, text };

struct Setting {
  std::string name;  // snake_case, as in a config file; a flag reads it with dashes
  SettingType type = SettingType::text;
  std::string meaning;
  std::string group;                      // "Task", "Training" or "Model"
  Json standard;                          // the value used when none is given; null: it follows from the data
  std::vector<std::string> choices = {};  // of a text: the names it may have; empty: any
  std::vector<std::string> models = {};   // the models that take it; empty: every model
};

// What is used when nothing is said, for people: "256", "from the size of the data".
std::string default_text(const Setting& setting);

// A value written as text, as the type asks. Throws Error beginning with `where` on what cannot be read so,
// and on a name that is not among the choices.
Json setting_from_text(const Setting& setting, const std::string& text, const std::string& where);

// Throws Error unless `value` is one of `choices`, or these are empty.
void check_choice(const std::string& value, const std::vector<std::string>& choices,
                  const std::string& where);

// Settings that several trainings have, in the same words.
inline constexpr const char* kLearningRateHelp = "learning rate after the warm-up";
inline constexpr const char* kWeightDecayHelp = "weight decay, multiplied by the learning rate (AdamW)";
inline constexpr const char* kSchedules = "budget, inverse_sqrt, constant";
inline constexpr const char* kScheduleHelp =
    "learning rate after the warm-up: budget (decays to 0 at the end of the run), inverse_sqrt (decays as "
    "1/sqrt(step)) or constant";
inline constexpr const char* kWarmupHelp =
    "warm-up of the learning rate: a share of the run if below 1, else a number of steps";
inline constexpr const char* kSmoothingHelp = "label smoothing";
inline constexpr const char* kTokenizerHelp =
    "bpe or unigram (SentencePiece, learnt from the training text), or words (separated by spaces)";
inline constexpr const char* kVocabularyHelp =
    "number of tokens to learn; for words: the most frequent ones, 0 for all";
inline constexpr const char* kSkipBadHelp = "drop and count unusable lines instead of stopping at the first";

}  // namespace fovea::tasks
