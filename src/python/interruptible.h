// Long work that Ctrl-C ends.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <utility>

#include "base/error_kinds.h"
#include "base/stop_check.h"

namespace fovea::python {

// Calls work() without the GIL. Between its batches and steps (base/stop_check.h) Python handles the signals that came; what
// their handlers raise, such as KeyboardInterrupt, ends the work and is thrown. Python handles signals in its main thread
// alone: elsewhere work() runs to its end.
template <class Work>
auto interruptible(const Work& work) {
  std::optional<nanobind::python_error> raised;
  try {
    const nanobind::gil_scoped_release release;
    const StopCheck stop([&] {
      const nanobind::gil_scoped_acquire acquire;
      if (!raised && PyErr_CheckSignals() != 0) raised.emplace();
      return raised.has_value();
    });
    auto result = work();
    // Work that makes errors of single inputs part of its result may have done so with this one.
    if (!raised) return result;
  } catch (const Interrupted&) {
    if (!raised) throw;
  }
  throw nanobind::python_error(std::move(*raised));
}

}  // namespace fovea::python
