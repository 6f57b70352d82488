// Stacked LSTM and GRU layers, in one or both directions, with prepared weights in use.
#include "nn/recurrent.h"

#include <cmath>
#include <string>

#include "autograd/ops.h"
#include "nn/init.h"

namespace fovea::nn {
namespace {

struct Parameter {
  const char* name;
  Var RecurrentParameters::*member;
  Shape shape;
};

// In PyTorch's order of registration.
std::vector<Parameter> parameter_list(RecurrentCell cell, int64_t input, int64_t hidden, bool with_bias) {
  const int64_t outputs = kernels::recurrent_gates(cell) * hidden;
  std::vector<Parameter> list{{"weight_ih", &RecurrentParameters::weight_ih, {outputs, input}},
                              {"weight_hh", &RecurrentParameters::weight_hh, {outputs, hidden}}};
  if (with_bias) {
    list.push_back({"bias_ih", &RecurrentParameters::bias_ih, {outputs}});
    list.push_back({"bias_hh", &RecurrentParameters::bias_hh, {outputs}});
  }
  return list;
}

float bound_of(int64_t hidden) {
  return hidden > 0 ? 1 / std::sqrt(static_cast<float>(hidden)) : 0;
}

// The states of one layer: [directions, sequences, H] of [layers directions, sequences, H].
Var states_of(const Var& states, int64_t layer, int64_t directions) {
  return states.defined() ? slice(states, 0, layer * directions, directions) : states;
}

Var join(const std::vector<Var>& parts) {
  return parts.size() == 1 ? parts[0] : concat(parts, 0);
}

}  // namespace

Recurrent::Recurrent(RecurrentCell cell, const RecurrentOptions& options, Rng& rng)
    : cell_(cell), options_(options) {
  require(options.layers >= 1, "recurrent layer: got ", options.layers, " layers, wanted at least 1");
  require(options.hidden >= 1 && options.input >= 0, "recurrent layer: got input ", options.input,
          " and hidden ", options.hidden, ", wanted sizes of at least 0 and 1");
  require(options.dropout >= 0 && options.dropout < 1, "recurrent layer: got a dropout of ", options.dropout,
          ", wanted 0 or more and below 1");
  const float bound = bound_of(options.hidden);
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    const int64_t input = layer == 0 ? options.input : options.hidden * directions();
    for (int64_t direction = 0; direction < directions(); ++direction) {
      RecurrentParameters& p = parameters_.emplace_back();
      for (const Parameter& each : parameter_list(cell, input, options.hidden, options.bias)) {
        const std::string name = message(each.name, "_l", layer, direction == 1 ? "_reverse" : "");
        p.*each.member = add_parameter(name, uniform(each.shape, -bound, bound, rng));
      }
      const auto projection = [&](const Var& weight, const Var& bias) {
        auto made = std::make_unique<Projection>([weight, bias] {
          return std::vector<Projection::Part>{{weight, bias}};
        });
        add_projection(*made);
        return made;
      };
      input_.push_back(projection(p.weight_ih, p.bias_ih));
      if (options.stepwise) hidden_.push_back(projection(p.weight_hh, p.bias_hh));
    }
  }
}

RecurrentResult Recurrent::operator()(const Var& x, std::span<const int64_t> lengths, Context& context,
                                      const RecurrentStates& first) const {
  const auto check = [&](const Var& states, const char* name) {
    const Shape wanted{options_.layers * directions(), static_cast<int64_t>(lengths.size()), options_.hidden};
    require(!states.defined() || states.shape() == wanted, "recurrent layer: got first states ", name,
            " of shape ", states.defined() ? states.shape() : Shape{}, ", wanted ", wanted);
  };
  check(first.h, "h");
  check(first.c, "c");
  Var values = x;
  std::vector<Var> h, c;
  for (int64_t layer = 0; layer < options_.layers; ++layer) {
    const float rate = layer == 0 ? 0 : context.rate(options_.dropout);
    if (rate > 0) values = dropout(values, rate, context.next_seed());
    const std::span<const RecurrentParameters> parameters(&parameters_[layer * directions()],
                                                          static_cast<size_t>(directions()));
    const Var h_first = states_of(first.h, layer, directions()),
              c_first = states_of(first.c, layer, directions());
    const RecurrentOutput y = input_[0]->in_use() != nullptr
                                  ? run_prepared(layer, values, lengths, h_first, c_first)
                                  : recurrent_layer(cell_, values, lengths, parameters, h_first, c_first);
    values = y.out;
    h.push_back(y.h);
    c.push_back(y.c);
  }
  return {values, {join(h), cell_ == RecurrentCell::lstm ? join(c) : Var()}};
}

