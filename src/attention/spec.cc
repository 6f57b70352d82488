#include "attention/spec.h"

#include <charconv>
#include <cmath>
#include <ostream>
#include <sstream>

#include "base/error.h"

namespace fovea {
namespace {

// The shortest text that reads back as the same float.
std::string shortest(float value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}

bool positive(float value) {
  return value > 0 && std::isfinite(value);
}

void print(std::ostream& out, const Score& score) {
  switch (score.kind) {
    case ScoreKind::dot:
      out << "dot";
      break;
    case ScoreKind::scaled_dot:
      out << "scaled_dot";
      break;
    case ScoreKind::cosine:
      out << "cosine";
      break;
    case ScoreKind::bilinear:
      out << "bilinear";
      break;
    case ScoreKind::additive:
      out << "additive";
      break;
    case ScoreKind::concat:
      out << "concat";
      break;
  }
  if (score.number != 0) out << '(' << shortest(score.number) << ')';
}

void print(std::ostream& out, const Terms& terms) {
  if (terms.soft_cap != 0) out << " + soft_cap(" << shortest(terms.soft_cap) << ')';
  if (terms.alibi) out << " + alibi";
  if (terms.bias) out << " + bias";
  if (const RelativeBuckets& r = terms.relative; r.buckets != 0)
    out << " + relative(" << r.buckets << ',' << r.max_distance << (r.two_sided ? "" : ",one_sided") << ')';
  if (terms.gaussian != 0) out << " + gaussian(" << shortest(terms.gaussian) << ')';
  if (terms.sink) out << " + sink";
}

void print(std::ostream& out, const Selection& selection) {
  switch (selection.kind) {
    case SelectionKind::soft:
      out << "soft";
      if (selection.dropout != 0) out << '(' << shortest(selection.dropout) << ')';
      break;
    case SelectionKind::hard:
      out << "hard";
      break;
    case SelectionKind::gumbel:
      out << "gumbel(" << shortest(selection.tau)
          << (selection.straight_through ? ",straight_through)" : ")");
      break;
    case SelectionKind::argmax:
      out << "argmax";
      break;
    case SelectionKind::top_k:
      out << "top_k(" << selection.k << ')';
      break;
    case SelectionKind::sparsemax:
      out << "sparsemax";
      break;
    case SelectionKind::sigmoid:
      out << "sigmoid";
      break;
  }
}

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
  const Terms& terms = spec.terms;
  const bool scales = spec.score.kind == ScoreKind::scaled_dot || spec.score.kind == ScoreKind::cosine;
  require(spec.score.number == 0 || (scales && positive(spec.score.number)), "score: got the number ",
          spec.score.number, ", wanted one above 0, and only for scaled_dot and cosine");
  require(terms.soft_cap == 0 || positive(terms.soft_cap), "soft_cap: got ", terms.soft_cap,
          ", wanted a number above 0");
  require(terms.gaussian == 0 || positive(terms.gaussian), "gaussian: sigma: got ", terms.gaussian,
          ", wanted a number above 0");
  if (const RelativeBuckets& r = terms.relative; r.buckets != 0) {
    const int64_t smallest = r.two_sided ? 4 : 2;
    require(r.buckets >= smallest && r.buckets <= 1 << 16 && r.buckets % smallest == 0, "relative: got ",
            r.buckets, " buckets, wanted a multiple of ", smallest);
    require(r.max_distance > r.buckets / smallest && r.max_distance < int64_t{1} << 31,
            "relative: got the distance ", r.max_distance, ", wanted more than the ", r.buckets / smallest,
            " distances that have their own bucket");
  }
  const Selection& s = spec.selection;
  require(
      !terms.sink || s.kind == SelectionKind::soft || s.kind == SelectionKind::top_k,
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
  print(out, spec.score);
  print(out, spec.terms);
  out << " / " << spec.pattern << " / ";
  print(out, spec.selection);
  return out;
}

}  // namespace fovea
