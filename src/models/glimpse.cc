// The glimpse network and its recurrent core, with places chosen by REINFORCE (RAM) or by differentiable attention, and
// their losses.
#include "models/glimpse.h"

#include <algorithm>

#include "attention/attention.h"
#include "autograd/ops.h"
#include "autograd/ops_gaussian.h"
#include "io/record_file.h"
#include "kernels/conv/glimpse.h"
#include "models/class_loss.h"
#include "nn/choices.h"

namespace fovea::models {
namespace {

const GlimpseSizes& checked(const GlimpseSizes& sizes) {
  require(sizes.classes > 0, "glimpse model: classes must be above 0");
  require(sizes.core == "rnn" || sizes.core == "lstm", "glimpse model: core '", sizes.core,
          "', wanted rnn or lstm");
  return sizes;
}

template <class Config>
const Config& in_range(const Config& config) {
  check_ranges(config, "glimpse model");
  return config;
}

// Standard normal draws, each a function of the seed and its place.
Tensor normal_noise(const Shape& shape, uint64_t seed) {
  Tensor noise(shape);
  Rng rng(seed);
  for (float& value : noise.span()) value = rng.normal();
  return noise;
}

// Draws for `copies` paths over each picture, which depend on the seed and on the picture itself: a picture's paths are the
// same alone and beside others. [glimpses, pictures copies, 2]
Tensor rollout_noise(const Tensor& pictures, int64_t glimpses, const Rollouts& rollouts) {
  const int64_t count = pictures.size(0), row = 2 * rollouts.copies;
  const Tensor values = pictures.contiguous(), noise({glimpses, count * rollouts.copies, 2});
  const auto pixels = static_cast<size_t>(values.count() / std::max<int64_t>(1, count));
  for (int64_t i = 0; i < count; ++i) {
    const std::span<const float> picture(values.data() + static_cast<size_t>(i) * pixels, pixels);
    const Tensor own = normal_noise({glimpses, row}, checksum_of(std::as_bytes(picture), rollouts.seed));
    for (int64_t g = 0; g < glimpses; ++g)
      std::copy_n(own.data() + g * row, row, noise.data() + (g * count + i) * row);
  }
  return noise;
}

// The centres of the cells of a raster over the picture, for every picture: [pictures grid^2, 2].
Tensor raster(int64_t pictures, int64_t grid) {
  Tensor places({pictures * grid * grid, 2});
  const auto centre = [&](int64_t i) { return static_cast<float>(2 * i + 1) / static_cast<float>(grid) - 1; };
  float* out = places.data();
  for (int64_t p = 0; p < pictures; ++p)
    for (int64_t i = 0; i < grid; ++i)
      for (int64_t j = 0; j < grid; ++j) {
        *out++ = centre(i);
        *out++ = centre(j);
      }
  return places;
}

// 1 where the largest logit is the label's. logits: [pictures copies, classes].
std::vector<float> rewards(const Tensor& logits, std::span<const int32_t> labels, int64_t copies) {
  const int64_t rows = logits.size(0), classes = logits.size(1);
  std::vector<float> rewards;
  for (int64_t r = 0; r < rows; ++r) {
    const float* const row = logits.data() + r * classes;
    const auto found = static_cast<int32_t>(std::max_element(row, row + classes) - row);
    rewards.push_back(found == labels[static_cast<size_t>(r / copies)] ? 1.0f : 0.0f);
  }
  return rewards;
}

std::vector<int32_t> repeated(std::span<const int32_t> labels, int64_t copies) {
  std::vector<int32_t> all;
  for (const int32_t label : labels) all.insert(all.end(), static_cast<size_t>(copies), label);
  return all;
}

}  // namespace

GlimpseClassifier::GlimpseClassifier(const GlimpseSizes& sizes, Rng& rng)
    : sizes_(checked(sizes)),
      what_(sizes.scales * sizes.patch * sizes.patch * sizes.channels, sizes.features, rng),
      where_(2, sizes.features, rng),
      glimpse_(2 * sizes.features, sizes.hidden, rng),
      output_(sizes.hidden, sizes.classes, rng) {
  add_child("what", what_);
  add_child("where", where_);
  add_child("glimpse", glimpse_);
  if (sizes.core == "lstm") {
    lstm_ = std::make_unique<nn::LSTMCell>(sizes.hidden, sizes.hidden, rng);
    add_child("core", *lstm_);
  } else {
    rnn_ = std::make_unique<nn::Linear>(2 * sizes.hidden, sizes.hidden, rng);
    add_child("core", *rnn_);
  }
  add_child("output", output_);
}

void GlimpseClassifier::check_pictures(const Tensor& pictures) const {
  require(pictures.rank() == 4 && pictures.size(3) == sizes_.channels && pictures.size(1) > 0 &&
              pictures.size(2) > 0,
          "glimpse model: got pictures of shape ", pictures.shape(), ", wanted [pictures, height, width, ",
          sizes_.channels, "]");
}

GlimpseClassifier::Steps::Steps(const GlimpseClassifier& model)
    : what(model.what_), where(model.where_), glimpse(model.glimpse_) {
  if (model.rnn_) rnn.emplace(*model.rnn_);
}

Var GlimpseClassifier::see(const Steps& steps, const Tensor& pictures, const Tensor& locations,
                           int64_t copies) const {
  const kernels::GlimpseShape shape{.pictures = pictures.size(0),
                                    .height = pictures.size(1),
                                    .width = pictures.size(2),
                                    .channels = sizes_.channels,
                                    .copies = copies,
                                    .patch = sizes_.patch,
                                    .scales = sizes_.scales};
  const Tensor seen({shape.rows(), shape.features()});
  kernels::glimpses(shape, pictures.data(), locations.data(), seen.data());
  const Var parts[] = {steps.what(Var(seen), Activation::relu),
                       steps.where(Var(locations), Activation::relu)};
  return steps.glimpse(concat(parts, 1), Activation::relu);
}

GlimpseClassifier::State GlimpseClassifier::first_state(int64_t rows) const {
  const Var zeros(Tensor::zeros({rows, sizes_.hidden}));
  return {zeros, lstm_ ? zeros : Var()};
}

GlimpseClassifier::State GlimpseClassifier::next(const Steps& steps, const Var& glimpse,
                                                 const State& state) const {
  if (lstm_) return (*lstm_)(glimpse, state);
  const Var parts[] = {state.h, glimpse};
  return {(*steps.rnn)(concat(parts, 1), Activation::relu), {}};
}

std::vector<Tensor> GlimpseClassifier::logits_of(const std::vector<Var>& states) const {
  const Tensor all = output_(concat(states, 0)).value().contiguous();
  const int64_t rows = states[0].size(0);
  std::vector<Tensor> logits;
  for (size_t t = 0; t < states.size(); ++t)
    logits.push_back(all.narrow(0, static_cast<int64_t>(t) * rows, rows));
  return logits;
}

Ram::Ram(const RamConfig& config, Rng& rng)
    : GlimpseClassifier(in_range(config), rng),
      config_(config),
      locate1_(config.hidden, config.features, rng),
      locate2_(config.features, 2, rng),
      baseline_(config.hidden, 1, rng) {
  add_child("locate1", locate1_);
  add_child("locate2", locate2_);
  add_child("baseline", baseline_);
}

Ram::Walk Ram::walk(const Tensor& pictures, int64_t copies, const Tensor& noise) const {
  check_pictures(pictures);
  const int64_t rows = pictures.size(0) * copies;
  const Steps steps(*this);
  State state = first_state(rows);
  Walk walk{{state.h}, {}, {}, {}};
  const nn::LinearSteps locate1(locate1_), locate2(locate2_);
  for (int64_t t = 0; t < config_.glimpses; ++t) {
    const Var mean = tanh(locate2(locate1(state.h.detach(), Activation::relu)));
    const Tensor drawn = mean.value().clone();
    if (noise.defined())
      for (int64_t i = 0; i < 2 * rows; ++i)
        drawn.data()[i] += config_.deviation * noise.data()[t * 2 * rows + i];
    const Tensor location(drawn.shape());
    for (int64_t i = 0; i < 2 * rows; ++i) location.data()[i] = std::clamp(drawn.data()[i], -1.0f, 1.0f);
    state = next(steps, see(steps, pictures, location, copies), state);
    walk.states.push_back(state.h);
    walk.means.push_back(mean);
    walk.drawn.push_back(drawn);
    walk.locations.push_back(location);
  }
  return walk;
}

Var Ram::loss(const Tensor& pictures, std::span<const int32_t> labels, nn::Context& context) const {
  const int64_t rows = pictures.size(0) * config_.copies;
  return loss(pictures, labels, normal_noise({config_.glimpses, rows, 2}, context.next_seed()));
}

Var Ram::loss(const Tensor& pictures, std::span<const int32_t> labels, const Tensor& noise) const {
  const int64_t rows = pictures.size(0) * config_.copies, glimpses = config_.glimpses;
  require(noise.shape() == Shape{glimpses, rows, 2}, "glimpse model: got noise of shape ", noise.shape(),
          ", wanted [", glimpses, ", ", rows, ", 2]");
  Walk path = walk(pictures, config_.copies, noise);
  const Var logits = classify(path.states.back());
  const Var cross = cross_entropy(logits, repeated(labels, config_.copies));

  // The states that locations were chosen in, all at once: the baseline is one product.
  std::vector<Var> before, drawn;
  for (int64_t t = 0; t < glimpses; ++t) {
    before.push_back(path.states[static_cast<size_t>(t)].detach());
    drawn.emplace_back(path.drawn[static_cast<size_t>(t)]);
  }
  const Var states = concat(before, 0);
  const Var expected = reshape(baseline_(states), {glimpses * rows});
  const std::vector<float> right = rewards(logits.value(), labels, config_.copies);
  const Tensor reward({glimpses * rows});
  for (int64_t t = 0; t < glimpses; ++t) std::copy(right.begin(), right.end(), reward.data() + t * rows);
  const Var miss = expected - Var(reward);
  const Var log_p =
      gaussian_log_probability(concat(path.means, 0), concat(drawn, 0).value(), config_.deviation);
  const float weight = config_.reinforce * static_cast<float>(glimpses);
  return cross + mean(miss * miss) + reinforce_loss(log_p, reward, expected.value()) * weight;
}

GlimpseTrace Ram::trace(const Tensor& pictures, const Rollouts& rollouts) const {
  const NoGrad no_grad;
  Walk path = walk(pictures, std::max<int64_t>(1, rollouts.copies),
                   rollouts.copies > 0 ? rollout_noise(pictures, config_.glimpses, rollouts) : Tensor());
  path.states.erase(path.states.begin());
  return {std::move(path.locations), {}, logits_of(path.states)};
}

SoftGlimpses::SoftGlimpses(const SoftGlimpseConfig& config, Rng& rng)
    : GlimpseClassifier(in_range(config), rng),
      config_(config),
      spec_{.selection = nn::trained_selection(config.selection, "glimpse model")},
      query_(config.hidden, config.features, rng),
      key_(config.hidden, config.features, rng) {
  add_child("query", query_);
  add_child("key", key_);
}

SoftGlimpses::Walk SoftGlimpses::walk(const Tensor& pictures, nn::Context& context, bool weights) const {
  check_pictures(pictures);
  const int64_t count = pictures.size(0), places = config_.grid * config_.grid;
  const Steps steps(*this);
  const Var seen = see(steps, pictures, raster(count, config_.grid), places);
  const Var keys = reshape(key_(seen), {count, 1, places, config_.features});
  const Var values = reshape(seen, {count, 1, places, config_.hidden});
  State state = first_state(count);
  Walk walk;
  for (int64_t t = 0; t < config_.glimpses; ++t) {
    AttentionRequest request{
        .training = context.training,
        .weights = weights,
        .name = "glimpse",
        .site = {
            .kind = AttentionSite::Kind::other, .grid_height = config_.grid, .grid_width = config_.grid}};
    if (context.training && draws(spec_.selection)) request.seed = context.next_seed();
    const Var query = reshape(query_(state.h), {count, 1, 1, config_.features});
    const AttentionResult found = attend(query, keys, values, spec_, request);
    if (found.log_probability.defined()) nn::keep_choices(context, found.log_probability);
    state = next(steps, reshape(found.output, {count, config_.hidden}), state);
    walk.states.push_back(state.h);
    if (weights) walk.weights.push_back(found.weights.contiguous().reshape({count, places}));
  }
  return walk;
}

Var SoftGlimpses::loss(const Tensor& pictures, std::span<const int32_t> labels, nn::Context& context) const {
  context.rows_of_example.assign(static_cast<size_t>(pictures.size(0)), 1);
  const Var logits = classify(walk(pictures, context, false).states.back());
  return class_loss(logits, labels, 0, context);
}

GlimpseTrace SoftGlimpses::trace(const Tensor& pictures, const Rollouts& rollouts) const {
  require(rollouts.copies == 0, "rollouts: attention over a grid draws no paths at use");
  const NoGrad no_grad;
  nn::Context context;
  Walk path = walk(pictures, context, true);
  return {{}, std::move(path.weights), logits_of(path.states)};
}

}  // namespace fovea::models
