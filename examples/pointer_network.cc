// A pointer network (Vinyals et al. 2015): attention whose weights are the answer. It reads a list of vectors and
// points first at the one with the smallest, then at the one with the largest first coordinate. Trained on lists of
// 5 to 14 vectors, it is tested on lists of 15 to 24.
//
//   pointer_network [picture.svg]    trains, prints the share of wrong pointers, and draws where it looked
#include <fovea/fovea.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

using namespace fovea;

namespace {

constexpr int64_t kFeatures = 3, kWidth = 32, kBatch = 64;
constexpr int kPointers = 2;  // smallest, largest

// Lists of one length, side by side.
struct Lists {
  int64_t count, length;
  Tensor vectors;                          // [count * length, features], uniform in [0, 1)
  std::vector<int32_t> wanted[kPointers];  // [count] each: places
};

Lists draw(int64_t count, int64_t shortest, int64_t longest, Rng& rng) {
  Lists lists{count, shortest + rng.below(longest - shortest + 1), {}, {}};
  lists.vectors = Tensor({count * lists.length, kFeatures});
  for (float& x : lists.vectors.span()) x = rng.uniform();
  for (int64_t i = 0; i < count; ++i) {
    const auto first = [&](int64_t place) {
      return lists.vectors.data()[(i * lists.length + place) * kFeatures];
    };
    int32_t least = 0, most = 0;
    for (int32_t place = 1; place < lists.length; ++place) {
      if (first(place) < first(least)) least = place;
      if (first(place) > first(most)) most = place;
    }
    lists.wanted[0].push_back(least);
    lists.wanted[1].push_back(most);
  }
  return lists;
}

class PointerNetwork : public nn::Module {
 public:
  explicit PointerNetwork(Rng& rng)
      : encoder_({.input = kFeatures, .hidden = kWidth, .bidirectional = true}, rng),
        start_(2 * kWidth, 2 * kWidth, rng),
        decoder_(2 * kWidth, 2 * kWidth, rng) {
    add_child("encoder", encoder_);
    add_child("start", start_);
    add_child("decoder", decoder_);
    begin_ = add_parameter("begin", nn::uniform({1, 2 * kWidth}, -0.1f, 0.1f, rng));
    score_ = {.W = add_parameter("W", nn::xavier_uniform({2 * kWidth, 2 * kWidth}, rng)),
              .U = add_parameter("U", nn::xavier_uniform({2 * kWidth, 2 * kWidth}, rng)),
              .v = add_parameter("v", nn::uniform({2 * kWidth}, -0.2f, 0.2f, rng))};
  }

  // Of every pointer the weights [count, length] of the places it may point at.
  std::vector<Var> operator()(const Lists& lists, nn::Context& context) const {
    const int64_t count = lists.count, length = lists.length, width = 2 * kWidth;
    const nn::RecurrentResult read =
        encoder_(reshape(Var(lists.vectors), {count, length, kFeatures}), context);
    const Var keys = reshape(read.out, {count, 1, length, width});
    // The values are the places themselves, as rows of the identity: what attention carries away is its weights.
    Tensor places = Tensor::zeros({count, 1, length, length});
    for (int64_t i = 0; i < count * length; ++i) places.data()[i * length + i % length] = 1;
    LstmState state;
    state.h = tanh(start_(mean(read.out, 1)));
    state.c = Var(Tensor::zeros({count, width}));
    Var input = gather(begin_, std::vector<int32_t>(static_cast<size_t>(count), 0));
    std::vector<Var> pointers;
    for (int i = 0; i < kPointers; ++i) {
      state = decoder_(input, state);
      const Var query = reshape(state.h, {count, 1, 1, width});
      const Var weights = attention(query, keys, Var(places), {.score = additive()}, score_);
      // What it points at is what it reads next.
      input = reshape(attention(query, keys, keys, {.score = additive()}, score_), {count, width});
      pointers.push_back(reshape(weights, {count, length}));
    }
    return pointers;
  }

