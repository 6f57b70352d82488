#include "models/series_lstm.h"

namespace fovea::models {

SeriesLstm::SeriesLstm(const SeriesLstmConfig& config, Rng& rng)
    : SeriesModel(config, "lstm", {"attention", "mean", "first", "last"}),
      encoder_((check_ranges(config, "lstm"), nn::RecurrentOptions{.input = form().token_width(),
                                                                   .hidden = config.width,
                                                                   .layers = config.layers,
                                                                   .bidirectional = config.bidirectional,
                                                                   .dropout = config.dropout}),
               rng) {
  add_child("encoder", encoder_);
  add_head(config.width * encoder_.directions(), rng);
}

Var SeriesLstm::encode(const Var& x, std::span<const int64_t> lengths, nn::Context& context) const {
  return encoder_(x, lengths, context).out;
}

}  // namespace fovea::models
