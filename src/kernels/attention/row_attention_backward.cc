// The backward pass of row-wise attention: rows' weights are made again, then their gradients walk back.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/parallel.h"
#include "kernels/attention/row_attention_tile.h"

namespace fovea::kernels::rows {
namespace {

void zero_rows(const HeadView<float>& view, int64_t b, int64_t h, int64_t rows, int64_t width) {
  if (!view.data) return;
  for (int64_t i = 0; i < rows; ++i) std::fill(view.at(b, h, i), view.at(b, h, i) + width, 0.0f);
}

// Whether the first tile of a group visits all keys.
bool visits_every_key(const AttentionPlan& plan, int64_t group, int64_t keys) {
  if (plan.group_tiles[group] == plan.group_tiles[group + 1]) return false;
  const PlanTile& tile = plan.tiles[plan.group_tiles[group]];
  int64_t count = 0;
  for (int32_t s = tile.segment_begin; s < tile.segment_end; ++s) count += plan.segments[s].key_count;
  return count == keys && tile.row_count > 0;
}

// Sums that several (batch, key head) chunks share, one copy for each chunk, added up in order at the end.
struct SharedGradients {
  float *alibi, *sink;  // [group]
  float* relative;      // [group, buckets]
  float* vector;        // [group, d]
  BiasView<float> bias;
};

// Everything backward for one tile.
class TileBackward {
 public:
  TileBackward(const AttentionRowsBackward& call, const AttentionRowsSteps& steps, int64_t b, int64_t h,
               const PlanTile& tile, const SharedGradients& shared, bool fresh)
      : call_(call),
        f_(call.forward),
        steps_(steps),
        s_(thread_scratch()),
        shared_(shared),
        b_(b),
        h_(h),
        in_group_(h % (f_.shape.heads / f_.shape.kv_heads)),
        tile_(f_, steps, b, h, tile),
        fresh_(fresh) {}

  void run() {
    const AttentionShape& shape = f_.shape;
    const int64_t count = tile_.count(), columns = tile_.columns(), rows = tile_.row_count();
    const SelectionKind kind = f_.selection.kind;
    scores_learn_ = kind != SelectionKind::argmax;
    needs_d_weights_ = (scores_learn_ && kind != SelectionKind::hard) || call_.d_centre;
    // Something not finite must not reach rows that do not see it through a weight of 0.
    const bool careful =
        tile_.partial() && !(steps_.finite(tile_.keys_of(f_.k), count, shape.d) &&
                             steps_.finite(tile_.queries_of(f_.q, 0), rows, shape.d) &&
                             steps_.finite(tile_.queries_of(call_.d_out, 0), rows, shape.dv));
    skip_zeros_ = careful;
    tile_.open(careful);
    s_.d_scores.reserve(kStripRows * columns);
    if (needs_d_weights_ && !tile_.few())
      steps_.pack_panels(tile_.keys_of(f_.v), count, shape.dv, s_.values_packed.reserve(shape.dv * columns));
    const bool packed = f_.score == ScoreFamily::additive && !tile_.few();
    if (packed) {
      const int64_t stride = additive_stride(shape.d);
      s_.dq_packed.reserve(kStripRows * stride);
      std::fill_n(s_.dk_packed.reserve(count * stride), count * stride, 0.0f);
      std::fill_n(s_.d_vector.reserve(stride), stride, 0.0f);
    }
    for (int64_t first = 0; first < rows; first += kStripRows)
      strip(first, std::min(kStripRows, rows - first));
    if (packed) finish_additive();
  }

