#include "models/vit.h"

#include "autograd/ops.h"
#include "models/encoder_options.h"
#include "models/sentences.h"
#include "nn/init.h"

namespace fovea::models {
namespace {

// Deviation of the first class token and positions, as published.
constexpr float kDeviation = 0.02f;

const VitConfig& checked(const VitConfig& c) {
  check_ranges(c, "vit");
  require(c.classes > 0, "vit: classes must be above 0");
  require(c.positions == "learned" || c.positions == "none", "vit: positions '", c.positions,
          "', wanted learned or none");
  require(c.picture_height % c.patch == 0 && c.picture_width % c.patch == 0, "vit: pictures of ",
          c.picture_height, " x ", c.picture_width, " cannot be cut into patches of ", c.patch, " x ",
          c.patch, "; choose a patch that divides both sides");
  return c;
}

}  // namespace

Vit::Vit(const VitConfig& config, Rng& rng)
    : config_(checked(config)),
      patches_(config.channels, config.width, config.patch, rng, {.stride = config.patch}),
      encoder_(encoder_options(config, self_attention_spec(config.self_attention)), config.layers,
               config.norm_first, rng),
      output_(config.width, config.classes, rng) {
  add_child("patches", patches_);
  class_token_ = add_parameter("class_token", nn::normal({1, config.width}, 0, kDeviation, rng));
  const Size2d grid = patch_grid();
  if (config.positions == "learned")
    positions_ =
        add_parameter("positions", nn::normal({1 + grid.h * grid.w, config.width}, 0, kDeviation, rng));
  add_child("encoder", encoder_);
  add_child("output", output_);
}

Var Vit::logits(const Var& x, nn::Context& context) const {
  require(x.rank() == 4 && x.size(1) == config_.picture_height && x.size(2) == config_.picture_width &&
              x.size(3) == config_.channels,
          "vit: got pictures of shape ", x.shape(), ", wanted [pictures, ", config_.picture_height, ", ",
          config_.picture_width, ", ", config_.channels, "]");
  const int64_t pictures = x.size(0), width = config_.width;
  const int64_t tokens = 1 + patch_grid().h * patch_grid().w;
  // One class token for all pictures: the gradient of the repetition is their sum.
  const Var first = reshape(class_token_, {1, 1, width}) + Var(Tensor::zeros({pictures, 1, width}));
  const Var parts[] = {first, reshape(patches_(x), {pictures, tokens - 1, width})};
  Var read = concat(parts, 1);
  if (positions_.defined()) read = read + positions_;
  context.rows_of_example.assign(static_cast<size_t>(pictures), tokens);
  const Var states = encoder_(dropped(read, config_.dropout, context), context);
  return output_(reshape(slice(states, 1, 0, 1), {pictures, width}));
}

}  // namespace fovea::models
