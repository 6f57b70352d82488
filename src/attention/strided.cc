// Attention on arrays that the caller owns: checks pointers, sizes and strides, then runs the forward or the backward
// pass without a tape.
#include "attention/strided.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "attention/attend_masked.h"
#include "attention/compile.h"
#include "attention/kernel_call.h"

namespace fovea {
namespace {

using kernels::BiasView;
using kernels::HeadView;

Shape shape_of(int rank, const std::array<int64_t, 4>& sizes) {
  return Shape(std::span<const int64_t>(sizes.data(), static_cast<size_t>(rank)));
}
template <class T>
Shape shape_of(const StridedArray<T>& array) {
  return shape_of(array.rank, array.sizes);
}

// Calls f(offset of the array, number of the element) for every element, row-major.
template <class T, class F>
void for_each_element(const StridedArray<T>& array, const F& f) {
  std::array<int64_t, 4> sizes{1, 1, 1, 1}, strides{};
  for (int i = 0; i < array.rank; ++i) {
    sizes[4 - array.rank + i] = array.sizes[i];
    strides[4 - array.rank + i] = array.strides[i];
  }
  int64_t number = 0;
  for (int64_t a = 0; a < sizes[0]; ++a)
    for (int64_t b = 0; b < sizes[1]; ++b)
      for (int64_t c = 0; c < sizes[2]; ++c)
        for (int64_t d = 0; d < sizes[3]; ++d)
          f(a * strides[0] + b * strides[1] + c * strides[2] + d * strides[3], number++);
}

Tensor copied(const StridedInput& array) {
  const Tensor copy(shape_of(array));
  for_each_element(array, [&](int64_t from, int64_t to) { copy.data()[to] = array.data[from]; });
  return copy;
}

void write(const StridedOutput& array, const Tensor& values) {
  const Tensor dense = values.contiguous();
  for_each_element(array, [&](int64_t to, int64_t from) { array.data[to] = dense.data()[from]; });
}

template <class T>
bool dense_features(const StridedArray<T>& array) {
  return array.sizes[3] <= 1 || array.strides[3] == 1;
}

template <class T>
HeadView<T> head_view(const StridedArray<T>& array) {
  return {array.data, array.strides[0], array.strides[1], array.strides[2]};
}

template <class T>
BiasView<T> bias_view(const StridedArray<T>& array) {
  std::array<int64_t, 4> strides{};
  for (int i = 0; i < array.rank; ++i)
    strides[4 - array.rank + i] = array.sizes[i] == 1 ? 0 : array.strides[i];
  return {array.data, strides[0], strides[1], strides[2], strides[3]};
}

// Arrays that kernels can read, copied where they cannot be read in place.
class Readable {
 public:
  HeadView<const float> heads(const StridedInput& array) {
    if (dense_features(array)) return head_view(array);
    const Tensor& copy = copies_[count_++] = copied(array);
    return {copy.data(), copy.stride(0), copy.stride(1), copy.stride(2)};
  }
  const float* dense(const StridedInput& array) {
    if (!array.present) return nullptr;
    return (copies_[count_++] = copied(array)).data();
  }

