// Any text as a training's log: a curve whose points are numbers.
#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "folder.h"
#include "tasks/learning_curve.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace fovea;
  try {
    const tasks::LearningCurve curve = tasks::read_curve(as_text(bytes, size));
    for (const auto* points : {&curve.training_loss, &curve.validation_loss, &curve.score})
      for (const ChartPoint& point : *points)
        if (std::isnan(point.x) || std::isnan(point.y)) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
