// An LSTM reads a sequence; one learned query looks at its states and weighs them: the classifier that can
// tell which words decided. Here one marked token among noise decides the class, and the weights find it.
#include <fovea/fovea.h>
#include <fovea/nn/attention_pooling.h>

#include <cstdio>
#include <vector>

using namespace fovea;

namespace {

// 6 to 12 tokens; token 1 or 2, at a random place, is the class, the others are noise from 3
// to 19.
struct Batch {
  std::vector<int32_t> ids, labels;
  std::vector<int64_t> lengths;
};

Batch draw(int64_t count, Rng& rng) {
  Batch batch;
  for (int64_t s = 0; s < count; ++s) {
    const auto length = static_cast<int64_t>(6 + rng.below(7)),
               place = static_cast<int64_t>(rng.below(length));
    batch.labels.push_back(static_cast<int32_t>(rng.below(2)));
    batch.lengths.push_back(length);
    for (int64_t t = 0; t < length; ++t)
      batch.ids.push_back(t == place ? 1 + batch.labels.back() : static_cast<int32_t>(3 + rng.below(17)));
  }
  return batch;
}

}  // namespace

int main() {
  Rng rng(3);
  const Var table(nn::normal({20, 16}, 0, 1, rng), true);
  const nn::AttentionPooling pooling({.width = 16}, rng);
  const nn::Linear classify(16, 2, rng);
  std::vector<nn::NamedParameter> parameters{{"table", table}};
  for (const nn::NamedParameter& p : pooling.parameters())
    parameters.push_back({"pooling." + p.name, p.value});
  for (const nn::NamedParameter& p : classify.parameters())
    parameters.push_back({"classify." + p.name, p.value});
  train::Optimizer optimizer(parameters, train::Adam{.learning_rate = 0.02});

  nn::Context context{.training = true};
  float loss_value = 0;
  for (int step = 0; step <= 150; ++step) {
    const Batch batch = draw(32, rng);
    optimizer.clear_grad();
    const Var sums = pooling(embedding(table, batch.ids), batch.lengths, context);
    const Var loss = cross_entropy(classify(sums), batch.labels);
    loss.backward();
    optimizer.step();
    loss_value = loss.value().item();
    if (step % 50 == 0) std::printf("step %3d  loss %.4f\n", step, loss_value);
  }
  return loss_value < 0.1f ? 0 : 1;
}