 private:
  std::array<Tensor, 12> copies_;
  size_t count_ = 0;
};

// Nothing to compute: no rows, or no keys for them to see.
bool is_empty(const AttentionSizes& s) {
  return s.batch == 0 || s.heads == 0 || s.queries == 0 || s.keys == 0 || s.dv == 0;
}

// Whether the kernels read q and k as they are.
bool is_plain(const Score& score) {
  return score.kind == ScoreKind::dot || score.kind == ScoreKind::scaled_dot;
}

Pattern joined_pattern(const AttentionText& text, Pattern pattern) {
  if (!text.documents.empty()) pattern = within(text.documents, std::move(pattern));
  if (!text.lengths.empty()) pattern = std::move(pattern) & lengths(text.lengths);
  if (!text.query_lengths.empty()) pattern = std::move(pattern) & query_lengths(text.query_lengths);
  return pattern;
}

AttentionSpec spec_of(const AttentionText& text) {
  AttentionSpec spec = parse_spec(text.spec);
  spec.pattern = joined_pattern(text, std::move(spec.pattern));
  spec.terms.bias |= text.bias;
  spec.terms.alibi |= text.alibi;
  spec.terms.sink |= text.sink;
  if (text.dropout != 0) {
    require(spec.selection.kind == SelectionKind::soft,
            "attention: dropout works with a soft selection only, got ", spec);
    spec.selection = soft({.dropout = text.dropout});
  }
  check(spec);
  return spec;
}

Var var_of(const StridedInput& array, const StridedOutput* gradient) {
  return array.present ? Var(copied(array), gradient != nullptr && gradient->present) : Var();
}

// The inputs as variables, for scores that are computed by attend(). gradients: null at use.
struct Variables {
  Variables(const StridedInputs& in, const StridedGradients* gradients) {
    const auto wanted = [&](StridedOutput StridedGradients::*member) {
      return gradients == nullptr ? nullptr : &(gradients->*member);
    };
    q = var_of(in.q, wanted(&StridedGradients::q));
    k = var_of(in.k, wanted(&StridedGradients::k));
    v = var_of(in.v, wanted(&StridedGradients::v));
    parameters = {.W = var_of(in.W, wanted(&StridedGradients::W)),
                  .U = var_of(in.U, wanted(&StridedGradients::U)),
                  .b = var_of(in.b, wanted(&StridedGradients::b)),
                  .v = var_of(in.score_v, wanted(&StridedGradients::score_v)),
                  .bias = var_of(in.bias, wanted(&StridedGradients::bias)),
                  .slopes = var_of(in.slopes, wanted(&StridedGradients::slopes)),
                  .relative = var_of(in.relative, wanted(&StridedGradients::relative)),
                  .position = var_of(in.position, wanted(&StridedGradients::position)),
                  .sink = var_of(in.sink, wanted(&StridedGradients::sink))};
  }
  void write_gradients(const StridedGradients& to) const {
    const auto give = [](const StridedOutput& array, const Var& var) {
      if (!array.present) return;
      const Tensor gradient = var.grad();
      write(array, gradient.defined() ? gradient : Tensor::zeros(var.shape()));
    };
    give(to.q, q);
    give(to.k, k);
    give(to.v, v);
    give(to.W, parameters.W);
    give(to.U, parameters.U);
    give(to.b, parameters.b);
    give(to.score_v, parameters.v);
    give(to.bias, parameters.bias);
    give(to.slopes, parameters.slopes);
    give(to.relative, parameters.relative);
    give(to.position, parameters.position);
    give(to.sink, parameters.sink);
  }
  Var q, k, v;
  AttentionParameters parameters;
};

void fill(const StridedOutput& array, float value) {
  if (array.present) for_each_element(array, [&](int64_t at, int64_t) { array.data[at] = value; });
}
float* zeroed(const StridedOutput& array) {
  fill(array, 0);
  return array.data;
}

}  // namespace

AttentionSizes attention_sizes(const StridedInput& q, const StridedInput& k, const StridedInput& v) {
  return attention_sizes(shape_of(q), shape_of(k), shape_of(v));
}

PreparedAttention::PreparedAttention(const AttentionText& text, const AttentionSizes& sizes)
    : text_(text), sizes_(sizes), spec_(spec_of(text)), acting_(acting_spec(spec_, text.training)) {
  require(is_plain(spec_.score) || (sizes.d > 0 && sizes.dk > 0), "attention: got ", sizes.d, " and ",
          sizes.dk, " features of q and k, wanted at least one for ", spec_);
  const PlanSizes plan_sizes{
      .queries = sizes.queries, .keys = sizes.keys, .batch = sizes.batch, .heads = sizes.heads};
  plan_ =
      std::make_shared<const kernels::AttentionPlan>(compile(acting_.pattern, plan_sizes, text.mask.get()));
}

void PreparedAttention::check(const StridedInputs& in) const {
  require(attention_sizes(in.q, in.k, in.v) == sizes_,
          "attention: arrays of other sizes than it was prepared for");
  const auto shape = [](const StridedInput& array) {
    return array.present ? std::optional(shape_of(array)) : std::nullopt;
  };
  check_parameters(spec_,
                   {.W = shape(in.W),
                    .U = shape(in.U),
                    .b = shape(in.b),
                    .v = shape(in.score_v),
                    .bias = shape(in.bias),
                    .slopes = shape(in.slopes),
                    .relative = shape(in.relative),
                    .position = shape(in.position),
                    .sink = shape(in.sink)},
                   sizes_, false);
}

namespace {

KernelArrays arrays_of(const StridedInputs& in, const AttentionSizes& s, Readable& readable) {
  return {.shape = {s.batch, s.heads, s.kv_heads, s.queries, s.keys, s.d, s.dv},
          .q = readable.heads(in.q),
          .k = readable.heads(in.k),
          .v = readable.heads(in.v),
          .bias = in.bias.present ? bias_view(in.bias) : BiasView<const float>{},
          .slopes = readable.dense(in.slopes),
          .relative = readable.dense(in.relative),
          .position = readable.dense(in.position),
          .sink = readable.dense(in.sink)};
}

}  // namespace

void PreparedAttention::forward(const StridedInputs& inputs, const StridedResults& results,
                                uint64_t seed) const {
  check(inputs);
  if (is_plain(spec_.score)) {
    Readable readable;
    const KernelArrays arrays = arrays_of(inputs, sizes_, readable);
    const KernelCall call(acting_, {.scale = score_scale(spec_.score, sizes_.d)}, arrays, plan_, seed);
    return call.forward({.out = head_view(results.out), .lse = results.lse});
  }
  if (is_empty(sizes_)) {
    fill(results.out, 0);
    if (results.lse != nullptr)
      std::fill_n(results.lse, sizes_.batch * sizes_.heads * sizes_.queries,
                  -std::numeric_limits<float>::infinity());
    return;
  }
  const NoGrad no_grad;
  const Variables in(inputs, nullptr);
  const AttentionResult found = attend_masked(
      in.q, in.k, in.v, spec_,
      {.parameters = in.parameters, .training = text_.training, .seed = seed, .lse = results.lse != nullptr},
      text_.mask.get());
  write(results.out, found.output.value());
  if (results.lse != nullptr) std::copy_n(found.lse.data(), found.lse.count(), results.lse);
}

void PreparedAttention::backward(const StridedInputs& inputs, const StridedResults& results,
                                 const StridedInput& d_out, const StridedGradients& gradients,
                                 uint64_t seed) const {
  check(inputs);
  require(shape_of(d_out) == Shape{sizes_.batch, sizes_.heads, sizes_.queries, sizes_.dv},
          "attention: the output's gradient has shape ", shape_of(d_out), ", wanted ",
          Shape{sizes_.batch, sizes_.heads, sizes_.queries, sizes_.dv});
  if (is_plain(spec_.score)) {
    Readable readable;
    const KernelArrays arrays = arrays_of(inputs, sizes_, readable);
    const KernelCall call(acting_, {.scale = score_scale(spec_.score, sizes_.d)}, arrays, plan_, seed);
    kernels::AttentionRowsBackward to;
    to.d_out = readable.heads(d_out);
    to.dq = head_view(gradients.q);
    to.dk = head_view(gradients.k);
    to.dv = head_view(gradients.v);
    to.d_bias = gradients.bias.present ? bias_view(gradients.bias) : BiasView<float>{};
    if (!call.overwrites_bias(to.d_bias)) fill(gradients.bias, 0);
    to.d_alibi = zeroed(gradients.slopes);
    to.d_relative = zeroed(gradients.relative);
    to.d_sink = zeroed(gradients.sink);
    to.d_centre = zeroed(gradients.position);
    return call.backward(to, {.out = head_view(results.out), .lse = results.lse});
  }
  if (is_empty(sizes_)) {
    for (const StridedOutput* gradient :
         {&gradients.q, &gradients.k, &gradients.v, &gradients.bias, &gradients.slopes, &gradients.relative,
          &gradients.position, &gradients.sink, &gradients.W, &gradients.U, &gradients.b, &gradients.score_v})
      fill(*gradient, 0);
    return;
  }
  const Variables in(inputs, &gradients);
  const AttentionResult found = attend_masked(
      in.q, in.k, in.v, spec_, {.parameters = in.parameters, .training = text_.training, .seed = seed},
      text_.mask.get());
  if (found.output.requires_grad()) found.output.backward(copied(d_out));
  in.write_gradients(gradients);
}

void PreparedAttention::check_weights(const std::vector<int32_t>& heads,
                                      const std::vector<int32_t>& rows) const {
  check_chosen_weights(heads, sizes_.heads, "head");
  check_chosen_weights(rows, sizes_.queries, "row");
}

void PreparedAttention::weights(const StridedInputs& inputs, const std::vector<int32_t>& heads,
                                const std::vector<int32_t>& rows, float* weights, uint64_t seed) const {
  check(inputs);
  const NoGrad no_grad;
  if (is_plain(spec_.score)) {
    check_weights(heads, rows);
    Readable readable;
    const KernelArrays arrays = arrays_of(inputs, sizes_, readable);
    const KernelCall call(acting_, {.scale = score_scale(spec_.score, sizes_.d)}, arrays, plan_, seed);
    const auto head_count = static_cast<int64_t>(heads.size()), row_count = static_cast<int64_t>(rows.size());
    std::fill_n(weights, sizes_.batch * head_count * row_count * sizes_.keys, 0.0f);
    return call.weights({weights, heads.data(), head_count, rows.data(), row_count});
  }
  if (heads.empty() || rows.empty() || is_empty(sizes_)) return check_weights(heads, rows);
  const Variables in(inputs, nullptr);
  const AttentionResult found = attend_masked(in.q, in.k, in.v, spec_,
                                              {.parameters = in.parameters,
                                               .training = text_.training,
                                               .seed = seed,
                                               .weights = true,
                                               .weight_heads = heads,
                                               .weight_rows = rows},
                                              text_.mask.get());
  std::copy_n(found.weights.data(), found.weights.count(), weights);
}

std::shared_ptr<const PreparedAttention> PreparedCache::prepare(const AttentionText& text,
                                                                const AttentionSizes& sizes) {
  {
    const std::lock_guard lock(mutex_);
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry)
      if (entry->sizes == sizes && entry->text == text) {
        entries_.splice(entries_.begin(), entries_, entry);
        return entry->prepared;
      }
  }
  auto made = std::make_shared<const PreparedAttention>(text, sizes);
  const std::lock_guard lock(mutex_);
  entries_.push_front({text, sizes, made});
  if (entries_.size() > kept_) entries_.pop_back();
  return made;
}

}  // namespace fovea
