// Rows of a recurrent decoder's step, each attending to the keys of its own source sentence.
#pragma once

#include <span>
#include <vector>

#include "kernels/attention/run_attention.h"
#include "nn/decoder_attention.h"
#include "nn/runs.h"

namespace fovea::nn {

class SentenceKeys {
 public:
  // keys: [keys, d], values: [keys, dv], one after the other for sentences of these lengths. At first there
  // is a row for each sentence.
  SentenceKeys(Tensor keys, Tensor values, std::span<const int64_t> lengths);

  // What a row sees of its sentence, counted from its first key.
  struct Run {
    KeyRun keys;
    float centre = 0;  // where sigma > 0
  };
  // How the rows of a step attend.
  struct Options {
    kernels::RunScore score;
    float sigma = 0;
    Selection selection = soft();
    const PlaceTerms* place_terms = nullptr;  // null: none
    int64_t step = 0;                         // where place_terms are given: which one
  };
  // queries: [rows, d]; runs: one for each row -> [rows, dv]. A row's result does not depend on the other
  // rows.
  // Selections other than soft and place_terms take the general path; nothing is drawn.
  Tensor attend(const Options& options, const Tensor& queries, std::span<const Run> runs) const;
  // Row i becomes a copy of what row parents[i] was.
  void reorder(std::span<const int32_t> parents);
  int64_t rows() const { return static_cast<int64_t>(sentence_.size()); }
  int64_t keys_of(int64_t row) const;

 private:
  Tensor attend_by_algebra(const Options& options, const Tensor& queries, std::span<const Run> runs) const;

  Tensor keys_, values_;
  std::vector<int64_t> begin_;     // of each sentence, and the end
  std::vector<int32_t> sentence_;  // of each row
};

// How a step's queries meet keys; the score's parameters must outlive it.
kernels::RunScore step_score(const RunScore& score, int64_t query_width);

// Row i of the result is row parents[i] of t.
Tensor pick_rows(const Tensor& t, std::span<const int32_t> parents);
// Columns [begin, begin + count) of x [rows, ...], contiguous.
Tensor columns(const Tensor& x, int64_t begin, int64_t count);

}  // namespace fovea::nn
