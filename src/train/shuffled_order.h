// The order in which a run visits its examples: every epoch a new permutation, and a position that a
// checkpoint can keep.
#pragma once

#include <cstdint>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/fields.h"
#include "base/rng.h"

namespace fovea::train {

class ShuffledOrder {
 public:
  // An epoch's permutation depends on seed and epoch alone, so the position is two numbers.
  struct Position {
    uint64_t seed = 0;
    int64_t epoch = 0, index = 0;
    static constexpr auto fields() {
      return std::tuple{Field{"seed", &Position::seed, "names the permutations"},
                        Field{"epoch", &Position::epoch, "passes finished"},
                        Field{"index", &Position::index, "examples visited in this pass"}};
    }
  };

  ShuffledOrder(int64_t count, uint64_t seed) : position_{seed, 0, 0}, order_(static_cast<size_t>(count)) {
    require(count > 0, "no examples to train on");
    shuffle();
  }

  // The next example's number, in [0, count).
  int64_t next() {
    if (position_.index == static_cast<int64_t>(order_.size())) {
      ++position_.epoch;
      position_.index = 0;
      shuffle();
    }
    return order_[static_cast<size_t>(position_.index++)];
  }

  const Position& position() const { return position_; }
  // Throws Error when the position does not fit the number of examples.
  void seek(const Position& position) {
    require(
        position.epoch >= 0 && position.index >= 0 && position.index <= static_cast<int64_t>(order_.size()),
        "example ", position.index, " of epoch ", position.epoch, " among ", order_.size(),
        " examples; did the data change since the checkpoint?");
    position_ = position;
    shuffle();
  }

 private:
  void shuffle() {
    std::iota(order_.begin(), order_.end(), int64_t{0});
    Rng rng = Rng(position_.seed).split(static_cast<uint64_t>(position_.epoch));
    for (size_t i = order_.size(); i > 1; --i)
      std::swap(order_[i - 1], order_[static_cast<size_t>(rng.below(static_cast<int64_t>(i)))]);
  }

  Position position_;
  std::vector<int64_t> order_;
};

}  // namespace fovea::train
