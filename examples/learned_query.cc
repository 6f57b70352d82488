// A learned query attends to the embeddings of a sequence, and their weighted sum is classified: a classifier that shows
// which words decided. Here one token among noise decides the class. Training knows only the classes; on new sequences the
// largest weight must be on that token.
#include <fovea/fovea.h>
#include <fovea/nn/attention_pooling.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <vector>

using namespace fovea;

namespace {

// 6 to 12 tokens of noise, 3 to 19. In two of three sequences, token 1 or 2 at a random place decides the class; class 0
// has neither. (Of two classes, one could be learnt as the absence of the other's token.)
struct Batch {
  std::vector<int32_t> ids, labels;
  std::vector<int64_t> lengths;
};

Batch draw(int64_t count, Rng& rng) {
  Batch batch;
  for (int64_t s = 0; s < count; ++s) {
    const auto length = static_cast<int64_t>(6 + rng.below(7)),
               place = static_cast<int64_t>(rng.below(length));
    batch.labels.push_back(static_cast<int32_t>(rng.below(3)));
    batch.lengths.push_back(length);
    for (int64_t t = 0; t < length; ++t)
      batch.ids.push_back(t == place && batch.labels.back() > 0 ? batch.labels.back()
                                                                : static_cast<int32_t>(3 + rng.below(17)));
  }
  return batch;
}

// Keeps the place of the largest weight of each sequence, counted among the tokens of the whole batch.
class LargestWeights : public AttentionObserver {
 public:
  Capture capture(const Call& call) override {
    Capture all{.heads = {0}, .rows = std::vector<int32_t>(static_cast<size_t>(call.queries))};
    std::iota(all.rows.begin(), all.rows.end(), 0);  // one row for each sequence
    return all;
  }
  void observe(const Call& call, const Capture& /*capture*/, const Captured& captured) override {
    for (int64_t s = 0; s < call.queries; ++s) {
      const float* const weights = captured.weights.data() + s * call.keys;
      places.push_back(static_cast<size_t>(std::max_element(weights, weights + call.keys) - weights));
    }
  }
  std::vector<size_t> places;
};

}  // namespace

int main() {
  Rng rng(3);
  const Var table(nn::normal({20, 16}, 0, 1, rng), true);
  const nn::AttentionPooling pooling({.width = 16}, rng);
  const nn::Linear classify(16, 3, rng);
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

  const Batch unseen = draw(100, rng);
  LargestWeights largest;
  nn::Context use;
  {
    const ObserveAttention watching(largest);
    pooling(embedding(table, unseen.ids), unseen.lengths, use);
  }
  int marked = 0, found = 0;
  for (size_t s = 0; s < largest.places.size(); ++s) {
    if (unseen.labels[s] == 0) continue;
    ++marked;
    if (unseen.ids[largest.places[s]] == unseen.labels[s]) ++found;
  }
  std::printf("largest weight on the token that decides: %d of %d sequences\n", found, marked);
  return loss_value < 0.1f && marked > 0 && found == marked ? 0 : 1;
}
