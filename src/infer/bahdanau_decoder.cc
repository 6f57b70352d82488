#include <algorithm>

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
  Weights(const models::Bahdanau& model, Compute compute)
      : config(model.config()),
        readout(model.readout_width()),
        source_embedding(model.source_embedding.value()),
        target_embedding(model.target_embedding.value()),
        encoder(RecurrentCell::gru, model.encoder, compute),
        bridge(model.bridge.weight.value(), model.bridge.bias.value(), compute),
        output(model.output.value(), model.output_bias.value(), compute) {
    if (model.attention) attention = std::make_unique<PackedAttention>(*model.attention, compute);
    const auto stack = [&](std::initializer_list<LayerPart> parts) {
      return stacked(std::span(parts.begin(), parts.size()), compute);
    };
    from_token = stack({{model.decoder.embedding.value(), model.decoder.bias.value()},
                        {model.readout.embedding.value(), model.readout.bias.value()}});
    from_context = stack({{model.decoder.context.value()}, {model.readout.context.value()}});
    from_state =
        stack({{model.decoder.state.value(), model.decoder_state_bias.value()},
               attention ? LayerPart{attention->query_weight(), attention->query_bias()} : LayerPart{}});
    read_state = PackedLinear(model.readout.state.value(), {}, compute);
  }

  models::RnnConfig config;
  int64_t readout;
  Tensor source_embedding, target_embedding;
  PackedRecurrent encoder;
  PackedLinear bridge;
  OutputLayer output;
  std::unique_ptr<PackedAttention> attention;
  PackedLinear from_token, from_context;  // gates, then readout
  PackedLinear from_state;                // gates, then the query where it has a matrix
  PackedLinear read_state;
};

class Decoder : public StepDecoder {
 public:
  Decoder(const Weights& weights, Tensor state, RowLooks looks)
      : weights_(weights), state_(std::move(state)), looks_(std::move(looks)) {}

  Logits step(std::span<const int32_t> tokens) override { return weights_.output.logits(advance(tokens)); }
  std::vector<int32_t> best(std::span<const int32_t> tokens, std::span<const int32_t> skipped) override {
    return weights_.output.best(advance(tokens), skipped);
  }
  void reorder(std::span<const int32_t> parents) override {
    state_ = pick_rows(state_, parents);
    looks_.reorder(parents);
  }

 private:
  // Feeds the last token of every row; returns what the output layer reads.
  Tensor advance(std::span<const int32_t> tokens) {
    const Weights& w = weights_;
    const auto rows = static_cast<int64_t>(tokens.size());
    FOVEA_ASSERT(rows == looks_.rows());
    const int64_t width = w.config.width, gates = 3 * width;
    const Tensor embedded({rows, w.config.embedding});
    kernels::gather_rows(w.target_embedding.data(), w.config.embedding, tokens, embedded.data());
    const Tensor product = w.from_state(state_), seen = look(product);
    const Tensor before = w.from_token(embedded);
    kernels::axpy(1, seen.data(), before.data(), before.count());
    const Tensor next(state_.shape()), zeros = Tensor::zeros({4 * width});
    for (int64_t r = 0; r < rows; ++r)
      kernels::recurrent_kernels().forward_row(RecurrentCell::gru,
                                               {.before = before.data() + r * (gates + w.readout),
                                                .product = product.data() + r * product.size(1),
                                                .product_stride = width,
                                                .h = state_.data() + r * width,
                                                .h_next = next.data() + r * width,
                                                .out = next.data() + r * width},
                                               zeros.data(), width);
    state_ = next;
    ++step_;
    return read(before);
  }

  Tensor look(const Tensor& product) const {
    const PackedAttention* attention = weights_.attention.get();
    std::vector<RowLooks::Run> runs;
    for (int64_t r = 0; r < looks_.rows(); ++r)
      runs.push_back({attention != nullptr ? nn::run_at(attention->options(), step_, looks_.keys_of(r))
                                           : nn::KeyRun{0, 1}});
    const int64_t gates = 3 * weights_.config.width;
    const Tensor query = product.size(1) > gates ? columns(product, gates, product.size(1) - gates) : state_;
    const kernels::RunScore plain{.d = weights_.config.width};
    return looks_(attention != nullptr ? attention->score() : plain, query, runs);
  }

  // What the output layer reads. `before`: [rows, gates and readout], the token's and the context's part.
  Tensor read(const Tensor& before) const {
    const int64_t rows = before.size(0), embedding = weights_.config.embedding, wide = weights_.readout;
    const Tensor sum = weights_.read_state(state_);
    const Tensor part = columns(before, 3 * weights_.config.width, wide);
    kernels::axpy(1, part.data(), sum.data(), sum.count());
    if (wide == embedding) return sum;
    const Tensor out({rows, embedding});
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t i = 0; i < embedding; ++i)
        out.data()[r * embedding + i] =
            std::max(sum.data()[r * wide + i], sum.data()[r * wide + embedding + i]);
    return out;
  }

  const Weights& weights_;
  Tensor state_;  // [rows, H]
  RowLooks looks_;
  int64_t step_ = 0;
};

class Ready : public Inference {
 public:
  Ready(const models::Bahdanau& model, Compute compute) : weights_(model, compute) {}

  std::unique_ptr<StepDecoder> start(const Sentences& sources) const override {
    const NoGrad no_grad;
    const Weights& w = weights_;
    const int64_t width = w.config.width;
    const Tensor embedded({sources.total(), w.config.embedding});
    kernels::gather_rows(w.source_embedding.data(), w.config.embedding, sources.ids, embedded.data());
    const PackedRecurrent::Result read = w.encoder(embedded, sources.lengths);
    const auto last = [&](int64_t direction) {
      return read.h.narrow(0, direction, 1).reshape({sources.count(), width});
    };
    const Tensor state = w.bridge(last(1));
    kernels::unary(kernels::Unary::tanh, state.data(), state.data(), state.count());
    if (w.attention)
      return std::make_unique<Decoder>(
          w, state,
          RowLooks(w.attention->keys(read.out, sources.lengths), w.from_context(read.out), sources.lengths));
    const Tensor whole = concat(std::vector<Var>{Var(last(0)), Var(last(1))}, 1).value().contiguous();
    return std::make_unique<Decoder>(w, state,
                                     RowLooks(Tensor::zeros({sources.count(), width}), w.from_context(whole),
                                              std::vector<int64_t>(sources.lengths.size(), 1)));
  }

 private:
  Weights weights_;
};

}  // namespace

std::unique_ptr<Inference> bahdanau_inference(const models::Bahdanau& model, Compute compute) {
  return std::make_unique<Ready>(model, compute);
}

}  // namespace fovea
