// What models of number sequences share: standardised input cut into tokens, the summary of states, and outputs.
#include "models/series.h"

#include <algorithm>
#include <cmath>

#include "autograd/ops.h"
#include "models/sentences.h"
#include "nn/choices.h"

namespace fovea::models {
namespace {

constexpr float kEpsilon = 1e-5f;  // of instance normalisation

// "auto" stands for `standard`.
std::string settled(const std::string& name, const char* setting, const std::vector<std::string>& choices,
                    const std::string& standard) {
  if (name == "auto") return standard;
  std::string all;
  for (const std::string& choice : choices) {
    if (name == choice) return name;
    all += choice + ", ";
  }
  fail("series: ", setting, " '", name, "', wanted ", all, "or auto");
}

// Mean and deviation of each feature of each series: [series, features].
void moments(const SeriesBatch& batch, Tensor& mean, Tensor& deviation) {
  const int64_t features = batch.values.size(1);
  mean = Tensor({batch.count(), features});
  deviation = Tensor({batch.count(), features});
  const float* values = batch.values.data();
  for (int64_t i = 0; i < batch.count(); ++i) {
    const int64_t steps = batch.lengths[static_cast<size_t>(i)];
    for (int64_t f = 0; f < features; ++f) {
      double sum = 0, squares = 0;
      for (int64_t t = 0; t < steps; ++t) sum += double{values[t * features + f]};
      const double middle = sum / static_cast<double>(steps);
      for (int64_t t = 0; t < steps; ++t) {
        const double apart = double{values[t * features + f]} - middle;
        squares += apart * apart;
      }
      mean.data()[i * features + f] = static_cast<float>(middle);
      deviation.data()[i * features + f] =
          static_cast<float>(std::sqrt(squares / static_cast<double>(steps) + double{kEpsilon}));
    }
    values += steps * features;
  }
}

}  // namespace

SeriesForm::SeriesForm(const SeriesConfig& c)
    : forecast(c.targets > 0),
      independent(settled(c.channels, "channels", {"mixed", "independent"},
                          forecast ? "independent" : "mixed") == "independent"),
      instance(settled(c.normalize, "normalize", {"instance", "none"}, forecast ? "instance" : "none") ==
               "instance"),
      features(c.features),
      known(c.known),
      patch(c.patch > 0                  ? c.patch
            : forecast && c.window >= 64 ? 16
                                         : 1),
      stride(c.stride > 0 ? c.stride : std::max<int64_t>(1, patch / 2)) {
  require(features >= 1, "series: ", features, " features, wanted at least 1");
  require(c.outputs >= 1, "series: ", c.outputs, " outputs, wanted at least 1");
  require(c.targets <= features, "series: ", c.targets, " columns to forecast, but only ", features,
          " in all");
  require(stride <= patch, "series: a stride of ", stride, " steps is more than the patch of ", patch,
          ": steps between tokens would be left out");
  require(!forecast || !independent || c.targets == features, "series: with independent channels, ",
          c.targets, " columns of ", features, " are to be forecast; wanted all");
}

SeriesTokens SeriesForm::cut(const SeriesBatch& batch) const {
  SeriesTokens tokens;
  if (instance) moments(batch, tokens.mean, tokens.deviation);
  const int64_t sequences = independent ? features : 1, held = independent ? 1 : features;
  int64_t total = 0;
  for (const int64_t steps : batch.lengths)
    for (int64_t s = 0; s < sequences; ++s) {
      tokens.lengths.push_back(this->tokens(steps));
      total += tokens.lengths.back();
    }
  tokens.x = Tensor({total, token_width()});
  float* out = tokens.x.data();
  int64_t begin = 0;
  for (int64_t i = 0; i < batch.count(); ++i) {
    const int64_t steps = batch.lengths[static_cast<size_t>(i)], count = this->tokens(steps);
    for (int64_t s = 0; s < sequences; ++s)
      for (int64_t token = 0; token < count; ++token)
        for (int64_t p = 0; p < patch; ++p) {
          const int64_t row = begin + std::clamp<int64_t>(first_step(token, steps) + p, 0, steps - 1);
          for (int64_t f = s; f < s + held; ++f) {
            const float value = batch.values.data()[row * features + f];
            const int64_t moment = i * features + f;
            *out++ =
                instance ? (value - tokens.mean.data()[moment]) / tokens.deviation.data()[moment] : value;
          }
          for (int64_t k = 0; k < known; ++k) *out++ = batch.known.data()[row * known + k];
        }
    begin += steps;
  }
  return tokens;
}

SeriesModel::SeriesModel(const SeriesConfig& config, const char* model, std::vector<std::string> poolings)
    : settings_((check_ranges(config, model), config)), form_(config) {
  const bool flatten =
      form_.forecast && std::find(poolings.begin(), poolings.end(), "flatten") != poolings.end();
  pooling_ = settled(config.pooling, "pooling", poolings, flatten ? "flatten" : "attention");
  require(pooling_ != "flatten" || config.window > 0,
          "series: pooling flatten needs series of equal length; use attention or mean");
  require(config.window == 0 || form_.tokens(config.window) <= kMostSeriesTokens, "series: a window of ",
          config.window, " steps is ", form_.tokens(config.window), " tokens, wanted at most ",
          kMostSeriesTokens, "; a larger patch and stride give fewer");
}

void SeriesModel::check_steps(int64_t steps, const std::string& place) const {
  const int64_t tokens = form_.tokens(steps);
  require(tokens <= most_tokens(), place, ": a series of ", steps, " steps is ", tokens,
          " tokens, but the model reads at most ", most_tokens(), "; cut it, or train with a larger --patch");
  require(pooling_ != "flatten" || tokens == form_.tokens(settings_.window), place, ": a series of ", steps,
          " steps, but the model reads ", settings_.window, " steps of each series");
}

void SeriesModel::add_head(int64_t state_width, Rng& rng) {
  if (pooling_ == "attention") {
    attention_ = std::make_unique<nn::AttentionPooling>(
        nn::AttentionPoolingOptions{
            .width = state_width, .score = settings_.score, .selection = settings_.selection},
        rng);
    add_child("attention", *attention_);
  }
  int64_t in = state_width * (pooling_ == "flatten" ? form_.tokens(settings_.window) : 1);
  if (!form_.forecast && form_.independent) in *= form_.features;
  const int64_t out = settings_.outputs * (form_.forecast && !form_.independent ? settings_.targets : 1);
  output_ = std::make_unique<nn::Linear>(in, out, rng);
  add_child("output", *output_);
}

// How many sequences each series has.
std::vector<int64_t> SeriesModel::sequences_of_series(size_t sequences) const {
  const int64_t each = form_.independent ? form_.features : 1;
  return std::vector<int64_t>(sequences / static_cast<size_t>(each), each);
}

Var SeriesModel::summed_up(const Var& states, std::span<const int64_t> lengths, nn::Context& context) const {
  const auto sequences = static_cast<int64_t>(lengths.size());
  if (pooling_ == "attention") {
    context.rows_of_example = sequences_of_series(lengths.size());
    return (*attention_)(states, lengths, context);
  }
  if (pooling_ == "mean") return nn::mean_pooling(states, lengths);
  if (pooling_ == "flatten") {
    const int64_t tokens = form_.tokens(settings_.window);
    require(std::all_of(lengths.begin(), lengths.end(), [&](int64_t length) { return length == tokens; }),
            "series: the model reads ", settings_.window, " steps of each series, got another number");
    return reshape(states, {sequences, tokens * states.size(1)});
  }
  std::vector<int32_t> places;
  int32_t begin = 0;
  for (const int64_t length : lengths) {
    places.push_back(pooling_ == "first" ? begin : begin + static_cast<int32_t>(length) - 1);
    begin += static_cast<int32_t>(length);
  }
  return gather(states, places);
}

Var SeriesModel::summary(const Var& x, std::span<const int64_t> lengths, nn::Context& context) const {
  return summed_up(encode(x, lengths, context), lengths, context);
}

std::vector<float> SeriesModel::flattened_shares(const Tensor& summary, int64_t sequence) const {
  const int64_t tokens = form_.tokens(settings_.window), all = summary.count(), width = all / tokens;
  const Tensor& weight = output_->weight.value();
  const int64_t begin = !form_.forecast && form_.independent ? sequence * all : 0;
  std::vector<float> shares(static_cast<size_t>(tokens));
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t o = 0; o < weight.size(0); ++o) {
      const float* row = weight.data() + o * weight.size(1) + begin + t * width;
      float part = 0;
      for (int64_t d = 0; d < width; ++d) part += row[d] * summary.data()[t * width + d];
      shares[static_cast<size_t>(t)] += std::abs(part);
    }
  return shares;
}

