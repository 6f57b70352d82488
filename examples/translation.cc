// Translation from C++: trains a small translator with attention, opens the folder that it leaves, and translates
// sentences that were not in the training data. The language is made up: every word has one translation, and a sentence is
// said from its end.
#include <fovea/base/rng.h>
#include <fovea/tasks/open.h>
#include <fovea/tasks/train_settings.h>
#include <fovea/tasks/train_translate.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

using namespace fovea;

namespace {

struct Pair {
  std::string source, target;
};

Pair make_pair(Rng& rng) {
  static const std::vector<Pair> words = {{"red", "rot"},   {"house", "haus"}, {"old", "alt"},
                                          {"tree", "baum"}, {"boat", "boot"},  {"green", "grün"},
                                          {"long", "lang"}, {"sea", "meer"}};
  Pair pair;
  for (int64_t left = 2 + rng.below(4); left > 0; --left) {
    const Pair& word = words[static_cast<size_t>(rng.below(static_cast<int64_t>(words.size())))];
    const char* const space = pair.source.empty() ? "" : " ";
    pair.source = pair.source + space + word.source;
    pair.target = word.target + space + pair.target;
  }
  return pair;
}

}  // namespace

int main() {
  const auto folder =
      std::filesystem::temp_directory_path() / ("fovea-translation-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  Rng rng(1);
  {
    std::ofstream source(folder / "train.en"), target(folder / "train.de");
    for (int i = 0; i < 2000; ++i) {
      const Pair pair = make_pair(rng);
      source << pair.source << '\n';
      target << pair.target << '\n';
    }
  }

  // The settings of `fovea train translate`, by the names of its options.
  const auto settings = tasks::settle<tasks::TranslateTraining>(
      {.preset = "tiny", .values = {{"model", "bahdanau"}, {"tokenizer", "words"}, {"steps", 600}}});
  tasks::TranslateObserver observer;
  const tasks::TrainingOutcome outcome = tasks::train_translate(
      {.train_source = folder / "train.en", .train_target = folder / "train.de", .out = folder / "model"},
      settings, "examples/translation", observer, {});
  std::printf("%lld steps\n", static_cast<long long>(outcome.step));

  // Any model folder opens like this; answers of a translator are translations, best first.
  const auto model = tasks::open(folder / "model");
  std::vector<tasks::Input> inputs;
  std::vector<std::string> references;
  for (int i = 0; i < 20; ++i) {
    const Pair pair = make_pair(rng);
    inputs.push_back({pair.source});
    references.push_back(pair.target);
  }
  const std::vector<tasks::Answer> answers =
      model->answer(inputs, {.translate = {.beam = 2}, .alignment = "hard"});
  int right = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    const std::string& text = answers[i].translations.at(0).translation.text;
    right += text == references[i];
    if (i < 3) std::printf("%s -> %s\n", inputs[i].content.c_str(), text.c_str());
  }
  std::printf("%d of %zu right\n", right, answers.size());
  std::filesystem::remove_all(folder);
  return right >= 16 ? 0 : 1;
}
