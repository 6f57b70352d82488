// Image classifiers that look at a picture glimpse by glimpse: the recurrent attention model (RAM, Mnih et al. 2014),
// which chooses where to look next and learns that by REINFORCE, and the same network with differentiable attention
// over a grid of glimpses, as the comparison.
//
// Both share the glimpse network, the recurrent core and the output layer:
//   what     relu(W1 sensor(picture, location))             the pixels of a glimpse (kernels/conv/glimpse.h)
//   where    relu(W2 location)
//   glimpse  relu(W3 [what; where])
//   state    relu(W4 [state; glimpse]), or an LSTM
// and logits = W5 state after the last glimpse. Pictures hold values from 0 (black, as outside of a picture) to 1.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "attention/spec.h"
#include "models/size_ranges.h"
#include "nn/layers.h"
#include "nn/linear_steps.h"
#include "nn/recurrent.h"

namespace fovea::models {

// What both models have.
struct GlimpseSizes {
  int64_t classes = 0;
  int64_t channels = 1;
  int64_t glimpses = 6;
  int64_t patch = 8;
  int64_t scales = 1;
  std::string core = "rnn";
  int64_t hidden = 256;
  int64_t features = 128;

  // Whether `fovea explain` has something to show.
  bool has_attention() const { return true; }

  template <class Owner>
  static constexpr auto fields_of() {
    return std::tuple{
        Sized{"classes", static_cast<int64_t Owner::*>(&GlimpseSizes::classes), "kinds of pictures",
              between(0, 1e6)},
        Sized{"channels", static_cast<int64_t Owner::*>(&GlimpseSizes::channels),
              "channels of a picture: 1 for grey, 3 for colours", between(1, 1024)},
        Sized{"glimpses", static_cast<int64_t Owner::*>(&GlimpseSizes::glimpses), "glimpses of each picture",
              between(1, 1000)},
        Sized{"patch", static_cast<int64_t Owner::*>(&GlimpseSizes::patch),
              "side of a glimpse in pixels, at every scale", between(1, 256)},
        Sized{
            "scales", static_cast<int64_t Owner::*>(&GlimpseSizes::scales),
            "windows of a glimpse: each is twice as wide as the one before, and averaged to the same number of pixels",
            between(1, 8)},
        Field{"core", static_cast<std::string Owner::*>(&GlimpseSizes::core),
              "recurrent core: rnn (with ReLU, as in the paper) or lstm"},
        Sized{"hidden", static_cast<int64_t Owner::*>(&GlimpseSizes::hidden),
              "features of the recurrent state", kWidths},
        Sized{
            "features", static_cast<int64_t Owner::*>(&GlimpseSizes::features),
            "features of what is seen, and of where; also of the hidden layer that chooses the next location",
            kWidths}};
  }
};

struct RamConfig : GlimpseSizes {
  int64_t copies = 1;
  float deviation = 0.15f;
  float reinforce = 0.1f;

  static constexpr auto fields() {
    using T = RamConfig;
    return std::tuple_cat(
        fields_of<T>(),
        std::tuple{
            Sized{"copies", &T::copies, "Monte Carlo copies of each picture in a batch of training",
                  between(1, 1000)},
            Sized{"deviation", &T::deviation,
                  "standard deviation of the locations drawn in training; a picture reaches from -1 to 1",
                  between(double{1e-4f}, 10)},
            Sized{"reinforce", &T::reinforce, "weight of the REINFORCE loss", between(0, 1e6)}});
  }
};

struct SoftGlimpseConfig : GlimpseSizes {
  int64_t grid = 7;
  std::string selection = "soft";

  static constexpr auto fields() {
    using T = SoftGlimpseConfig;
    return std::tuple_cat(
        fields_of<T>(),
        std::tuple{
            Sized{"grid", &T::grid, "glimpses along each side of the grid that attention weighs",
                  between(1, 64)},
            Field{"selection", &T::selection,
                  "how scores become weights: soft, sparsemax, gumbel(1), top_k(4), or hard (REINFORCE)"}});
  }
};

// What a model did with pictures, glimpse by glimpse.
struct GlimpseTrace {
  std::vector<Tensor> locations;  // RAM: [rows, 2], vertical then horizontal, -1 to 1
  std::vector<Tensor> weights;    // soft: [rows, grid * grid]
  std::vector<Tensor> logits;     // [rows, classes]: after each glimpse
};

// Paths drawn at use. Without copies, each location is the mean that the model predicts.
struct Rollouts {
  int64_t copies = 0;
  uint64_t seed = 0;
};

// Parameters: what [features, scales patch^2 channels], where [features, 2], glimpse [hidden, 2 features],
// core [hidden, 2 hidden] (or an LSTM cell's), output [classes, hidden].
class GlimpseClassifier : public nn::Module {
 public:
  // The loss of a batch in training. pictures: [N, H, W, channels]; labels: one class for every picture.
  virtual Var loss(const Tensor& pictures, std::span<const int32_t> labels, nn::Context& context) const = 0;
  // At use, without the tape. rows: pictures, or pictures times copies, those of a picture side by side.
  virtual GlimpseTrace trace(const Tensor& pictures, const Rollouts& rollouts = {}) const = 0;
  // Whether paths can be drawn.
  virtual bool can_roll_out() const = 0;

