#include "cli/answer_lines.h"

#include <iostream>
#include <map>
#include <vector>

#include "base/error.h"
#include "cli/output.h"
#include "tasks/line_source.h"

namespace fovea::cli {
namespace {

// Lines that together have more are answered in parts.
constexpr size_t kBytesAtOnce = size_t{64} << 20;

// Answers the lines that have arrived and prints all of them in order.
void answer_waiting(const tasks::OpenFolder& model, const tasks::AnswerOptions& options, OnError on_error,
                    std::vector<tasks::SourceLine>& waiting, InputReport& report, const PrintAnswer& print) {
  std::vector<tasks::Input> inputs;
  for (const tasks::SourceLine& line : waiting)
    if (line.fault.empty()) inputs.push_back({line.text, line.place});
  std::vector<tasks::Answer> answers = model.answer(inputs, options);
  size_t next = 0;
  for (const tasks::SourceLine& line : waiting) {
    tasks::Answer answer{.error = line.fault};
    if (line.fault.empty()) answer = std::move(answers[next++]);
    if (answer.cut_to > 0) report.count_cut(answer.cut_to);
    if (answer.error.empty() || on_error == OnError::empty) print({line.text}, answer, line.number);
    if (answer.error.empty()) continue;
    if (on_error == OnError::stop) {
      flush_output();
      fail(answer.error);
    }
    report.count_bad(answer.error);
  }
  waiting.clear();
}

}  // namespace

void add_on_error(CLI::App& verb, OnError& on_error) {
  static const std::map<std::string, OnError> names{
      {"stop", OnError::stop}, {"empty", OnError::empty}, {"skip", OnError::skip}};
  verb.add_option_function<std::string>(
          "--on-error", [&on_error](const std::string& name) { on_error = names.at(name); },
          "what to do with an input that cannot be used (not UTF-8, too long): stop, empty (answer with an "
          "empty "
          "line) or skip (no line); empty and skip print how many there were (default stop)")
      ->check(CLI::IsMember({"stop", "empty", "skip"}))
      ->type_name("WORD");
}

void InputReport::count_bad(const std::string& why) {
  if (bad_++ == 0) first_bad_ = why;
}

void InputReport::count_cut(int64_t tokens) {
  ++cut_;
  tokens_ = tokens;
}

void InputReport::print(const std::string& hint) const {
  const auto counted = [&](int64_t count) {
    return message(count, ' ', unit_, count == 1 ? " was" : "s were");
  };
  if (cut_ > 0) std::cerr << "fovea: " << counted(cut_) << " cut to " << tokens_ << " tokens" << hint << '\n';
  if (bad_ > 0) std::cerr << "fovea: " << counted(bad_) << " unusable; the first: " << first_bad_ << '\n';
}

void answer_lines(const tasks::OpenFolder& model, const tasks::AnswerOptions& options, const LineFlags& flags,
                  const PrintAnswer& print) {
  model.check(options);
  tasks::LineSource source(flags.path, flags.max_line_bytes);
  std::vector<tasks::SourceLine> waiting;
  InputReport report("line");
  size_t bytes = 0;  // of the lines that wait
  for (bool more = true; more;) {
    tasks::SourceLine line;
    more = source.next(line);
    const bool unusable = more && !line.fault.empty();
    const bool skipped = more && !unusable && flags.skip != nullptr && flags.skip(line.text);
    if (more && !skipped) {
      bytes += line.text.size();
      waiting.push_back(std::move(line));
    }
    const bool ends = !more || (unusable && flags.on_error == OnError::stop);
    if (!ends && source.waiting() && waiting.size() < flags.lines_at_once && bytes < kBytesAtOnce) continue;
    bytes = 0;
    answer_waiting(model, options, flags.on_error, waiting, report, print);
    if (!flush_output()) break;
  }
  report.print(flags.cut_hint);
}

}  // namespace fovea::cli
