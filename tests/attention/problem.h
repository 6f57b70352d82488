// Random numbers of the right shapes for any spec: what the tests of attention feed to the oracle and to the
// fused paths.
#pragma once

#include "attention/reference.h"
#include "base/rng.h"

namespace fovea::test {

struct ProblemSizes {
  int64_t batch = 1, heads = 1, kv_heads = 1;
  int64_t queries = 1, keys = 1;
  int64_t d = 1, dv = 1;
  int64_t hidden = 5;
};

// Values that float holds exactly, so that the oracle and the float path see the same problem.
inline reference::Array random_array(Rng& rng, int64_t count, double scale = 1) {
  reference::Array array(count);
  for (double& value : array) value = static_cast<float>(scale * rng.normal());
  return array;
}

inline reference::Inputs random_inputs(const AttentionSpec& spec, const ProblemSizes& sizes, Rng& rng) {
  reference::Inputs in{.batch = sizes.batch,
                       .heads = sizes.heads,
                       .kv_heads = sizes.kv_heads,
                       .queries = sizes.queries,
                       .keys = sizes.keys,
                       .d = sizes.d,
                       .dk = sizes.d,
                       .dv = sizes.dv,
                       .seed = rng.bits64()};
  const ScoreKind kind = spec.score.kind;
  const bool own_width =
      kind == ScoreKind::bilinear || kind == ScoreKind::additive || kind == ScoreKind::concat;
  if (own_width) in.dk = sizes.d + 1;
  in.q = random_array(rng, in.batch * in.heads * in.queries * in.d);
  in.k = random_array(rng, in.batch * in.kv_heads * in.keys * in.dk);
  in.v = random_array(rng, in.batch * in.kv_heads * in.keys * in.dv);
  if (kind == ScoreKind::location) in.w = random_array(rng, in.keys * in.d, 0.5);
  if (kind == ScoreKind::bilinear) in.w = random_array(rng, in.d * in.dk, 0.5);
  if (kind == ScoreKind::additive || kind == ScoreKind::concat) {
    in.hidden = sizes.hidden;
    in.w = random_array(rng, in.hidden * (kind == ScoreKind::concat ? in.d + in.dk : in.dk), 0.5);
    if (kind == ScoreKind::additive) in.u = random_array(rng, in.hidden * in.d, 0.5);
    in.b = random_array(rng, in.hidden);
    in.score_vector = random_array(rng, in.hidden);
  }
  if (spec.terms.bias) in.bias = random_array(rng, in.batch * in.heads * in.queries * in.keys);
  if (spec.terms.alibi) in.slopes = random_array(rng, in.heads, 0.2);
  if (spec.terms.relative.buckets > 0) in.table = random_array(rng, spec.terms.relative.buckets * in.heads);
  if (spec.terms.sink) in.sink = random_array(rng, in.heads);
  if (spec.terms.gaussian > 0) {
    in.centre = random_array(rng, in.batch * in.heads * in.queries);
    for (double& centre : in.centre) centre = static_cast<float>(rng.uniform() * static_cast<float>(in.keys));
  }
  return in;
}

// The arrays of an Inputs with their names, in a fixed order.
struct NamedArray {
  const char* name;
  reference::Array reference::Inputs::*array;
};
inline constexpr NamedArray kInputArrays[] = {
    {"q", &reference::Inputs::q},
    {"k", &reference::Inputs::k},
    {"v", &reference::Inputs::v},
    {"w", &reference::Inputs::w},
    {"u", &reference::Inputs::u},
    {"b", &reference::Inputs::b},
    {"score_vector", &reference::Inputs::score_vector},
    {"bias", &reference::Inputs::bias},
    {"slopes", &reference::Inputs::slopes},
    {"table", &reference::Inputs::table},
    {"centre", &reference::Inputs::centre},
    {"sink", &reference::Inputs::sink},
};

}  // namespace fovea::test
