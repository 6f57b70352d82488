// fovea demo: trains and compares three small translators.
#include <algorithm>
#include <chrono>
#include <iomanip>
#include <iostream>

#include "cli/fields_flags.h"
#include "cli/flags.h"
#include "cli/signals.h"
#include "cli/train_progress.h"
#include "cli/verbs.h"
#include "tasks/demo.h"

namespace fovea::cli {
namespace {

constexpr const char* kFooter =
    "Ctrl-C, SIGTERM and SIGHUP save and stop, with exit status 130, 143 and 129; the same command resumes.\n\n"
    "  fovea demo --out demo";

class DemoProgress : public TrainProgress<tasks::DemoObserver> {
 public:
  using TrainProgress::TrainProgress;
  void on_model(int64_t number, int64_t count, const std::string& title) override {
    say(message("\n", number + 1, " of ", count, ": ", title));
  }
};

void print_scores(const tasks::DemoResult& result) {
  std::cout << "\nBLEU on sentences that are not in the training data, by words of the reference\n"
            << std::setw(30) << "" << std::setw(8) << "all";
  for (const infer::BleuOfLength& part : result.models.front().by_length)
    std::cout << std::setw(8) << message(part.first, "-", part.last);
  std::cout << '\n' << std::fixed << std::setprecision(1);
  for (const tasks::DemoModel& model : result.models) {
    std::cout << std::setw(30) << std::left << model.title << std::right << std::setw(8) << model.bleu;
    for (const infer::BleuOfLength& part : model.by_length) std::cout << std::setw(8) << part.bleu.score;
    std::cout << '\n';
  }
  for (size_t i = 0; i < result.sources.size(); ++i) {
    std::cout << "\n  " << result.sources[i] << "\n  " << std::setw(30) << std::left << "reference"
              << result.references[i] << '\n';
    for (const tasks::DemoModel& model : result.models)
      std::cout << "  " << std::setw(30) << model.title << model.translations[i] << '\n';
  }
  std::cout << std::right;
}

void print_next(const std::string& out) {
  std::cout
      << "\n"
      << out << "/index.html shows all results, " << out
      << "/attention.html the attention of both models.\n\nWith your own files, one sentence per line:\n"
         "  fovea train translate --train train.src train.tgt --valid valid.src valid.tgt --out model "
         "--minutes 30\n"
         "  fovea translate model < new.src > new.tgt\n"
         "  fovea explain model \"a sentence\" --out attention.html\n"
         "or with the demo's files: fovea translate "
      << out << "/transformer < " << out << "/data/test.zh\n";
}

void run(const tasks::DemoOptions& options) {
  check_demo(options);
  std::cout
      << "A grammar generates sentences in Chinese and English; three networks learn to translate them.\n"
      << std::flush;
  const auto started = std::chrono::steady_clock::now();
  const StopSignals signals;
  DemoProgress progress(std::cerr, terminal_columns());
  const tasks::DemoResult result = run_demo(
      options, progress, [] { return StopSignals::received() != 0; }, output_columns());
  progress.end();
  if (result.interrupted) {
    std::cerr << "stopped after step " << result.models.back().training.step << ", saved in " << options.out
              << "; the same command resumes\n";
    throw CLI::RuntimeError(interrupted_status(StopSignals::received()));
  }
  const bool trained = std::any_of(result.models.begin(), result.models.end(), [](const auto& model) {
    return model.training.outcome != train::Outcome::already_finished;
  });
  if (!trained)
    std::cout << "\nalready trained: " << options.out << " contains finished runs of "
              << result.models.front().training.step
              << " steps; a larger number of --steps continues the training\n";
  std::cout << "\ndone in " << std::fixed << std::setprecision(0)
            << std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count() << " s\n";
  print_scores(result);
  std::cout << "\nAttention of the recurrent network, of one of them:\n\n" << result.alignment;
  print_next(options.out);
}

}  // namespace

void add_demo(CLI::App& app) {
  CLI::App* verb =
      app.add_subcommand("demo", "train three translators on a built-in language and compare them");
  auto options = std::make_shared<tasks::DemoOptions>();
  add_fields(*verb, *options);
  add_threads(*verb);
  verb->footer(kFooter);
  verb->callback([options] { run(*options); });
}

}  // namespace fovea::cli
