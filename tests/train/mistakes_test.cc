// What a user of the library gets wrong in a public call is an Error that says so: never a crash, never an assertion.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "autograd/ops_gates.h"
#include "fovea.h"
#include "nn/attention_pooling.h"

namespace fovea {
namespace {

struct Mistake {
  std::string name;
  std::function<void()> call;
};

Var zeros(const Shape& shape) {
  return Var(Tensor::zeros(shape), true);
}

std::vector<Mistake> mistakes_with_tensors() {
  const Tensor a = Tensor::zeros({2, 3});
  return {
      {"clone of nothing", [] { Tensor().clone(); }},
      {"copy of nothing", [] { Tensor::zeros({}).copy_from({}); }},
      {"item of nothing", [] { Tensor().item(); }},
      {"span of a view", [a] { a.transpose(0, 1).span(); }},
      {"fill of a view", [a] { a.transpose(0, 1).fill(1); }},
      {"narrow past the end", [a] { a.narrow(0, 1, 2); }},
      {"narrow far past the end", [a] { a.narrow(0, 1, INT64_MAX); }},
      {"too many axes",
       [a] {
         a.permute({0, 1, 2});
       }},
      {"no such axis", [a] { a.size(2); }},
      {"values of another count",
       [] {
         Tensor::from({1, 2, 3}, {2, 2});
       }},
      {"negative size",
       [] {
         Tensor({2, -3});
       }},
      {"pieces of no size", [] { parallel_for(3, 0, [](int64_t, int64_t) {}); }},
  };
}

std::vector<Mistake> mistakes_with_variables() {
  const Var none, x = zeros({2, 3});
  return {
      {"a variable of nothing", [] { Var(Tensor{}); }},
      {"value", [none] { none.value(); }},
      {"gradient", [none] { none.grad(); }},
      {"sparse gradient", [none] { none.sparse_grad(); }},
      {"clear_grad", [none] { none.clear_grad(); }},
      {"set_value", [none] { none.set_value(Tensor::zeros({2})); }},
      {"set_value of another shape",
       [x] {
         x.set_value(Tensor::zeros({3, 2}));
       }},
      {"set_value of nothing", [x] { x.set_value({}); }},
      {"add_grad of another shape",
       [x] {
         x.add_grad(Tensor::zeros({3, 2}));
       }},
      {"backward", [none] { none.backward(); }},
      {"detach", [none] { none.detach(); }},
      {"sum", [none, x] { x + none; }},
      {"difference from a number", [none] { 1.0f - none; }},
      {"relu", [none] { relu(none); }},
      {"sum of all", [none] { sum(none); }},
      {"mean over an axis", [none] { mean(none, 0); }},
      {"reshape", [none] { reshape(none, {-1}); }},
      {"concat of none", [] { concat({}, 0); }},
      {"concat with an undefined part",
       [none, x] {
         concat(std::array{x, none}, 0);
       }},
      {"split into other counts",
       [x] {
         split(x, 1, std::array<int64_t, 2>{1, 1});
       }},
      {"matmul", [none, x] { matmul(x, none); }},
      {"linear without weight", [none, x] { linear(x, none); }},
      {"linear of another width",
       [x] {
         linear(x, zeros({4, 5}));
       }},
      {"softmax", [none] { softmax(none); }},
      {"dropout of more than all", [x] { dropout(x, 2, 1); }},
      {"embedding without table", [none] { embedding(none, std::array<int32_t, 1>{0}); }},
      {"gather past the end", [x] { gather(x, std::array<int32_t, 1>{7}); }},
      {"cross_entropy", [none] { cross_entropy(none, {}); }},
      {"squared_error of other counts", [x] { squared_error(x, std::array<float, 1>{0}); }},
      {"shapes that do not broadcast",
       [x] {
         x* zeros({4, 5});
       }},
      {"conv2d without weight",
       [none] {
         conv2d(zeros({1, 4, 4, 2}), none);
       }},
      {"conv2d of a matrix",
       [x] {
         conv2d(x, zeros({1, 2, 3, 3}));
       }},
      {"conv2d with stride 0",
       [] {
         conv2d(zeros({1, 4, 4, 2}), zeros({1, 2, 3, 3}), {}, {.stride = 0});
       }},
      {"conv2d larger than the image",
       [] {
         conv2d(zeros({1, 2, 2, 2}), zeros({1, 2, 3, 3}));
       }},
      {"max_pool2d of nothing", [none] { max_pool2d(none); }},
      {"max_pool2d with kernel 0",
       [] {
         max_pool2d(zeros({1, 4, 4, 2}), {.kernel = 0});
       }},
      {"resize to nothing",
       [] {
         resize2d(zeros({1, 4, 4, 2}), 0);
       }},
      {"gate without image", [none] { gate_images(none, {}); }},
      {"lstm without weights",
       [none, x] {
         lstm_cell(x, {}, {none, none});
       }},
      {"rotary of an odd width",
       [] {
         rotary(zeros({1, 1, 1, 3}), std::array<int32_t, 1>{0});
       }},
  };
}

std::vector<Mistake> mistakes_with_attention() {
  const Var none, x = zeros({1, 2, 4, 8});
  return {
      {"undefined query", [none, x] { attention(none, x, x); }},
      {"undefined value", [none, x] { attention(x, x, none); }},
      {"matrices",
       [] {
         attention(zeros({4, 8}), zeros({4, 8}), zeros({4, 8}));
       }},
      {"widths that differ",
       [x] {
         attention(x, zeros({1, 2, 4, 6}), x);
       }},
      {"heads that do not divide",
       [x] {
         attention(x, zeros({1, 3, 4, 8}), zeros({1, 3, 4, 8}));
       }},
      {"keys and values of other counts",
       [x] {
         attention(x, x, zeros({1, 2, 5, 8}));
       }},
      {"bilinear without its matrix", [x] { attention(x, x, x, {.score = bilinear()}); }},
      {"unknown score", [] { parse_spec("scaled_dto"); }},
      {"unknown pattern", [] { parse_spec("dot / windwo(1,1)"); }},
      {"negative window", [] { window(-1, 0); }},
      {"stride of 0", [] { strided(0); }},
      {"lengths of another batch",
       [x] {
         attention(x, x, x, {.pattern = lengths({1, 2, 3})});
       }},
  };
}

std::vector<Mistake> mistakes_with_layers() {
  const Var none, x = zeros({2, 3});
  const auto options = [](int64_t width, int64_t heads) {
    return nn::TransformerOptions{.width = width, .heads = heads, .hidden = 8};
  };
  return {
      {"linear of no width",
       [] {
         Rng rng(1);
         nn::Linear(-1, 3, rng);
       }},
      {"linear of nothing",
       [none] {
         Rng rng(1);
         nn::Linear(3, 4, rng)(none);
       }},
      {"linear of another width",
       [x] {
         Rng rng(1);
         nn::Linear(4, 4, rng)(x);
       }},
      {"layer norm of another width",
       [x] {
         nn::LayerNorm layer(4);
         layer(x);
       }},
      {"heads that do not divide the width",
       [=] {
         Rng rng(1);
         nn::TransformerEncoderLayer(options(10, 3), rng);
       }},
      {"no heads",
       [=] {
         Rng rng(1);
         nn::TransformerEncoderLayer(options(12, 0), rng);
       }},
      {"an encoder layer of nothing",
       [=] {
         Rng rng(1);
         nn::Context context;
         nn::TransformerEncoderLayer(options(8, 2), rng)(none, context);
       }},
      {"a decoder layer without memory",
       [=] {
         Rng rng(1);
         nn::Context context;
         nn::TransformerDecoderLayer(options(8, 2), rng)(zeros({1, 2, 8}), none, context);
       }},
      {"an LSTM of nothing",
       [=] {
         Rng rng(1);
         nn::Context context;
         nn::LSTM({.input = 3, .hidden = 4}, rng)(none, context);
       }},
      {"lengths that do not add up",
       [=] {
         Rng rng(1);
         nn::Context context;
         nn::LSTM({.input = 3, .hidden = 4}, rng)(x, std::array<int64_t, 2>{1, 2}, context);
       }},
      {"a step of an LSTM that reads both ways",
       [=] {
         Rng rng(1);
         Tensor h = Tensor::zeros({2, 4}), c = Tensor::zeros({2, 4});
         nn::LSTM({.input = 3, .hidden = 4, .bidirectional = true}, rng)
             .step(0, Tensor::zeros({2, 16}), h, c);
       }},
      {"a step of a layer that there is not",
       [=] {
         Rng rng(1);
         Tensor h = Tensor::zeros({2, 4}), c = Tensor::zeros({2, 4});
         nn::LSTM({.input = 3, .hidden = 4, .stepwise = true}, rng).step(1, Tensor::zeros({2, 16}), h, c);
       }},
      {"pooling by an unknown score",
       [] {
         Rng rng(1);
         nn::AttentionPooling({.width = 4, .score = "aditive"}, rng);
       }},
      {"pooling of nothing",
       [=] {
         Rng rng(1);
         nn::Context context;
         nn::AttentionPooling({.width = 4}, rng)(none, std::array<int64_t, 1>{1}, context);
       }},
      {"frames of another width",
       [=] {
         Rng rng(1);
         nn::TemporalAttention({.width = 4}, rng)(x, std::array<int64_t, 1>{2});
       }},
      {"unknown frame pooling", [] { nn::frame_pooling_named("maks"); }},
      {"a gated loss of another mask", [=] { nn::gated_loss(x, Tensor::zeros({5})); }},
      {"a gated loss without mask", [=] { nn::gated_loss(x, {}); }},
      {"unknown optimiser", [] { train::rule_from_name("adamm"); }},
      {"an undefined parameter",
       [=] {
         train::Optimizer({{"w", none}}, train::Adam{});
       }},
      {"a negative learning rate",
       [=] {
         train::Optimizer({{"w", x}}, train::Adam{.learning_rate = -1});
       }},
      {"a job without callbacks",
       [] {
         Rng rng(1);
         nn::Linear layer(2, 2, rng);
         train::Trainer(layer, train::Adam{}, {}, {.steps = 1}, {});
       }},
      {"a file that is not there", [] { SafetensorsFile("/no/such/file.safetensors"); }},
  };
}

// Calls of layers that are prepared for use, and of decoders' steps.
std::vector<Mistake> mistakes_in_use() {
  static Rng rng(1);
  static nn::LSTM lstm({.input = 3, .hidden = 4, .stepwise = true}, rng);
  static nn::Linear linear(3, 2, rng);
  static nn::MultiHeadAttention attention({.width = 8, .heads = 2}, rng);
  static nn::TransformerEncoder encoder({.width = 8, .heads = 2, .hidden = 8}, 2, false, rng);
  static nn::TransformerDecoder decoder({.width = 8, .heads = 2, .hidden = 8}, 1, false, rng);
  static const nn::Prepared prepared[] = {nn::Prepared(lstm), nn::Prepared(linear, Compute::int8),
                                          nn::Prepared(attention)};
  const Tensor x = Tensor::zeros({2, 3});
  const auto read = [](const Tensor& tokens, std::vector<int64_t> lengths) {
    const NoGrad no_grad;
    nn::Context context;
    lstm(Var(tokens), lengths, context);
  };
  return {
      {"input of another width",
       [=] {
         read(Tensor::zeros({2, 5}), {2});
       }},
      {"lengths that are too long",
       [=] {
         read(x, {1, 1000000});
       }},
      {"lengths that are too short", [=] { read(x, {1}); }},
      {"a negative length",
       [=] {
         read(x, {3, -1});
       }},
      {"a linear layer's input of another width",
       [] {
         const NoGrad no_grad;
         linear(Var(Tensor::zeros({2, 5})));
       }},
      {"a step of no layer", [=] { lstm.step_input(7, x); }},
      {"a step without a cell state",
       [] {
         Tensor h = Tensor::zeros({2, 4}), c;
         lstm.step(0, Tensor::zeros({2, 16}), h, c);
       }},
      {"a step with a cell state of another width",
       [] {
         Tensor h = Tensor::zeros({2, 4}), c = Tensor::zeros({2, 2});
         lstm.step(0, Tensor::zeros({2, 16}), h, c);
       }},
      {"a step of an input that is too narrow",
       [] {
         Tensor h = Tensor::zeros({2, 4}), c = Tensor::zeros({2, 4});
         lstm.step(0, Tensor::zeros({2, 3}), h, c);
       }},
      {"a cache without rows",
       [] {
         nn::Context context;
         nn::KeyValueCache cache;
         attention(Var(Tensor::zeros({1, 2, 8})), context, {.cache = &cache});
       }},
      {"a cache that was not filled",
       [] {
         nn::Context context;
         nn::KeyValueCache cache;
         const nn::CacheRows rows = nn::CacheRows::of_sentences(std::array<int64_t, 1>{3});
         const Var query(Tensor::zeros({1, 1, 8}));
         attention.cross(query, query, context, {.cache = &cache, .rows = &rows});
       }},
      {"rows that there are not",
       [] {
         nn::CacheRows rows = nn::CacheRows::growing(2);
         rows.reorder(std::array<int32_t, 2>{0, 2});
       }},
      {"patterns for too few layers",
       [] {
         nn::Context context;
         const Pattern one[] = {causal()};
         encoder(Var(Tensor::zeros({1, 2, 8})), context, {.self_of_layers = one});
       }},
      {"sentences longer than their memory",
       [] {
         decoder.start(Var(Tensor::zeros({1, 2, 8})), std::array<int64_t, 1>{30});
       }},
      {"a gradient of rows that there are not",
       [] {
         zeros({2, 3}).add_grad(RowSparse{{5}, Tensor::zeros({1, 3})});
       }},
      {"a reward of nothing", [] { reinforce_loss(zeros({}), {}, Tensor::zeros({})); }},
      {"a second backward pass",
       [] {
         const Var w = zeros({2}), y = sum(w * w);
         y.backward();
         y.backward();
       }},
      {"a second backward pass through a shared part",
       [] {
         const Var w = zeros({2}), shared = w * w, a = sum(shared), b = mean(shared);
         a.backward();
         b.backward();
       }},
      {"a view written to a file", [=] { TensorToWrite::floats("x", x.transpose(0, 1)); }},
      {"lengths of too few sequences", [] { allowed(lengths({3}), {.keys = 3, .batch = 1}); }},
  };
}

TEST(InUse, AnEmptyLayerOfEightBitsGivesItsBias) {
  Rng rng(1);
  const nn::Linear layer(0, 2, rng);
  const nn::Prepared prepared(layer, Compute::int8);
  const NoGrad no_grad;
  EXPECT_EQ(layer(Var(Tensor::zeros({3, 0}))).shape(), (Shape{3, 2}));
}

class Mistakes : public testing::TestWithParam<std::vector<Mistake> (*)()> {};

TEST_P(Mistakes, ThrowAnError) {
  for (const Mistake& mistake : GetParam()()) {
    SCOPED_TRACE(mistake.name);
    EXPECT_THROW(mistake.call(), Error);
  }
}

INSTANTIATE_TEST_SUITE_P(InPublicCalls, Mistakes,
                         testing::Values(mistakes_with_tensors, mistakes_with_variables,
                                         mistakes_with_attention, mistakes_with_layers, mistakes_in_use));

}  // namespace
}  // namespace fovea
