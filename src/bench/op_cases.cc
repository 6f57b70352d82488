// The cases of `fovea bench ops`: inputs, one step of work each, and the work that cannot be avoided.
#include "bench/op_cases.h"

#include <memory>
#include <numeric>

#include "autograd/ops.h"
#include "base/error.h"
#include "models/bert_pretraining.h"
#include "models/glimpse.h"
#include "models/mobilenet.h"
#include "models/resnet.h"
#include "models/show_attend_tell.h"
#include "nn/gates.h"
#include "nn/layers.h"
#include "nn/recurrent.h"
#include "train/optimizer.h"

namespace fovea::bench {
namespace {

constexpr int64_t kTokens = 4096, kWidth = 512;

Tensor normal(const Shape& shape, uint64_t seed) {
  Rng rng(seed);
  Tensor x(shape);
  for (float& value : x.span()) value = rng.normal();
  return x;
}

Var trained(const Shape& shape, uint64_t seed) {
  return Var(normal(shape, seed), true);
}

// A step that drops the gradients of `leaves`, computes, and goes back from a fixed gradient of the result.
std::function<void()> forward_and_back(std::vector<Var> leaves, const Shape& result,
                                       std::function<Var()> forward) {
  return [leaves = std::move(leaves), seed = normal(result, 99), forward = std::move(forward)] {
    for (const Var& leaf : leaves) leaf.clear_grad();
    forward().backward(seed);
  };
}

OpCase linear_case() {
  constexpr int64_t kOut = 2048;
  return {
      .name = "linear", .shape = "4096x512 -> 2048", .flops = 3 * 2. * kTokens * kWidth * kOut, .make = [] {
        const Var x = trained({kTokens, kWidth}, 1), weight = trained({kOut, kWidth}, 2),
                  bias = trained({kOut}, 3);
        return forward_and_back({x, weight, bias}, {kTokens, kOut}, [=] { return linear(x, weight, bias); });
      }};
}

OpCase layer_norm_case() {
  return {.name = "layer_norm",
          .shape = "4096x512",
          .bytes = 5. * kTokens * kWidth * 4,  // x, y; x, dy, dx
          .make = [] {
            const Var x = trained({kTokens, kWidth}, 1), weight = trained({kWidth}, 2),
                      bias = trained({kWidth}, 3);
            return forward_and_back({x, weight, bias}, {kTokens, kWidth},
                                    [=] { return layer_norm(x, weight, bias); });
          }};
}

OpCase residual_case() {
  return {.name = "residual_dropout_norm",
          .shape = "4096x512, p = 0.1",
          .bytes = 8. * kTokens * kWidth * 4,  // x, residual, sum, y; sum, dy, dx, dresidual
          .make = [] {
            const Var x = trained({kTokens, kWidth}, 1), residual = trained({kTokens, kWidth}, 2);
            const Var weight = trained({kWidth}, 3), bias = trained({kWidth}, 4);
            return forward_and_back({x, residual, weight, bias}, {kTokens, kWidth}, [=] {
              return residual_dropout_norm(x, residual, weight, bias, 0.1f, 5).normed;
            });
          }};
}

std::vector<int32_t> random_ids(int64_t count, int64_t bound, uint64_t seed) {
  Rng rng(seed);
  std::vector<int32_t> ids(count);
  for (int32_t& id : ids) id = static_cast<int32_t>(rng.below(bound));
  return ids;
}

OpCase cross_entropy_case() {
  constexpr int64_t kClasses = 10000;
  return {.name = "cross_entropy",
          .shape = "4096x10000, smoothing 0.1",
          .bytes = 3. * kTokens * kClasses * 4,  // logits; logits, dlogits
          .make = []() -> std::function<void()> {
            const Var logits = trained({kTokens, kClasses}, 1);
            return [logits, targets = random_ids(kTokens, kClasses, 2)] {
              logits.clear_grad();
              cross_entropy(logits, targets, {.smoothing = 0.1f}).backward();
            };
          }};
}

OpCase embedding_case() {
  constexpr int64_t kRows = 10000;
  return {.name = "embedding",
          .shape = "10000x512, 4096 ids",
          .bytes = 4. * kTokens * kWidth * 4,  // rows, y; dy, drows
          .make = [] {
            const Var table = trained({kRows, kWidth}, 1);
            const auto ids = random_ids(kTokens, kRows, 2);
            return forward_and_back({table}, {kTokens, kWidth}, [=] { return embedding(table, ids); });
          }};
}

// Forward and backward of one recurrent layer over sequences of these lengths.
OpCase recurrent_case(std::string name, std::string shape, nn::RecurrentOptions options, bool lstm,
                      std::vector<int64_t> lengths) {
  const int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  const int64_t directions = options.bidirectional ? 2 : 1;
  const double gates = lstm ? 4 : 3;
  return {
      .name = std::move(name),
      .shape = std::move(shape),
      .flops = 3 * 2. *
               static_cast<double>(tokens * directions * (options.input + options.hidden) * options.hidden) *
               gates,
      .make = [=]() -> std::function<void()> {
        Rng rng(1);
        std::shared_ptr<nn::Recurrent> layer;
        if (lstm)
          layer = std::make_shared<nn::LSTM>(options, rng);
        else
          layer = std::make_shared<nn::GRU>(options, rng);
        const Var x = trained({tokens, options.input}, 2);
        std::vector<Var> leaves{x};
        for (const nn::NamedParameter& parameter : layer->parameters()) leaves.push_back(parameter.value);
        return forward_and_back(leaves, {tokens, options.hidden * directions}, [=] {
          nn::Context context{.training = true};
          return (*layer)(x, lengths, context).out;
        });
      }};
}

// n lengths from `first` to `last`, evenly spread.
std::vector<int64_t> spread_lengths(int64_t n, int64_t first, int64_t last) {
  std::vector<int64_t> lengths(n);
  for (int64_t i = 0; i < n; ++i) lengths[i] = first + (last - first) * i / (n - 1);
  return lengths;
}

std::vector<OpCase> recurrent_cases() {
  const nn::RecurrentOptions wide{.input = 512, .hidden = 512}, narrow{.input = 128, .hidden = 128};
  const nn::RecurrentOptions both_ways{.input = 128, .hidden = 128, .bidirectional = true};
  const std::vector<int64_t> large(64, 32), small(16, 32);
  return {recurrent_case("gru_512", "batch 64, 32 steps, 512 -> 512", wide, false, large),
          recurrent_case("lstm_512", "batch 64, 32 steps, 512 -> 512", wide, true, large),
          recurrent_case("gru_128", "batch 16, 32 steps, 128 -> 128", narrow, false, small),
          recurrent_case("lstm_128", "batch 16, 32 steps, 128 -> 128", narrow, true, small),
          recurrent_case("lstm_ragged", "both ways, batch 64, lengths 10..200, 128", both_ways, true,
                         spread_lengths(64, 10, 200))};
}

// x: [images, size, size, channels] -> filters by a 3 x 3 kernel, padded by 1.
struct ConvCase {
  int64_t images, size, channels, filters, stride, groups;
};

OpCase conv_case(std::string name, std::string shape, const ConvCase& c) {
  const int64_t out = (c.size - 1) / c.stride + 1;
  const double x = static_cast<double>(c.images * c.size * c.size * c.channels);
  const double y = static_cast<double>(c.images * out * out * c.filters);
  return {.name = std::move(name),
          .shape = std::move(shape),
          .flops = 3 * 2. * y * 9 * static_cast<double>(c.channels) / static_cast<double>(c.groups),
          .bytes = 3. * (x + y) * 4,  // x, y; dy, dx; x, dy
          .make = [c, out] {
            const Var images = trained({c.images, c.size, c.size, c.channels}, 1);
            const Var weight = trained({c.filters, c.channels / c.groups, 3, 3}, 2),
                      bias = trained({c.filters}, 3);
            return forward_and_back({images, weight, bias}, {c.images, out, out, c.filters}, [=] {
              return conv2d(images, weight, bias, {.stride = c.stride, .padding = 1, .groups = c.groups});
            });
          }};
}

std::vector<OpCase> conv_cases() {
  return {conv_case("conv_16", "64x32x32x16 -> 16, 3x3", {64, 32, 16, 16, 1, 1}),
          conv_case("conv_64", "64x8x8x64 -> 64, 3x3", {64, 8, 64, 64, 1, 1}),
          conv_case("conv_wide_64", "64x32x32x64 -> 64, 3x3", {64, 32, 64, 64, 1, 1}),
          conv_case("conv_stride", "64x32x32x16 -> 32, 3x3, stride 2", {64, 32, 16, 32, 2, 1}),
          conv_case("conv_depthwise", "16x28x28x64, 3x3 for each channel", {16, 28, 64, 64, 1, 64})};
}

// A row of MobileNet: 3 x 3 for each channel, then 1 x 1 to as many, without norms.
OpCase mobilenet_case(std::string name, int64_t images, int64_t size, int64_t channels) {
  const double places = static_cast<double>(images * size * size), c = static_cast<double>(channels);
  return {.name = std::move(name),
          .shape = message(images, "x", size, "x", size, "x", channels, ", depthwise 3x3 and pointwise"),
          .flops = 3 * 2. * places * c * (9 + c),
          .bytes = 6. * 2 * places * c * 4,  // of both: x, y; dy, dx; x, dy
          .make = [=] {
            const Var x = trained({images, size, size, channels}, 1), deep = trained({channels, 1, 3, 3}, 2),
                      point = trained({channels, channels, 1, 1}, 3);
            return forward_and_back({x, deep, point}, {images, size, size, channels}, [=] {
              return conv2d(conv2d(x, deep, {}, {.padding = 1, .groups = channels}), point);
            });
          }};
}

// A gate on 32 images of 56 x 56 x 64, as between the blocks of a network.
template <class Gate>
OpCase gate_case(const char* name) {
  static constexpr int64_t kImages = 32, kSize = 56, kChannels = 64, kReduction = 16;
  return {.name = name,
          .shape = "32x56x56x64, reduction 16",
          .bytes = 5. * kImages * kSize * kSize * kChannels * 4,  // x, y; x, dy, dx
          .make = [] {
            Rng rng(1);
            const auto gate = std::make_shared<Gate>(kChannels, kReduction, rng);
            const Var x = trained({kImages, kSize, kSize, kChannels}, 2);
            std::vector<Var> leaves{x};
            for (const auto& [parameter, value] : gate->parameters()) leaves.push_back(value);
            return forward_and_back(std::move(leaves), x.shape(), [=] { return (*gate)(x); });
          }};
}

// ResNet-20 on 64 pictures of 32 x 32: forward, backward and a step of SGD.
OpCase resnet_case() {
  constexpr int64_t kPictures = 64, kSize = 32;
  constexpr double kMultiplyAdds = 40.8e6;  // of one picture, forward
  return {.name = "resnet20_step",
          .shape = "64x32x32x3, 10 classes, forward, backward and SGD",
          .flops = 3 * 2 * kMultiplyAdds * kPictures,
          .make = []() -> std::function<void()> {
            Rng rng(1);
            const auto network = std::make_shared<models::ResNet>(models::ResNetConfig{.classes = 10}, rng);
            const auto optimizer = std::make_shared<train::Optimizer>(
                network->parameters(), train::Sgd{.learning_rate = 0.01, .momentum = 0.9});
            const Var x(normal({kPictures, kSize, kSize, 3}, 2));
            std::vector<int32_t> labels;
            for (int32_t i = 0; i < kPictures; ++i) labels.push_back(i % 10);
            return [=] {
              nn::Context context{.training = true};
              optimizer->clear_grad();
              network->loss(x, labels, 0, context).backward();
              optimizer->step();
            };
          }};
}

// Training of Show, Attend and Tell's decoder: the loss of 64 captions and all gradients, features given.
OpCase caption_decoder_case() {
  constexpr int64_t kCaptions = 64, kPlaces = 196, kChannels = 512, kLength = 12, kVocabulary = 3000;
  constexpr double kWords = kCaptions * kLength, kKeys = kCaptions * kPlaces, kW = kWidth;
  return {
      .name = "sat_decoder",
      .shape = "64 captions of 12, 196 places, 512 wide",
      // Keys without a gradient of the features; gates of embedding, context and state; query, readout, output.
      .flops = 2 * 2. * kKeys * kChannels * kW + 3 * 2. * kWords * kW * (12 * kW + kW + 2 * kW + kVocabulary),
      .make = []() -> std::function<void()> {
        Rng rng(1);
        const auto network = std::make_shared<models::ShowAttendTell>(
            models::ShowAttendTellConfig{.vocabulary = kVocabulary, .channels = kChannels}, rng);
        auto batch = std::make_shared<models::CaptionBatch>();
        batch->features = normal({kCaptions, kPlaces, kChannels}, 2);
        batch->in = random_ids(kCaptions * kLength, kVocabulary, 3);
        batch->out = random_ids(kCaptions * kLength, kVocabulary, 4);
        batch->lengths.assign(kCaptions, kLength);
        return [=] {
          network->clear_grad();
          nn::Context context{.training = true, .rng = Rng(5)};
          network->loss(*batch, {}, context).loss.backward();
        };
      }};
}

// Features of one photograph, as captions are trained on them: MobileNet 1.00 up to its eleventh block.
OpCase mobilenet_features_case() {
  return {.name = "mobilenet_features",
          .shape = "224x224 -> 14x14x512, one picture",
          .flops = 2. * 480e6,
          .make = []() -> std::function<void()> {
            Rng rng(1);
            const auto network =
                std::make_shared<models::MobileNet>(models::MobileNetConfig{.blocks = 11}, rng);
            const Var picture(normal({1, 224, 224, 3}, 2));
            return [=] {
              const NoGrad no_grad;
              (*network)(picture, nn::Context{});
            };
          }};
}

std::vector<OpCase> image_cases() {
  return {mobilenet_case("mobilenet_56", 16, 56, 128), mobilenet_case("mobilenet_14", 16, 14, 512),
          gate_case<nn::SqueezeExcite>("se_block"), gate_case<nn::Cbam>("cbam_block"), resnet_case()};
}

OpCase adam_case() {
  constexpr int64_t kTensors = 60, kRows = 326, kColumns = 512;  // 10 M parameters in all
  return {.name = "adam_step",
          .shape = "10 M parameters in 60 tensors",
          .bytes = 7. * kTensors * kRows * kColumns *
                   4,  // weight, gradient and two moments; all but the gradient back
          .make = []() -> std::function<void()> {
            std::vector<nn::NamedParameter> parameters;
            for (int64_t i = 0; i < kTensors; ++i) {
              const Var weight = trained({kRows, kColumns}, i);
              weight.add_grad(normal({kRows, kColumns}, 100 + i));
              parameters.push_back({message("p", i), weight});
            }
            auto optimizer = std::make_shared<train::Optimizer>(std::move(parameters), train::Adam{});
            return [optimizer] { optimizer->step(); };
          }};
}

// Pairs of exactly kLength tokens, of which the first kMasked after [CLS] are to be predicted.
models::PretrainingBatch pretraining_batch(int64_t pairs, int64_t length, int64_t masked,
                                           int64_t vocabulary) {
  Rng rng(5);
  models::PretrainingBatch batch;
  for (int64_t i = 0; i < pairs; ++i) {
    for (int64_t t = 0; t < length; ++t) {
      batch.tokens.push_back(static_cast<int32_t>(rng.below(vocabulary)));
      batch.types.push_back(t >= length / 2);
    }
    for (int64_t m = 1; m <= masked; ++m) {
      batch.places.push_back(static_cast<int32_t>(i * length + m));
      batch.targets.push_back(static_cast<int32_t>(rng.below(vocabulary)));
    }
    batch.lengths.push_back(static_cast<int32_t>(length));
    batch.next.push_back(static_cast<int32_t>(i % 2));
  }
  return batch;
}

// BERT-mini: a whole step of pre-training, optimiser included.
OpCase pretraining_case() {
  constexpr int64_t kPairs = 64, kLength = 128, kMasked = 20, kVocabulary = 30522;
  models::BertPretrainingConfig config;
  config.vocabulary = kVocabulary;
  const auto width = static_cast<double>(config.width), hidden = static_cast<double>(config.hidden);
  const double each_token = static_cast<double>(config.layers) * (4 * width * width + 2 * width * hidden +
                                                                  2 * static_cast<double>(kLength) * width),
               each_masked = width * (width + static_cast<double>(kVocabulary));
  return {.name = "bert_pretraining",
          .shape = "BERT-mini, 64 pairs of 128 tokens, 20 masked",
          .flops = 3 * 2. * kPairs * (kLength * each_token + kMasked * each_masked),
          .make = [=]() -> std::function<void()> {
            Rng rng(6);
            const auto network = std::make_shared<models::BertPretraining>(config, rng);
            const auto optimizer = std::make_shared<train::Optimizer>(
                train::without_decay_on_vectors(network->parameters()),
                train::AdamW{.learning_rate = 1e-4, .epsilon = 1e-6, .bias_correction = false});
            const auto context = std::make_shared<nn::Context>(nn::Context{.training = true, .rng = Rng(7)});
            return [=, batch = pretraining_batch(kPairs, kLength, kMasked, kVocabulary)] {
              optimizer->clear_grad();
              network->loss(batch, *context).backward();
              const double norm = train::gradient_norm(optimizer->parameters()).norm;
              optimizer->step(1e-4, static_cast<float>(train::clip_factor(norm, 1)));
            };
          }};
}

// A step of training the recurrent attention model: forward, backward and Adam.
OpCase ram_case() {
  constexpr int64_t kPictures = 64, kSide = 60;
  models::RamConfig config;
  config.classes = 10, config.glimpses = 8, config.patch = 12, config.scales = 3;
  const auto wide = static_cast<double>(config.hidden), narrow = static_cast<double>(config.features),
             seen = static_cast<double>(config.scales * config.patch * config.patch);
  // Each glimpse: glimpse network and core with all gradients; what is seen and the location network give none to what
  // they read.
  const double each = 2 * (seen * narrow + wide * narrow) + 3 * (2 * narrow * wide + 2 * wide * wide);
  return {.name = "ram_training",
          .shape = "64 scenes 60x60, 8 glimpses 12x12 at 3 scales, 256 features",
          .flops = 2. * kPictures * static_cast<double>(config.glimpses) * each,
          .make = [config]() -> std::function<void()> {
            Rng rng(1);
            const auto network = std::make_shared<models::Ram>(config, rng);
            const auto optimizer = std::make_shared<train::Optimizer>(network->parameters(), train::Adam{});
            const auto context = std::make_shared<nn::Context>(nn::Context{.training = true, .rng = Rng(2)});
            const Tensor scenes = normal({kPictures, kSide, kSide, 1}, 3);
            std::vector<int32_t> labels;
            for (int32_t i = 0; i < kPictures; ++i) labels.push_back(i % 10);
            return [=] {
              optimizer->clear_grad();
              network->loss(scenes, labels, *context).backward();
              optimizer->step();
            };
          }};
}
}  // namespace

const std::vector<OpCase>& op_cases() {
  static const std::vector<OpCase> cases = [] {
    std::vector<OpCase> all{linear_case(), layer_norm_case(), residual_case(), cross_entropy_case()};
    for (OpCase& op : recurrent_cases()) all.push_back(std::move(op));
    for (OpCase& op : conv_cases()) all.push_back(std::move(op));
    for (OpCase& op : image_cases()) all.push_back(std::move(op));
    all.push_back(embedding_case());
    all.push_back(caption_decoder_case());
    all.push_back(mobilenet_features_case());
    all.push_back(adam_case());
    all.push_back(ram_case());
    all.push_back(pretraining_case());
    return all;
  }();
  return cases;
}
}  // namespace fovea::bench