 private:
  void strip(int64_t first, int64_t rows) {
    const AttentionShape& shape = f_.shape;
    const int64_t columns = tile_.columns(), count = tile_.count();
    const bool capped = f_.terms.soft_cap > 0;
    tile_.score_rows(first, rows, Tile::Pass::backward);
    float *weights = s_.scores.get(), *d = s_.d_scores.get();
    if (needs_d_weights_) {
      const RowList<const float> d_out = tile_.queries_of(call_.d_out, first);
      if (!tile_.few())
        steps_.dot(d_out, rows, shape.dv, s_.values_packed.get(), columns, d);
      else
        steps_.dot_few(d_out, rows, shape.dv, tile_.keys_of(f_.v), count, d, columns);
    }
    for (int64_t r = 0; r < rows; ++r) {
      row(first + r, weights + r * columns, d + r * columns);
      if (scores_learn_)
        terms_row(first + r, d + r * columns, capped ? s_.slopes.get() + r * columns : nullptr);
    }
    if (call_.dv.data)
      steps_.combine({.weights = weights,
                      .weight_row = 1,
                      .weight_step = columns,
                      .in = tile_.queries_of(call_.d_out, first),
                      .in_count = rows,
                      .out = tile_.keys_of(call_.dv),
                      .out_count = count,
                      .width = shape.dv,
                      .accumulate = !fresh(first),
                      .skip_zeros = skip_zeros_ || selects_few(f_.selection, count)});
    score_strip(first, rows);
  }

  // From logits in x and d_weights in d: the weights as they met v in x, the gradient of the logits in d.
  void row(int64_t r, float* x, float* d) {
    const int64_t columns = tile_.columns(), count = tile_.count();
    const SelectionTerms& selection = f_.selection;
    const bool straight = selection.kind == SelectionKind::gumbel && selection.straight_through;
    Tile::Distribution distribution;
    if (selection.kind == SelectionKind::hard) distribution = tile_.distribution_row(x);
    if (straight) {
      float none = 0;
      std::copy(x, x + columns, s_.soft.get());
      tile_.add_noise(r, s_.soft.get(), 1 / selection.tau);
      steps_.softmax(s_.soft.get(), columns, kMinusInfinity, &none);
    }
    // A weight of 0 may be a score of 0: here only the logit tells whether the key was seen.
    if (selection.kind == SelectionKind::identity && needs_d_weights_)
      for (int64_t n = 0; n < columns; ++n)
        if (x[n] == kMinusInfinity) d[n] = 0;
    const Tile::Selected selected = tile_.select_row(r, x);

    float* factor = s_.factors.get();
    if (tile_.has_factor()) {
      tile_.factor_row(r, factor);
      if (call_.d_centre) call_.d_centre[tile_.place(r)] = centre_gradient(r, x, d);
      if (needs_d_weights_)
        for (int64_t n = 0; n < count; ++n) d[n] *= factor[n];
    }
    if (needs_d_weights_) std::fill(d + count, d + columns, 0.0f);
    switch (selection.kind) {
      case SelectionKind::soft:
      case SelectionKind::top_k:
        shared_.sink[in_group_] -= selected.sink_weight * steps_.softmax_backward(x, d, columns, 1);
        break;
      case SelectionKind::gumbel:
        steps_.softmax_backward(straight ? s_.soft.get() : x, d, columns, 1 / selection.tau);
        break;
      case SelectionKind::hard:
        hard_gradient(r, selected.chosen, distribution, d);
        break;
      case SelectionKind::argmax:
        break;
      case SelectionKind::sparsemax:
        sparsemax_gradient(x, d);
        break;
      case SelectionKind::identity:
        break;
      case SelectionKind::sigmoid:
        for (int64_t n = 0; n < columns; ++n) d[n] = x[n] == 0 ? 0 : d[n] * x[n] * (1 - x[n]);
        break;
    }
    if (tile_.has_factor())
      for (int64_t n = 0; n < columns; ++n) x[n] *= factor[n];
  }

  // d_weights times the derivative of the gaussian by its centre; x is selected, not yet multiplied by the
  // factor.
  float centre_gradient(int64_t r, const float* x, const float* d) const {
    const float centre = f_.gaussian.centre[tile_.place(r)], sigma = f_.gaussian.sigma;
    float sum = 0;
    for (int64_t n = 0; n < tile_.count(); ++n)
      if (x[n] != 0) sum += d[n] * x[n] * s_.factors.get()[n] * (s_.position.get()[n] - centre);
    return sum / (sigma * sigma);
  }

