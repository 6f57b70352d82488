#include "attention/check_call.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "base/error.h"

namespace fovea {
namespace {

using Given = std::optional<Shape>;

void check_parameter(const Given& parameter, bool wanted, std::string_view name, std::string_view owner) {
  require(parameter.has_value() || !wanted, "attention: the spec names ", owner, ", but parameter ", name,
          " is not given");
  require(!parameter.has_value() || wanted, "attention: parameter ", name,
          " is given, but the spec does not name ", owner);
}

void check_shape(const Given& parameter, const Shape& wanted, std::string_view name) {
  require(!parameter || *parameter == wanted, "attention: parameter ", name, " has shape ",
          parameter.value_or(Shape{}), ", wanted ", wanted);
}

void check_bias(const Given& bias, const AttentionSizes& s) {
  if (!bias) return;
  const int64_t full[] = {s.batch, s.heads, s.queries, s.keys};
  bool fits = bias->rank() <= 4;
  for (int i = 0; fits && i < bias->rank(); ++i)
    fits = (*bias)[i] == 1 || (*bias)[i] == full[4 - bias->rank() + i];
  require(fits, "attention: parameter bias has shape ", *bias, ", wanted one that broadcasts to ",
          Shape(std::span<const int64_t>(full)));
}

// What a score reads besides queries and keys.
struct ScoreNeeds {
  bool W = false, U = false, v = false;
  bool projects = false;    // W, U and b multiply q or k, which the caller may do; see AttentionRequest
  bool same_width = false;  // it multiplies q and k as they are
};

// Like check_matrices(), without default: the compiler reports a score that was added to the enum alone.
ScoreNeeds needs_of(ScoreKind kind) {
  switch (kind) {
    case ScoreKind::dot:
    case ScoreKind::scaled_dot:
    case ScoreKind::cosine:
      return {.same_width = true};
    case ScoreKind::bilinear:
      return {.W = true, .projects = true};
    case ScoreKind::additive:
      return {.W = true, .U = true, .v = true, .projects = true};
    case ScoreKind::concat:
      return {.W = true, .v = true, .projects = true};
    case ScoreKind::location:
      return {.W = true};
  }
  fail("attention: a score whose parameters are not known, wanted one of the algebra's");
}

// Of the score location: W has a row for each place.
void check_places(const Pattern& pattern, const ParameterShapes& p, const AttentionSizes& s) {
  int64_t places = 0;
  for (int64_t j = 0; j < s.keys; ++j) places = std::max(places, key_place(pattern, j) + 1);
  require(p.W->rank() == 2 && (*p.W)[1] == s.d && (*p.W)[0] >= places, "attention: parameter W has shape ",
          *p.W, ", wanted [places, ", s.d, "] of at least the ", places, " places of the keys");
}

// Of the scores with a hidden layer. columns: of W.
void check_hidden(const ParameterShapes& p, const AttentionSizes& s, int64_t columns, bool projected) {
  require(p.v->rank() == 1, "attention: parameter v has shape ", *p.v, ", wanted [hidden]");
  const int64_t hidden = (*p.v)[0];
  check_shape(p.W, {hidden, columns}, "W");
  check_shape(p.U, {hidden, s.d}, "U");
  require(!projected || (s.d == hidden && s.dk == hidden), "attention: projected queries and keys have ", s.d,
          " and ", s.dk, " features, wanted ", hidden, ", as many as parameter v");
  check_shape(p.b, {hidden}, "b");
}

// Of scores with matrices of their own.
void check_matrices(const AttentionSpec& spec, const ParameterShapes& p, const AttentionSizes& s,
                    bool projected) {
  switch (spec.score.kind) {
    case ScoreKind::dot:
    case ScoreKind::scaled_dot:
    case ScoreKind::cosine:
      return;
    case ScoreKind::bilinear:
      return check_shape(p.W, {s.d, s.dk}, "W");
    case ScoreKind::additive:
      return check_hidden(p, s, s.dk, projected);
    case ScoreKind::concat:
      return check_hidden(p, s, s.dk + s.d, projected);
    case ScoreKind::location:
      return check_places(spec.pattern, p, s);
  }
}

}  // namespace

AttentionSizes attention_sizes(const Shape& q, const Shape& k, const Shape& v) {
  require(q.rank() == 4 && k.rank() == 4 && v.rank() == 4, "attention: got q ", q, ", k ", k, ", v ", v,
          ", wanted [batch, heads, tokens, features] each");
  const AttentionSizes s{q[0], q[1], k[1], q[2], k[2], q[3], k[3], v[3]};
  require(k[0] == s.batch && v[0] == s.batch, "attention: batches differ: q ", q, ", k ", k, ", v ", v);
  require(v[1] == s.kv_heads && v[2] == s.keys, "attention: got k ", k, " and v ", v,
          ", wanted the same heads and tokens");
  require(s.kv_heads > 0 && s.heads % s.kv_heads == 0, "attention: ", s.heads, " query heads cannot share ",
          s.kv_heads, " key heads; wanted a number that divides ", s.heads);
  require(std::max({s.batch, s.heads, s.queries, s.keys}) < int64_t{1} << 31, "attention: a size of ",
          std::max({s.batch, s.heads, s.queries, s.keys}), ", wanted less than 2^31");
  return s;
}

void check_parameters(const AttentionSpec& spec, const ParameterShapes& p, const AttentionSizes& s,
                      bool projected) {
  const ScoreNeeds needs = needs_of(spec.score.kind);
  require(!projected || needs.projects,
          "attention: projected is for a bilinear, additive or concat score, got ", spec);
  require(!projected || (!p.W && !p.U && !p.b),
          "attention: parameter W, U or b is given, but projected says that q and k were multiplied by them");
  check_parameter(p.W, needs.W && !projected, "W", "a bilinear, additive, concat or location score");
  check_parameter(p.U, needs.U && !projected, "U", "an additive score");
  check_parameter(p.v, needs.v, "v", "an additive or concat score");
  if (p.b) check_parameter(p.b, needs.v, "b", "an additive or concat score");
  check_parameter(p.bias, spec.terms.bias, "bias", "a bias");
  if (p.slopes) check_parameter(p.slopes, spec.terms.alibi, "slopes", "alibi");
  check_parameter(p.relative, spec.terms.relative.buckets != 0, "relative", "relative positions");
  check_parameter(p.position, spec.terms.gaussian != 0, "position", "a gaussian");
  check_parameter(p.sink, spec.terms.sink, "sink", "a sink");
  check_shape(p.slopes, {s.heads}, "slopes");
  check_shape(p.relative, {spec.terms.relative.buckets, s.heads}, "relative");
  check_shape(p.position, {s.batch, s.heads, s.queries}, "position");
  check_shape(p.sink, {s.heads}, "sink");
  check_matrices(spec, p, s, projected);
  // A projected k of a bilinear score is W k, as wide as q.
  if (needs.same_width || (projected && !needs.v))
    require(s.d == s.dk, "attention: q has ", s.d, " features and k has ", s.dk,
            "; a dot product wants the same, a bilinear or additive score does not");
  check_bias(p.bias, s);
}

}  // namespace fovea
