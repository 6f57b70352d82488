// fovea bench attention: any attention on any shape, held against the machine's FMA peak.
#include <cstdio>
#include <iostream>

#include "attention/attention.h"
#include "attention/compile.h"
#include "base/error.h"
#include "base/rng.h"
#include "cli/flags.h"
#include "cli/measure.h"
#include "cli/verbs.h"
#include "io/json.h"
#include "tensor/allocator.h"

namespace fovea::cli {
namespace {

constexpr const char* kFooter =
    "Useful work is counted: 4 d multiply-adds and additions for every pair (query, key) that the pattern "
    "visits, 14 d\n"
    "with the backward pass. One query asks for memory rather than multiply-adds: see gbps, the bytes of "
    "keys and values\n"
    "read in a second.\n"
    "  fovea bench attention --n 8192 --spec \"scaled_dot / window(256,256) / soft\" --direction both";

struct Options {
  int64_t batch = 1, heads = 8, kv_heads = 0, n = 2048, nk = 0, d = 64, dv = 0;
  std::string spec = "scaled_dot / full / soft";
  std::string direction = "forward";
  double seconds = 1;
  bool projected_keys = false;
  bool json = false;
};

Var draw(const Shape& shape, Rng& rng, bool trained) {
  Tensor t(shape);
  for (float& x : t.span()) x = 2 * rng.uniform() - 1;
  return Var(t, trained);
}

// Parameters for whatever the spec names, all trained.
AttentionParameters draw_parameters(const AttentionSpec& spec, const Options& o, Rng& rng) {
  AttentionParameters p;
  const ScoreKind kind = spec.score.kind;
  if (kind == ScoreKind::bilinear || (kind == ScoreKind::additive && !o.projected_keys))
    p.W = draw({o.d, o.d}, rng, true);
  if (kind == ScoreKind::additive) p.U = draw({o.d, o.d}, rng, true);
  if (kind == ScoreKind::concat) p.W = draw({o.d, 2 * o.d}, rng, true);
  if (kind == ScoreKind::additive || kind == ScoreKind::concat) p.v = draw({o.d}, rng, true);
  if (spec.terms.bias) p.bias = draw({o.heads, o.n, o.nk}, rng, true);
  if (spec.terms.relative.buckets != 0) p.relative = draw({spec.terms.relative.buckets, o.heads}, rng, true);
  if (spec.terms.gaussian != 0) p.position = draw({o.batch, o.heads, o.n}, rng, true);
  if (spec.terms.sink) p.sink = draw({o.heads}, rng, true);
  return p;
}

void check_options(Options& o) {
  if (o.kv_heads == 0) o.kv_heads = o.heads;
  if (o.nk == 0) o.nk = o.n;
  if (o.dv == 0) o.dv = o.d;
  for (const int64_t size : {o.batch, o.heads, o.kv_heads, o.n, o.nk, o.d, o.dv})
    require(size >= 1 && size <= int64_t{1} << 26, "bench attention: a size of ", size, ", wanted 1 to 2^26");
  require(o.direction == "forward" || o.direction == "both", "--direction: got ", in_quotes(o.direction),
          ", wanted forward or both");
}

void run(Options o) {
  check_options(o);
  const bool both = o.direction == "both";
  const AttentionSpec spec = parse_spec(o.spec);
  Rng rng(1);
  const Var q = draw({o.batch, o.heads, o.n, o.d}, rng, both),
            k = draw({o.batch, o.kv_heads, o.nk, o.d}, rng, both);
  const Var v = draw({o.batch, o.kv_heads, o.nk, o.dv}, rng, both);
  const AttentionRequest request{.parameters = draw_parameters(spec, o, rng),
                                 .training = true,
                                 .seed = 1,
                                 .projected_keys = o.projected_keys};
  const Tensor seed = draw({o.batch, o.heads, o.n, o.dv}, rng, false).value();
  const auto plan =
      compiled(spec.pattern, {.queries = o.n, .keys = o.nk, .batch = o.batch, .heads = o.heads});
  const double pairs = static_cast<double>(visited_pairs(*plan, o.batch, o.heads));

  const auto step = [&] {
    if (!both) {
      const NoGrad no_grad;
      attend(q, k, v, spec, request);
      return;
    }
    attend(q, k, v, spec, request).output.backward(seed);
    const AttentionParameters& p = request.parameters;
    for (const Var* parameter : {&q, &k, &v, &p.W, &p.U, &p.v, &p.bias, &p.relative, &p.position, &p.sink})
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
  if (o.json) {
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
    std::cout << line << std::endl;
    return;
  }
  std::printf("%s, %s\n%.3f ms (best of %d)%s at most besides the inputs\n", to_string(spec).c_str(),
              o.direction.c_str(), result.seconds * 1e3, result.runs, work_text(result, flops).c_str());
}

}  // namespace

void add_bench_attention(CLI::App& bench) {
  CLI::App* verb = bench.add_subcommand("attention", "attention of any kind on any shape");
  const auto options = std::make_shared<Options>();
  verb->add_option("--batch", options->batch, "sequences")->capture_default_str();
  verb->add_option("--heads", options->heads, "query heads")->capture_default_str();
  verb->add_option("--kv-heads", options->kv_heads, "key heads; 0: as many as --heads")
      ->capture_default_str();
  verb->add_option("--n", options->n, "queries")->capture_default_str();
  verb->add_option("--nk", options->nk, "keys; 0: as many as --n")->capture_default_str();
  verb->add_option("--d", options->d, "features of queries and keys")->capture_default_str();
  verb->add_option("--dv", options->dv, "features of values; 0: as many as --d")->capture_default_str();
  verb->add_option("--spec", options->spec, "score / pattern / selection")->capture_default_str();
  verb->add_option("--direction", options->direction, "forward, or both: with gradients")
      ->capture_default_str();
  verb->add_flag("--projected-keys", options->projected_keys,
                 "additive: keys come multiplied by W, as a decoder has them");
  verb->add_option("--seconds", options->seconds, "time to spend measuring")->capture_default_str();
  add_threads(*verb);
  add_json(*verb, options->json);
  verb->footer(kFooter);
  verb->callback([options] { run(*options); });
}

}  // namespace fovea::cli