  void hard_gradient(int64_t r, int64_t chosen, const Tile::Distribution& distribution, float* d) const {
    const float d_log = call_.d_log_probability ? call_.d_log_probability[tile_.place(r)] : 0;
    const float d_entropy = call_.d_entropy ? call_.d_entropy[tile_.place(r)] : 0;
    const float *soft = s_.soft.get(), *logits = s_.logits.get();
    for (int64_t n = 0; n < tile_.columns(); ++n) {
      d[n] = 0;
      if (soft[n] == 0) continue;
      d[n] = -soft[n] * (d_log + d_entropy * (logits[n] - distribution.lse + distribution.entropy));
    }
    if (chosen >= 0) d[chosen] += d_log;
  }

  void sparsemax_gradient(const float* x, float* d) const {
    float sum = 0, support = 0;
    for (int64_t n = 0; n < tile_.columns(); ++n)
      if (x[n] > 0) sum += d[n], support += 1;
    for (int64_t n = 0; n < tile_.columns(); ++n) d[n] = x[n] > 0 ? d[n] - sum / support : 0;
  }

  // Hands the gradient of the logits to the terms, then takes it through soft cap and scale to the raw
  // scores.
  void terms_row(int64_t r, float* d, const float* slope) {
    const int64_t count = tile_.count(), i = tile_.query(r);
    const int32_t* key = s_.key.get();
    if (shared_.bias.data) {
      const BiasView<float>& bias = shared_.bias;
      float* to = bias.data + b_ * bias.batch + h_ * bias.head + i * bias.row;
      for (int64_t n = 0; n < count; ++n) to[key[n] * bias.column] += d[n];
    }
    if (call_.d_alibi) {
      const float place = static_cast<float>(i + f_.shape.keys - f_.shape.queries);
      float sum = 0;
      for (int64_t n = 0; n < count; ++n) sum += d[n] * std::abs(place - s_.position.get()[n]);
      shared_.alibi[in_group_] -= sum;
    }
    if (call_.d_relative) {
      float* to = shared_.relative + in_group_ * f_.relative.bucket_count;
      const int32_t* bucket = f_.relative.bucket + f_.shape.queries - 1 - i;
      for (int64_t n = 0; n < count; ++n) to[bucket[key[n]]] += d[n];
    }
    for (int64_t n = 0; n < count; ++n) d[n] *= f_.terms.scale;
    if (slope)
      for (int64_t n = 0; n < count; ++n)
        if (d[n] != 0) d[n] *= slope[n];
  }

  bool fresh(int64_t first_row) const { return fresh_ && first_row == 0; }

  // From the gradient of the raw scores to q, k and the score vector.
  void score_strip(int64_t first, int64_t rows) {
    if (f_.score == ScoreFamily::dot) return dot_strip(first, rows);
    if (!tile_.few()) return additive_strip(first, rows);
    AdditiveFew few = tile_.additive_few(first, rows);
    if (!scores_learn_) few.keys = 0;  // dq is cleared, dk was
    steps_.additive_backward_few(few, s_.kept.get(), s_.d_scores.get(), tile_.columns(),
                                 {.dq = tile_.queries_of(call_.dq, first),
                                  .dk = tile_.keys_of(call_.dk),
                                  .fresh_dk = fresh(first),
                                  .d_vector = shared_.vector + in_group_ * f_.shape.d});
  }

