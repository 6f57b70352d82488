// gate_images(): what the forward pass keeps for the backward pass, and the calls of the fused kernels.
#include "autograd/ops_gates.h"

#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "autograd/optional.h"
#include "kernels/gates/image_gate.h"

namespace fovea {
namespace {

kernels::GateShape checked_shape(const Var& x) {
  require(x.rank() == 4 && x.size(1) > 0 && x.size(2) > 0 && x.size(3) > 0,
          "gate_images: got input of shape ", x.shape(), ", wanted [images, height, width, channels]");
  require(x.size(1) * x.size(2) <= std::numeric_limits<int32_t>::max(), "gate_images: images of ", x.size(1),
          " x ", x.size(2), " are too large");
  return {x.size(0), x.size(1), x.size(2), x.size(3)};
}

void check(const ChannelGate& gate, const Var& x) {
  const int64_t channels = x.size(3);
  require(gate.weight1.rank() == 2 && gate.weight1.size(1) == channels,
          "gate_images: got a first weight of shape ", gate.weight1.shape(), " for input ", x.shape(),
          ", wanted [hidden, ", channels, "]");
  const int64_t hidden = gate.weight1.size(0);
  require(gate.weight2.shape() == Shape{channels, hidden}, "gate_images: got a second weight of shape ",
          gate.weight2.shape(), " for input ", x.shape(), ", wanted [", channels, ", ", hidden, "]");
  const auto check_bias = [](const Var& bias, int64_t size) {
    require(!bias.defined() || bias.shape() == Shape{size}, "gate_images: got a bias of shape ",
            bias.defined() ? bias.shape() : Shape{}, ", wanted [", size, "]");
  };
  check_bias(gate.bias1, hidden);
  check_bias(gate.bias2, channels);
}

void check(const SpatialGate& gate) {
  const int64_t k = gate.weight.rank() == 4 ? gate.weight.size(3) : 0;
  require(k % 2 == 1 && gate.weight.shape() == Shape{1, 2, k, k}, "gate_images: got a kernel of shape ",
          gate.weight.shape(), ", wanted [1, 2, k, k] with an odd k");
}

// What the forward pass leaves for the backward pass.
struct KeptChannels {
  KeptChannels(const ChannelGate& g, const kernels::GateShape& s)
      : parameters(g),
        weight1(g.weight1.value().contiguous()),
        weight2(g.weight2.value().contiguous()),
        pooled(Shape{s.images, g.with_max ? 2 : 1, s.channels}),
        features(Shape{s.images, g.with_max ? 2 : 1, weight1.size(0)}),
        gate(Shape{s.images, s.channels}),
        place(static_cast<size_t>(g.with_max ? gate.count() : 0)) {}

  kernels::ChannelGate arrays() {
    return {.hidden = weight1.size(0),
            .with_max = parameters.with_max,
            .weight1 = weight1.data(),
            .bias1 = data_or_null(parameters.bias1),
            .weight2 = weight2.data(),
            .bias2 = data_or_null(parameters.bias2),
            .pooled = pooled.data(),
            .place = place.data(),
            .features = features.data(),
            .gate = gate.data()};
  }

  ChannelGate parameters;
  Tensor weight1, weight2, pooled, features, gate;
  std::vector<int32_t> place;
};

struct ChannelGradients {
  explicit ChannelGradients(const KeptChannels& kept)
      : logits(kept.gate.shape()),
        features(kept.features.shape()),
        weight1(kept.weight1.shape()),
        weight2(kept.weight2.shape()),
        bias1(gradient_for(kept.parameters.bias1)),
        bias2(gradient_for(kept.parameters.bias2)) {}

  kernels::ChannelGateGradients arrays() const {
    return {logits.data(),       features.data(), weight1.data(),
            data_or_null(bias1), weight2.data(),  data_or_null(bias2)};
  }
  void add_to(const ChannelGate& parameters) const {
    parameters.weight1.add_grad(weight1);
    parameters.weight2.add_grad(weight2);
    if (bias1.defined()) parameters.bias1.add_grad(bias1);
    if (bias2.defined()) parameters.bias2.add_grad(bias2);
  }

