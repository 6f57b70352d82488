// A program outside Fovea that trains a layer.
#include <fovea/autograd/ops.h>
#include <fovea/nn/gated_loss.h>
#include <fovea/nn/layers.h>
#include <fovea/nn/temporal_attention.h>
#include <fovea/nn/upsample.h>
#include <fovea/train/optimizer.h>

#include <cstdio>

int main() {
  fovea::Rng rng(1);
  const fovea::nn::Linear layer(4, 1, rng);
  const fovea::Var x(fovea::Tensor::full({2, 4}, 1.0f));
  fovea::train::Optimizer optimizer(layer.parameters(), fovea::train::Adam{.learning_rate = 0.1});
  float first = 0, last = 0;
  for (int step = 0; step < 20; ++step) {
    optimizer.clear_grad();
    const fovea::Var miss = layer(x) - 3;
    const fovea::Var loss = fovea::mean(miss * miss);
    (step == 0 ? first : last) = loss.value().item();
    loss.backward();
    optimizer.step();
  }
  // Frames pooled, an image enlarged, and a loss that counts in one place of two.
  const fovea::nn::TemporalAttention pool({.width = 4}, rng);
  const fovea::Var clip = pool(x, std::vector<int64_t>{2}).out;
  const fovea::nn::ConvTranspose2d larger(4, 1, 2, rng, {.stride = 2});
  const fovea::Var image = larger(fovea::reshape(clip, {1, 1, 1, 4}));
  const fovea::Var gated = fovea::nn::gated_loss(image, fovea::Tensor::from({1, 0, 0, 0}, {4}));
  if (gated.value().item() != image.value().data()[0]) return 1;
  std::printf("outside: loss %.3f, then %.3f\n", first, last);
  return last < first ? 0 : 1;
}
