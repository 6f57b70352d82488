// Reading attention weights: those of chosen heads and rows of one call, and of every layer of a network through an observer,
// without changing the network.
#include <fovea/fovea.h>

#include <cmath>
#include <cstdio>

using namespace fovea;

namespace {

// Sees every call of attention on this thread: here the first query row of every head.
class FirstRow : public AttentionObserver {
 public:
  Capture capture(const Call& call) override {
    Capture first_row;
    for (int32_t head = 0; head < call.heads; ++head) first_row.heads.push_back(head);
    first_row.rows = {0};
    return first_row;
  }
  void observe(const Call& call, const Capture& capture, const Captured& captured) override {
    for (size_t h = 0; h < capture.heads.size(); ++h) {
      std::printf("layer %ld, head %zu:", static_cast<long>(call.site.layer), h);
      float sum = 0;
      for (int64_t j = 0; j < call.keys; ++j) {
        const float weight = captured.weights.data()[static_cast<int64_t>(h) * call.keys + j];
        std::printf(" %.2f", weight);
        sum += weight;
      }
      std::printf("\n");
      sums_are_one = sums_are_one && std::abs(sum - 1) < 1e-5f;
    }
    ++calls;
  }
  int calls = 0;
  bool sums_are_one = true;
};

}  // namespace

int main() {
  Rng rng(1);
  const nn::TransformerEncoder encoder({.width = 32, .heads = 2, .hidden = 64}, 3, false, rng);
  const Var x(nn::normal({1, 6, 32}, 0, 1, rng));
  nn::Context context;

  FirstRow observer;
  {
    const ObserveAttention watching(observer);
    encoder(x, context);
  }
  std::printf("%d calls seen\n", observer.calls);

  // Of one call: head 0, rows 0 and 5.
  const Var q = reshape(x, {1, 1, 6, 32});
  const AttentionResult result =
      attend(q, q, q, {}, {.lse = true, .weight_heads = {0}, .weight_rows = {0, 5}});
  std::printf("weights of 1 head and 2 rows: %ld numbers\n", static_cast<long>(result.weights.count()));
  return observer.calls == 3 && observer.sums_are_one && result.weights.count() == 12 ? 0 : 1;
}
