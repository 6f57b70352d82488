// CBAM in a network: which channels, then which places. Pictures of 16 x 16 noise hold one bright square in a
// random place; its colour is the class.
#include <fovea/fovea.h>

#include <cstdio>
#include <vector>

using namespace fovea;

namespace {

class Network : public nn::Module {
 public:
  explicit Network(Rng& rng)
      : conv1(3, 16, 3, rng, {.padding = 1}),
        gate(16, 4, rng, {.kernel = 7}),
        conv2(16, 16, 3, rng, {.padding = 1}),
        classify(16, 3, rng) {
    add_child("conv1", conv1);
    add_child("gate", gate);
    add_child("conv2", conv2);
    add_child("classify", classify);
  }
  Var operator()(const Var& images) const {
    return classify(global_avg_pool2d(relu(conv2(gate(relu(conv1(images)))))));
  }
  nn::Conv2d conv1;
  nn::Cbam gate;
  nn::Conv2d conv2;
  nn::Linear classify;
};

}  // namespace

int main() {
  Rng rng(1);
  const Network network(rng);
  train::Optimizer optimizer(network.parameters(), train::Adam{.learning_rate = 0.005});
  float loss_value = 0;
  for (int step = 0; step <= 80; ++step) {
    const Tensor images = nn::normal({16, 16, 16, 3}, 0, 0.3f, rng);  // [images, height, width, channels]
    std::vector<int32_t> labels;
    for (int64_t i = 0; i < 16; ++i) {
      labels.push_back(static_cast<int32_t>(rng.below(3)));
      const auto top = static_cast<int64_t>(rng.below(13)), left = static_cast<int64_t>(rng.below(13));
      for (int64_t y = top; y < top + 4; ++y)
        for (int64_t x = left; x < left + 4; ++x)
          images.data()[((i * 16 + y) * 16 + x) * 3 + labels.back()] += 2;
    }
    optimizer.clear_grad();
    const Var loss = cross_entropy(network(Var(images)), labels);
    loss.backward();
    optimizer.step();
    loss_value = loss.value().item();
    if (step % 20 == 0) std::printf("step %2d  loss %.4f\n", step, loss_value);
  }
  return loss_value < 0.2f ? 0 : 1;
}
