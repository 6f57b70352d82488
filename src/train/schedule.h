// Schedules: how the learning rate changes with the steps, as a factor on the optimiser's own rate.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/fields.h"
#include "io/json.h"

namespace fovea::train {

// Every schedule may begin with a linear warm-up over `warmup` steps.
struct ScheduleOptions {
  // constant, noam, inverse_sqrt, cosine, step, plateau, budget, linear or one_cycle
  std::string name = "constant";
  int64_t warmup = 0;
  double warmup_share = 0;
  double warmup_start = 0;
  int64_t steps = 0;
  double minimum = 0;
  int64_t model_size = 512;
  double factor = 0.1;
  int64_t every = 0;
  std::vector<int64_t> milestones = {};
  int64_t patience = 10;
  double threshold = 1e-4;
  int64_t cooldown = 0;

  static constexpr auto fields() {
    using S = ScheduleOptions;
    return std::tuple{
        Field{"name", &S::name,
              "constant, noam, inverse_sqrt, cosine, step, plateau, budget, linear or one_cycle"},
        Field{"warmup", &S::warmup, "steps over which the rate rises to its peak"},
        Field{"warmup_share", &S::warmup_share,
              "budget, linear, one_cycle: share of the run over which the rate rises, where warmup is 0"},
        Field{"warmup_start", &S::warmup_start, "share of the peak at which the rise begins"},
        Field{"steps", &S::steps, "cosine: step at which the minimum is reached"},
        Field{"minimum", &S::minimum, "cosine, plateau, budget: smallest share of the peak"},
        Field{"model_size", &S::model_size, "noam: width of the model"},
        Field{"factor", &S::factor, "step, plateau: multiplies the rate at each drop"},
        Field{"every", &S::every, "step: steps between drops"},
        Field{"milestones", &S::milestones, "step: steps after which the rate drops"},
        Field{"patience", &S::patience, "plateau: validations without progress before a drop"},
        Field{"threshold", &S::threshold, "plateau: relative change that counts as progress"},
        Field{"cooldown", &S::cooldown, "plateau: validations after a drop that do not count"}};
  }
};

// With s the step, counted from 1, w the warm-up and p = s - 1 - w the steps before this one since the peak:
//   constant      1
//   noam          model_size^-1/2 * min(s^-1/2, s * w^-3/2)          (Vaswani et al. 2017)
//   inverse_sqrt  sqrt(w / s); w = 0 counts as 1                     (fairseq; s its number of updates)
//   cosine        minimum + (1 - minimum) * (1 + cos(pi * p / (steps - w))) / 2
//   step          factor^(drops so far): after every `every` steps, and after each milestone
//   plateau       falls by `factor` when validation has not got better for more than `patience` times
//   budget        min(1, s / w) * (minimum + (1 - minimum) * (1 + cos(pi * share)) / 2), where share is how
//                 much of the run is over, be it steps or time; with w = 0, min(1, share / warmup_share)
//   linear        1 - share, as BERT's; while s < w, s / w; with w = 0, while share < warmup_share, share / warmup_share
//   one_cycle     with u = share / warmup_share below 1: 1 / 25 + (1 - 1 / 25) * (1 - cos(pi * u)) / 2, then a
//                 cosine down to 1 / 250 000 at the end of the run   (Smith 2018; PyTorch's OneCycleLR)
// and, but for noam, budget, linear and one_cycle, while s < w: warmup_start + (1 - warmup_start) * s / w instead.
class Schedule {
 public:
  // Throws Error on an unknown name or a setting out of range.
  explicit Schedule(ScheduleOptions options);

  // The factor for this step, counted from 1. share: how much of the run is over, 0 to 1; only budget, linear and one_cycle ask.
  double factor(int64_t step, double share = 0) const;
  // Tells a validation result, smaller is better; only plateau listens.
  void observe(double value);

  const ScheduleOptions& options() const { return options_; }
  // What a checkpoint keeps.
  Json state() const;
  void load_state(const Json& json, const std::string& where);

  struct PlateauState {
    double factor = 1;
    std::optional<double> best;
    int64_t waited = 0, cooling = 0;
    static constexpr auto fields() {
      using S = PlateauState;
      return std::tuple{Field{"factor", &S::factor, "product of the drops so far"},
                        Field{"best", &S::best, "best value seen"},
                        Field{"waited", &S::waited, "validations since then"},
                        Field{"cooling", &S::cooling, "validations that still do not count"}};
    }
  };

 private:
  enum class Kind { constant, noam, inverse_sqrt, cosine, step, plateau, budget, linear, one_cycle };

  ScheduleOptions options_;
  Kind kind_;
  PlateauState plateau_;
};

}  // namespace fovea::train
