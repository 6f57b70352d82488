#include "attention/row_keys.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "attention/match.h"
#include "base/error.h"

namespace fovea {

using namespace patterns;

RowKeys::RowKeys(const Pattern& pattern, const PlanSizes& sizes, int64_t batch, int64_t head)
    : pattern_(pattern), sizes_(sizes), batch_(batch), head_(head) {
  for_each_member(pattern_, Match{
                                [](const auto&) {},
                                [&](const Documents& d) {
                                  if (document_ends_.count(&d)) return;
                                  auto& ends = document_ends_[&d];
                                  ends.queries.resize(d.queries.size());
                                  ends.keys.resize(d.keys.size());
                                  std::partial_sum(d.queries.begin(), d.queries.end(), ends.queries.begin());
                                  std::partial_sum(d.keys.begin(), d.keys.end(), ends.keys.begin());
                                },
                            });
}

RowSet RowKeys::one(int64_t begin, int64_t end) const {
  RowSet set;
  append(set.plain, std::max<int64_t>(begin, 0), std::min(end, sizes_.keys));
  return set;
}

// Keys position + t * step for t in [-left, right].
RowSet RowKeys::progression(int64_t position, int64_t step, int64_t left, int64_t right,
                            const ResidueClass& residue) const {
  if (step == 1) return one(position - left, position + right + 1);
  RowSet set;
  if (step == residue.modulus && modulo(position, step) == residue.residue) {
    const int64_t middle = floor_div(position, step);
    append(set.in_class, std::max<int64_t>(middle - left, 0), std::min(middle + right + 1, residue.count()));
    return set;
  }
  int64_t key = position - std::min(left, std::max<int64_t>(floor_div(position, step), 0)) * step;
  for (; key < sizes_.keys && key <= position + right * step; key += step) {
    if (key >= 0) append(set.plain, key, key + 1);
  }
  return set;
}

// The keys that a query sees.
RowSet RowKeys::row_set(const Pattern& pattern, int64_t query, const ResidueClass& residue) const {
  const int64_t at = position(query);
  return std::visit(
      Match{
          [&](const Full&) { return one(0, sizes_.keys); },
          [&](const Causal& c) { return one(0, position(query, c.align) + 1); },
          [&](const Window& w) {
            return progression(position(query, w.align), w.dilation, w.left, w.right, residue);
          },
          [&](const Strided& s) {
            const int64_t all = sizes_.keys + sizes_.queries;
            return progression(position(query, s.align), s.stride, all, all, residue);
          },
          [&](const Fixed& f) { return fixed_set(f, floor_div(at, f.stride)); },
          [&](const BlockWindow& w) {
            const int64_t block = floor_div(at, w.block);
            return one((block - w.left) * w.block, (block + w.right + 1) * w.block);
          },
          [&](const Global& g) { return global_set(g, at); },
          [&](const RandomBlocks& r) {
            RowSet set;
            const int64_t key_blocks = (sizes_.keys + r.block - 1) / r.block;
            for (const int64_t block : random_choice(r, floor_div(at, r.block), key_blocks))
              append(set.plain, block * r.block, std::min((block + 1) * r.block, sizes_.keys));
            return set;
          },
          [&](const Layout& l) {
            RowSet set;
            const std::string& row = l.rows[query / l.block];
            for (size_t block = 0; block < row.size(); ++block)
              if (const auto begin = static_cast<int64_t>(block) * l.block; row[block] == '1')
                append(set.plain, begin, std::min(begin + l.block, sizes_.keys));
            return set;
          },
          [&](const Lengths& l) { return one(0, l.keys[batch_]); },
          [&](const QueryLengths& l) { return query < l.queries[batch_] ? one(0, sizes_.keys) : RowSet{}; },
          [&](const Documents& d) { return document_set(d, query); },
          [&](const Within& w) {
            const Document document = document_of(w.documents, query);
            RowSet set = RowKeys(w.parts[0], document.sizes, batch_, head_)
                             .row(query - document.query_begin, {1, 0, document.sizes.keys});
            for (Interval& piece : set.plain) {
              piece.begin += document.key_begin;
              piece.end += document.key_begin;
            }
            return set;
          },
          [&](const Predicate& p) { return seen(p, one(0, sizes_.keys), query, residue); },
          [&](const AnyOf& any) {
            RowSet set = row_set(any.parts[0], query, residue);
            for (size_t i = 1; i < any.parts.size(); ++i)
              set = unite(set, row_set(any.parts[i], query, residue));
            return set;
          },
          [&](const AllOf& all) { return intersection(all, query, residue); },
          [&](const PerHead&) -> RowSet {
            FOVEA_ASSERT(!"heads(...) was resolved before");
            return {};
          },
      },
      pattern.node());
}

RowSet RowKeys::fixed_set(const Fixed& f, int64_t block) const {
  RowSet set;
  for (int64_t first = 0; first < sizes_.keys; first += f.stride) {
    const int64_t begin = first == block * f.stride ? first : first + f.stride - f.summary;
    append(set.plain, begin, std::min(first + f.stride, sizes_.keys));
  }
  return set;
}

RowSet RowKeys::global_set(const Global& g, int64_t at) const {
  RowSet set;
  for (const TokenRange& range : g.tokens) {
    if (range.first <= at && at <= range.last) return one(0, sizes_.keys);
    append(set.plain, range.first, std::min(range.last + 1, sizes_.keys));
  }
  return set;
}

RowKeys::Document RowKeys::document_of(const Documents& d, int64_t query) const {
  const Ends& ends = document_ends_.at(&d);
  const auto document =
      std::upper_bound(ends.queries.begin(), ends.queries.end(), query) - ends.queries.begin();
  PlanSizes sizes = sizes_;
  sizes.queries = d.queries[document];
  sizes.keys = d.keys[document];
  return {sizes, ends.queries[document] - sizes.queries, ends.keys[document] - sizes.keys};
}

RowSet RowKeys::document_set(const Documents& d, int64_t query) const {
  const Document document = document_of(d, query);
  return one(document.key_begin, document.key_begin + document.sizes.keys);
}

// Predicates are asked last, and only about what the others leave.
RowSet RowKeys::intersection(const AllOf& all, int64_t query, const ResidueClass& residue) const {
  std::optional<RowSet> set;
  for (const Pattern& part : all.parts) {
    if (std::holds_alternative<Predicate>(part.node())) continue;
    RowSet next = row_set(part, query, residue);
    set = set ? intersect(*set, next, residue) : std::move(next);
  }
  if (!set) set = one(0, sizes_.keys);
  for (const Pattern& part : all.parts)
    if (const auto* p = std::get_if<Predicate>(&part.node())) set = seen(*p, *set, query, residue);
  return *set;
}

RowSet RowKeys::seen(const Predicate& p, const RowSet& among, int64_t query,
                     const ResidueClass& residue) const {
  RowSet set;
  for (const Interval& piece : among.plain)
    for (int64_t key = piece.begin; key < piece.end; ++key)
      if (p.sees(head_, query, key)) append(set.plain, key, key + 1);
  for (const Interval& piece : among.in_class)
    for (int64_t u = piece.begin; u < piece.end; ++u)
      if (p.sees(head_, query, residue.key(u))) append(set.in_class, u, u + 1);
  return set;
}

bool RowKeys::sees_one_run(const Pattern& pattern) {
  return std::visit(Match{
                        [](const auto&) { return false; },
                        [](const Full&) { return true; },
                        [](const Causal&) { return true; },
                        [](const Window& w) { return w.dilation == 1; },
                        [](const Lengths&) { return true; },
                        [](const QueryLengths&) { return true; },
                        [](const Documents&) { return true; },
                        [](const Within& w) { return sees_one_run(w.parts[0]); },
                        [](const AllOf& all) {
                          return std::all_of(all.parts.begin(), all.parts.end(),
                                             [](const Pattern& part) { return sees_one_run(part); });
                        },
                    },
                    pattern.node());
}
Interval RowKeys::one_run(const Pattern& pattern, int64_t query) const {
  const auto clipped = [&](int64_t begin, int64_t end) {
    return Interval{std::max<int64_t>(begin, 0), std::min(end, sizes_.keys)};
  };
  return std::visit(
      Match{
          [&](const auto&) { return clipped(0, sizes_.keys); },
          [&](const Causal& c) { return clipped(0, position(query, c.align) + 1); },
          [&](const Window& w) {
            const int64_t at = position(query, w.align);
            return clipped(at - w.left, at + w.right + 1);
          },
          [&](const Lengths& l) { return clipped(0, l.keys[batch_]); },
          [&](const QueryLengths& l) { return clipped(0, query < l.queries[batch_] ? sizes_.keys : 0); },
          [&](const Documents& d) {
            const Document document = document_of(d, query);
            return clipped(document.key_begin, document.key_begin + document.sizes.keys);
          },
          [&](const Within& w) {
            const Document document = document_of(w.documents, query);
            const Interval run =
                RowKeys(w.parts[0], document.sizes, batch_, head_).run(query - document.query_begin);
            return clipped(run.begin + document.key_begin, run.end + document.key_begin);
          },
          [&](const AllOf& all) {
            Interval run = clipped(0, sizes_.keys);
            for (const Pattern& part : all.parts) {
              const Interval next = one_run(part, query);
              run = {std::max(run.begin, next.begin), std::min(run.end, next.end)};
            }
            return run;
          },
      },
      pattern.node());
}

}  // namespace fovea
