#include "cli/picture_answers.h"

#include <iostream>

#include "base/error.h"
#include "cli/output.h"

namespace fovea::cli {

void add_picture_errors(CLI::App& verb, PictureFlags& flags) {
  add_on_error(verb, flags.on_error);
  verb.get_option("--on-error")
      ->description(
          "what to do with a picture that cannot be used: stop, empty (answer without a text) or skip (no answer) "
          "(default: skip it, name it, and end with exit status 2)");
}

void answer_pictures(
    const tasks::OpenFolder& model, const tasks::AnswerOptions& options, const tasks::PictureSource& pictures,
    const PictureFlags& flags,
    const std::function<void(const tasks::Input& input, const tasks::Answer& answer)>& print) {
  constexpr size_t kAtOnce = 32;
  model.check(options);
  const OnError on_error = flags.chosen ? flags.on_error : OnError::skip;
  InputReport report(model.contents().input() == tasks::InputForm::clip ? "clip" : "picture");
  for (size_t first = 0; first < pictures.size(); first += kAtOnce) {
    const size_t count = std::min(kAtOnce, pictures.size() - first);
    std::vector<tasks::Input> inputs(count);
    std::vector<std::string> faults(count);
    for (size_t i = 0; i < count; ++i) try {
        inputs[i].name = pictures.name(first + i);
        inputs[i] = pictures.read(first + i);
      } catch (const Error& error) {
        faults[i] = error.what();
      }
    std::vector<tasks::Answer> answers = model.answer(inputs, options);
    for (size_t i = 0; i < count; ++i) {
      if (!faults[i].empty()) answers[i].error = faults[i];
      const std::string& error = answers[i].error;
      if (error.empty() || on_error == OnError::empty) print(inputs[i], answers[i]);
      if (error.empty()) continue;
      if (on_error == OnError::stop) fail(error);
      std::cerr << "fovea: " << error << '\n';
      report.count_bad(error);
    }
    if (!flush_output()) break;
  }
  if (report.bad() > 0 && !flags.chosen) throw CLI::RuntimeError(2);
}

}  // namespace fovea::cli
