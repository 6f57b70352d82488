#include "infer/transformer_decoder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "infer/output_layer.h"
#include "infer/packed_encoder.h"
#include "kernels/attention_step.h"
#include "nn/positions.h"

namespace fovea {
namespace {

using models::Sentences;

struct DecoderLayer {
  DecoderLayer(const nn::TransformerDecoderLayer& layer, int64_t width, kernels::Epilogue activation,
               Compute compute)
      : query(pack_projection(layer.self_attn, 0, width, compute)),
        keys_values(pack_projection(layer.self_attn, width, 2 * width, compute)),
        out(pack_output(layer.self_attn, compute)),
        cross_query(pack_projection(layer.multihead_attn, 0, width, compute)),
        cross_keys_values(pack_projection(layer.multihead_attn, width, 2 * width, compute)),
        cross_out(pack_output(layer.multihead_attn, compute)),
        feed_forward(layer.feed_forward, activation, compute),
        norm1(layer.norm1),
        norm2(layer.norm2),
        norm3(layer.norm3) {}
  PackedLinear query, keys_values, out, cross_query, cross_keys_values, cross_out;
  PackedFeedForward feed_forward;
  PackedNorm norm1, norm2, norm3;
};

// Rows that only ever grow: the keys and values of every token generated so far.
class GrowingRows {
 public:
  float* append(int64_t rows, int64_t width) {
    const int64_t wanted = used_ + rows;
    if (!memory_.defined() || wanted > memory_.size(0)) {
      const Tensor larger(
          {std::max<int64_t>(wanted, memory_.defined() ? 2 * memory_.size(0) : 16 * rows), width});
      if (used_ > 0)
        std::memcpy(larger.data(), memory_.data(), static_cast<size_t>(used_ * width) * sizeof(float));
      memory_ = larger;
    }
    float* place = memory_.data() + used_ * width;
    used_ = wanted;
    return place;
  }
  const float* data() const { return memory_.data(); }

 private:
  Tensor memory_;
  int64_t used_ = 0;
};

}  // namespace

struct TransformerInference::Weights {
  Weights(const models::Transformer& model, Compute compute)
      : config(model.config()),
        source_embedding(model.source_embedding.value()),
        target_embedding(model.target_embedding.value()),
        source_positions(value_of(model.source_positions)),
        target_positions(value_of(model.target_positions)),
        output(model.output.value(), {}, compute),
        encoder(model.encoder, config.norm_first, activation(), compute) {
    for (const auto& layer : model.decoder.layers)
      decoder.emplace_back(*layer, config.width, activation(), compute);
    if (model.decoder.norm) decoder_norm.emplace_back(*model.decoder.norm);
  }

  // scale * table[ids] + positions.
  Tensor embed(const Tensor& table, const Tensor& learned, std::span<const int32_t> ids,
               std::span<const int32_t> positions) const {
    const int64_t width = config.width;
    const auto [first, last] = std::minmax_element(positions.begin(), positions.end());
    require(!learned.defined() || *last < config.max_positions, "transformer: a sentence of more than ",
            config.max_positions, " tokens, which positions were not learned for");
    // Each position's row is made once, however many tokens stand there.
    std::vector<int32_t> there(static_cast<size_t>(*last - *first + 1));
    std::iota(there.begin(), there.end(), *first);
    const Tensor places =
        learned.defined() ? learned.narrow(0, *first, *last - *first + 1) : nn::sinusoid(there, width);
    const float scale = std::sqrt(static_cast<float>(width));
    Tensor x({static_cast<int64_t>(ids.size()), width});
    for (size_t r = 0; r < ids.size(); ++r) {
      const float* token = table.data() + ids[r] * width;
      const float* place = places.data() + (positions[r] - *first) * width;
      float* to = x.data() + static_cast<int64_t>(r) * width;
      for (int64_t i = 0; i < width; ++i) to[i] = scale * token[i] + place[i];
    }
    return x;
  }

  kernels::Epilogue activation() const {
    return config.activation == "gelu" ? kernels::Epilogue::gelu : kernels::Epilogue::relu;
  }

  models::TransformerConfig config;
  Tensor source_embedding, target_embedding, source_positions, target_positions;
  OutputLayer output;
  PackedEncoder encoder;
  std::vector<DecoderLayer> decoder;
  std::vector<PackedNorm> decoder_norm;  // one or none
};

class TransformerInference::Decoder : public StepDecoder {
 public:
  Decoder(const Weights& weights, const Tensor& memory, const Sentences& sources) : weights_(weights) {
    for (const DecoderLayer& layer : weights.decoder)
      source_keys_values_.push_back(layer.cross_keys_values(memory));
    self_keys_values_.resize(weights.decoder.size());
    int32_t begin = 0;
    for (const int64_t length : sources.lengths) {
      source_first_.push_back(begin);
      source_count_.push_back(static_cast<int32_t>(length));
      begin += static_cast<int32_t>(length);
    }
    histories_.resize(sources.lengths.size());
  }

