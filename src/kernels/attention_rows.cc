// The driver: walks tiles and rows, keeps strips of scores, and leaves the arithmetic to the level's steps.
#include "kernels/attention_rows.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "kernels/attention_draws.h"
#include "kernels/attention_dropout.h"
#include "kernels/attention_rows_steps.h"
#include "kernels/level_table.h"

FOVEA_LEVEL_TABLES(AttentionRowsSteps, attention_rows_table, attention_rows_steps)

namespace fovea::kernels {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
constexpr int64_t kStripRows = 32;  // rows whose scores are held at once
constexpr int64_t kFewRows = 2;     // up to here packing keys costs more than it saves

// Grow-only memory on cache lines; what it held is lost when it grows.
template <class T>
class Buffer {
 public:
  T* reserve(int64_t count) {
    if (count > capacity_) {
      capacity_ = (count + 15) / 16 * 16;
      data_.reset(static_cast<T*>(std::aligned_alloc(64, static_cast<size_t>(capacity_) * sizeof(T))));
      FOVEA_ASSERT(data_);
    }
    return data_.get();
  }
  T* get() const { return data_.get(); }

 private:
  struct Free {
    void operator()(T* p) const { std::free(p); }
  };
  std::unique_ptr<T[], Free> data_;
  int64_t capacity_ = 0;
};

// What one thread works in, kept from call to call.
struct Scratch {
  Buffer<int32_t> key;     // [columns]: the key of each column; of the padding, the largest number
  Buffer<float> position;  // [columns]: the same as float
  Buffer<float> keys_packed, values_packed, queries_packed;
  Buffer<float> scores, slopes, d_scores;  // [kStripRows, columns]
  Buffer<float> soft, logits, factors;     // [columns]
  Buffer<uint32_t> bits;                   // [columns]
  Buffer<float> dq_packed, dk_packed, vector, d_vector, kept;
};

Scratch& thread_scratch() {
  thread_local Scratch scratch;
  return scratch;
}

// One tile of one (batch, head), ready to give scores of its rows.
class Tile {
 public:
  Tile(const AttentionRowsForward& call, const AttentionRowsSteps& steps, int64_t b, int64_t h,
       const PlanTile& tile)
      : call_(call), steps_(steps), plan_(*call.plan), tile_(tile), s_(thread_scratch()), b_(b), h_(h) {
    for (int32_t n = tile.segment_begin; n < tile.segment_end; ++n) {
      count_ += plan_.segments[n].key_count;
      if (plan_.segments[n].mask != SegmentMask::full) partial_ = true;
    }
    columns_ = strip_columns(count_);
    int32_t* key = s_.key.reserve(columns_);
    float* position = s_.position.reserve(columns_);
    int64_t column = 0;
    for (int32_t n = tile.segment_begin; n < tile.segment_end; ++n)
      for (int32_t j = 0; j < plan_.segments[n].key_count; ++j)
        key[column++] = plan_key(plan_, plan_.segments[n], j);
    for (; column < columns_; ++column) key[column] = std::numeric_limits<int32_t>::max();
    for (column = 0; column < columns_; ++column) position[column] = static_cast<float>(key[column]);
    s_.scores.reserve(kStripRows * columns_);
    s_.factors.reserve(columns_);
    s_.soft.reserve(columns_);
    s_.logits.reserve(columns_);
    s_.bits.reserve(columns_);
  }

  int64_t count() const { return count_; }
  int64_t columns() const { return columns_; }
  bool partial() const { return partial_; }
  int64_t row_count() const { return tile_.row_count; }
  int64_t query(int64_t r) const { return tile_.row_first + r * tile_.row_step; }
  int64_t place(int64_t r) const { return (b_ * call_.shape.heads + h_) * call_.shape.queries + query(r); }
  int64_t key_head() const { return h_ / (call_.shape.heads / call_.shape.kv_heads); }
  bool few() const { return row_count() <= kFewRows; }
  bool exponential() const { return exponential_; }

