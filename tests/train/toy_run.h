// A small run that the loop's tests share: a network with dropout and batch norm (whose running moments are
// buffers) learns what another network computes.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "autograd/ops.h"
#include "data/batches.h"
#include "io/file.h"
#include "nn/conv.h"
#include "nn/init.h"
#include "nn/layers.h"
#include "train/checkpoint.h"
#include "train/trainer.h"

namespace fovea::train {

constexpr int64_t kWidth = 32, kHidden = 600, kExamples = 100, kBatch = 20;

class ToyNetwork : public nn::Module {
 public:
  explicit ToyNetwork(Rng rng) : first(kWidth, kHidden, rng), second(kHidden, kWidth, rng), norm(kHidden) {
    add_child("first", first);
    add_child("norm", norm);
    add_child("second", second);
    scale = add_parameter("scale", Tensor::full({kHidden}, 1));
    shift = add_parameter("shift", Tensor::zeros({kHidden}));
  }
  Var operator()(const Var& x, nn::Context& context) const {
    const Var normed = norm(first(x, Activation::gelu), context);
    const Var hidden = dropout(normed, context.rate(0.1f), context.next_seed());
    return second(layer_norm(hidden, scale, shift));
  }
  nn::Linear first, second;
  nn::BatchNorm2d norm;
  Var scale, shift;
};

// mean((x - target)^2)
inline Var squared_error(const Var& x, const Tensor& target) {
  const Tensor difference = x.value().clone();
  const int64_t count = difference.count();
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    difference.data()[i] -= target.data()[i];
    sum += double{difference.data()[i]} * difference.data()[i];
  }
  return record(Tensor::scalar(static_cast<float>(sum / static_cast<double>(count))), {x},
                [=](const Tensor& gradient) {
                  const Tensor result = difference.clone();
                  for (float& value : result.span()) value *= 2 * gradient.item() / static_cast<float>(count);
                  x.add_grad(result);
                });
}

struct ToyRun {
  explicit ToyRun(TrainOptions wanted, Rule wanted_rule = AdamW{.learning_rate = 3e-3},
                  ScheduleOptions wanted_schedule = {.name = "cosine", .warmup = 5, .steps = 100})
      : options(wanted),
        rule(wanted_rule),
        schedule(wanted_schedule),
        network(Rng(options.seed)),
        order(std::vector<data::BatchOrder::Size>(kExamples, {1, 0}), 1,
              {.max_tokens = kBatch, .seed = options.seed}) {
    Rng rng(77);
    inputs = nn::normal({kExamples, kWidth}, 0, 1, rng);
    const NoGrad no_grad;
    nn::Context context;
    targets = ToyNetwork(Rng(78))(Var(inputs), context).value();
    job.next_loss = [this](nn::Context& c) { return next_loss(c); };
    job.position = [this] { return Json(order.position().text()); };
    job.seek = [this](const Json& json) {
      std::string text;
      value_from_json(json, text, "position");
      order.seek(data::BatchPosition::parse(text));
    };
    job.validate = [this] { return validate(); };
    job.identity = {{"task", "toy"}, {"seed", options.seed}};
  }

  BatchLoss next_loss(nn::Context& context) {
    const std::span<const int64_t> chosen = order.next();
    const auto count = static_cast<int64_t>(chosen.size());
    const Tensor x(Shape{count, kWidth}), y(Shape{count, kWidth});
    for (int64_t i = 0; i < count; ++i) {
      const int64_t example = chosen[static_cast<size_t>(i)];
      x.narrow(0, i, 1).copy_from(inputs.narrow(0, example, 1));
      y.narrow(0, i, 1).copy_from(targets.narrow(0, example, 1));
    }
    return {squared_error(network(Var(x), context), y), static_cast<double>(count)};
  }
  Validation validate() {
    nn::Context context;
    return {squared_error(network(Var(inputs), context), targets).value().item(), {{"examples", kExamples}}};
  }
  Outcome run(const std::filesystem::path& directory, Observer& observer) {
    return Trainer(network, rule, schedule, options, job).run(directory, observer);
  }
  Outcome run(const std::filesystem::path& directory) {
    Observer no_observer;
    return run(directory, no_observer);
  }

  TrainOptions options;
  Rule rule;
  ScheduleOptions schedule;
  ToyNetwork network;
  data::BatchOrder order;
  Tensor inputs, targets;
  Job job;
};

// The bytes that two equal runs share, as a number: gtest would print the bytes themselves.
inline size_t last_bytes(const std::filesystem::path& run) {
  const std::filesystem::path last = run / "checkpoints/last";
  std::string bytes = read_text(last / "model.safetensors") + read_text(last / "optimizer.safetensors");
  for (const std::filesystem::path& kept : RecentWeights(run, 100).files())
    bytes += kept.filename().string() + read_text(kept);
  return std::hash<std::string>()(bytes);
}

}  // namespace fovea::train
