// Any attention on any shape, held against the machine's FMA peak.
#include <utility>

#include "attention/attention.h"
#include "attention/compile.h"
#include "autograd/ops_linear.h"
#include "base/error.h"
#include "base/rng.h"
#include "bench/benchmarks.h"
#include "bench/measure.h"
#include "io/json.h"
#include "tensor/allocator.h"

namespace fovea::bench {
namespace {

Var draw(const Shape& shape, Rng& rng, bool trained) {
  Tensor t(shape);
  for (float& x : t.span()) x = 2 * rng.uniform() - 1;
  return Var(t, trained);
}

// Parameters for whatever the spec names, all trained.
AttentionParameters draw_parameters(const AttentionSpec& spec, const AttentionOptions& o, Rng& rng) {
  AttentionParameters p;
  // Without default: the compiler reports a score that was added to the enum alone.
  switch (spec.score.kind) {
    case ScoreKind::dot:
    case ScoreKind::scaled_dot:
    case ScoreKind::cosine:
      break;
    case ScoreKind::bilinear:
      p.W = draw({o.d, o.d}, rng, true);
      break;
    case ScoreKind::additive:
      if (!o.projected_keys) p.W = draw({o.d, o.d}, rng, true);
      p.U = draw({o.d, o.d}, rng, true);
      p.v = draw({o.d}, rng, true);
      break;
    case ScoreKind::concat:
      p.W = draw({o.d, 2 * o.d}, rng, true);
      p.v = draw({o.d}, rng, true);
      break;
    case ScoreKind::location:
      p.W = draw({o.nk, o.d}, rng, true);
      break;
  }
  if (spec.terms.bias) p.bias = draw({o.heads, o.n, o.nk}, rng, true);
  if (spec.terms.relative.buckets != 0) p.relative = draw({spec.terms.relative.buckets, o.heads}, rng, true);
  if (spec.terms.gaussian != 0) p.position = draw({o.batch, o.heads, o.n}, rng, true);
  if (spec.terms.sink) p.sink = draw({o.heads}, rng, true);
  return p;
}

void check_options(AttentionOptions& o) {
  if (o.kv_heads == 0) o.kv_heads = o.heads;
  if (o.nk == 0) o.nk = o.n;
  if (o.dv == 0) o.dv = o.d;
  for (const int64_t size : {o.batch, o.heads, o.kv_heads, o.n, o.nk, o.d, o.dv})
    require(size >= 1 && size <= int64_t{1} << 26, "bench attention: a size of ", size, ", wanted 1 to 2^26");
  require(o.direction == "forward" || o.direction == "both", "--direction: got ", in_quotes(o.direction),
          ", wanted forward or both");
}

}  // namespace

Row bench_attention(AttentionOptions o) {
  check_options(o);
  const bool both = o.direction == "both";
  const AttentionSpec spec = parse_spec(o.spec);
  require(!o.projected_keys || spec.score.kind == ScoreKind::additive,
          "--projected-keys is for an additive score; got --spec ", in_quotes(o.spec));
  Rng rng(1);
  const Var q = draw({o.batch, o.heads, o.n, o.d}, rng, both),
            k = draw({o.batch, o.kv_heads, o.nk, o.d}, rng, both);
  const Var v = draw({o.batch, o.kv_heads, o.nk, o.dv}, rng, both);
  AttentionRequest request{.parameters = draw_parameters(spec, o, rng),
                           .training = true,
                           .seed = 1,
                           .projected = o.projected_keys};
  // Of projected keys, the product of queries is still a part of each step.
  const Var query_weight = o.projected_keys ? std::exchange(request.parameters.U, {}) : Var();
  const Tensor seed = draw({o.batch, o.heads, o.n, o.dv}, rng, false).value();
  const auto plan =
      compiled(spec.pattern, {.queries = o.n, .keys = o.nk, .batch = o.batch, .heads = o.heads});
  const double pairs = static_cast<double>(visited_pairs(*plan, o.batch, o.heads));

  const auto run = [&] {
    return attend(query_weight.defined() ? linear(q, query_weight) : q, k, v, spec, request).output;
  };
  const auto step = [&] {
    if (!both) {
      const NoGrad no_grad;
      run();
      return;
    }
    run().backward(seed);
    const AttentionParameters& p = request.parameters;
    for (const Var* parameter :
         {&q, &k, &v, &query_weight, &p.W, &p.U, &p.v, &p.bias, &p.relative, &p.position, &p.sink})
      if (parameter->defined()) parameter->clear_grad();
  };
  trim_memory();
  const int64_t before = memory_use().live_bytes;
  reset_peak_memory();
  Measured result = measure_beside_peak(step, o.seconds);
  result.peak_bytes = memory_use().peak_bytes - before;
  const double width = static_cast<double>(o.d + o.dv);
  const double flops = pairs * width * (both ? 7 : 2);
  const double bytes = 4.0 * static_cast<double>(o.batch * o.kv_heads * o.nk) * width;
  Json line{{"spec", to_string(spec)},
            {"batch", o.batch},
            {"heads", o.heads},
            {"kv_heads", o.kv_heads},
            {"n", o.n},
            {"nk", o.nk},
            {"d", o.d},
            {"dv", o.dv},
            {"direction", o.direction},
            {"threads", num_threads()},
            {"pairs", pairs},
            {"gbps", bytes / result.seconds * 1e-9}};
  line.update(work_json(result, flops));
  return {std::move(line), message(to_string(spec), ", ", o.direction, "\n",
                                   decimals(result.seconds * 1e3, 3), " ms (best of ", result.runs, ")",
                                   work_text(result, flops), " at most besides the inputs\n")};
}

}  // namespace fovea::bench