  Logits step(std::span<const int32_t> tokens) override { return weights_.output.logits(advance(tokens)); }
  std::vector<int32_t> best(std::span<const int32_t> tokens, std::span<const int32_t> skipped) override {
    return weights_.output.best(advance(tokens), skipped);
  }
  void reorder(std::span<const int32_t> parents) override {
    const auto pick = [&](auto& rows) {
      std::remove_reference_t<decltype(rows)> picked;
      picked.reserve(parents.size());
      for (const int32_t parent : parents) picked.push_back(rows[static_cast<size_t>(parent)]);
      rows = std::move(picked);
    };
    pick(histories_);
    pick(source_first_);
    pick(source_count_);
  }

 private:
  // Feeds the last token of every row; returns what the output layer reads.
  Tensor advance(std::span<const int32_t> tokens) {
    const auto rows = static_cast<int64_t>(tokens.size());
    FOVEA_ASSERT(tokens.size() == histories_.size());
    const int64_t width = weights_.config.width;
    const bool norm_first = weights_.config.norm_first;
    const std::vector<int32_t> positions(tokens.size(), step_);
    Tensor sum = weights_.embed(weights_.target_embedding, weights_.target_positions, tokens, positions);
    remember(rows);
    Tensor input = norm_first ? weights_.decoder[0].norm1(sum) : sum;
    for (size_t i = 0; i < weights_.decoder.size(); ++i) {
      const DecoderLayer& layer = weights_.decoder[i];
      const bool last = i + 1 == weights_.decoder.size();
      layer.keys_values.write(input, self_keys_values_[i].append(rows, 2 * width));
      const Tensor seen =
          layer.out(attend(layer.query(input), self_keys_values_[i].data(), keys_.data(), first_, count_));
      input = add(norm_first ? layer.norm2 : layer.norm1, seen, sum);
      const Tensor asked = layer.cross_out(attend(layer.cross_query(input), source_keys_values_[i].data(),
                                                  nullptr, source_first_, source_count_));
      input = add(norm_first ? layer.norm3 : layer.norm2, asked, sum);
      const Tensor thought = layer.feed_forward(input);
      if (!norm_first) {
        input = add(layer.norm3, thought, sum);
      } else {
        input = add(last ? weights_.decoder_norm[0] : weights_.decoder[i + 1].norm1, thought, sum);
      }
    }
    ++step_;
    return input;
  }

  // Pre-norm keeps the sum and its norm apart; post-norm goes on with the norm alone.
  Tensor add(const PackedNorm& norm, const Tensor& branch, Tensor& sum) const {
    Tensor normed = norm.add(branch, sum);
    if (!weights_.config.norm_first) sum = normed;
    return normed;
  }

  // Gives each row's new token a slot in the caches and lists the slots each row sees.
  void remember(int64_t rows) {
    keys_.clear();
    first_.clear();
    count_.clear();
    for (int64_t r = 0; r < rows; ++r) {
      std::vector<int32_t>& history = histories_[static_cast<size_t>(r)];
      history.push_back(slots_++);
      first_.push_back(static_cast<int32_t>(keys_.size()));
      count_.push_back(static_cast<int32_t>(history.size()));
      keys_.insert(keys_.end(), history.begin(), history.end());
    }
  }

  // keys_values: rows of keys then values, 2 * width wide.
  Tensor attend(const Tensor& q, const float* keys_values, const int32_t* keys,
                const std::vector<int32_t>& first, const std::vector<int32_t>& count) const {
    const int64_t width = weights_.config.width, heads = weights_.config.heads, d = width / heads;
    Tensor out({q.size(0), width});
    kernels::attention_step({.rows = q.size(0),
                             .heads = heads,
                             .kv_heads = heads,
                             .d = d,
                             .scale = static_cast<float>(1 / std::sqrt(static_cast<double>(d))),
                             .q = q.data(),
                             .q_row = width,
                             .k = keys_values,
                             .v = keys_values + width,
                             .kv_row = 2 * width,
                             .keys = keys,
                             .first = first.data(),
                             .count = count.data(),
                             .out = out.data(),
                             .out_row = width});
    return out;
  }

  const Weights& weights_;
  std::vector<Tensor> source_keys_values_;
  std::vector<GrowingRows> self_keys_values_;
  std::vector<std::vector<int32_t>> histories_;  // of each row: the slots of its tokens
  std::vector<int32_t> source_first_, source_count_;
  std::vector<int32_t> keys_, first_, count_;
  int32_t slots_ = 0, step_ = 0;
};

TransformerInference::TransformerInference(const models::Transformer& model, Compute compute)
    : weights_(std::make_unique<Weights>(model, compute)) {}
TransformerInference::~TransformerInference() = default;

Tensor TransformerInference::encode(const Sentences& sources) const {
  const Weights& w = *weights_;
  const std::vector<int32_t> positions = nn::packed_positions(sources.lengths);
  return w.encoder(w.embed(w.source_embedding, w.source_positions, sources.ids, positions), sources.lengths);
}

std::unique_ptr<StepDecoder> TransformerInference::start(const Sentences& sources) const {
  return std::make_unique<Decoder>(*weights_, encode(sources), sources);
}

}  // namespace fovea
