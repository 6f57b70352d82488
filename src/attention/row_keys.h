// Which keys a query sees, for one batch entry and one head: a pattern without heads(...), asked row by row.
#pragma once

#include <cstdint>
#include <map>
#include <type_traits>
#include <vector>

#include "attention/compile.h"
#include "attention/pattern.h"
#include "attention/row_set.h"

namespace fovea {

inline int64_t floor_div(int64_t a, int64_t b) {
  return a >= 0 ? a / b : -((b - 1 - a) / b);
}
inline int64_t modulo(int64_t a, int64_t b) {
  return a - floor_div(a, b) * b;
}

// Calls f on every member of the pattern that is not a join, those inside within(...) included.
template <class F>
void for_each_member(const Pattern& pattern, const F& f) {
  std::visit(
      [&](const auto& member) {
        if constexpr (requires { member.parts; }) {
          if constexpr (requires { member.documents; }) f(member.documents);
          for (const Pattern& part : member.parts) for_each_member(part, f);
        } else {
          f(member);
        }
      },
      pattern.node());
}

template <class Member>
bool contains(const Pattern& pattern) {
  bool found = false;
  for_each_member(pattern, [&](const auto& member) {
    found |= std::is_same_v<std::remove_cvref_t<decltype(member)>, Member>;
  });
  return found;
}

class RowKeys {
 public:
  RowKeys(const Pattern& pattern, const PlanSizes& sizes, int64_t batch, int64_t head);

  // Where a query stands among the keys.
  int64_t position(int64_t query, Align align = Align::bottom_right) const {
    return align == Align::top_left ? query : query + sizes_.keys - sizes_.queries;
  }

  // The keys that a query sees, those of its residue class apart where the pattern names them so.
  RowSet row(int64_t query, const ResidueClass& residue) const { return row_set(pattern_, query, residue); }

  // Whether no query sees more than one run: &s of causal, plain windows, lengths and documents. These are
  // compiled for every training batch, so their runs are found without sets.
  bool sees_one_run() const { return sees_one_run(pattern_); }
  Interval run(int64_t query) const { return one_run(pattern_, query); }

  // Where each document's queries end.
  const std::vector<int64_t>& document_ends(const patterns::Documents& d) const {
    return document_ends_.at(&d).queries;
  }

 private:
  struct Ends {
    std::vector<int64_t> queries, keys;
  };
  RowSet one(int64_t begin, int64_t end) const;
  RowSet progression(int64_t position, int64_t step, int64_t left, int64_t right,
                     const ResidueClass& residue) const;
  RowSet row_set(const Pattern& pattern, int64_t query, const ResidueClass& residue) const;
  RowSet fixed_set(const patterns::Fixed& f, int64_t block) const;
  RowSet global_set(const patterns::Global& g, int64_t at) const;
  RowSet document_set(const patterns::Documents& d, int64_t query) const;
  RowSet intersection(const patterns::AllOf& all, int64_t query, const ResidueClass& residue) const;
  RowSet seen(const patterns::Predicate& p, const RowSet& among, int64_t query,
              const ResidueClass& residue) const;
  static bool sees_one_run(const Pattern& pattern);
  // The document of a query: its tokens, and where they begin among all.
  struct Document {
    PlanSizes sizes;
    int64_t query_begin, key_begin;
  };
  Document document_of(const patterns::Documents& d, int64_t query) const;
  Interval one_run(const Pattern& pattern, int64_t query) const;

  const Pattern& pattern_;
  const PlanSizes& sizes_;
  const int64_t batch_, head_;
  std::map<const patterns::Documents*, Ends> document_ends_;
};

}  // namespace fovea
