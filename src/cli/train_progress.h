// A training as a person watches it: progress and notes, and of a translator sample translations.
#pragma once

#include <iostream>
#include <ostream>
#include <string>

#include "cli/progress.h"
#include "cli/signals.h"
#include "cli/train_verb.h"
#include "tasks/train_translate.h"

namespace fovea::cli {

// Observer: tasks::RunObserver, or what is made of it.
template <class Observer>
class RunProgress : public Observer {
 public:
  RunProgress(std::ostream& out, int columns) : out_(out), progress_(out, columns) {}
  void on_resume(int64_t step) override { progress_.on_resume(step); }
  void on_step(const train::StepReport& report) override { progress_.on_step(report); }
  void on_validation(const train::ValidationReport& report) override { progress_.on_validation(report); }
  void on_note(const std::string& text) override { say(text); }
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

// Observer: tasks::TranslateObserver, or what is made of it.
template <class Observer = tasks::TranslateObserver>
class TrainProgress : public RunProgress<Observer> {
 public:
  using RunProgress<Observer>::RunProgress;
  void on_sample(const tasks::TranslationSample& sample) override {
    this->say("  source       " + sample.source);
    this->say("  reference    " + sample.reference);
    this->say("  translation  " + sample.translation);
  }
};

// Calls train, one of the functions tasks::train_..., shows its progress and lets signals stop it.
template <class Progress = RunProgress<tasks::RunObserver>, class Training, class Files, class Train>
auto run_watched(const TrainFlags& flags, const tasks::TrainSettings<Training>& settings, const Files& files,
                 Train train) {
  const StopSignals signals;
  Progress progress(std::cerr, terminal_columns());
  auto result = train(files, settings, flags.command, progress, [] { return StopSignals::received() != 0; });
  progress.end();
  return result;
}

}  // namespace fovea::cli
