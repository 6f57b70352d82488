// One tile of row-wise attention: its scores, what selections make of a row, and the memory a thread does it
// in. Forward and backward passes are written on top of it.
#pragma once

#include <cstdint>
#include <limits>

#include "base/error.h"
#include "kernels/attention/row_attention.h"
#include "kernels/attention/row_attention_steps.h"
#include "kernels/scratch.h"

namespace fovea::kernels::rows {

inline constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
inline constexpr int64_t kStripRows = 32;  // rows whose scores are held at once
inline constexpr int64_t kFewRows = 2;     // up to here packing keys costs more than it saves

// What one thread works in, kept from call to call.
struct Scratch {
  ScratchBuffer<int32_t> key;     // [columns]: the key of each column; of the padding, the largest number
  ScratchBuffer<float> position;  // [columns]: the same as float
  ScratchBuffer<float> keys_packed, values_packed, queries_packed;
  ScratchBuffer<float> scores, slopes, d_scores;  // [kStripRows, columns]
  ScratchBuffer<float> soft, logits, factors;     // [columns]
  ScratchBuffer<uint32_t> bits;                   // [columns]
  ScratchBuffer<float> dq_packed, dk_packed, vector, d_vector, kept;
};

Scratch& thread_scratch();

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

// Whether most weights are zero, so that rows of v are better skipped than multiplied.
bool selects_few(const SelectionTerms& selection, int64_t keys);

// The backward pass at a level, its steps given.
void run_backward(const AttentionRowsBackward& call, const AttentionRowsSteps& steps);

}  // namespace fovea::kernels::rows