  void dot_strip(int64_t first, int64_t rows) {
    const int64_t columns = tile_.columns(), count = scores_learn_ ? tile_.count() : 0, d = f_.shape.d;
    if (call_.dq.data)
      steps_.combine({.weights = s_.d_scores.get(),
                      .weight_row = columns,
                      .in = tile_.keys_of(f_.k),
                      .in_count = count,
                      .out = tile_.queries_of(call_.dq, first),
                      .out_count = rows,
                      .width = d,
                      .skip_zeros = skip_zeros_});
    if (call_.dk.data)
      steps_.combine({.weights = s_.d_scores.get(),
                      .weight_row = 1,
                      .weight_step = columns,
                      .in = tile_.queries_of(f_.q, first),
                      .in_count = rows,
                      .out = tile_.keys_of(call_.dk),
                      .out_count = count,
                      .width = d,
                      .accumulate = !fresh(first),
                      .skip_zeros = skip_zeros_});
  }

  void additive_strip(int64_t first, int64_t rows) {
    const int64_t d = f_.shape.d, stride = additive_stride(d);
    const RowList<float> dq = tile_.queries_of(call_.dq, first);
    float* packed = s_.dq_packed.get();
    if (scores_learn_) {
      AdditivePair pair = tile_.additive_pair(rows);
      pair.q += first * stride;
      steps_.additive_backward(pair, tile_.exponential(), skip_zeros_, s_.d_scores.get(), tile_.columns(),
                               packed, s_.dk_packed.get(), s_.d_vector.get());
    } else {
      std::fill_n(packed, rows * stride, 0.0f);
    }
    if (call_.dq.data)
      for (int64_t r = 0; r < rows; ++r) std::copy_n(packed + r * stride, d, dq.at(r));
  }

  void finish_additive() {
    const int64_t d = f_.shape.d, stride = additive_stride(d);
    if (call_.dk.data) {
      const RowList<float> dk = tile_.keys_of(call_.dk);
      for (int64_t n = 0; n < tile_.count(); ++n) {
        float* to = dk.at(n);
        const float* from = s_.dk_packed.get() + n * stride;
        if (fresh_)
          std::copy_n(from, d, to);
        else
          for (int64_t c = 0; c < d; ++c) to[c] += from[c];
      }
    }
    float* to = shared_.vector + in_group_ * d;
    for (int64_t c = 0; c < d; ++c) to[c] += s_.d_vector.get()[c];
  }

