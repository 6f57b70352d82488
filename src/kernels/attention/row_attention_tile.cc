// A tile of row-wise attention: computes and masks scores, adds noise, and applies each selection.
#include "kernels/attention/row_attention_tile.h"

#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "kernels/attention/draws.h"
#include "kernels/attention/dropout.h"

namespace fovea::kernels::rows {

Scratch& thread_scratch() {
  thread_local Scratch scratch;
  return scratch;
}

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

namespace {

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

}  // namespace

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
    case SelectionKind::identity:
      for (int64_t n = 0; n < columns_; ++n)
        if (x[n] == kMinusInfinity) x[n] = 0;
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
    case SelectionKind::soft:
    case SelectionKind::sigmoid:
    case SelectionKind::identity:
      return false;
  }
  return false;
}

}  // namespace fovea::kernels::rows
