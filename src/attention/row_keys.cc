// Walks through the joins of a pattern; the record of each kind says which keys its rows see.
#include "attention/row_keys.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "attention/match.h"
#include "base/error.h"

namespace fovea {

using namespace patterns;

namespace {

// A member's Documents, whose ends are kept; none for the other kinds.
template <class Member>
const Documents* documents_in(const Member& member) {
  if constexpr (std::is_same_v<Member, Documents>)
    return &member;
  else
    return nullptr;
}

}  // namespace

RowKeys::RowKeys(const Pattern& pattern, const PlanSizes& sizes, int64_t batch, int64_t head)
    : pattern_(pattern), sizes_(sizes), batch_(batch), head_(head) {
  for_each_member(pattern_, [&](const auto& member) {
    const Documents* const d = documents_in(member);
    if (d == nullptr || document_ends_.count(d)) return;
    DocumentEnds& ends = document_ends_[d];
    ends.queries.resize(d->queries.size());
    ends.keys.resize(d->keys.size());
    std::partial_sum(d->queries.begin(), d->queries.end(), ends.queries.begin());
    std::partial_sum(d->keys.begin(), d->keys.end(), ends.keys.begin());
  });
}

RowPlace RowKeys::place(int64_t query, const ResidueClass& residue, const Documents* documents) const {
  return {.sizes = sizes_,
          .query = query,
          .batch = batch_,
          .head = head_,
          .ends = documents == nullptr ? nullptr : &document_ends_.at(documents),
          .residue = residue};
}

RowSet RowKeys::row_set(const Pattern& pattern, int64_t query, const ResidueClass& residue) const {
  return std::visit(Match{
                        [&](const Within& w) {
                          const DocumentOfRow document =
                              document_of(w.documents, place(query, residue, &w.documents));
                          RowSet set = RowKeys(w.part(document.number), document.sizes, batch_, head_)
                                           .row(query - document.query_begin, {1, 0, document.sizes.keys});
                          for (Interval& piece : set.plain) {
                            piece.begin += document.key_begin;
                            piece.end += document.key_begin;
                          }
                          return set;
                        },
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
                        [&](const auto& member) {
                          using Member = std::remove_cvref_t<decltype(member)>;
                          return Record<Member>::row(member, place(query, residue, documents_in(member)));
                        },
                    },
                    pattern.node());
}

// Predicates are called last, and only for the keys that the others leave.
RowSet RowKeys::intersection(const AllOf& all, int64_t query, const ResidueClass& residue) const {
  std::optional<RowSet> set;
  const RowPlace at = place(query, residue, nullptr);
  for (const Pattern& part : all.parts) {
    if (std::holds_alternative<Predicate>(part.node())) continue;
    RowSet next = row_set(part, query, residue);
    set = set ? intersect(*set, next, residue) : std::move(next);
  }
  if (!set) set = at.one(at.all());
  for (const Pattern& part : all.parts)
    if (const auto* p = std::get_if<Predicate>(&part.node())) set = Record<Predicate>::among(*p, *set, at);
  return *set;
}

bool RowKeys::sees_one_run(const Pattern& pattern) {
  return std::visit(
      Match{
          [](const Within& w) {
            return std::all_of(w.parts.begin(), w.parts.end(),
                               [](const Pattern& part) { return sees_one_run(part); });
          },
          [](const AnyOf&) { return false; },
          [](const AllOf& all) {
            return std::all_of(all.parts.begin(), all.parts.end(),
                               [](const Pattern& part) { return sees_one_run(part); });
          },
          [](const PerHead&) { return false; },
          [](const auto& member) { return Record<std::remove_cvref_t<decltype(member)>>::one_run(member); },
      },
      pattern.node());
}

// Only of patterns that see one run.
Interval RowKeys::one_run(const Pattern& pattern, int64_t query) const {
  const ResidueClass plain{1, 0, sizes_.keys};
  return std::visit(Match{
                        [&](const Within& w) {
                          const DocumentOfRow document =
                              document_of(w.documents, place(query, plain, &w.documents));
                          const Interval run = RowKeys(w.part(document.number), document.sizes, batch_, head_)
                                                   .run(query - document.query_begin);
                          return place(query, plain, nullptr)
                              .clipped(run.begin + document.key_begin, run.end + document.key_begin);
                        },
                        [&](const AllOf& all) {
                          Interval run{0, sizes_.keys};
                          for (const Pattern& part : all.parts) {
                            const Interval next = one_run(part, query);
                            run = {std::max(run.begin, next.begin), std::min(run.end, next.end)};
                          }
                          return run;
                        },
                        [&](const AnyOf&) -> Interval {
                          FOVEA_ASSERT(!"a union may see several runs");
                          return {};
                        },
                        [&](const PerHead&) -> Interval {
                          FOVEA_ASSERT(!"heads(...) was resolved before");
                          return {};
                        },
                        [&](const auto& member) {
                          using Member = std::remove_cvref_t<decltype(member)>;
                          return Record<Member>::run(member, place(query, plain, documents_in(member)));
                        },
                    },
                    pattern.node());
}

}  // namespace fovea
