// Any text as a training's log: a curve of finite points, whose picture can be drawn.
#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "explain/chart.h"
#include "folder.h"
#include "tasks/learning_curve.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace fovea;
  try {
    const tasks::LearningCurve curve = tasks::read_curve(as_text(bytes, size));
    for (const auto* points : {&curve.training_loss, &curve.validation_loss, &curve.score})
      for (const ChartPoint& point : *points)
        if (std::isnan(point.x) || std::isnan(point.y)) std::abort();
    if (size < 400)
      draw(Chart{.across = "step",
                 .series = {{"loss", curve.validation_loss}, {curve.score_name, curve.score, true}}},
           PictureFormat::svg);
  } catch (const Error&) {
  }
  return 0;
}
