// Sequences of numbers read by LSTMs and summed up by one learned query.
#pragma once

#include <tuple>

#include "models/series.h"
#include "nn/recurrent.h"

namespace fovea::models {

struct SeriesLstmConfig : SeriesConfig {
  int64_t width = 64;
  int64_t layers = 1;
  bool bidirectional = true;

  // Whether `fovea explain` has weights to show.
  bool has_attention() const { return pooling == "attention" || pooling == "auto"; }

  static constexpr auto fields() {
    using T = SeriesLstmConfig;
    return std::tuple_cat(
        SeriesConfig::fields(),
        std::tuple{Sized{"width", &T::width, "features of the states of each direction", kWidths},
                   Sized{"layers", &T::layers, "stacked recurrent layers", kLayers},
                   Field{"bidirectional", &T::bidirectional, "read the series in both directions"}});
  }
};

// Parameters: encoder... (nn::LSTM), attention..., output...
class SeriesLstm : public SeriesModel {
 public:
  // Throws Error on a config that makes no sense.
  SeriesLstm(const SeriesLstmConfig& config, Rng& rng);

 private:
  Var encode(const Var& x, std::span<const int64_t> lengths, nn::Context& context) const override;

  nn::LSTM encoder_;
};

}  // namespace fovea::models
