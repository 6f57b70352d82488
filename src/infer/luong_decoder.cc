#include "autograd/ops.h"
#include "infer/output_layer.h"
#include "infer/recurrent_decoders.h"
#include "infer/recurrent_parts.h"
#include "kernels/recurrent.h"
#include "kernels/rows.h"

namespace fovea {
namespace {

using models::Sentences;

struct Weights {
  Weights(const models::Luong& model, Compute compute)
      : config(model.config()),
        source_embedding(model.source_embedding.value()),
        target_embedding(model.target_embedding.value()),
        encoder(RecurrentCell::lstm, model.encoder, compute),
        attention(model.attention, compute),
        values(model.combine_context.value(), {}, compute),
        output(model.output.value(), model.output_bias.value(), compute) {
    const NoGrad no_grad;
    for (const RecurrentParameters& p : model.decoder.weights())
      layers.push_back({PackedLinear(p.weight_ih.value(), (p.bias_ih + p.bias_hh).value(), compute),
                        PackedLinear(p.weight_hh.value(), {}, compute)});
    if (model.feed.defined()) feed = PackedLinear(model.feed.value(), {}, compute);
    look = stacked(std::vector<LayerPart>{{model.combine_state.value()},
                                          {attention.query_weight(), attention.query_bias()},
                                          {attention.position_weight()}},
                   compute);
  }

  struct Layer {
    PackedLinear input, state;
  };
  models::LuongConfig config;
  Tensor source_embedding, target_embedding;
  PackedRecurrent encoder;
  PackedAttention attention;
  PackedLinear values, feed;
  OutputLayer output;
  PackedLinear look;  // the state's part of s~, the query where it has a matrix, the predicted place's
  std::vector<Layer> layers;
};

class Decoder : public StepDecoder {
 public:
  // h, c: of each layer, [rows, H].
  Decoder(const Weights& weights, std::vector<Tensor> h, std::vector<Tensor> c, RowLooks looks)
      : weights_(weights), h_(std::move(h)), c_(std::move(c)), looks_(std::move(looks)) {
    seen_ = Tensor::zeros(h_[0].shape());
  }

  Logits step(std::span<const int32_t> tokens) override { return weights_.output.logits(advance(tokens)); }
  std::vector<int32_t> best(std::span<const int32_t> tokens, std::span<const int32_t> skipped) override {
    return weights_.output.best(advance(tokens), skipped);
  }
  void reorder(std::span<const int32_t> parents) override {
    for (Tensor& h : h_) h = pick_rows(h, parents);
    for (Tensor& c : c_) c = pick_rows(c, parents);
    seen_ = pick_rows(seen_, parents);
    looks_.reorder(parents);
  }

 private:
  // Feeds the last token of every row; returns what the output layer reads.
  Tensor advance(std::span<const int32_t> tokens) {
    const Weights& w = weights_;
    const auto rows = static_cast<int64_t>(tokens.size());
    FOVEA_ASSERT(rows == looks_.rows());
    Tensor x({rows, w.config.embedding});
    kernels::gather_rows(w.target_embedding.data(), w.config.embedding, tokens, x.data());
    for (size_t l = 0; l < w.layers.size(); ++l) x = layer(l, x);
    seen_ = look(x);
    ++step_;
    return seen_;
  }

  Tensor layer(size_t l, const Tensor& x) {
    const Weights& w = weights_;
    const int64_t width = w.config.width;
    const Tensor before = w.layers[l].input(x), product = w.layers[l].state(h_[l]);
    if (l == 0 && w.config.input_feeding) {
      const Tensor fed = w.feed(seen_);
      kernels::axpy(1, fed.data(), before.data(), before.count());
    }
    const Tensor next(h_[l].shape()), zeros = Tensor::zeros({4 * width});
    for (int64_t r = 0; r < x.size(0); ++r)
      kernels::recurrent_kernels().forward_row(RecurrentCell::lstm,
                                               {.before = before.data() + r * 4 * width,
                                                .product = product.data() + r * 4 * width,
                                                .product_stride = width,
                                                .h = h_[l].data() + r * width,
                                                .h_next = next.data() + r * width,
                                                .c = c_[l].data() + r * width,
                                                .out = next.data() + r * width},
                                               zeros.data(), width);
    h_[l] = next;
    return next;
  }

  Tensor look(const Tensor& h) const {
    const PackedAttention& attention = weights_.attention;
    const nn::DecoderAttentionOptions& options = attention.options();
    const int64_t width = weights_.config.width, rows = h.size(0);
    const Tensor looked = weights_.look(h);
    const int64_t wide = looked.size(1), d = attention.score().d;
    const bool predicts = options.locality == nn::Locality::local_p;
    const bool projects = attention.query_weight().defined();
    std::vector<RowLooks::Run> runs;
    for (int64_t r = 0; r < rows; ++r) {
      RowLooks::Run& run = runs.emplace_back();
      run.keys = nn::run_at(options, step_, looks_.keys_of(r));
      if (!predicts) continue;
      const float* const before = looked.data() + r * wide + width + (projects ? d : 0);
      run.centre = static_cast<float>(looks_.keys_of(r)) * attention.predicted_share(before);
      const auto seen = kernels::predicted_run(run.centre, options.window, run.keys.count);
      run.keys = {seen.first, seen.count};
    }
    const Tensor query = projects ? columns(looked, width, d) : h;
    const Tensor sum =
        looks_(attention.score(), query, runs, predicts ? static_cast<float>(options.window) / 2 : 0);
    const Tensor part = columns(looked, 0, width);
    kernels::axpy(1, part.data(), sum.data(), sum.count());
    kernels::unary(kernels::Unary::tanh, sum.data(), sum.data(), sum.count());
    return sum;
  }

  const Weights& weights_;
  std::vector<Tensor> h_, c_;
  Tensor seen_;  // [rows, H]: s~ of the step before
  RowLooks looks_;
  int64_t step_ = 0;
};

class Ready : public Inference {
 public:
  Ready(const models::Luong& model, Compute compute) : weights_(model, compute) {}

  std::unique_ptr<StepDecoder> start(const Sentences& sources) const override {
    const NoGrad no_grad;
    const Weights& w = weights_;
    const Tensor embedded({sources.total(), w.config.embedding});
    kernels::gather_rows(w.source_embedding.data(), w.config.embedding, sources.ids, embedded.data());
    const PackedRecurrent::Result read = w.encoder(embedded, sources.lengths);
    const int64_t directions = w.config.bidirectional ? 2 : 1;
    // The states of a layer's two directions stand side by side.
    const auto of_layers = [&](const Tensor& last) {
      std::vector<Tensor> states;
      for (int64_t l = 0; l < w.config.layers; ++l)
        states.push_back(last.narrow(0, l * directions, directions)
                             .transpose(0, 1)
                             .clone()
                             .reshape({sources.count(), w.config.width}));
      return states;
    };
    return std::make_unique<Decoder>(
        w, of_layers(read.h), of_layers(read.c),
        RowLooks(w.attention.keys(read.out, sources.lengths), w.values(read.out), sources.lengths));
  }

 private:
  Weights weights_;
};

}  // namespace

std::unique_ptr<Inference> luong_inference(const models::Luong& model, Compute compute) {
  return std::make_unique<Ready>(model, compute);
}

}  // namespace fovea