  const AttentionRowsBackward& call_;
  const AttentionRowsForward& f_;
  const AttentionRowsSteps& steps_;
  Scratch& s_;
  const SharedGradients& shared_;
  int64_t b_, h_, in_group_;
  Tile tile_;
  bool fresh_;  // dk and dv hold nothing yet
  bool scores_learn_ = true, needs_d_weights_ = true, skip_zeros_ = false;
};

// Whether two (batch, key head) chunks may add to the same element of the bias gradient.
bool bias_is_shared(const BiasView<float>& bias, const AttentionShape& shape) {
  return bias.data && ((bias.batch == 0 && shape.batch > 1) || (bias.head == 0 && shape.kv_heads > 1));
}

// A bias gradient of the same broadcasting in memory of its own.
BiasView<float> packed_like(const BiasView<float>& bias, const AttentionShape& shape, int64_t& size) {
  BiasView<float> packed;
  size = 1;
  const auto take = [&](int64_t stride, int64_t extent) {
    if (stride == 0) return int64_t{0};
    const int64_t step = size;
    size *= extent;
    return step;
  };
  packed.column = take(bias.column, shape.keys);
  packed.row = take(bias.row, shape.queries);
  packed.head = take(bias.head, shape.heads);
  packed.batch = take(bias.batch, shape.batch);
  return packed;
}

void add_bias(const BiasView<float>& from, const BiasView<float>& to, const AttentionShape& shape) {
  const auto extent = [](int64_t stride, int64_t count) {
    return stride == 0 ? std::min<int64_t>(count, 1) : count;
  };
  for (int64_t b = 0; b < extent(to.batch, shape.batch); ++b)
    for (int64_t h = 0; h < extent(to.head, shape.heads); ++h)
      for (int64_t i = 0; i < extent(to.row, shape.queries); ++i)
        for (int64_t j = 0; j < extent(to.column, shape.keys); ++j)
          to.data[b * to.batch + h * to.head + i * to.row + j * to.column] +=
              from.data[b * from.batch + h * from.head + i * from.row + j * from.column];
}

}  // namespace

void run_backward(const AttentionRowsBackward& call, const AttentionRowsSteps& steps) {
  const AttentionRowsForward& f = call.forward;
  const AttentionShape& shape = f.shape;
  const AttentionPlan& plan = *f.plan;
  const int64_t chunks = shape.batch * shape.kv_heads;
  if (chunks == 0) return;
  const int64_t group = shape.heads / shape.kv_heads, buckets = f.relative.bucket_count;
  const int64_t width = f.score == ScoreFamily::additive ? shape.d : 0;
  const int64_t shared_size = group * (2 + buckets + width);
  std::vector<float> shared(static_cast<size_t>(chunks * shared_size));
  const auto shared_of = [&](int64_t chunk) {
    float* from = shared.data() + chunk * shared_size;
    return SharedGradients{from, from + group, from + 2 * group, from + group * (2 + buckets), call.d_bias};
  };
  // A bias that chunks share is summed in a few copies, each by chunks that run one after the other.
  const bool copies = bias_is_shared(call.d_bias, shape);
  constexpr int64_t kBiasCopies = 8;
  const int64_t tasks = copies ? std::min(chunks, kBiasCopies) : chunks;
  int64_t bias_size = 0;
  BiasView<float> bias_copy;
  std::vector<float> bias_sums;
  if (copies) {
    bias_copy = packed_like(call.d_bias, shape, bias_size);
    bias_sums.resize(static_cast<size_t>(tasks * bias_size));
  }

  parallel_chunks(tasks, [&](int64_t task) {
    for (int64_t chunk = task * chunks / tasks; chunk < (task + 1) * chunks / tasks; ++chunk) {
      const int64_t b = chunk / shape.kv_heads, g = chunk % shape.kv_heads;
      SharedGradients sums = shared_of(chunk);
      if (copies) {
        sums.bias = bias_copy;
        sums.bias.data = bias_sums.data() + task * bias_size;
      }
      // A first tile that visits every key writes dk and dv where others add to them: no clearing pass.
      bool fresh = visits_every_key(plan, plan_group(plan, b, g * group), shape.keys) &&
                   f.selection.kind != SelectionKind::argmax;
      if (!fresh) {
        zero_rows(call.dk, b, g, shape.keys, shape.d);
        zero_rows(call.dv, b, g, shape.keys, shape.dv);
      }
      for (int64_t h = g * group; h < (g + 1) * group; ++h) {
        const int64_t tiles = plan_group(plan, b, h);
        for (int32_t t = plan.group_tiles[tiles]; t < plan.group_tiles[tiles + 1]; ++t) {
          TileBackward(call, steps, b, h, plan.tiles[t], sums, fresh).run();
          fresh = false;
        }
      }
    }
  });

  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    const SharedGradients sums = shared_of(chunk);
    for (int64_t n = 0; n < group; ++n) {
      const int64_t h = chunk % shape.kv_heads * group + n;
      if (call.d_alibi) call.d_alibi[h] += sums.alibi[n];
      if (call.d_sink) call.d_sink[h] += sums.sink[n];
      if (call.d_relative)
        for (int64_t k = 0; k < buckets; ++k)
          call.d_relative[h * f.relative.head + k * f.relative.step] += sums.relative[n * buckets + k];
      if (call.d_score_vector)
        for (int64_t c = 0; c < width; ++c)
          call.d_score_vector[h * f.score_vector_head + c] += sums.vector[n * width + c];
    }
  }
  for (int64_t task = 0; copies && task < tasks; ++task) {
    BiasView<float> from = bias_copy;
    from.data = bias_sums.data() + task * bias_size;
    add_bias(from, call.d_bias, shape);
  }
}

}  // namespace fovea::kernels::rows
