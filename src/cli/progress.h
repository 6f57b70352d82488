// Training as a person watches it: one line that changes on a terminal, plain lines elsewhere.
#pragma once

#include <chrono>
#include <ostream>
#include <string>

#include "tasks/training_run.h"

namespace fovea::cli {

class Progress : public train::Observer {
 public:
  // `columns` is the terminal's width, 0 for plain lines.
  Progress(std::ostream& out, int columns) : out_(out), columns_(columns) {}
  ~Progress() override { end_line(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void on_resume(int64_t step) override;
  void on_step(const train::StepReport& report) override;
  void on_validation(const train::ValidationReport& report) override;

  // Leaves the changing line, so that something else can be printed.
  void end_line();

 private:
  std::ostream& out_;
  int columns_;
  bool open_ = false;
  std::chrono::steady_clock::time_point shown_{};
};

// Width of the terminal behind standard error; 0 when it is none.
int terminal_columns();
// Width of the terminal behind standard output; 100 when it is none.
size_t output_columns();

// "step 120/600  loss 0.0123  |g| 1.20  rate 3.0e-03  12.3k tokens/s  0:04 left"
std::string progress_text(const train::StepReport& report);
// "0:04", "12:07", "3:02:15".
std::string clock_text(double seconds);

}  // namespace fovea::cli