  // Rows of a [B, H, Nq, *] view from row r of the tile on, and the visited rows of a [B, Hk, Nk, *] view.
  template <class T>
  RowList<T> queries_of(const HeadView<T>& view, int64_t r) const {
    return {view.data ? view.at(b_, h_, query(r)) : nullptr, view.row * tile_.row_step};
  }
  template <class T>
  RowList<T> keys_of(const HeadView<T>& view) const {
    return {view.data ? view.at(b_, key_head(), 0) : nullptr, view.row, s_.key.get()};
  }

  // Packs the keys for score_rows. A careful backward pass wants the additive family as it stands.
  void open(bool plain_additive = false);

  // Logits of rows [first, first + rows): [rows, columns] into scratch.scores. What a backward pass wants
  // besides: derivatives of the soft cap in slopes, and of few additive rows what their backward step starts
  // from in kept.
  enum class Pass { forward, backward };
  void score_rows(int64_t first, int64_t rows, Pass pass);

  // Turns x, the logits of row r, into selected weights.
  struct Selected {
    float lse = 0, sink_weight = 0;  // soft; the latter top_k as well
    int64_t chosen = -1;             // column of the one key chosen
  };
  Selected select_row(int64_t r, float* x) const;

  // The softmax that hard draws from: fills scratch.soft and scratch.logits.
  struct Distribution {
    float lse = kMinusInfinity, entropy = 0;
  };
  Distribution distribution_row(const float* x) const;

  // Softmax of logits with the sink; returns log-sum-exp.
  float soft_row(float* x, float* sink_weight) const {
    return steps_.softmax(x, columns_, call_.terms.sink ? call_.terms.sink[h_] : kMinusInfinity, sink_weight);
  }
  void add_noise(int64_t r, float* x, float inverse_tau) const;

  bool has_factor() const { return call_.terms.dropout > 0 || call_.gaussian.centre; }
  // gaussian times dropout of row r
  void factor_row(int64_t r, float* factor) const;

  AdditiveFew additive_few(int64_t first, int64_t rows) const {
    return {.q = queries_of(call_.q, first),
            .k = keys_of(call_.k),
            .vector = call_.score_vector + h_ * call_.score_vector_head,
            .rows = rows,
            .keys = count_,
            .width = call_.shape.d};
  }
  AdditivePair additive_pair(int64_t rows) const {
    return {.q = s_.queries_packed.get(),
            .k = s_.keys_packed.get(),
            .vector = s_.vector.get(),
            .rows = rows,
            .keys = count_,
            .stride = additive_stride(call_.shape.d),
            .width = call_.shape.d};
  }

 private:
  void mask_row(int64_t r, float* x) const;
  void keep_largest(float* x) const;
  void sparsemax(float* x) const;

