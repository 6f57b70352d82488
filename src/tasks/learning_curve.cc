#include "tasks/learning_curve.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "io/file.h"
#include "io/json.h"

namespace fovea::tasks {
namespace {

void add(const Json& line, const char* name, std::vector<ChartPoint>& points) {
  if (line.contains(name) && line[name].is_number())
    points.push_back({line["step"].get<double>(), line[name].get<double>()});
}

}  // namespace

LearningCurve read_curve(std::string_view log) {
  LearningCurve curve;
  while (!log.empty()) {
    const size_t end = std::min(log.find('\n'), log.size());
    const Json line = Json::parse(log.substr(0, end), nullptr, false);
    log.remove_prefix(std::min(end + 1, log.size()));
    if (!line.is_object() || !line.contains("step") || !line["step"].is_number()) continue;
    if (line.value("event", Json()) == "step") add(line, "loss", curve.training_loss);
    if (line.value("event", Json()) != "validation") continue;
    add(line, "valid_loss", curve.validation_loss);
    curve.score_name = line.contains("bleu")       ? "BLEU"
                       : line.contains("accuracy") ? "accuracy, %"
                       : line.contains("micro_f1") ? "micro F1, %"
                       : line.contains("pearson")  ? "Pearson correlation x 100"
                                                   : "score";
    add(line, "value", curve.score);
  }
  return curve;
}

bool still_improving(const LearningCurve& curve, bool lower_is_better) {
  if (curve.score.size() < 4) return false;
  const double sign = lower_is_better ? -1 : 1;
  const ChartPoint last = curve.score.back();
  double before = lower_is_better ? -std::numeric_limits<double>::infinity() : 0, best = sign * last.y;
  for (const ChartPoint& point : curve.score) {
    if (point.x <= last.x * 2 / 3) before = std::max(before, sign * point.y);
    best = std::max(best, sign * point.y);
  }
  return sign * last.y >= best && std::isfinite(before) && sign * last.y - before > 0.1 * std::abs(last.y);
}

void write_curve(const std::filesystem::path& run) {
  const LearningCurve curve = read_curve(read_text(run / "train.jsonl"));
  const Chart chart{.across = "step",
                    .series = {{"validation loss", curve.validation_loss},
                               {curve.score_name, curve.score, true},
                               {"training loss", curve.training_loss, false, false}}};
  write_atomically(run / "curve.svg", draw(chart, PictureFormat::svg));
}

}  // namespace fovea::tasks
