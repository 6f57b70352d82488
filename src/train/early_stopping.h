// Early stopping: the best validation so far, and when to give up waiting for a better one.
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>

#include "base/fields.h"

namespace fovea::train {

class EarlyStopping {
 public:
  struct State {
    std::optional<double> best;
    int64_t best_step = 0;
    int64_t waited = 0;  // validations since the best
    static constexpr auto fields() {
      return std::tuple{Field{"best", &State::best, "best value seen"},
                        Field{"best_step", &State::best_step, "step it was seen at"},
                        Field{"waited", &State::waited, "validations since then"}};
    }
  };

  // Stops after `patience` validations in a row that are not better than the best by more than `min_delta`;
  // patience 0 never stops.
  EarlyStopping(int64_t patience, double min_delta, bool higher_is_better)
      : patience_(patience), min_delta_(min_delta), higher_is_better_(higher_is_better) {}

  // Tells a result; true when its weights are to be kept: it is the best so far, or equal to it, for weights that were
  // trained longer are then preferred (a score may be 0 for many validations while the loss falls). An equal result is no
  // progress. A NaN is never the best.
  bool observe(double value, int64_t step) {
    const bool better = !state.best ? value == value
                                    : (higher_is_better_ ? value > *state.best + min_delta_
                                                         : value < *state.best - min_delta_);
    if (better) {
      state = {value, step, 0};
      return true;
    }
    ++state.waited;
    if (value != state.best) return false;
    state.best_step = step;
    return true;
  }
  bool should_stop() const { return patience_ > 0 && state.waited >= patience_; }

  State state;

 private:
  int64_t patience_;
  double min_delta_;
  bool higher_is_better_;
};

}  // namespace fovea::train
