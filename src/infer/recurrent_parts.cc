#include "infer/recurrent_parts.h"

#include <algorithm>

#include "autograd/ops_shape.h"
#include "base/parallel.h"
#include "kernels/attention_runs.h"
#include "kernels/recurrent.h"
#include "kernels/rows.h"
#include "kernels/scratch.h"

namespace fovea {
namespace {

Tensor value_of(const Var& v) {
  return v.defined() ? v.value().clone() : Tensor();
}

}  // namespace

Tensor columns(const Tensor& x, int64_t begin, int64_t count) {
  return x.narrow(1, begin, count).contiguous();
}

PackedLinear stacked(std::span<const LayerPart> parts, Compute compute) {
  const NoGrad no_grad;
  std::vector<Var> weights, biases;
  for (const LayerPart& part : parts) {
    if (!part.weight.defined()) continue;
    weights.emplace_back(part.weight);
    biases.emplace_back(part.bias.defined() ? part.bias : Tensor::zeros({part.weight.size(0)}));
  }
  return {concat(weights, 0).value(), concat(biases, 0).value(), compute};
}

Tensor pick_rows(const Tensor& t, std::span<const int32_t> parents) {
  Tensor picked({static_cast<int64_t>(parents.size()), t.size(1)});
  kernels::gather_rows(t.data(), t.size(1), parents, picked.data());
  return picked;
}

PackedRecurrent::PackedRecurrent(RecurrentCell cell, const nn::Recurrent& stack, Compute compute)
    : cell_(cell), options_(stack.options()) {
  for (const RecurrentParameters& p : stack.weights())
    directions_.push_back({PackedLinear(p.weight_ih.value(), {}, compute), value_of(p.weight_hh),
                           value_of(p.bias_ih), value_of(p.bias_hh)});
}

PackedRecurrent::Result PackedRecurrent::operator()(Tensor x, std::span<const int64_t> lengths) const {
  const int64_t hidden = options_.hidden, count = options_.bidirectional ? 2 : 1;
  const auto sequences = static_cast<int64_t>(lengths.size());
  const bool lstm = cell_ == RecurrentCell::lstm;
  Result result;
  result.h = Tensor({options_.layers * count, sequences, hidden});
  if (lstm) result.c = Tensor(result.h.shape());
  for (int64_t layer = 0; layer < options_.layers; ++layer) {
    const Tensor out({x.size(0), count * hidden});
    std::vector<kernels::RecurrentForward> passes;
    std::vector<Tensor> products;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t place = layer * count + i;
      const Direction& d = directions_[static_cast<size_t>(place)];
      products.push_back(d.input(x));
      passes.push_back({.size = {.cell = cell_, .input = x.size(1), .hidden = hidden, .lengths = lengths},
                        .reverse = i == 1,
                        .weights = {.hidden = d.hidden.data(),
                                    .input_bias = d.input_bias.defined() ? d.input_bias.data() : nullptr,
                                    .hidden_bias = d.hidden_bias.defined() ? d.hidden_bias.data() : nullptr},
                        .out = out.data() + i * hidden,
                        .out_stride = count * hidden,
                        .h_last = result.h.data() + place * sequences * hidden,
                        .c_last = lstm ? result.c.data() + place * sequences * hidden : nullptr,
                        .work = products.back().data()});
    }
    kernels::recurrent_forward(passes);
    x = out;
  }
  result.out = x;
  return result;
}

PackedAttention::PackedAttention(const nn::DecoderAttention& layer, Compute compute)
    : options_(layer.options()) {
  const NoGrad no_grad;
  Rng rng(0);
  layer_ = std::make_unique<nn::DecoderAttention>(options_, rng);
  const auto from = layer.parameters(), to = layer_->parameters();
  for (size_t i = 0; i < from.size(); ++i) to[i].value.set_value(from[i].value.value());
  score_ = layer_->score();
  const Var key = layer_->key_weight();
  projects_keys_ = key.defined();
  if (projects_keys_) key_ = PackedLinear(key.value(), {}, compute);
  query_weight_ = value_of(layer_->query_weight());
  query_bias_ = value_of(layer_->query_bias());
  vector_ = value_of(score_.vector);
  position_weight_ = value_of(layer_->position_weight());
  position_vector_ = value_of(layer_->position_vector());
}

Tensor PackedAttention::keys(const Tensor& memory, std::span<const int64_t> lengths) const {
  const NoGrad no_grad;
  return layer_->finished_keys(Var(projects_keys_ ? key_(memory) : memory), lengths).value();
}

kernels::RunScore PackedAttention::score() const {
  const bool additive = score_.family == kernels::ScoreFamily::additive;
  return {.family = score_.family,
          .d = additive ? vector_.size(0) : options_.query_width,
          .scale = score_.scale,
          .unit_query = score_.unit_query,
          .vector = additive ? vector_.data() : nullptr};
}

float PackedAttention::predicted_share(const float* hidden) const {
  return kernels::predicted_share(position_vector_.data(), hidden, position_vector_.count());
}

RowLooks::RowLooks(Tensor keys, Tensor values, std::span<const int64_t> lengths)
    : keys_(std::move(keys)), values_(std::move(values)), begin_{0} {
  for (const int64_t length : lengths) {
    sentence_.push_back(static_cast<int32_t>(begin_.size()) - 1);
    begin_.push_back(begin_.back() + length);
  }
}

int64_t RowLooks::keys_of(int64_t row) const {
  const auto s = static_cast<size_t>(sentence_[static_cast<size_t>(row)]);
  return begin_[s + 1] - begin_[s];
}

void RowLooks::reorder(std::span<const int32_t> parents) {
  std::vector<int32_t> picked;
  picked.reserve(parents.size());
  for (const int32_t parent : parents) picked.push_back(sentence_[static_cast<size_t>(parent)]);
  sentence_ = std::move(picked);
}

Tensor RowLooks::operator()(const kernels::RunScore& score, const Tensor& queries, std::span<const Run> runs,
                            float sigma) const {
  const int64_t d = keys_.size(1), dv = values_.size(1);
  FOVEA_ASSERT(queries.size(0) == rows() && queries.size(1) == d &&
               static_cast<int64_t>(runs.size()) == rows());
  int64_t longest = 0;
  for (int64_t r = 0; r < rows(); ++r) longest = std::max(longest, keys_of(r));
  Tensor out({rows(), dv});
  const kernels::AttentionRunsKernels& kernels = kernels::attention_runs_kernels();
  parallel_for(rows(), 4, [&](int64_t begin, int64_t end) {
    float* const scratch = kernels::scratch_floats(0, longest + d);
    for (int64_t r = begin; r < end; ++r) {
      const auto& [run, centre] = runs[static_cast<size_t>(r)];
      const int64_t first = begin_[static_cast<size_t>(sentence_[static_cast<size_t>(r)])] + run.first;
      kernels.forward(score,
                      {.q = queries.data() + r * d,
                       .count = run.count,
                       .k = keys_.data() + first * d,
                       .k_row = d,
                       .v = values_.data() + first * dv,
                       .v_row = dv,
                       .dv = dv,
                       .centre = centre - static_cast<float>(run.first),
                       .sigma = sigma,
                       .soft = scratch,
                       .out = out.data() + r * dv},
                      scratch + longest);
    }
  });
  return out;
}

}  // namespace fovea