Var SeriesModel::outputs(const SeriesTokens& tokens, const Var& x, nn::Context& context) const {
  context.rows_of_example.clear();
  const int64_t each = form_.independent ? form_.features : 1;
  const auto series = static_cast<int64_t>(tokens.lengths.size()) / each;
  for (int64_t i = 0; i < series; ++i) {
    int64_t rows = 0;
    for (int64_t s = 0; s < each; ++s) rows += tokens.lengths[static_cast<size_t>(i * each + s)];
    context.rows_of_example.push_back(rows);
  }
  Var whole = dropped(summary(x, tokens.lengths, context), settings_.dropout, context);
  if (!form_.forecast && form_.independent) whole = reshape(whole, {series, -1});
  const Var out = (*output_)(whole);
  if (!form_.forecast) return out;
  const Var steps = reshape(out, {series, settings_.targets, settings_.outputs});
  if (!form_.instance) return steps;
  const auto of_targets = [&](const Tensor& moment) {
    return Var(moment.narrow(1, 0, settings_.targets).contiguous().reshape({series, settings_.targets, 1}));
  };
  return steps * of_targets(tokens.deviation) + of_targets(tokens.mean);
}

Var SeriesModel::outputs(const SeriesBatch& batch, nn::Context& context) const {
  const SeriesTokens tokens = form_.cut(batch);
  return outputs(tokens, Var(tokens.x), context);
}

Var SeriesModel::loss(const SeriesBatch& batch, const SeriesTargets& targets, float smoothing,
                      nn::Context& context) const {
  context.choices.clear();
  const Var found = outputs(batch, context);
  const auto squares = [&](const Var& values) {
    const Var apart = values - Var(targets.numbers);
    return apart * apart;
  };
  const bool classes = !targets.labels.empty();
  const Var loss =
      classes ? cross_entropy(found, targets.labels, {.smoothing = smoothing}) : mean(squares(found));
  if (context.choices.empty()) return loss;
  const Var value = found.detach();
  const Tensor each =
      classes ? cross_entropy(value, targets.labels, {.smoothing = smoothing, .reduction = Reduction::none})
                    .value()
              : mean(reshape(squares(value), {batch.count(), -1}), 1).value();
  return loss + nn::choices_loss(context, each.contiguous().span());
}

}  // namespace fovea::models
