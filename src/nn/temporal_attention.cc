#include "nn/frame_pooling.h"

#include <array>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "autograd/ops.h"
#include "base/fields.h"
#include "nn/init.h"

namespace fovea::nn {
namespace {

constexpr std::array kKinds = {std::pair{"dot", FrameWeights::dot},
                               std::pair{"additive", FrameWeights::additive},
                               std::pair{"gated", FrameWeights::gated}, std::pair{"mean", FrameWeights::mean},
                               std::pair{"max", FrameWeights::max}};

// The largest of every feature in each clip; a clip without frames gives 0. x: [frames, d]
Var largest(const Var& x, std::span<const int64_t> lengths) {
  std::vector<Var> clips;
  for (int64_t begin = 0; const int64_t length : lengths) {
    clips.push_back(length == 0 ? Var(Tensor::zeros({1, x.size(1)}))
                                : max(slice(x, 0, begin, length), 0, true));
    begin += length;
  }
  return clips.empty() ? Var(Tensor({0, x.size(1)})) : concat(clips, 0);
}

// Each frame's weight in its own clip. weights: [1, 1, clips, frames] -> [frames].
Tensor own_weights(const Tensor& weights, std::span<const int64_t> lengths) {
  const int64_t frames = weights.size(3);
  const Tensor own({frames});
  int64_t frame = 0;
  for (size_t c = 0; c < lengths.size(); ++c)
    for (int64_t t = 0; t < lengths[c]; ++t, ++frame)
      own.data()[frame] = weights.data()[static_cast<int64_t>(c) * frames + frame];
  return own;
}

}  // namespace

FrameWeights frame_weights_named(const std::string& name) {
  std::vector<std::string_view> known;
  for (const auto& [each, kind] : kKinds) {
    if (name == each) return kind;
    known.emplace_back(each);
  }
  fail("unknown pooling '", name, "'", name_hint(name, known));
}

FramePooling::FramePooling(const FramePoolingOptions& options, Rng& rng) : options_(options) {
  require(options.width > 0 && options.hidden > 0, "frame pooling: got a width of ", options.width, " and ",
          options.hidden, " hidden features, wanted more than 0");
  if (options.kind == FrameWeights::dot) query_ = add_parameter("query", constant({options.width}, 0));
  if (options.kind != FrameWeights::additive && options.kind != FrameWeights::gated) return;
  const float bound = 1 / std::sqrt(static_cast<float>(options.hidden));
  query_ = add_parameter("query", uniform({options.hidden}, -bound, bound, rng));
  v_ = std::make_unique<Linear>(options.width, options.hidden, rng);
  add_child("v", *v_);
  if (options.kind != FrameWeights::gated) return;
  u_ = std::make_unique<Linear>(options.width, options.hidden, rng);
  add_child("u", *u_);
}

Var FramePooling::keys_of(const Var& x) const {
  if (!v_) return x;
  const Var shown = tanh((*v_)(x));
  return u_ ? shown * sigmoid((*u_)(x)) : shown;
}

Var FramePooling::queries(int64_t clips) const {
  // The mean asks for nothing in particular.
  if (!query_.defined()) return Var(Tensor::zeros({1, 1, clips, options_.width}));
  // The gradient of the repetition is the sum over all clips.
  return reshape(query_, {1, 1, 1, query_.size(0)}) + Var(Tensor::zeros({1, 1, clips, 1}));
}

PooledFrames FramePooling::operator()(const Var& x, std::span<const int64_t> lengths, bool weights,
                                      std::string_view name) const {
  const int64_t total = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  require(x.rank() == 2 && x.size(1) == options_.width && x.size(0) == total,
          "frame pooling: got input of shape ", x.shape(), " for ", lengths.size(), " clips with ", total,
          " frames in all, wanted [", total, ", ", options_.width, "]");
  if (options_.kind == FrameWeights::max) return {largest(x, lengths), {}};
  AttentionSpec spec{
      .pattern = documents(std::vector<int64_t>(lengths.size(), 1), {lengths.begin(), lengths.end()})};
  if (options_.kind != FrameWeights::dot) spec.score = dot();  // the learned vector has a scale of its own
  const Var keys = keys_of(x);
  const AttentionResult found =
      attend(queries(static_cast<int64_t>(lengths.size())), reshape(keys, {1, 1, total, keys.size(1)}),
             reshape(x, {1, 1, total, options_.width}), spec,
             {.weights = weights, .name = name, .site = {.kind = AttentionSite::Kind::gate}});
  return {reshape(found.output, {static_cast<int64_t>(lengths.size()), options_.width}),
          weights ? own_weights(found.weights.contiguous(), lengths) : Tensor()};
}

}  // namespace fovea::nn