  const AttentionRowsForward& call_;
  const AttentionRowsSteps& steps_;
  const AttentionPlan& plan_;
  const PlanTile& tile_;
  Scratch& s_;
  int64_t b_, h_;
  int64_t count_ = 0, columns_ = 0;
  bool partial_ = false, exponential_ = false;
};

void Tile::open(bool plain_additive) {
  const int64_t d = call_.shape.d;
  const RowList<const float> k = keys_of(call_.k), q = queries_of(call_.q, 0);
  if (call_.score == ScoreFamily::dot) {
    if (!few()) steps_.pack_panels(k, count_, d, s_.keys_packed.reserve(d * columns_));
    return;
  }
  if (few()) return;
  const int64_t stride = additive_stride(d);
  float* packed_k = s_.keys_packed.reserve(count_ * stride);
  float* packed_q = s_.queries_packed.reserve(row_count() * stride);
  float* vector = s_.vector.reserve(stride);
  const float* from = call_.score_vector + h_ * call_.score_vector_head;
  std::copy(from, from + d, vector);
  std::fill(vector + d, vector + stride, 0.0f);
  exponential_ = !plain_additive;
  float largest = steps_.additive_pack(k, count_, d, exponential_, packed_k);
  largest = std::max(largest, steps_.additive_pack(q, row_count(), d, exponential_, packed_q));
  if (exponential_ && !(largest <= kAdditiveLimit)) {
    exponential_ = false;
    steps_.additive_pack(k, count_, d, false, packed_k);
    steps_.additive_pack(q, row_count(), d, false, packed_q);
  }
}

void Tile::score_rows(int64_t first, int64_t rows, Pass pass) {
  const int64_t d = call_.shape.d;
  const ScoreTerms& terms = call_.terms;
  float* scores = s_.scores.get();
  const bool capped = pass == Pass::backward && terms.soft_cap > 0;
  float* slopes = capped ? s_.slopes.reserve(kStripRows * columns_) : nullptr;
  if (call_.score == ScoreFamily::additive && few()) {
    float* kept = pass == Pass::backward ? s_.kept.reserve(rows * count_ * additive_stride(d)) : nullptr;
    steps_.additive_scores_few(additive_few(first, rows), kept, scores, columns_);
  } else if (call_.score == ScoreFamily::additive) {
    AdditivePair pair = additive_pair(rows);
    pair.q += first * pair.stride;
    steps_.additive_scores(pair, exponential_, scores, columns_);
  } else if (!few()) {
    steps_.dot(queries_of(call_.q, first), rows, d, s_.keys_packed.get(), columns_, scores);
  } else {
    steps_.dot_few(queries_of(call_.q, first), rows, d, keys_of(call_.k), count_, scores, columns_);
  }
  const int32_t* key = s_.key.get();
  for (int64_t r = 0; r < rows; ++r) {
    float* x = scores + r * columns_;
    const int64_t i = query(first + r);
    std::fill(x + count_, x + columns_, 0.0f);
    steps_.scale(x, columns_, terms.scale, terms.soft_cap, slopes ? slopes + r * columns_ : nullptr);
    if (terms.alibi) {
      const float place = static_cast<float>(i + call_.shape.keys - call_.shape.queries);
      steps_.alibi(x, s_.position.get(), columns_, terms.alibi[h_], place);
    }
    if (terms.bias.data) {
      const float* bias = terms.bias.data + b_ * terms.bias.batch + h_ * terms.bias.head + i * terms.bias.row;
      for (int64_t n = 0; n < count_; ++n) x[n] += bias[key[n] * terms.bias.column];
    }
    if (call_.relative.table) {
      const float* table = call_.relative.table + h_ * call_.relative.head;
      const int32_t* bucket = call_.relative.bucket + call_.shape.queries - 1 - i;
      for (int64_t n = 0; n < count_; ++n) x[n] += table[bucket[key[n]] * call_.relative.step];
    }
    mask_row(first + r, x);
  }
}

void Tile::mask_row(int64_t r, float* x) const {
  int64_t column = 0;
  for (int32_t s = tile_.segment_begin; s < tile_.segment_end; ++s) {
    const PlanSegment& segment = plan_.segments[s];
    float* part = x + column;
    column += segment.key_count;
    if (segment.mask == SegmentMask::interval) {
      const int32_t* interval = plan_.intervals.data() + segment.mask_offset + 2 * r;
      const int32_t begin = std::clamp(interval[0], 0, segment.key_count);
      const int32_t end = std::clamp(interval[1], begin, segment.key_count);
      std::fill(part, part + begin, kMinusInfinity);
      std::fill(part + end, part + segment.key_count, kMinusInfinity);
    } else if (segment.mask == SegmentMask::bits) {
      for (int32_t j = 0; j < segment.key_count; ++j)
        if (!plan_sees(plan_, tile_, segment, static_cast<int32_t>(r), j)) part[j] = kMinusInfinity;
    }
  }
  std::fill(x + count_, x + columns_, kMinusInfinity);
}

void Tile::add_noise(int64_t r, float* x, float inverse_tau) const {
  const int32_t* key = s_.key.get();
  uint32_t* bits = s_.bits.get();
  const int64_t i = query(r);
  std::fill(bits + count_, bits + columns_, 0u);
  for (int64_t n = 0; n < count_;) {  // neighbouring keys share a draw of four
    const int64_t four = key[n] / 4;
    const auto draw = attention_four_bits(call_.selection.seed, b_, h_, i, four);
    for (; n < count_ && key[n] / 4 == four; ++n) bits[n] = draw[key[n] % 4];
  }
  steps_.gumbel(x, bits, columns_, inverse_tau);
}

void Tile::factor_row(int64_t r, float* factor) const {
  const int32_t* key = s_.key.get();
  std::fill(factor, factor + columns_, 1.0f);
  if (call_.terms.dropout > 0) {
    const DropoutRow row = dropout_row(call_.terms.seed, b_, h_, query(r));
    const uint32_t threshold = dropout_threshold(call_.terms.dropout);
    const float kept = 1 / (1 - call_.terms.dropout);
    for (int64_t n = 0; n < count_; ++n) factor[n] = dropout_draw(row, key[n]) >= threshold ? kept : 0;
  }
  if (call_.gaussian.centre)
    steps_.gaussian(factor, s_.position.get(), columns_, call_.gaussian.centre[place(r)],
                    call_.gaussian.sigma);
}

// The k-th largest of x, k <= count; copy is room for count numbers.
float kth_largest(const float* x, int64_t count, int64_t k, float* copy) {
  constexpr int64_t kSmall = 64;
  if (k > kSmall) {
    std::copy(x, x + count, copy);
    std::nth_element(copy, copy + k - 1, copy + count, std::greater<>());
    return copy[k - 1];
  }
  // The k largest so far, falling; few numbers of a long row are let in.
  std::fill(copy, copy + k, kMinusInfinity);
  for (int64_t n = 0; n < count; ++n) {
    if (!(x[n] > copy[k - 1])) continue;
    int64_t place = k - 1;
    for (; place > 0 && copy[place - 1] < x[n]; --place) copy[place] = copy[place - 1];
    copy[place] = x[n];
  }
  return copy[k - 1];
}

// Sets all but the k largest to -inf; of equals the lowest keys stay.
void Tile::keep_largest(float* x) const {
  const int64_t k = call_.selection.k;
  if (k >= count_) return;
  const int32_t* key = s_.key.get();
  const float least = kth_largest(x, count_, k, s_.soft.get());
  if (least == kMinusInfinity) return;  // fewer are visible
  int64_t room = k, equals = 0;
  for (int64_t n = 0; n < count_; ++n) {
    room -= x[n] > least;
    equals += x[n] == least;
  }
  int32_t last_key = std::numeric_limits<int32_t>::max();
  if (room < equals) {
    std::vector<int32_t> tied;
    for (int64_t n = 0; n < count_; ++n)
      if (x[n] == least) tied.push_back(key[n]);
    std::nth_element(tied.begin(), tied.begin() + room, tied.end());
    last_key = tied[static_cast<size_t>(room)] - 1;
  }
  for (int64_t n = 0; n < count_; ++n)
    if (x[n] < least || (x[n] == least && key[n] > last_key)) x[n] = kMinusInfinity;
}

// max(x - threshold, 0), where the threshold makes the sum 1: raised until it no longer drops a key.
void Tile::sparsemax(float* x) const {
  if (columns_ == 0) return;  // a row that sees nothing
  const float largest = *std::max_element(x, x + columns_);
  if (largest == kMinusInfinity) {
    std::fill(x, x + columns_, 0.0f);
    return;
  }
  // Only keys within 1 of the largest can stay; relative to it the numbers are small and sums exact enough.
  double threshold = -1;
  for (int64_t support = -1;;) {
    double sum = 0;
    int64_t kept = 0;
    for (int64_t n = 0; n < count_; ++n)
      if (x[n] - largest > threshold) sum += x[n] - largest, ++kept;
    if (kept == support) break;
    support = kept;
    threshold = (sum - 1) / static_cast<double>(kept);
  }
  for (int64_t n = 0; n < columns_; ++n)
    x[n] = std::max(static_cast<float>(x[n] - largest - threshold), 0.0f);
}

Tile::Selected Tile::select_row(int64_t r, float* x) const {
  const SelectionTerms& selection = call_.selection;
  Selected result;
  const auto choose = [&] {
    result.chosen = steps_.argmax(x, s_.key.get(), columns_);
    std::fill(x, x + columns_, 0.0f);
    if (result.chosen >= 0) x[result.chosen] = 1;
  };
  switch (selection.kind) {
    case SelectionKind::soft:
      result.lse = soft_row(x, &result.sink_weight);
      break;
    case SelectionKind::hard:
      add_noise(r, x, 1);
      choose();
      break;
    case SelectionKind::gumbel:
      add_noise(r, x, 1 / selection.tau);
      if (selection.straight_through)
        choose();
      else
        steps_.softmax(x, columns_, kMinusInfinity, &result.sink_weight);
      break;
    case SelectionKind::argmax:
      choose();
      break;
    case SelectionKind::top_k:
      keep_largest(x);
      soft_row(x, &result.sink_weight);
      break;
    case SelectionKind::sparsemax:
      sparsemax(x);
      break;
    case SelectionKind::sigmoid:
      steps_.sigmoid(x, columns_);
      break;
  }
  return result;
}

Tile::Distribution Tile::distribution_row(const float* x) const {
  float *soft = s_.soft.get(), *logits = s_.logits.get(), sink_weight = 0;
  std::copy(x, x + columns_, soft);
  std::copy(x, x + columns_, logits);
  Distribution result;
  result.lse = soft_row(soft, &sink_weight);
  for (int64_t n = 0; n < count_; ++n)
    if (soft[n] > 0) result.entropy -= soft[n] * (logits[n] - result.lse);
  return result;
}

// Whether most weights are zero, so that rows of v are better skipped than multiplied.
bool selects_few(const SelectionTerms& selection, int64_t keys) {
  switch (selection.kind) {
    case SelectionKind::hard:
    case SelectionKind::argmax:
    case SelectionKind::sparsemax:
      return true;
    case SelectionKind::gumbel:
      return selection.straight_through;
    case SelectionKind::top_k:
      return selection.k * 4 < keys;
    default:
      return false;
  }
}

// The place of a value in an ascending list, or -1.
int64_t place_in(const int32_t* list, int64_t count, int64_t value) {
  const int32_t* found = std::lower_bound(list, list + count, static_cast<int32_t>(value));
  return found != list + count && *found == value ? found - list : -1;
}

// Everything forward for one tile.
class TileForward {
 public:
  TileForward(const AttentionRowsForward& call, const AttentionRowsSteps& steps, int64_t b, int64_t h,
              const PlanTile& tile)
      : call_(call), steps_(steps), s_(thread_scratch()), b_(b), h_(h), tile_(call, steps, b, h, tile) {}

