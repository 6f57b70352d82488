#include "attention/spec.h"

#include <cmath>
#include <ostream>
#include <sstream>

#include "attention/spec_records.h"
#include "base/error.h"

namespace fovea {
namespace {

using namespace specs;

}  // namespace

Score dot() {
  return {ScoreKind::dot};
}
Score scaled_dot() {
  return {ScoreKind::scaled_dot};
}
Score scaled_dot(float gamma) {
  require(positive(gamma), "scaled_dot: gamma, the divisor: got ", gamma, ", wanted a number above 0");
  return {ScoreKind::scaled_dot, gamma};
}
Score cosine(float tau) {
  require(positive(tau), "cosine: tau, the divisor: got ", tau, ", wanted a number above 0");
  return {ScoreKind::cosine, tau};
}
Score bilinear() {
  return {ScoreKind::bilinear};
}
Score additive() {
  return {ScoreKind::additive};
}
Score concat() {
  return {ScoreKind::concat};
}
Score location() {
  return {ScoreKind::location};
}

Selection soft(SoftOptions options) {
  require(options.dropout >= 0 && options.dropout < 1, "soft: dropout: got ", options.dropout,
          ", wanted 0 or more and less than 1");
  return {.kind = SelectionKind::soft, .dropout = options.dropout};
}
Selection hard() {
  return {.kind = SelectionKind::hard};
}
Selection gumbel(GumbelOptions options) {
  require(positive(options.tau), "gumbel: tau: got ", options.tau, ", wanted a number above 0");
  return {.kind = SelectionKind::gumbel, .tau = options.tau, .straight_through = options.straight_through};
}
Selection argmax() {
  return {.kind = SelectionKind::argmax};
}
Selection top_k(int64_t k) {
  require(k >= 1 && k < int64_t{1} << 31, "top_k: got ", k, " keys, wanted at least 1");
  return {.kind = SelectionKind::top_k, .k = k};
}
Selection sparsemax() {
  return {.kind = SelectionKind::sparsemax};
}
Selection sigmoid_selection() {
  return {.kind = SelectionKind::sigmoid};
}
Selection identity_selection() {
  return {.kind = SelectionKind::identity};
}

bool draws(const Selection& selection) {
  return selection.dropout > 0 || selection.kind == SelectionKind::hard ||
         selection.kind == SelectionKind::gumbel;
}

int64_t relative_bucket(const RelativeBuckets& relative, int64_t distance) {
  int64_t buckets = relative.buckets, base = 0;
  if (relative.two_sided) {
    buckets /= 2;
    if (distance > 0) base = buckets;
    distance = std::abs(distance);
  } else {
    distance = std::max<int64_t>(-distance, 0);
  }
  const int64_t exact = buckets / 2;
  if (distance < exact) return base + distance;
  if (exact == 0) return base;
  const double share = std::log(static_cast<double>(distance) / exact) /
                       std::log(static_cast<double>(relative.max_distance) / exact);
  return base + std::min(buckets - 1, exact + static_cast<int64_t>(share * (buckets - exact)));
}

void check(const AttentionSpec& spec) {
  const float divisor = spec.score.number;
  require(divisor == 0 || (record_of(spec.score.kind).has_divisor && positive(divisor)),
          "score: got the number ", divisor, ", wanted one above 0, and only for scaled_dot and cosine");
  for (const TermRecord& term : kTerms) term.check(spec.terms);
  const Selection& s = spec.selection;
  require(
      !spec.terms.sink || record_of(s.kind).has_sum,
      "sink: got a selection without a softmax's sum, wanted soft or top_k: a sink is one more logit of it");
  require(s.dropout == 0 || s.kind == SelectionKind::soft,
          "dropout: got a selection other than soft, wanted soft: only it drops weights");
  require(s.dropout >= 0 && s.dropout < 1, "soft: dropout: got ", s.dropout,
          ", wanted 0 or more and less than 1");
  require(s.kind != SelectionKind::gumbel || positive(s.tau), "gumbel: tau: got ", s.tau,
          ", wanted a number above 0");
  require(s.kind != SelectionKind::top_k || s.k >= 1, "top_k: got ", s.k, " keys, wanted at least 1");
}

std::string to_string(const AttentionSpec& spec) {
  std::ostringstream out;
  out << spec;
  return out.str();
}

std::ostream& operator<<(std::ostream& out, const AttentionSpec& spec) {
  out << record_of(spec.score.kind).name;
  if (spec.score.number != 0) out << '(' << shortest(spec.score.number) << ')';
  for (const TermRecord& term : kTerms)
    if (term.present(spec.terms)) {
      out << " + ";
      term.print(out, spec.terms);
    }
  const SelectionRecord& selection = record_of(spec.selection.kind);
  out << " / " << spec.pattern << " / " << selection.name;
  selection.print(out, spec.selection);
  return out;
}

}  // namespace fovea
