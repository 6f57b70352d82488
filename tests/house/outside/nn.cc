// A program outside Fovea that trains a layer.
#include <fovea/autograd/ops.h>
#include <fovea/nn/layers.h>
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
  std::printf("outside: loss %.3f, then %.3f\n", first, last);
  return last < first ? 0 : 1;
}