  void run() {
    const ChosenWeights& wanted = call_.weights;
    wanted_head_ = wanted.data ? place_in(wanted.heads, wanted.head_count, h_) : -1;
    const bool weights_only =
        !call_.out.data && !call_.lse && !call_.chosen && !call_.log_probability && !call_.entropy;
    if (weights_only && !any_wanted(0, tile_.row_count())) return;
    tile_.open();
    skip_zeros_ = selects_few(call_.selection, tile_.count()) ||
                  (tile_.partial() && !steps_.finite(tile_.keys_of(call_.v), tile_.count(), call_.shape.dv));
    for (int64_t first = 0; first < tile_.row_count(); first += kStripRows) {
      const int64_t rows = std::min(kStripRows, tile_.row_count() - first);
      if (!weights_only || any_wanted(first, rows)) strip(first, rows);
    }
  }

 private:
  bool any_wanted(int64_t first, int64_t rows) const {
    if (wanted_head_ < 0) return false;
    for (int64_t r = first; r < first + rows; ++r)
      if (place_in(call_.weights.rows, call_.weights.row_count, tile_.query(r)) >= 0) return true;
    return false;
  }

  void strip(int64_t first, int64_t rows) {
    const int64_t columns = tile_.columns();
    tile_.score_rows(first, rows, Tile::Pass::forward);
    for (int64_t r = 0; r < rows; ++r) row(first + r, s_.scores.get() + r * columns);
    if (call_.out.data)
      steps_.combine({.weights = s_.scores.get(),
                      .weight_row = columns,
                      .in = tile_.keys_of(call_.v),
                      .in_count = tile_.count(),
                      .out = tile_.queries_of(call_.out, first),
                      .out_count = rows,
                      .width = call_.shape.dv,
                      .skip_zeros = skip_zeros_});
  }