RecurrentOutput Recurrent::run_prepared(int64_t layer, const Var& x, std::span<const int64_t> lengths,
                                        const Var& h, const Var& c) const {
  const int64_t hidden = options_.hidden, count = directions();
  check_packed(cell_, x, lengths);
  const int64_t input = layer == 0 ? options_.input : count * hidden;
  require(x.size(1) == input, "recurrent layer: got input of shape ", x.shape(), ", wanted [tokens, ", input,
          "]");
  const auto sequences = static_cast<int64_t>(lengths.size());
  const bool lstm = cell_ == RecurrentCell::lstm;
  const Tensor in = x.value().contiguous();
  const Tensor out({in.size(0), count * hidden}), h_last({count, sequences, hidden}),
      c_last = lstm ? Tensor(h_last.shape()) : Tensor();
  const Tensor h_first = h.defined() ? h.value().contiguous() : Tensor(),
               c_first = c.defined() ? c.value().contiguous() : Tensor();
  const auto at = [&](const Tensor& t, int64_t i) {
    return t.defined() ? t.data() + i * sequences * hidden : nullptr;
  };
  std::vector<kernels::RecurrentForward> passes;
  std::vector<Tensor> products;
  for (int64_t i = 0; i < count; ++i) {
    const auto place = static_cast<size_t>(layer * count + i);
    const RecurrentParameters& p = parameters_[place];
    products.push_back((*input_[place]->in_use())(in));
    passes.push_back({.size = {.cell = cell_, .input = in.size(1), .hidden = hidden, .lengths = lengths},
                      .reverse = i == 1,
                      .weights = {.hidden = p.weight_hh.value().data(),
                                  .hidden_bias = p.bias_hh.defined() ? p.bias_hh.value().data() : nullptr},
                      .h_first = at(h_first, i),
                      .c_first = at(c_first, i),
                      .out = out.data() + i * hidden,
                      .out_stride = count * hidden,
                      .h_last = at(h_last, i),
                      .c_last = at(c_last, i),
                      .work = products.back().data()});
  }
  kernels::recurrent_forward(passes);
  return {Var(out), Var(h_last), lstm ? Var(c_last) : Var()};
}

Tensor Recurrent::step_input(int64_t layer, const Tensor& x) const {
  check_step(layer);
  return (*input_[static_cast<size_t>(layer)])(Var(x)).value();
}

void Recurrent::check_step(int64_t layer) const {
  require(
      options_.stepwise && !options_.bidirectional,
      "recurrent step: got layers that read whole sequences, wanted some made with stepwise and not bidirectional");
  require(layer >= 0 && layer < options_.layers, "recurrent step: no layer ", layer, ", there are ",
          options_.layers);
}

void Recurrent::step(int64_t layer, const Tensor& before, Tensor& h, Tensor& c) const {
  check_step(layer);
  const auto state = [&](const Tensor& got, const char* name) {
    require(got.defined() && got.rank() == 2 && got.size(1) == options_.hidden &&
                (!h.defined() || got.size(0) == h.size(0)),
            "recurrent step: got states ", name, " of shape ", got.defined() ? got.shape() : Shape{},
            ", wanted a row of ", options_.hidden, " for each sequence");
  };
  state(h, "h");
  if (cell_ == RecurrentCell::lstm) state(c, "c");
  const int64_t gates = kernels::recurrent_gates(cell_) * options_.hidden;
  require(before.defined() && before.rank() == 2 && before.size(0) == h.size(0) && before.size(1) >= gates,
          "recurrent step: got an input of shape ", before.defined() ? before.shape() : Shape{}, ", wanted [",
          h.size(0), ", ", gates, "], what step_input() returns");
  recurrent_step(cell_, before, (*hidden_[static_cast<size_t>(layer)])(Var(h)).value(), h, c);
}

void recurrent_step(RecurrentCell cell, const Tensor& before, const Tensor& product, Tensor& h, Tensor& c) {
  const int64_t rows = h.size(0), width = h.size(1);
  const Tensor next(h.shape()), zeros = Tensor::zeros({4 * width});
  for (int64_t r = 0; r < rows; ++r)
    kernels::recurrent_kernels().forward_row(
        cell,
        {.before = before.data() + r * before.size(1),
         .product = product.data() + r * product.size(1),
         .product_stride = width,
         .h = h.data() + r * width,
         .h_next = next.data() + r * width,
         .c = cell == RecurrentCell::lstm ? c.data() + r * width : nullptr,
         .out = next.data() + r * width},
        zeros.data(), width);
  h = next;
}

RecurrentResult Recurrent::operator()(const Var& x, Context& context, const RecurrentStates& first) const {
  require(x.rank() == 3, "recurrent layer: got input of shape ", x.shape(),
          ", wanted [batch, steps, input], or packed tokens with lengths");
  const int64_t batch = x.size(0), steps = x.size(1);
  const std::vector<int64_t> lengths(static_cast<size_t>(batch), steps);
  RecurrentResult y = (*this)(reshape(x, Shape{batch * steps, x.size(2)}), lengths, context, first);
  y.out = reshape(y.out, Shape{batch, steps, y.out.size(1)});
  return y;
}

LSTMCell::LSTMCell(int64_t input, int64_t hidden, Rng& rng, bool with_bias) {
  for (const Parameter& each : parameter_list(RecurrentCell::lstm, input, hidden, with_bias))
    weights.*each.member =
        add_parameter(each.name, uniform(each.shape, -bound_of(hidden), bound_of(hidden), rng));
}

GRUCell::GRUCell(int64_t input, int64_t hidden, Rng& rng, bool with_bias) {
  for (const Parameter& each : parameter_list(RecurrentCell::gru, input, hidden, with_bias))
    weights.*each.member =
        add_parameter(each.name, uniform(each.shape, -bound_of(hidden), bound_of(hidden), rng));
}

}  // namespace fovea::nn
