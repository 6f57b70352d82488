// Translates a spec and its arrays into one call of the fused kernel or of the kernel for single rows, and adds up the
// gradients of score terms.
#include "attention/kernel_call.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "attention/compile.h"

namespace fovea {

using kernels::AttentionRowsForward;
using kernels::BiasView;
using kernels::ScoreFamily;

namespace {

// Element (i, j) of diagonals is at j - i + Nq - 1.
template <class T>
BiasView<T> diagonal_view(T* diagonals, const kernels::AttentionShape& s) {
  return {.data = s.queries > 0 && s.keys > 0 ? diagonals + s.queries - 1 : nullptr,
          .batch = 0,
          .head = s.queries + s.keys - 1,
          .row = -1,
          .column = 1};
}

}  // namespace

float score_scale(const Score& score, int64_t d) {
  if (score.kind == ScoreKind::dot) return 1;
  return score.number != 0 ? 1 / score.number
                           : static_cast<float>(1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, d))));
}

std::vector<float> default_slopes(int64_t heads) {
  std::vector<float> slopes(static_cast<size_t>(heads));
  for (int64_t h = 0; h < heads; ++h)
    slopes[h] = static_cast<float>(std::exp2(-8.0 * static_cast<double>(h + 1) / static_cast<double>(heads)));
  return slopes;
}

const patterns::Window* run_window(const Pattern& pattern) {
  const auto* const window = std::get_if<patterns::Window>(&pattern.node());
  return window != nullptr && window->dilation == 1 ? window : nullptr;
}

bool is_runs(const AttentionSpec& spec) {
  Terms others = spec.terms;
  others.gaussian = 0;
  return others == Terms{} && (spec.pattern == full() || run_window(spec.pattern) != nullptr);
}

bool computed_by_runs(const AttentionSpec& spec, bool training) {
  // Dropout acts in training only.
  return is_runs(spec) && spec.selection.kind == SelectionKind::soft &&
         (spec.selection.dropout == 0 || !training);
}

KernelCall::KernelCall(const AttentionSpec& spec, const KernelScore& score, const KernelArrays& arrays,
                       std::shared_ptr<const kernels::AttentionPlan> plan, uint64_t seed)
    : plan_(std::move(plan)) {
  const kernels::AttentionShape& s = arrays.shape;
  call_.shape = s;
  call_.score = score.family;
  call_.terms.scale = score.scale;
  call_.terms.soft_cap = spec.terms.soft_cap;
  call_.terms.dropout = spec.selection.dropout;
  call_.terms.seed = seed;
  call_.terms.bias = arrays.bias;
  call_.terms.sink = arrays.sink;
  call_.plan = plan_.get();
  call_.q = arrays.q;
  call_.k = arrays.k;
  call_.v = arrays.v;
  call_.score_vector = arrays.score_vector;
  call_.selection = {.kind = spec.selection.kind,
                     .tau = spec.selection.tau,
                     .straight_through = spec.selection.straight_through,
                     .k = spec.selection.k,
                     .seed = seed};
  if (spec.terms.alibi) {
    if (arrays.slopes == nullptr) slopes_ = default_slopes(s.heads);
    call_.terms.alibi = arrays.slopes != nullptr ? arrays.slopes : slopes_.data();
  }
  if (arrays.relative != nullptr) {
    buckets_.resize(static_cast<size_t>(std::max<int64_t>(0, s.queries + s.keys - 1)));
    for (size_t i = 0; i < buckets_.size(); ++i) {
      const int64_t key_minus_query = static_cast<int64_t>(i) - (s.queries - 1);
      buckets_[i] =
          static_cast<int32_t>(relative_bucket(spec.terms.relative, key_minus_query - (s.keys - s.queries)));
    }
    call_.relative = {.table = arrays.relative,
                      .head = 1,
                      .step = s.heads,
                      .bucket = buckets_.data(),
                      .bucket_count = spec.terms.relative.buckets};
  }
  if (arrays.position != nullptr) call_.gaussian = {.centre = arrays.position, .sigma = spec.terms.gaussian};
  fused_ = spec.selection.kind == SelectionKind::soft && score.family == ScoreFamily::dot &&
           arrays.position == nullptr && !(arrays.relative != nullptr && arrays.bias.data != nullptr);
  if (fused_ && arrays.relative != nullptr) {
    const auto length = static_cast<int64_t>(buckets_.size());
    diagonals_.resize(static_cast<size_t>(s.heads * length));
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t t = 0; t < length; ++t)
        diagonals_[h * length + t] = arrays.relative[buckets_[t] * s.heads + h];
  }
}