  void row(int64_t r, float* x) {
    const int64_t columns = tile_.columns(), place = tile_.place(r);
    const bool soft = call_.selection.kind == SelectionKind::soft;
    Tile::Distribution distribution;
    if (call_.log_probability || call_.entropy || (call_.lse && !soft))
      distribution = tile_.distribution_row(x);
    const Tile::Selected selected = tile_.select_row(r, x);
    if (tile_.has_factor()) {
      float* factor = s_.factors.get();
      tile_.factor_row(r, factor);
      for (int64_t n = 0; n < columns; ++n) x[n] *= factor[n];
    }
    const bool any = selected.chosen >= 0;
    if (call_.lse) call_.lse[place] = soft ? selected.lse : distribution.lse;
    if (call_.chosen) call_.chosen[place] = any ? s_.key.get()[selected.chosen] : -1;
    if (call_.log_probability)
      call_.log_probability[place] = any ? s_.logits.get()[selected.chosen] - distribution.lse : 0;
    if (call_.entropy) call_.entropy[place] = distribution.entropy;
    if (wanted_head_ >= 0) write_weights(r, x);
  }

  void write_weights(int64_t r, const float* x) {
    const ChosenWeights& wanted = call_.weights;
    const int64_t query = place_in(wanted.rows, wanted.row_count, tile_.query(r));
    if (query < 0) return;
    float* to =
        wanted.data + ((b_ * wanted.head_count + wanted_head_) * wanted.row_count + query) * call_.shape.keys;
    std::fill(to, to + call_.shape.keys, 0.0f);
    for (int64_t n = 0; n < tile_.count(); ++n) to[s_.key.get()[n]] = x[n];
  }

