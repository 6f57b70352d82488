// The training of a translator as a person watches it: progress, notes, sample translations.
#pragma once

#include <ostream>
#include <string>

#include "cli/progress.h"
#include "tasks/train_translate.h"

namespace fovea::cli {

// Observer: tasks::TranslateObserver, or what is made of it.
template <class Observer = tasks::TranslateObserver>
class TrainProgress : public Observer {
 public:
  TrainProgress(std::ostream& out, int columns) : out_(out), progress_(out, columns) {}
  void on_resume(int64_t step) override { progress_.on_resume(step); }
  void on_step(const train::StepReport& report) override { progress_.on_step(report); }
  void on_validation(const train::ValidationReport& report) override { progress_.on_validation(report); }
  void on_note(const std::string& text) override { say(text); }
  void on_sample(const tasks::TranslationSample& sample) override {
    say("  source       " + sample.source);
    say("  reference    " + sample.reference);
    say("  translation  " + sample.translation);
  }
  void end() { progress_.end_line(); }

 protected:
  void say(const std::string& text) {
    progress_.end_line();
    out_ << text << '\n' << std::flush;
  }

 private:
  std::ostream& out_;
  Progress progress_;
};

}  // namespace fovea::cli
