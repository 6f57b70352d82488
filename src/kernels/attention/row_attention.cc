// The driver: walks tiles and rows, keeps strips of scores, and leaves the arithmetic to the level's steps.
#include "kernels/attention/row_attention.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/parallel.h"
#include "kernels/attention/row_attention_tile.h"
#include "kernels/level_table.h"

FOVEA_LEVEL_TABLES(AttentionRowsSteps, attention_rows_table, attention_rows_steps)

namespace fovea::kernels {
namespace rows {
namespace {

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

}  // namespace
}  // namespace rows

void attention_rows_forward(const AttentionRowsForward& call, Level level) {
  rows::check_call(call);
  if (level == Level::scalar) return scalar::attention_rows_forward(call);
  rows::run_forward(call, attention_rows_steps(level));
}

void attention_rows_backward(const AttentionRowsBackward& call, Level level) {
  rows::check_call(call.forward);
  if (level == Level::scalar) return scalar::attention_rows_backward(call);
  rows::run_backward(call, attention_rows_steps(level));
}

}  // namespace fovea::kernels
