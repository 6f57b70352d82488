// Sets of keys as sorted intervals, the arithmetic of the plan compiler.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace fovea {

// [begin, end), never empty inside a set.
struct Interval {
  int64_t begin = 0, end = 0;
  friend bool operator==(const Interval&, const Interval&) = default;
};

// Sorted, disjoint, not touching.
using IntervalSet = std::vector<Interval>;

inline void append(IntervalSet& set, int64_t begin, int64_t end) {
  if (begin >= end) return;
  if (!set.empty() && begin <= set.back().end)
    set.back().end = std::max(set.back().end, end);
  else
    set.push_back({begin, end});
}

inline IntervalSet unite(const IntervalSet& a, const IntervalSet& b) {
  IntervalSet out;
  out.reserve(a.size() + b.size());
  for (size_t i = 0, j = 0; i < a.size() || j < b.size();) {
    const bool first = j == b.size() || (i < a.size() && a[i].begin <= b[j].begin);
    const Interval& next = first ? a[i++] : b[j++];
    append(out, next.begin, next.end);
  }
  return out;
}

inline IntervalSet intersect(const IntervalSet& a, const IntervalSet& b) {
  IntervalSet out;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    append(out, std::max(a[i].begin, b[j].begin), std::min(a[i].end, b[j].end));
    if (a[i].end < b[j].end)
      ++i;
    else
      ++j;
  }
  return out;
}

inline IntervalSet subtract(const IntervalSet& a, const IntervalSet& b) {
  IntervalSet out;
  size_t j = 0;
  for (const Interval& piece : a) {
    int64_t begin = piece.begin;
    while (j < b.size() && b[j].end <= begin) ++j;
    for (size_t cut = j; cut < b.size() && b[cut].begin < piece.end; ++cut) {
      append(out, begin, b[cut].begin);
      begin = std::max(begin, b[cut].end);
    }
    append(out, begin, piece.end);
  }
  return out;
}

// The keys residue + u * modulus, u >= 0, below `keys`.
struct ResidueClass {
  int64_t modulus = 1, residue = 0, keys = 0;

  int64_t count() const { return residue < keys ? (keys - residue + modulus - 1) / modulus : 0; }
  int64_t key(int64_t u) const { return residue + u * modulus; }
  // Members of the class among plain keys, as intervals of u.
  IntervalSet members(const IntervalSet& plain) const {
    IntervalSet out;
    for (const Interval& piece : plain) append(out, first_from(piece.begin), first_from(piece.end));
    return out;
  }
  // The same keys as plain intervals of one key each.
  IntervalSet plain(const IntervalSet& members) const {
    IntervalSet out;
    for (const Interval& piece : members)
      for (int64_t u = piece.begin; u < piece.end; ++u) append(out, key(u), key(u) + 1);
    return out;
  }

 private:
  // The smallest u whose key is not below `key`.
  int64_t first_from(int64_t key) const {
    return key <= residue ? 0 : (key - residue + modulus - 1) / modulus;
  }
};

// The keys one row sees: plain intervals of keys, and intervals of members of its residue class. They may
// overlap.
struct RowSet {
  IntervalSet plain;
  IntervalSet in_class;
  friend bool operator==(const RowSet&, const RowSet&) = default;
};

inline RowSet unite(const RowSet& a, const RowSet& b) {
  return {unite(a.plain, b.plain), unite(a.in_class, b.in_class)};
}

inline RowSet intersect(const RowSet& a, const RowSet& b, const ResidueClass& residue) {
  RowSet out{intersect(a.plain, b.plain), {}};
  if (a.in_class.empty() && b.in_class.empty()) return out;
  // A key of the class is in both sets when it is in either form of each.
  const IntervalSet all_a = unite(a.in_class, residue.members(a.plain));
  const IntervalSet all_b = unite(b.in_class, residue.members(b.plain));
  out.in_class = intersect(all_a, all_b);
  return out;
}

}  // namespace fovea