  const AttentionRowsForward& call_;
  const AttentionRowsSteps& steps_;
  Scratch& s_;
  int64_t b_, h_;
  Tile tile_;
  int64_t wanted_head_ = -1;
  bool skip_zeros_ = false;
};

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

void check_call(const AttentionRowsForward& call) {
  FOVEA_ASSERT(call.plan);
  FOVEA_ASSERT(call.score == ScoreFamily::dot || call.score_vector);
  FOVEA_ASSERT(!call.terms.sink || call.selection.kind == SelectionKind::soft ||
               call.selection.kind == SelectionKind::top_k);
}

void run_forward(const AttentionRowsForward& call, const AttentionRowsSteps& steps) {
  const AttentionShape& shape = call.shape;
  const AttentionPlan& plan = *call.plan;
  // One chunk for each tile of each (batch, head).
  std::vector<int64_t> first_chunk{0};
  for (int64_t b = 0; b < shape.batch; ++b)
    for (int64_t h = 0; h < shape.heads; ++h) {
      const int64_t group = plan_group(plan, b, h);
      first_chunk.push_back(first_chunk.back() + plan.group_tiles[group + 1] - plan.group_tiles[group]);
    }
  parallel_chunks(first_chunk.back(), [&](int64_t chunk) {
    const int64_t n =
        std::upper_bound(first_chunk.begin(), first_chunk.end(), chunk) - first_chunk.begin() - 1;
    const int64_t b = n / shape.heads, h = n % shape.heads;
    const int64_t tile = plan.group_tiles[plan_group(plan, b, h)] + chunk - first_chunk[n];
    TileForward(call, steps, b, h, plan.tiles[tile]).run();
  });
}

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

}  // namespace

void attention_rows_forward(const AttentionRowsForward& call, Level level) {
  check_call(call);
  if (level == Level::scalar) return scalar::attention_rows_forward(call);
  run_forward(call, attention_rows_steps(level));
}

void attention_rows_backward(const AttentionRowsBackward& call, Level level) {
  check_call(call.forward);
  if (level == Level::scalar) return scalar::attention_rows_backward(call);
  run_backward(call, attention_rows_steps(level));
}

}  // namespace fovea::kernels
