#include "train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace fovea::train {
namespace {

// Of the peak: where one_cycle begins and ends.
constexpr double kCycleStart = 1.0 / 25, kCycleEnd = kCycleStart / 1e4;

}  // namespace

Schedule::Schedule(ScheduleOptions options) : options_(std::move(options)) {
  const ScheduleOptions& o = options_;
  const std::vector<std::string_view> names = {"constant", "noam",   "inverse_sqrt", "cosine",   "step",
                                               "plateau",  "budget", "linear",       "one_cycle"};
  const auto found = std::find(names.begin(), names.end(), o.name);
  if (found == names.end()) fail("unknown schedule ", in_quotes(o.name), name_hint(o.name, names));
  kind_ = static_cast<Kind>(found - names.begin());
  require(o.warmup >= 0, o.name, ": warmup is ", o.warmup, ", wanted at least 0");
  require(kind_ != Kind::noam || (o.warmup > 0 && o.model_size > 0), "noam: warmup is ", o.warmup,
          " and model_size ", o.model_size, ", wanted both above 0");
  require(kind_ != Kind::cosine || o.steps > o.warmup, "cosine: steps is ", o.steps,
          ", wanted more than the warmup of ", o.warmup);
  require(kind_ != Kind::step || o.every > 0 || !o.milestones.empty(),
          "step: wanted every above 0, or milestones");
  require(std::is_sorted(o.milestones.begin(), o.milestones.end()), "step: milestones must rise");
  require(o.warmup_share >= 0 && o.warmup_share <= 1, o.name, ": warmup_share is ", o.warmup_share,
          ", wanted 0 to 1");
  require(kind_ != Kind::one_cycle || o.warmup == 0,
          "one_cycle: the warm-up is a share of the run (warmup_share); got ", o.warmup, " steps");
  require(kind_ != Kind::plateau || (o.factor > 0 && o.factor < 1), "plateau: factor is ", o.factor,
          ", wanted above 0 and below 1");
}

double Schedule::factor(int64_t step, double share) const {
  const ScheduleOptions& o = options_;
  const double s = static_cast<double>(step), w = static_cast<double>(o.warmup);
  if (kind_ == Kind::noam)
    return std::pow(static_cast<double>(o.model_size), -0.5) *
           std::min(std::pow(s, -0.5), s * std::pow(w, -1.5));
  if (kind_ == Kind::budget) {
    double rise = 1;
    if (o.warmup > 0)
      rise = std::min(1.0, s / w);
    else if (o.warmup_share > 0)
      rise = std::min(1.0, share / o.warmup_share);
    return rise * (o.minimum + (1 - o.minimum) * (1 + std::cos(std::numbers::pi * share)) / 2);
  }
  if (kind_ == Kind::linear) {
    if (o.warmup > 0 ? step < o.warmup : share < o.warmup_share)
      return o.warmup > 0 ? s / w : share / o.warmup_share;
    return 1 - share;
  }
  if (kind_ == Kind::one_cycle) {
    const auto between = [](double from, double to, double along) {
      return to + (from - to) * (1 + std::cos(std::numbers::pi * along)) / 2;
    };
    if (share < o.warmup_share) return between(kCycleStart, 1, share / o.warmup_share);
    return between(1, kCycleEnd, o.warmup_share < 1 ? (share - o.warmup_share) / (1 - o.warmup_share) : 0);
  }
  if (step < o.warmup) return o.warmup_start + (1 - o.warmup_start) * s / w;
  const int64_t past = std::max<int64_t>(0, step - 1 - o.warmup);
  switch (kind_) {
    case Kind::constant:
    case Kind::noam:
    case Kind::budget:
    case Kind::linear:
    case Kind::one_cycle:
      break;
    case Kind::inverse_sqrt:
      return std::sqrt(std::max(w, 1.0) / s);
    case Kind::cosine: {
      const double past_share =
          std::min(1.0, static_cast<double>(past) / static_cast<double>(o.steps - o.warmup));
      return o.minimum + (1 - o.minimum) * (1 + std::cos(std::numbers::pi * past_share)) / 2;
    }
    case Kind::step: {
      const auto passed =
          std::upper_bound(o.milestones.begin(), o.milestones.end(), step - 1) - o.milestones.begin();
      const int64_t drops = (o.every > 0 ? past / o.every : 0) + passed;
      return std::pow(o.factor, static_cast<double>(drops));
    }
    case Kind::plateau:
      return std::max(plateau_.factor, o.minimum);
  }
  return 1;
}

void Schedule::observe(double value) {
  if (kind_ != Kind::plateau) return;
  PlateauState& p = plateau_;
  const bool better = !p.best || value < *p.best - std::abs(*p.best) * options_.threshold;
  if (better) p.best = value;
  p.waited = better ? 0 : p.waited + 1;
  if (p.cooling > 0) {
    --p.cooling;
    p.waited = 0;
  }
  if (p.waited > options_.patience) {
    p.factor *= options_.factor;
    p.cooling = options_.cooldown;
    p.waited = 0;
  }
}

Json Schedule::state() const {
  return kind_ == Kind::plateau ? fields_to_json(plateau_) : Json::object();
}

void Schedule::load_state(const Json& json, const std::string& where) {
  PlateauState loaded;
  fields_from_json(json, loaded, where);
  require(loaded.factor > 0 && loaded.factor <= 1 && loaded.waited >= 0 && loaded.cooling >= 0, where,
          ": damaged; got factor ", loaded.factor, ", waited ", loaded.waited, ", cooling ", loaded.cooling);
  plateau_ = loaded;
}

}  // namespace fovea::train