 private:
  nn::LSTM encoder_;
  nn::Linear start_;
  nn::LSTMCell decoder_;
  Var begin_;
  AttentionParameters score_;
};

// The share of pointers that miss, over lists of these lengths.
double error(const PointerNetwork& network, int64_t shortest, int64_t longest, Rng& rng) {
  const NoGrad no_grad;
  nn::Context context;
  int64_t wrong = 0, all = 0;
  for (int batch = 0; batch < 40; ++batch) {
    const Lists lists = draw(kBatch, shortest, longest, rng);
    const std::vector<Var> pointers = network(lists, context);
    for (int p = 0; p < kPointers; ++p) {
      const Tensor weights = pointers[static_cast<size_t>(p)].value().contiguous();
      for (int64_t i = 0; i < lists.count; ++i, ++all) {
        const float* row = weights.data() + i * lists.length;
        wrong += std::max_element(row, row + lists.length) - row != lists.wanted[p][static_cast<size_t>(i)];
      }
    }
  }
  return static_cast<double>(wrong) / static_cast<double>(all);
}

// One list: a bar for each first coordinate, and below it the weights of both pointers.
std::string picture(const PointerNetwork& network, Rng& rng) {
  const Lists lists = draw(1, 18, 18, rng);
  const NoGrad no_grad;
  nn::Context context;
  const std::vector<Var> pointers = network(lists, context);
  constexpr int kCell = 32, kBars = 120, kLeft = 90, kTop = 24;
  char text[256];
  std::snprintf(
      text, sizeof text,
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
      kLeft + 18 * kCell + 20, kTop + kBars + 3 * kCell + 10);
  std::string svg = text;
  const auto label = [&](int y, const char* words) {
    std::snprintf(text, sizeof text, "<text x=\"8\" y=\"%d\">%s</text>\n", y, words);
    svg += text;
  };
  label(kTop + kBars, "first coordinate");
  label(kTop + kBars + kCell + 12, "smallest");
  label(kTop + kBars + 2 * kCell + 12, "largest");
  for (int64_t place = 0; place < lists.length; ++place) {
    const int x = kLeft + static_cast<int>(place) * kCell;
    const float value = lists.vectors.data()[place * kFeatures];
    const int height = static_cast<int>(value * (kBars - 20));
    std::snprintf(
        text, sizeof text,
        "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#8aa4c8\"/><text x=\"%d\" y=\"%d\" "
        "font-size=\"10\" text-anchor=\"middle\">%.2f</text>\n",
        x + 4, kTop + kBars - height, kCell - 8, height, x + kCell / 2, kTop + kBars - height - 4,
        static_cast<double>(value));
    svg += text;
    for (int p = 0; p < kPointers; ++p) {
      const float weight = pointers[static_cast<size_t>(p)].value().contiguous().data()[place];
      const int shade = 255 - static_cast<int>(235 * weight);
      std::snprintf(text, sizeof text,
                    "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"rgb(%d,%d,255)\" "
                    "stroke=\"#ccc\"/>\n",
                    x, kTop + kBars + p * kCell + 14, kCell, kCell - 4, shade, shade);
      svg += text;
    }
  }
  return svg + "</svg>\n";
}

}  // namespace

int main(int count, char** arguments) {
  constexpr int kSteps = 1500;
  Rng rng(7);
  const PointerNetwork network(rng);
  train::Optimizer optimizer(network.parameters(), train::Adam{.learning_rate = 3e-3});
  nn::Context context{.training = true};
  for (int step = 1; step <= kSteps; ++step) {
    const Lists lists = draw(kBatch, 5, 14, rng);
    optimizer.clear_grad();
    const std::vector<Var> pointers = network(lists, context);
    // Cross entropy of log-weights is -log of the wanted place's weight: they sum to 1 already.
    const Var loss = cross_entropy(log(pointers[0] + 1e-9f), lists.wanted[0]) +
                     cross_entropy(log(pointers[1] + 1e-9f), lists.wanted[1]);
    loss.backward();
    optimizer.step(3e-3 * (1 - 0.98 * step / kSteps));  // near ties are learnt at the end
    if (step % 300 == 0) std::printf("step %4d  loss %.4f\n", step, static_cast<double>(loss.value().item()));
  }
  const double short_error = error(network, 5, 14, rng), long_error = error(network, 15, 24, rng);
  std::printf("wrong pointers: %.2f %% on lists of 5 to 14, %.2f %% on lists of 15 to 24\n",
              100 * short_error, 100 * long_error);
  if (count > 1) std::ofstream(arguments[1]) << picture(network, rng);
  return long_error < 0.05 ? 0 : 1;
}
