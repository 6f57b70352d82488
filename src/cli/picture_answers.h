// Pictures answered one after the other, a few at a time, so that memory does not grow with their number; and what to do
// with those that cannot be read.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>

#include "cli/answer_lines.h"
#include "tasks/picture_source.h"

namespace fovea::cli {

struct PictureFlags {
  OnError on_error = OnError::skip;
  bool chosen =
      false;  // --on-error was given; otherwise a bad picture ends the program with exit status 2, at the end
};

// --on-error stop|empty|skip.
void add_picture_errors(CLI::App& verb, PictureFlags& flags);

// Calls print for each picture with its answer; one that cannot be used is named on standard error. Throws the exit
// status of a call with bad pictures, or Error at the first one, as the flags say.
void answer_pictures(
    const tasks::OpenFolder& model, const tasks::AnswerOptions& options, const tasks::PictureSource& pictures,
    const PictureFlags& flags,
    const std::function<void(const tasks::Input& input, const tasks::Answer& answer)>& print);

}  // namespace fovea::cli
