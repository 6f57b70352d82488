// Which keys a query sees, for one batch entry and one head, row by row: a pattern without heads(...).
#pragma once

#include <cstdint>
#include <map>

#include "attention/compile.h"
#include "attention/pattern.h"
#include "attention/pattern_records.h"
#include "attention/row_set.h"

namespace fovea {

class RowKeys {
 public:
  RowKeys(const Pattern& pattern, const PlanSizes& sizes, int64_t batch, int64_t head);

  // The position of a query among the keys.
  int64_t position(int64_t query, Align align = Align::bottom_right) const {
    return align == Align::top_left ? query : query + sizes_.keys - sizes_.queries;
  }

  // The keys that a query sees, those of its residue class apart where the pattern names them so.
  RowSet row(int64_t query, const ResidueClass& residue) const { return row_set(pattern_, query, residue); }

  // Whether no query sees more than one run: &s of causal, plain windows, lengths and documents. These are
  // compiled for every training batch, so their runs are found without sets.
  bool sees_one_run() const { return sees_one_run(pattern_); }
  Interval run(int64_t query) const { return one_run(pattern_, query); }

 private:
  patterns::RowPlace place(int64_t query, const ResidueClass& residue,
                           const patterns::Documents* documents) const;
  RowSet row_set(const Pattern& pattern, int64_t query, const ResidueClass& residue) const;
  RowSet intersection(const patterns::AllOf& all, int64_t query, const ResidueClass& residue) const;
  static bool sees_one_run(const Pattern& pattern);
  Interval one_run(const Pattern& pattern, int64_t query) const;

  const Pattern& pattern_;
  const PlanSizes& sizes_;
  const int64_t batch_, head_;
  std::map<const patterns::Documents*, patterns::DocumentEnds> document_ends_;
};

}  // namespace fovea
