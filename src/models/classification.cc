#include "models/classification.h"

#include "autograd/ops.h"
#include "autograd/ops_loss.h"
#include "nn/choices.h"

namespace fovea::models {
namespace {

// The loss of logits, as `reduction` says; smoothing: of one label.
Var loss_of(const Var& logits, const data::Targets& targets, float smoothing, Reduction reduction) {
  switch (targets.form) {
    case data::LabelForm::one:
      break;
    case data::LabelForm::several:
      return binary_cross_entropy(logits, targets.values, reduction);
    case data::LabelForm::number:
      return squared_error(logits, targets.values, reduction);
  }
  return cross_entropy(logits, targets.labels, {.smoothing = smoothing, .reduction = reduction});
}

}  // namespace

void ClassificationModel::read_as(data::LabelForm form) {
  require(form_ == data::LabelForm::one, "a classifier's form of labels can be chosen only once");
  form_ = form;
  if (form != data::LabelForm::number) return;
  target_scale_ = add_buffer("target_scale", Tensor(Shape{2}));
  set_target_scale(0, 1);
}

void ClassificationModel::set_target_scale(float mean, float deviation) {
  require(target_scale_.defined(),
          "a scale of targets needs a model that predicts numbers: call read_as() first");
  require(deviation > 0, "numbers to predict: a deviation of ", deviation, ", wanted one above 0");
  float* const scale = target_scale_.value().data();
  scale[0] = deviation;
  scale[1] = mean;
}

ClassificationModel::TargetScale ClassificationModel::target_scale() const {
  if (!target_scale_.defined()) return {};
  const float* const scale = target_scale_.value().data();
  return {.mean = scale[1], .deviation = scale[0]};
}

Var ClassificationModel::outputs(const Sentences& texts, nn::Context& context) const {
  const Var scores = logits(texts, context);
  if (form_ != data::LabelForm::number) return scores;
  const TargetScale scale = target_scale();
  return scores * scale.deviation + scale.mean;
}

Var ClassificationModel::loss(const Sentences& texts, const data::Targets& targets, float smoothing,
                              nn::Context& context) const {
  require(targets.form == form_, "loss: targets of another form than the model's");
  context.choices.clear();
  data::Targets scaled = targets;
  if (form_ == data::LabelForm::number)
    for (float& value : scaled.values) value = (value - target_scale().mean) / target_scale().deviation;
  const Var scores = logits(texts, context);
  const Var mean = loss_of(scores, scaled, smoothing, Reduction::mean);
  if (context.choices.empty()) return mean;
  const Tensor each = loss_of(scores.detach(), scaled, smoothing, Reduction::none).value();
  return mean + nn::choices_loss(context, each.contiguous().span());
}

Var ClassificationModel::loss(const Sentences& texts, std::span<const int32_t> labels, float smoothing,
                              nn::Context& context) const {
  return loss(texts, data::Targets{.labels = {labels.begin(), labels.end()}}, smoothing, context);
}

PairFeatures::PairFeatures(int64_t width, Rng& rng) : hidden_(4 * width, width, rng) {
  add_child("hidden", hidden_);
}

Var PairFeatures::operator()(const Var& encoded) const {
  std::vector<int32_t> firsts, seconds;
  for (int32_t i = 0; i < encoded.size(0); i += 2) {
    firsts.push_back(i);
    seconds.push_back(i + 1);
  }
  const Var u = gather(encoded, firsts), v = gather(encoded, seconds), difference = u - v;
  const Var distance = relu(difference) + relu(-difference);
  return tanh(hidden_(concat(std::vector<Var>{u, v, distance, u * v}, 1)));
}

void check_classes(const ClassSettings& s) {
  require(s.vocabulary > data::kSpecials, s.model, ": a vocabulary of ", s.vocabulary,
          " tokens, wanted more than the ", data::kSpecials, " special ones");
  require(s.classes >= 1, s.model, ": ", s.classes, " classes, wanted at least 1");
}

}  // namespace fovea::models