kernels::AttentionForward KernelCall::fused_call(const Results& results) const {
  kernels::AttentionForward fused{.shape = call_.shape,
                                  .terms = call_.terms,
                                  .plan = call_.plan,
                                  .q = call_.q,
                                  .k = call_.k,
                                  .v = call_.v,
                                  .out = results.out,
                                  .lse = results.lse};
  if (!diagonals_.empty()) fused.terms.bias = diagonal_view<const float>(diagonals_.data(), call_.shape);
  return fused;
}

void KernelCall::forward(const Results& results) const {
  if (fused_) return kernels::attention_kernels().forward(fused_call(results));
  AttentionRowsForward call = call_;
  call.out = results.out;
  call.lse = results.lse;
  call.chosen = results.chosen;
  call.log_probability = results.log_probability;
  call.entropy = results.entropy;
  kernels::attention_rows_forward(call);
}

// Sums the gradient along each diagonal's bucket, in order.
void KernelCall::add_relative_gradient(const std::vector<float>& d_diagonals, float* d_relative) const {
  const int64_t heads = call_.shape.heads;
  const auto length = static_cast<int64_t>(buckets_.size());
  for (int64_t h = 0; h < heads; ++h) {
    std::vector<double> sums(static_cast<size_t>(call_.relative.bucket_count));
    for (int64_t t = 0; t < length; ++t) sums[buckets_[t]] += d_diagonals[h * length + t];
    for (size_t bucket = 0; bucket < sums.size(); ++bucket)
      d_relative[static_cast<int64_t>(bucket) * heads + h] += static_cast<float>(sums[bucket]);
  }
}

bool KernelCall::overwrites_bias(const BiasView<float>& d_bias) const {
  const kernels::AttentionShape& s = call_.shape;
  const auto own = [](int64_t count, int64_t stride) { return count <= 1 || stride != 0; };
  return fused_ && d_bias.data != nullptr && own(s.batch, d_bias.batch) && own(s.heads, d_bias.head) &&
         own(s.queries, d_bias.row) && own(s.keys, d_bias.column) &&
         visited_pairs(*plan_, s.batch, s.heads) == s.batch * s.heads * s.queries * s.keys;
}

void KernelCall::backward(kernels::AttentionRowsBackward gradients, const Results& results) const {
  if (!fused_) {
    gradients.forward = call_;
    return kernels::attention_rows_backward(gradients);
  }
  kernels::AttentionBackward fused;
  fused.forward = fused_call(results);
  fused.d_out = gradients.d_out;
  fused.dq = gradients.dq;
  fused.dk = gradients.dk;
  fused.dv = gradients.dv;
  fused.d_bias = gradients.d_bias;
  fused.d_bias_once = overwrites_bias(gradients.d_bias);
  fused.d_alibi = gradients.d_alibi;
  fused.d_sink = gradients.d_sink;
  std::vector<float> d_diagonals;
  if (!diagonals_.empty() && gradients.d_relative != nullptr) {
    d_diagonals.resize(diagonals_.size());
    fused.d_bias = diagonal_view<float>(d_diagonals.data(), call_.shape);
    fused.d_bias_once = false;
  }
  kernels::attention_kernels().backward(fused);
  if (!d_diagonals.empty()) add_relative_gradient(d_diagonals, gradients.d_relative);
}

void KernelCall::weights(const kernels::ChosenWeights& weights) const {
  AttentionRowsForward call = call_;
  call.weights = weights;
  kernels::attention_rows_forward(call);
}

}  // namespace fovea
