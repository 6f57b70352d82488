// What every model of number sequences is: a network that forecasts the next steps of a series, predicts its
// class, or gives a number for it.
//
// A batch is cut into tokens before anything is learnt: a token is a patch of consecutive steps, of all
// features together or, with independent channels, of one feature alone (PatchTST, Nie et al. 2023). With
// instance normalisation each series is shifted and scaled by its own mean and deviation, and a forecast is
// scaled back (Kim et al. 2022): what the network learns is the shape, not the level, which in real series moves.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "models/size_ranges.h"
#include "nn/attention_pooling.h"
#include "nn/layers.h"

namespace fovea::models {

// Tokens of one series that a model reads at most: with the square of their number grows the time that attention takes.
inline constexpr int64_t kMostSeriesTokens = 1 << 16;

// The settings that every model of series has.
struct SeriesConfig {
  // Of the data.
  int64_t features = 0;  // columns; those to forecast come first
  int64_t known = 0;     // time features
  int64_t window = 0;    // steps of each series; 0: they differ
  int64_t targets = 0;   // columns to forecast; 0: no forecast
  int64_t outputs = 0;   // steps to forecast, classes, or 1
  // Chosen.
  std::string channels = "auto";
  int64_t patch = 0, stride = 0;
  std::string normalize = "auto";
  std::string pooling = "auto";
  std::string score = "additive";
  std::string selection = "soft";
  float dropout = 0.2f;

  static constexpr auto fields() {
    using T = SeriesConfig;
    return std::tuple{
        Sized{"features", &T::features, "columns", between(0, 65536)},
        Sized{"known", &T::known, "time features", between(0, 16)},
        Sized{"window", &T::window, "steps of each series; 0: they differ", between(0, 1 << 24)},
        Sized{"targets", &T::targets, "columns to forecast", between(0, 65536)},
        Sized{"outputs", &T::outputs, "steps to forecast, classes, or 1", between(0, 1e6)},
        Field{
            "channels", &T::channels,
            "mixed (a token contains all features), independent (each feature is a sequence of its own), or "
            "auto: independent for forecasts, mixed otherwise"},
        Sized{"patch", &T::patch, "steps in a token; 0: 16 for forecasts from 64 steps or more, otherwise 1",
              between(0, 1 << 16)},
        Sized{"stride", &T::stride, "steps from one token to the next; 0: half a patch", between(0, 1 << 16)},
        Field{"normalize", &T::normalize,
              "instance (shift and scale each series by its own mean and deviation), none, or auto: instance "
              "for forecasts, none otherwise"},
        Field{"pooling", &T::pooling,
              "how the states of the tokens become one vector: flatten (all side by side; series of equal "
              "length), attention, mean, first, last, or auto: flatten for forecasts, attention otherwise"},
        Field{
            "score", &T::score,
            "pooling by attention: score of the learned query and a state: additive, gated, dot, scaled_dot, "
            "cosine(0.1), bilinear or concat"},
        Field{
            "selection", &T::selection,
            "pooling by attention: how scores become weights: soft, hard, gumbel(1), sparsemax, top_k(4), sigmoid "
            "or identity"},
        Sized{"dropout", &T::dropout, "dropout rate between layers and before the output layer",
              probability()}};
  }
};

// Series one after the other.
struct SeriesBatch {
  Tensor values;                 // [steps of all, features]
  Tensor known = {};             // [steps of all, known]; undefined where there are none
  std::vector<int64_t> lengths;  // steps of each series

  int64_t count() const { return static_cast<int64_t>(lengths.size()); }
};

// What a network reads of a batch. With independent channels a series is as many sequences as it has features.
struct SeriesTokens {
  Tensor x;                      // [tokens, token width]
  std::vector<int64_t> lengths;  // tokens of each sequence
  Tensor mean, deviation;        // [series, features], of instance normalisation; undefined without
};

// How a batch becomes tokens: the settings, with what "auto" stands for.
struct SeriesForm {
  bool forecast = false, independent = false, instance = false;
  int64_t features = 0, known = 0, patch = 1, stride = 1;

  // Throws Error on names that are unknown and numbers that do not fit.
  explicit SeriesForm(const SeriesConfig& config);
  // Values in a token, and in a step of it: the features it holds (one or all), then the time features.
  int64_t step_width() const { return (independent ? 1 : features) + known; }
  int64_t token_width() const { return patch * step_width(); }
  // Tokens of a series. The last token ends with the last step; the first one repeats the first step where
  // it begins before it.
  int64_t tokens(int64_t steps) const {
    return steps <= patch ? 1 : 1 + (steps - patch + stride - 1) / stride;
  }
  // The first step of a token, which may be negative.
  int64_t first_step(int64_t token, int64_t steps) const {
    return steps - patch - (tokens(steps) - 1 - token) * stride;
  }
  SeriesTokens cut(const SeriesBatch& batch) const;
};

// What a batch's answers should be: labels, or numbers [series, outputs] ([series, targets, outputs] of a
// forecast).
struct SeriesTargets {
  std::vector<int32_t> labels = {};
  Tensor numbers = {};
};

class SeriesModel : public nn::Module {
 public:
  // -> [series, outputs], or of a forecast [series, targets, outputs], scaled as the values of the batch.
  Var outputs(const SeriesBatch& batch, nn::Context& context) const;
  // The same, from tokens: x is tokens.x, or a variable of this value that gets a gradient.
  Var outputs(const SeriesTokens& tokens, const Var& x, nn::Context& context) const;
  // What the output layer reads of each sequence: its states, summed up. For those who look at a part of a batch.
  Var summary(const Var& x, std::span<const int64_t> lengths, nn::Context& context) const;
  // Pooling flatten: the sum over outputs of |what they take from each token's state|. summary: [1, ...] of the
  // sequence of this number within its series.
  std::vector<float> flattened_shares(const Tensor& summary, int64_t sequence) const;
  // What training minimises: the mean cross entropy of labels, or the mean squared error of numbers. What hard
  // attention drew on the way is rewarded by the loss of its series (nn/choices.h).
  Var loss(const SeriesBatch& batch, const SeriesTargets& targets, float smoothing,
           nn::Context& context) const;

  // Throws Error, beginning with `place`, when a series of so many steps cannot be read: one that is too long, or, of a
  // model that reads series of one length only, of another length.
  void check_steps(int64_t steps, const std::string& place) const;

  const SeriesConfig& settings() const { return settings_; }
  const SeriesForm& form() const { return form_; }
  // How a sequence is summed up: what "auto" stands for is settled.
  const std::string& pooling() const { return pooling_; }

 protected:
  // Parameters of this class: attention... (nn::AttentionPooling), output... Call add_head() last, so that
  // they follow the encoder's.
  SeriesModel(const SeriesConfig& config, const char* model, std::vector<std::string> poolings);
  // state_width: of the encoder's states.
  void add_head(int64_t state_width, Rng& rng);
  // x: [tokens, token width] -> states [tokens, state width].
  virtual Var encode(const Var& x, std::span<const int64_t> lengths, nn::Context& context) const = 0;

  // At most kMostSeriesTokens.
  virtual int64_t most_tokens() const { return kMostSeriesTokens; }

 private:
  Var summed_up(const Var& states, std::span<const int64_t> lengths, nn::Context& context) const;
  std::vector<int64_t> sequences_of_series(size_t sequences) const;

  SeriesConfig settings_;
  SeriesForm form_;
  std::string pooling_;
  std::unique_ptr<nn::AttentionPooling> attention_;
  std::unique_ptr<nn::Linear> output_;
};

}  // namespace fovea::models