  Tensor logits, features, weight1, weight2, bias1, bias2;
};

struct KeptPlaces {
  KeptPlaces(const SpatialGate& g, const kernels::GateShape& s)
      : parameters(g),
        weight(g.weight.value().contiguous()),
        maps(Shape{s.images, s.height, s.width, 2}),
        gate(Shape{s.images, s.height, s.width}),
        channel(static_cast<size_t>(gate.count())) {}

  kernels::SpatialGate arrays() {
    return {.kernel = weight.size(3),
            .weight = weight.data(),
            .maps = maps.data(),
            .channel = channel.data(),
            .gate = gate.data()};
  }

  SpatialGate parameters;
  Tensor weight, maps, gate;
  std::vector<int32_t> channel;
};

// A gate that is there, or none.
struct Kept {
  std::shared_ptr<KeptChannels> channels;
  std::shared_ptr<KeptPlaces> places;
};

void backward(const Var& x, const Tensor& from, const kernels::GateShape& shape, const Kept& kept,
              const Tensor& grad) {
  const Tensor dx = gradient_for(x);
  kernels::ImageGateBackward args{
      .shape = shape, .x = from.data(), .dy = grad.data(), .dx = data_or_null(dx)};
  kernels::ChannelGate channel;
  kernels::ChannelGateGradients d_channel;
  std::optional<ChannelGradients> channel_gradients;
  if (kept.channels) {
    channel = kept.channels->arrays();
    d_channel = channel_gradients.emplace(*kept.channels).arrays();
    args.channel = &channel;
    args.d_channel = &d_channel;
  }
  kernels::SpatialGate spatial;
  kernels::SpatialGateGradients d_spatial;
  Tensor d_logits, d_weight;
  if (kept.places) {
    spatial = kept.places->arrays();
    d_logits = Tensor(kept.places->gate.shape());
    d_weight = Tensor(kept.places->weight.shape());
    d_spatial = {d_logits.data(), d_weight.data()};
    args.spatial = &spatial;
    args.d_spatial = &d_spatial;
  }
  kernels::image_gate_backward(args);
  if (dx.defined()) x.add_grad(dx);
  if (kept.channels) channel_gradients->add_to(kept.channels->parameters);
  if (kept.places) kept.places->parameters.weight.add_grad(d_weight);
}

}  // namespace

GatedImages gate_images(const Var& x, const ChannelGate& channel, const SpatialGate& spatial) {
  const kernels::GateShape shape = checked_shape(x);
  require(channel.weight1.defined() || spatial.weight.defined(),
          "gate_images: got no weights, wanted those of channels, of places or both");
  const Tensor from = x.value().contiguous(), y(x.shape());
  kernels::ImageGateForward args{.shape = shape, .x = from.data(), .y = y.data()};
  Kept kept;
  GatedImages result;
  kernels::ChannelGate channels;
  if (channel.weight1.defined()) {
    check(channel, x);
    kept.channels = std::make_shared<KeptChannels>(channel, shape);
    channels = kept.channels->arrays();
    args.channel = &channels;
    result.channel = kept.channels->gate;
  }
  kernels::SpatialGate places;
  if (spatial.weight.defined()) {
    check(spatial);
    kept.places = std::make_shared<KeptPlaces>(spatial, shape);
    places = kept.places->arrays();
    args.spatial = &places;
    result.spatial = kept.places->gate;
  }
  kernels::image_gate_forward(args);
  result.y = record(y, {x, channel.weight1, channel.bias1, channel.weight2, channel.bias2, spatial.weight},
                    [=](const Tensor& grad) { backward(x, from, shape, kept, grad); });
  return result;
}

}  // namespace fovea
