// A Transformer encoder layer of width 36 with 6 heads on an input of shape (4, 12, 36): 4 sequences of 12
// steps. The first output of each sequence feeds a classifier, the last one a regression.
#include <fovea/fovea.h>

#include <cstdio>

using namespace fovea;

int main() {
  Rng rng(1);
  const nn::TransformerEncoderLayer layer({.width = 36, .heads = 6, .hidden = 144, .dropout = 0}, rng);
  const nn::Linear classify(36, 3, rng), regress(36, 1, rng);
  const Var x(nn::normal({4, 12, 36}, 0, 1, rng));
  const int32_t labels[] = {0, 2, 1, 2};
  const Var targets(nn::normal({4, 1}, 0, 1, rng));

  std::vector<nn::NamedParameter> parameters = layer.parameters();
  for (const nn::Module* head :
       {static_cast<const nn::Module*>(&classify), static_cast<const nn::Module*>(&regress)})
    for (nn::NamedParameter parameter : head->parameters()) {
      parameter.name = (head == &classify ? "classify." : "regress.") + parameter.name;
      parameters.push_back(parameter);
    }
  train::Optimizer optimizer(parameters, train::Adam{.learning_rate = 0.003});

  nn::Context context{.training = true};
  float first_loss = 0, loss_value = 0;
  for (int step = 0; step < 60; ++step) {
    optimizer.clear_grad();
    const Var y = layer(x, context);                        // [4, 12, 36]
    const Var first = reshape(slice(y, 1, 0, 1), {4, 36});  // one step of each sequence
    const Var last = reshape(slice(y, 1, 11, 1), {4, 36});
    const Var miss = regress(last) - targets;
    const Var loss = cross_entropy(classify(first), labels) + mean(miss * miss);
    loss.backward();
    optimizer.step();
    loss_value = loss.value().item();
    if (step == 0) first_loss = loss_value;
    if (step % 20 == 0) std::printf("step %2d  loss %.4f\n", step, loss_value);
  }
  std::printf("output shape: (4, 12, 36); loss %.4f after 60 steps\n", loss_value);
  return loss_value < 0.1f * first_loss ? 0 : 1;
}
