// What the records of patterns are written with: checks and printing of numbers, the row whose keys are
// requested, the rows where tiles begin, and pieces that several kinds have in common.
#pragma once

#include <algorithm>
#include <ostream>
#include <vector>

#include "attention/compile.h"
#include "attention/pattern.h"
#include "attention/row_set.h"
#include "base/error.h"

namespace fovea {

inline int64_t floor_div(int64_t a, int64_t b) {
  return a >= 0 ? a / b : -((b - 1 - a) / b);
}
inline int64_t modulo(int64_t a, int64_t b) {
  return a - floor_div(a, b) * b;
}

namespace patterns {

inline constexpr int64_t kLargest = int64_t{1} << 31;  // positions and their products stay far from overflow
// Blocks of fewer rows share a tile: a tile for each would leave most lanes of a vector empty.
inline constexpr int64_t kFewRows = 16;

inline void require_range(int64_t value, int64_t smallest, const char* what) {
  require(value >= smallest && value < kLargest, what, ": got ", value, ", wanted ", smallest, " to ",
          kLargest - 1);
}

template <class Values>
void print_list(std::ostream& out, const Values& values) {
  for (size_t i = 0; i < values.size(); ++i) out << (i ? "," : "") << values[i];
}

inline const char* align_suffix(Align align) {
  return align == Align::top_left ? ",top_left" : "";
}

inline int64_t position_of(const PatternPlace& at, Align align = Align::bottom_right) {
  return align == Align::top_left ? at.query : at.query + at.keys - at.queries;
}

// Where the documents of one Documents end, among queries and among keys.
struct DocumentEnds {
  std::vector<int64_t> queries, keys;
};

// The row whose keys are requested: one query of one batch entry and head.
struct RowPlace {
  const PlanSizes& sizes;
  int64_t query, batch, head;
  const DocumentEnds* ends;  // of a Documents
  ResidueClass residue;

  int64_t position(Align align = Align::bottom_right) const {
    return align == Align::top_left ? query : query + sizes.keys - sizes.queries;
  }
  Interval clipped(int64_t begin, int64_t end) const {
    return {std::max<int64_t>(begin, 0), std::min(end, sizes.keys)};
  }
  Interval all() const { return {0, sizes.keys}; }
  RowSet one(int64_t begin, int64_t end) const {
    RowSet set;
    append(set.plain, std::max<int64_t>(begin, 0), std::min(end, sizes.keys));
    return set;
  }
  RowSet one(Interval run) const { return one(run.begin, run.end); }

  // Keys position + t * step for t in [-left, right].
  RowSet progression(int64_t at, int64_t step, int64_t left, int64_t right) const {
    if (step == 1) return one(at - left, at + right + 1);
    RowSet set;
    if (step == residue.modulus && modulo(at, step) == residue.residue) {
      const int64_t middle = floor_div(at, step);
      append(set.in_class, std::max<int64_t>(middle - left, 0),
             std::min(middle + right + 1, residue.count()));
      return set;
    }
    int64_t key = at - std::min(left, std::max<int64_t>(floor_div(at, step), 0)) * step;
    for (; key < sizes.keys && key <= at + right * step; key += step)
      if (key >= 0) append(set.plain, key, key + 1);
    return set;
  }
};

// Collects the rows at which tiles begin: those where the keys that are seen change.
struct RowCuts {
  Interval rows;  // of all rows, those that the pattern speaks of
  int64_t shift;  // the position of the first of them
  int64_t batch;
  std::vector<int64_t>& cuts;

  void at(int64_t row) {
    if (row > 0 && row < rows.end - rows.begin) cuts.push_back(rows.begin + row);
  }
  // Blocks of rows whose first row is at `first` of the grid.
  void grid(int64_t block, int64_t first) {
    const int64_t step = block >= kFewRows ? block : block * (3 * kFewRows / block);
    for (int64_t row = step - modulo(first, step); row < rows.end - rows.begin; row += step) at(row);
  }
};

// Rows in residue classes of a modulus see plain windows; 1: nothing gained.
struct Stride {
  int64_t modulus = 1;
  Align align = Align::bottom_right;
};

// Pieces that most kinds have in common. None is taken unless a record names it.
struct FitsAnyCall {
  template <class M>
  static void fit(const M&, const PlanSizes&) {}  // throws when the sizes of a call are wrong for it
};
struct SameForAllBatches {
  static constexpr bool by_batch = false;
  template <class M>
  static bool same(const M&, int64_t, int64_t) {  // whether two batch entries see the same
    return true;
  }
};
struct ManyRuns {
  // Whether no row sees more than one run of keys; run() gives it then.
  template <class M>
  static bool one_run(const M&) {
    return false;
  }
  template <class M>
  static Interval run(const M&, const RowPlace& at) {
    return at.all();
  }
};
struct NoStride {
  template <class M>
  static Stride stride(const M&) {
    return {};
  }
};
struct NoCuts {
  template <class M>
  static void cuts(const M&, RowCuts&) {}
};
// Rows between two cuts see the same keys.
struct SameRows {
  template <class M>
  static bool varies(const M&, int64_t) {
    return false;
  }
};
// Rows of a tile see different keys.
struct EachRowItsOwn {
  template <class M>
  static bool varies(const M&, int64_t) {
    return true;
  }
};

}  // namespace patterns
}  // namespace fovea
