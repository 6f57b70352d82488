// fovea demo: the built-in example, trained before one's eyes.
#include <chrono>
#include <iostream>

#include "cli/fields_flags.h"
#include "cli/flags.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "cli/verbs.h"
#include "tasks/demo.h"

namespace fovea::cli {
namespace {

constexpr const char* kFooter =
    "Ctrl-C and SIGTERM save and stop, with exit status 130 and 143; the same command goes on from there.";

void print_next(const std::string& command, const char* meaning) {
  constexpr size_t kColumn = 46;
  std::cout << "  " << command << std::string(command.size() < kColumn ? kColumn - command.size() : 1, ' ')
            << meaning << '\n';
}

void print_result(const tasks::DemoOptions& options, const tasks::DemoResult& result) {
  for (const tasks::DemoExample& example : result.examples)
    std::cout << '\n' << example.text << "    " << example.right << " of 4 right\n";
  std::cout << "\naccuracy " << 100 * result.accuracy << " % on " << result.asked
            << " questions about fresh rows, after " << result.step << " steps (" << result.parameters
            << " parameters)\n"
            << "model, checkpoints, train.jsonl and attention.svg are in " << options.out << "\n\n"
            << "next:\n";
  print_next("fovea demo --out " + options.out + " --steps " + std::to_string(2 * result.step), "trains on");
  print_next("fovea demo --out other --seed 2", "another network, other rows");
  print_next("fovea pattern \"causal & window(8,0)\" --n 32", "which keys a query may see");
  print_next("fovea --help", "everything else");
}

void run(const tasks::DemoOptions& options) {
  std::cout << "Rows of 16 letters, four of them marked. Asked for a mark, the network learns to say the "
               "letter that\n"
               "wears it, by learning where to look.\n"
            << std::flush;
  const auto started = std::chrono::steady_clock::now();
  const StopSignals signals;
  Progress progress(std::cerr, terminal_columns());
  const tasks::DemoResult result = run_demo(options, progress, [] { return StopSignals::received() != 0; });
  progress.end_line();
  if (result.outcome == train::Outcome::interrupted) {
    std::cerr << "stopped after step " << result.step << ", saved in " << options.out
              << "; the same command goes on from there\n";
    throw CLI::RuntimeError(interrupted_status(StopSignals::received()));
  }
  if (result.outcome == train::Outcome::already_finished)
    std::cout << "already trained: " << options.out << " holds a finished run of " << result.step
              << " steps; --steps with a larger number trains on\n";
  else
    std::cout << "trained in "
              << std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count() << " s\n";
  print_result(options, result);
}

}  // namespace

void add_demo(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("demo", "train the built-in example and show what it learnt");
  auto options = std::make_shared<tasks::DemoOptions>();
  add_fields(*verb, *options);
  add_threads(*verb);
  verb->footer(kFooter);
  verb->callback([options] { run(*options); });
}

}  // namespace fovea::cli
