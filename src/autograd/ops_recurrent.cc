// LSTM and GRU layers and cells, each with its gradient.
#include "autograd/ops_recurrent.h"

#include <vector>

#include "autograd/ops_shape.h"
#include "autograd/optional.h"

namespace fovea {
namespace {

const char* name_of(RecurrentCell cell) {
  return cell == RecurrentCell::lstm ? "lstm" : "gru";
}

void check_shape(RecurrentCell cell, const char* what, const Var& got, const Shape& wanted) {
  require(got.defined(), name_of(cell), ": ", what, " is missing, wanted shape ", wanted);
  require(got.shape() == wanted, name_of(cell), ": got ", what, " of shape ", got.shape(), ", wanted ",
          wanted);
}

// A layer's inputs, contiguous, and what its forward pass keeps: all that backward needs.
struct Layer {
  RecurrentCell cell;
  int64_t input, hidden, tokens, sequences;
  std::vector<int64_t> lengths;
  std::vector<RecurrentParameters> directions;
  Var x, h, c;
  Tensor x_value{}, h_value{}, c_value{}, out{};
  std::vector<Tensor> gates{}, cells{};  // empty where nothing is recorded

  int64_t direction_count() const { return static_cast<int64_t>(directions.size()); }
  kernels::RecurrentForward forward(int64_t direction) const;
};

kernels::RecurrentForward Layer::forward(int64_t direction) const {
  const RecurrentParameters& p = directions[direction];
  const int64_t state = direction * sequences * hidden;
  const bool keeps = !gates.empty();
  return {.size = {.cell = cell, .input = input, .hidden = hidden, .lengths = lengths},
          .reverse = direction == 1,
          .weights = {.input = p.weight_ih.value().data(),
                      .hidden = p.weight_hh.value().data(),
                      .input_bias = data_or_null(p.bias_ih),
                      .hidden_bias = data_or_null(p.bias_hh)},
          .x = x_value.data(),
          .h_first = data_or_null(h_value, state),
          .c_first = data_or_null(c_value, state),
          .out = out.data() + direction * hidden,
          .out_stride = direction_count() * hidden,
          .gates = keeps ? gates[direction].data() : nullptr,
          .cells = keeps && cell == RecurrentCell::lstm ? cells[direction].data() : nullptr};
}

Layer checked_layer(RecurrentCell cell, const Var& x, std::span<const int64_t> lengths,
                    std::span<const RecurrentParameters> directions, const Var& h, const Var& c) {
  require(directions.size() == 1 || directions.size() == 2, name_of(cell), ": got ", directions.size(),
          " directions, wanted 1 or 2");
  check_packed(cell, x, lengths);
  require(directions[0].weight_hh.defined() && directions[0].weight_hh.rank() == 2, name_of(cell),
          ": weight_hh is missing or not a matrix");
  Layer layer{.cell = cell,
              .input = x.size(1),
              .hidden = directions[0].weight_hh.size(1),
              .tokens = x.size(0),
              .sequences = static_cast<int64_t>(lengths.size()),
              .lengths = {lengths.begin(), lengths.end()},
              .directions = {directions.begin(), directions.end()},
              .x = x,
              .h = h,
              .c = c,
              .x_value = x.value().contiguous()};
  const int64_t outputs = kernels::recurrent_gates(cell) * layer.hidden;
  for (const RecurrentParameters& p : directions) {
    check_shape(cell, "weight_ih", p.weight_ih, {outputs, layer.input});
    check_shape(cell, "weight_hh", p.weight_hh, {outputs, layer.hidden});
    if (p.bias_ih.defined()) check_shape(cell, "bias_ih", p.bias_ih, {outputs});
    if (p.bias_hh.defined()) check_shape(cell, "bias_hh", p.bias_hh, {outputs});
    for (const Var& v : {p.weight_ih, p.weight_hh, p.bias_ih, p.bias_hh})
      require(!v.defined() || v.value().is_contiguous(), name_of(cell),
              ": got parameters that are views with gaps, wanted contiguous ones");
  }
  const Shape states{layer.direction_count(), layer.sequences, layer.hidden};
  if (h.defined()) {
    check_shape(cell, "first states h", h, states);
    layer.h_value = h.value().contiguous();
  }
  require(cell == RecurrentCell::lstm || !c.defined(), "gru: got first states c, which only an lstm has");
  if (c.defined()) {
    check_shape(cell, "first states c", c, states);
    layer.c_value = c.value().contiguous();
  }
  return layer;
}

void backward(const Layer& layer, std::span<const Tensor> grads) {
  const int64_t hidden = layer.hidden, state = layer.sequences * hidden;
  const Tensor d_out = grads[0].defined() ? grads[0].contiguous() : Tensor();
  const Tensor d_h_last = grads[1].defined() ? grads[1].contiguous() : Tensor();
  const Tensor d_c_last = grads.size() > 2 && grads[2].defined() ? grads[2].contiguous() : Tensor();
  const Tensor d_x = gradient_for(layer.x), d_h = gradient_for(layer.h), d_c = gradient_for(layer.c);
  const Tensor work({layer.tokens, hidden});
  struct ParameterGradients {
    Tensor weight_ih, weight_hh, bias_ih, bias_hh;
  };
  std::vector<ParameterGradients> parameters;
  std::vector<kernels::RecurrentBackward> directions;
  for (int64_t i = 0; i < layer.direction_count(); ++i) {
    const RecurrentParameters& p = layer.directions[i];
    const ParameterGradients& d =
        parameters.emplace_back(ParameterGradients{gradient_for(p.weight_ih), gradient_for(p.weight_hh),
                                                   gradient_for(p.bias_ih), gradient_for(p.bias_hh)});
    directions.push_back({.forward = layer.forward(i),
                          .d_out = data_or_null(d_out, i * hidden),
                          .d_h_last = data_or_null(d_h_last, i * state),
                          .d_c_last = data_or_null(d_c_last, i * state),
                          .d_x = data_or_null(d_x),
                          .add_x = i > 0,
                          .d_h_first = data_or_null(d_h, i * state),
                          .d_c_first = data_or_null(d_c, i * state),
                          .d_input = data_or_null(d.weight_ih),
                          .d_hidden = data_or_null(d.weight_hh),
                          .d_input_bias = data_or_null(d.bias_ih),
                          .d_hidden_bias = data_or_null(d.bias_hh),
                          .work = work.data()});
  }
  kernels::recurrent_backward(directions);
  const auto pass = [](const Var& v, const Tensor& gradient) {
    if (gradient.defined()) v.add_grad(gradient);
  };
  for (int64_t i = 0; i < layer.direction_count(); ++i) {
    pass(layer.directions[i].weight_ih, parameters[i].weight_ih);
    pass(layer.directions[i].weight_hh, parameters[i].weight_hh);
    pass(layer.directions[i].bias_ih, parameters[i].bias_ih);
    pass(layer.directions[i].bias_hh, parameters[i].bias_hh);
  }
  pass(layer.x, d_x);
  pass(layer.h, d_h);
  pass(layer.c, d_c);
}

}  // namespace

void check_packed(RecurrentCell cell, const Var& x, std::span<const int64_t> lengths) {
  require(x.rank() == 2, name_of(cell), ": got input of shape ", x.shape(),
          ", wanted packed tokens [tokens, input]");
  for (const int64_t length : lengths)
    require(length >= 0, name_of(cell), ": got a length of ", length, ", wanted 0 or more");
  int64_t left = x.size(0);
  for (const int64_t length : lengths) {
    require(length <= left, name_of(cell), ": the lengths add up to more than the ", x.size(0),
            " tokens of the input");
    left -= length;
  }
  require(left == 0, name_of(cell), ": the lengths add up to ", x.size(0) - left,
          " tokens, but the input has ", x.size(0));
}

RecurrentOutput recurrent_layer(RecurrentCell cell, const Var& x, std::span<const int64_t> lengths,
                                std::span<const RecurrentParameters> directions, const Var& h, const Var& c) {
  Layer layer = checked_layer(cell, x, lengths, directions, h, c);
  const bool lstm = cell == RecurrentCell::lstm;
  const int64_t hidden = layer.hidden, count = layer.direction_count();
  std::vector<Var> parents{x, h, c};
  for (const RecurrentParameters& p : directions)
    parents.insert(parents.end(), {p.weight_ih, p.weight_hh, p.bias_ih, p.bias_hh});
  const bool keeps = recording(parents);

  const Shape states{count, layer.sequences, hidden};
  const Tensor h_last(states), c_last = lstm ? Tensor(states) : Tensor();
  layer.out = Tensor({layer.tokens, count * hidden});
  std::vector<Tensor> work;
  for (int64_t i = 0; i < count; ++i) {
    if (keeps) {
      layer.gates.emplace_back(Shape{layer.tokens, 4 * hidden});
      layer.cells.push_back(lstm ? Tensor({layer.tokens, hidden}) : Tensor());
    } else {
      work.emplace_back(Shape{layer.tokens, kernels::recurrent_gates(cell) * hidden});
    }
  }
  std::vector<kernels::RecurrentForward> passes;
  for (int64_t i = 0; i < count; ++i) {
    kernels::RecurrentForward& pass = passes.emplace_back(layer.forward(i));
    pass.h_last = h_last.data() + i * layer.sequences * hidden;
    if (lstm) pass.c_last = c_last.data() + i * layer.sequences * hidden;
    if (!keeps) pass.work = work[i].data();
  }
  kernels::recurrent_forward(passes);

  std::vector<Tensor> values{layer.out, h_last};
  if (lstm) values.push_back(c_last);
  const std::vector<Var> results =
      record_many(std::move(values), parents,
                  [layer = std::move(layer)](std::span<const Tensor> grads) { backward(layer, grads); });
  return {results[0], results[1], lstm ? results[2] : Var()};
}

LstmState lstm_cell(const Var& x, const LstmState& state, const RecurrentParameters& parameters) {
  const std::vector<int64_t> lengths(static_cast<size_t>(x.size(0)), 1);
  const auto raised = [](const Var& v) { return v.defined() ? reshape(v, {1, v.size(0), v.size(1)}) : v; };
  const RecurrentOutput y =
      recurrent_layer(RecurrentCell::lstm, x, lengths, {&parameters, 1}, raised(state.h), raised(state.c));
  return {y.out, reshape(y.c, {y.c.size(1), y.c.size(2)})};
}

Var gru_cell(const Var& x, const Var& h, const RecurrentParameters& parameters) {
  const std::vector<int64_t> lengths(static_cast<size_t>(x.size(0)), 1);
  const Var first = h.defined() ? reshape(h, {1, h.size(0), h.size(1)}) : h;
  return recurrent_layer(RecurrentCell::gru, x, lengths, {&parameters, 1}, first).out;
}

}  // namespace fovea
