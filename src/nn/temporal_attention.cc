// Pools the frames of clips by attention, mean or maximum; padded clips are packed first, so that missing frames are
// never read.
#include "nn/temporal_attention.h"

#include <array>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "autograd/ops.h"
#include "base/fields.h"
#include "nn/choices.h"
#include "nn/init.h"

namespace fovea::nn {
namespace {

constexpr std::array kKinds = {std::pair{"dot", FramePooling::dot},
                               std::pair{"additive", FramePooling::additive},
                               std::pair{"gated", FramePooling::gated}, std::pair{"mean", FramePooling::mean},
                               std::pair{"max", FramePooling::max}};

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

struct Existing {
  std::vector<int32_t> rows;     // of the frames that exist, clip after clip
  std::vector<int64_t> lengths;  // how many each clip has
  bool some_missing = false;
};

Existing existing_frames(const Frames& frames, int64_t clips, int64_t count) {
  require(frames.lengths.empty() || frames.present.empty(),
          "temporal attention: got both lengths and marks of presence, expected at most one of them");
  require(frames.lengths.empty() || static_cast<int64_t>(frames.lengths.size()) == clips,
          "temporal attention: got ", frames.lengths.size(), " lengths for ", clips,
          " clips, expected one for each");
  require(frames.present.empty() || static_cast<int64_t>(frames.present.size()) == clips * count,
          "temporal attention: got ", frames.present.size(), " marks of presence for ", clips, " clips of ",
          count, " frames, expected ", clips * count);
  for (const int64_t length : frames.lengths)
    require(length >= 0 && length <= count, "temporal attention: got a length of ", length,
            ", expected 0 to ", count, ", the number of frames");
  const auto exists = [&](int64_t clip, int64_t frame) {
    if (!frames.lengths.empty()) return frame < frames.lengths[static_cast<size_t>(clip)];
    return frames.present.empty() || frames.present[static_cast<size_t>(clip * count + frame)] != 0;
  };
  Existing result;
  for (int64_t clip = 0; clip < clips; ++clip) {
    int64_t& length = result.lengths.emplace_back(0);
    for (int64_t frame = 0; frame < count; ++frame) {
      if (!exists(clip, frame)) continue;
      result.rows.push_back(static_cast<int32_t>(clip * count + frame));
      ++length;
    }
  }
  result.some_missing = static_cast<int64_t>(result.rows.size()) < clips * count;
  return result;
}

}  // namespace

FramePooling frame_pooling_named(const std::string& name) {
  std::vector<std::string_view> known;
  for (const auto& [each, kind] : kKinds) {
    if (name == each) return kind;
    known.emplace_back(each);
  }
  fail("unknown pooling '", name, "'", name_hint(name, known));
}

TemporalAttention::TemporalAttention(const TemporalAttentionOptions& options, Rng& rng)
    : options_(options), selection_(trained_selection(options.selection, "temporal attention")) {
  const bool scored = options.pooling != FramePooling::mean && options.pooling != FramePooling::max;
  require(scored || selection_ == soft(), "temporal attention: got the selection '", options.selection,
          "' for a pooling without scores; choose gated, additive or dot, or leave the selection out");
  require(options.width > 0 && options.hidden > 0, "temporal attention: got a width of ", options.width,
          " and ", options.hidden, " hidden features, expected more than 0");
  if (options.pooling == FramePooling::dot) query_ = add_parameter("query", constant({options.width}, 0));
  if (options.pooling != FramePooling::additive && options.pooling != FramePooling::gated) return;
  const float bound = 1 / std::sqrt(static_cast<float>(options.hidden));
  query_ = add_parameter("query", uniform({options.hidden}, -bound, bound, rng));
  v_ = std::make_unique<Linear>(options.width, options.hidden, rng);
  add_child("v", *v_);
  if (options.pooling != FramePooling::gated) return;
  u_ = std::make_unique<Linear>(options.width, options.hidden, rng);
  add_child("u", *u_);
}

Var TemporalAttention::keys_of(const Var& x) const {
  if (!v_) return x;
  const Var shown = tanh((*v_)(x));
  return u_ ? shown * sigmoid((*u_)(x)) : shown;
}

Var TemporalAttention::queries(int64_t clips) const {
  // The mean asks for nothing in particular.
  if (!query_.defined()) return Var(Tensor::zeros({1, 1, clips, options_.width}));
  // The gradient of the repetition is the sum over all clips.
  return reshape(query_, {1, 1, 1, query_.size(0)}) + Var(Tensor::zeros({1, 1, clips, 1}));
}

// features: [frames, d], what the scores are computed from; values: [frames, n], what is pooled.
PooledFrames TemporalAttention::pool(const Var& features, const Var& values, std::span<const int64_t> lengths,
                                     Context& context, bool weights, std::string_view name) const {
  if (options_.pooling == FramePooling::max) return {largest(values, lengths), {}};
  const auto clips = static_cast<int64_t>(lengths.size());
  AttentionSpec spec{
      .pattern = documents(std::vector<int64_t>(lengths.size(), 1), {lengths.begin(), lengths.end()})};
  if (options_.pooling != FramePooling::dot) spec.score = dot();  // the learned vector has a scale of its own
  spec.selection = selection_;
  AttentionRequest request{.training = context.training,
                           .weights = weights,
                           .name = name,
                           .site = {.kind = AttentionSite::Kind::gate}};
  if (context.training && draws(selection_)) request.seed = context.next_seed();
  const Var keys = keys_of(features);
  const AttentionResult found =
      attend(queries(clips), reshape(keys, {1, 1, keys.size(0), keys.size(1)}),
             reshape(values, {1, 1, values.size(0), values.size(1)}), spec, request);
  if (found.log_probability.defined()) keep_choices(context, found.log_probability);
  return {reshape(found.output, {clips, values.size(1)}),
          weights ? own_weights(found.weights.contiguous(), lengths) : Tensor()};
}

PooledFrames TemporalAttention::operator()(const Var& x, std::span<const int64_t> lengths, bool weights,
                                           std::string_view name) const {
  Context use;
  return (*this)(x, lengths, use, weights, name);
}

PooledFrames TemporalAttention::operator()(const Var& x, std::span<const int64_t> lengths, Context& context,
                                           bool weights, std::string_view name) const {
  const int64_t total = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  require(x.rank() == 2 && x.size(1) == options_.width && x.size(0) == total,
          "temporal attention: got input of shape ", x.shape(), " for ", lengths.size(), " clips with ",
          total, " frames in all, expected [", total, ", ", options_.width, "]");
  return pool(x, x, lengths, context, weights, name);
}

Var TemporalAttention::operator()(const Var& x, const Frames& frames, std::string_view name) const {
  const int64_t width = options_.width;
  require((x.rank() == 3 || x.rank() == 5) && x.size(-1) == width, "temporal attention: got input of shape ",
          x.shape(), ", expected [clips, frames, ", width, "] or [clips, frames, height, width, ", width,
          "]");
  const int64_t clips = x.size(0), places = x.rank() == 5 ? x.size(2) * x.size(3) : 1;
  const Existing existing = existing_frames(frames, clips, x.size(1));
  Var values = reshape(x, {clips * x.size(1), places * width});
  if (existing.some_missing) values = gather(values, existing.rows);
  const Var features =
      places == 1 ? values : mean(reshape(values, {values.size(0), places, width}), 1, false);
  Context use;
  const Var out = pool(features, values, existing.lengths, use, false, name).out;
  return x.rank() == 3 ? out : reshape(out, {clips, x.size(2), x.size(3), width});
}

}  // namespace fovea::nn