  const GlimpseSizes& sizes() const { return sizes_; }

 protected:
  using State = LstmState;  // c: of an LSTM alone

  // The layers of one pass, which applies them at every glimpse.
  struct Steps {
    explicit Steps(const GlimpseClassifier& model);
    nn::LinearSteps what, where, glimpse;
    std::optional<nn::LinearSteps> rnn;
  };

  GlimpseClassifier(const GlimpseSizes& sizes, Rng& rng);
  // Throws Error unless pictures are [N, H, W, channels].
  void check_pictures(const Tensor& pictures) const;
  // locations: [N copies, 2] -> features of the glimpses, [N copies, hidden].
  Var see(const Steps& steps, const Tensor& pictures, const Tensor& locations, int64_t copies) const;
  State first_state(int64_t rows) const;
  State next(const Steps& steps, const Var& glimpse, const State& state) const;
  Var classify(const Var& states) const { return output_(states); }
  // Of states [glimpses][rows, hidden], in one product.
  std::vector<Tensor> logits_of(const std::vector<Var>& states) const;

 private:
  GlimpseSizes sizes_;
  nn::Linear what_, where_, glimpse_;
  std::unique_ptr<nn::Linear> rnn_;
  std::unique_ptr<nn::LSTMCell> lstm_;
  nn::Linear output_;
};

// Mnih et al. (2014). The next location is drawn around tanh(locate2(relu(locate1(state)))) and clamped to the picture;
// the first one comes from the state of zeros, so it is learned too. The loss is
//   cross-entropy of the last state
//   + mean (b - R)^2                                  R = 1 where the answer is right, b = baseline(state)
//   - reinforce * mean over rows of sum over glimpses of (R - b) log p(location drawn, before it is clamped)
// Locations are constants to the tape, and the location network and the baseline read the state without passing
// gradients into it: the core and the glimpse network learn from the cross-entropy alone.
// Parameters besides: locate1 [features, hidden], locate2 [2, features], baseline [1, hidden].
class Ram : public GlimpseClassifier {
 public:
  // Throws Error on a config that makes no sense.
  Ram(const RamConfig& config, Rng& rng);

  Var loss(const Tensor& pictures, std::span<const int32_t> labels, nn::Context& context) const override;
  // The loss for given draws: noise [glimpses, N copies, 2] of a standard normal distribution.
  Var loss(const Tensor& pictures, std::span<const int32_t> labels, const Tensor& noise) const;
  GlimpseTrace trace(const Tensor& pictures, const Rollouts& rollouts = {}) const override;
  bool can_roll_out() const override { return true; }

 private:
  struct Walk {
    std::vector<Var> states;        // [rows, hidden]: before the first glimpse, then after each
    std::vector<Var> means;         // [rows, 2]: of the locations, as functions of the states' values
    std::vector<Tensor> drawn;      // [rows, 2]: as drawn
    std::vector<Tensor> locations;  // as looked at
  };
  // noise: [glimpses, N copies, 2], or undefined for the means.
  Walk walk(const Tensor& pictures, int64_t copies, const Tensor& noise) const;

  RamConfig config_;
  nn::Linear locate1_, locate2_, baseline_;
};

// The same network with attention over the glimpses of a grid x grid raster, which are all computed once: before each
// step the state asks, and the step's glimpse is the weighted sum of them. Trained by the cross-entropy alone (with
// the selection hard, by REINFORCE besides).
// Parameters besides: query [features, hidden], key [features, hidden].
class SoftGlimpses : public GlimpseClassifier {
 public:
  SoftGlimpses(const SoftGlimpseConfig& config, Rng& rng);

  Var loss(const Tensor& pictures, std::span<const int32_t> labels, nn::Context& context) const override;
  GlimpseTrace trace(const Tensor& pictures, const Rollouts& rollouts = {}) const override;
  bool can_roll_out() const override { return false; }
  int64_t grid() const { return config_.grid; }

 private:
  struct Walk {
    std::vector<Var> states;      // [N, hidden]: after each glimpse
    std::vector<Tensor> weights;  // [N, grid^2], where requested
  };
  Walk walk(const Tensor& pictures, nn::Context& context, bool weights) const;

  SoftGlimpseConfig config_;
  AttentionSpec spec_;
  nn::Linear query_, key_;
};

}  // namespace fovea::models
