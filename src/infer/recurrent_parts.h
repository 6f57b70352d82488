// What the recurrent models' inference shares: encoders and looks whose result for a sentence does not depend
// on the other sentences of the batch.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "infer/packed_linear.h"
#include "nn/decoder_attention.h"
#include "nn/recurrent.h"

namespace fovea {

// A recurrent stack with packed input weights. The weights of the state stay float32.
class PackedRecurrent {
 public:
  PackedRecurrent(RecurrentCell cell, const nn::Recurrent& stack, Compute compute);
  struct Result {
    Tensor out;   // [tokens, H directions]
    Tensor h, c;  // [layers directions, sequences, H]
  };
  // x: [tokens, input].
  Result operator()(Tensor x, std::span<const int64_t> lengths) const;

 private:
  RecurrentCell cell_;
  nn::RecurrentOptions options_;
  struct Direction {
    PackedLinear input;
    Tensor hidden, input_bias, hidden_bias;
  };
  std::vector<Direction> directions_;  // [layers directions]
};

// A layer of attention with copies of its weights.
class PackedAttention {
 public:
  PackedAttention(const nn::DecoderAttention& layer, Compute compute);
  // memory: [tokens, Dk] -> [tokens, d].
  Tensor keys(const Tensor& memory, std::span<const int64_t> lengths) const;
  kernels::RunScore score() const;
  // What the query is made with; undefined: the state is the query.
  const Tensor& query_weight() const { return query_weight_; }
  const Tensor& query_bias() const { return query_bias_; }
  const nn::DecoderAttentionOptions& options() const { return options_; }
  // local_p: the predicted place of a row whose position.W state (before tanh) is `hidden`, as a share of the
  // sentence.
  float predicted_share(const float* hidden) const;
  const Tensor& position_weight() const { return position_weight_; }

 private:
  nn::DecoderAttentionOptions options_;
  std::unique_ptr<nn::DecoderAttention> layer_;  // a copy
  RunScore score_;
  PackedLinear key_;
  bool projects_keys_;
  Tensor query_weight_, query_bias_, vector_, position_weight_, position_vector_;
};

// Rows of a decoder, each looking at the keys of its own source sentence.
class RowLooks {
 public:
  // keys: [keys, d], values: [keys, dv], one after the other for `lengths` sentences.
  RowLooks(Tensor keys, Tensor values, std::span<const int64_t> lengths);
  // What a row sees of its sentence, counted from its first key.
  struct Run {
    nn::KeyRun keys;
    float centre = 0;  // where sigma > 0
  };
  // queries: [rows, d]; runs: one a row -> [rows, dv].
  Tensor operator()(const kernels::RunScore& score, const Tensor& queries, std::span<const Run> runs,
                    float sigma = 0) const;
  void reorder(std::span<const int32_t> parents);
  int64_t rows() const { return static_cast<int64_t>(sentence_.size()); }
  int64_t keys_of(int64_t row) const;

 private:
  Tensor keys_, values_;
  std::vector<int64_t> begin_;     // of each sentence, and the end
  std::vector<int32_t> sentence_;  // of each row
};

// Row i of the result is row parents[i] of t.
Tensor pick_rows(const Tensor& t, std::span<const int32_t> parents);

// Columns [begin, begin + count) of x [rows, ...], contiguous.
Tensor columns(const Tensor& x, int64_t begin, int64_t count);

// Matrices one below the other as one layer; a bias may be undefined, and so may a matrix, which is left out.
struct LayerPart {
  Tensor weight, bias{};
};
PackedLinear stacked(std::span<const LayerPart> parts, Compute compute);

}  // namespace fovea
