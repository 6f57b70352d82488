#include "cli/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

namespace fovea::cli {
namespace {

constexpr auto kBetweenLines = std::chrono::milliseconds(100);
constexpr int kShortestBar = 10, kLongestBar = 40;

template <class... Parts>
std::string formatted(const char* format, Parts... parts) {
  char text[160];
  std::snprintf(text, sizeof text, format, parts...);
  return text;
}

// "950", "12.3k", "4.56M".
std::string short_number(double value) {
  if (value < 1e3) return formatted("%.0f", value);
  if (value < 1e6) return formatted("%.3gk", value / 1e3);
  return formatted("%.3gM", value / 1e6);
}

std::string bar(const train::StepReport& report, int width) {
  const double share = static_cast<double>(report.step) / static_cast<double>(report.steps);
  const int full = static_cast<int>(share * width);
  std::string text = " ";
  for (int i = 0; i < width; ++i) text += i < full ? "█" : "░";
  return text;
}

}  // namespace

std::string clock_text(double seconds) {
  const auto whole = static_cast<long long>(seconds + 0.5);
  if (whole < 3600) return formatted("%lld:%02lld", whole / 60, whole % 60);
  return formatted("%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string progress_text(const train::StepReport& report) {
  const std::string end = report.steps < train::kAnySteps ? "/" + std::to_string(report.steps) : "";
  return formatted("step %lld%s  loss %.4f  |g| %.3g  rate %.2e  %s %s/s  %s left",
                   static_cast<long long>(report.step), end.c_str(), report.loss, report.gradient_norm,
                   report.learning_rate, short_number(report.items_per_second).c_str(), report.unit.c_str(),
                   clock_text(report.seconds_left).c_str());
}

void Progress::on_resume(int64_t step) {
  end_line();
  out_ << "resuming after step " << step << std::endl;
}

void Progress::on_step(const train::StepReport& report) {
  if (columns_ == 0) {
    if (report.logged) out_ << progress_text(report) << std::endl;
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (now - shown_ < kBetweenLines && report.step < report.steps) return;
  shown_ = now;
  std::string text = progress_text(report);
  const int room = columns_ - 1 - static_cast<int>(text.size());
  if (room < 0)
    text.resize(static_cast<size_t>(columns_ - 1));  // never wraps: a wrapped line cannot be written over
  else if (room > kShortestBar && report.steps < train::kAnySteps)
    text += bar(report, std::min(room - 1, kLongestBar));
  out_ << '\r' << text << "\x1b[K" << std::flush;
  open_ = true;
}

void Progress::on_validation(const train::ValidationReport& report) {
  end_line();
  out_ << formatted("step %lld  validation %.4f%s", static_cast<long long>(report.step), report.result.value,
                    report.is_best ? "  best so far" : "");
  for (const auto& [name, value] : report.result.details) out_ << formatted("  %s %.4g", name.c_str(), value);
  out_ << std::endl;
}

void Progress::end_line() {
  if (open_) out_ << std::endl;
  open_ = false;
}

namespace {

// 0 when the file is no terminal.
int columns_of(int file) {
  winsize size{};
  if (!isatty(file)) return 0;
  return ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
}

}  // namespace

int terminal_columns() {
  return columns_of(STDERR_FILENO);
}

size_t output_columns() {
  const int columns = columns_of(STDOUT_FILENO);
  return columns > 0 ? static_cast<size_t>(columns) : 100;
}

}  // namespace fovea::cli
