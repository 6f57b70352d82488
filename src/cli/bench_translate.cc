// fovea bench translate: translating synthetic sentences to a fixed length, held against the machine's FMA
// peak.
#include <cstdio>
#include <iostream>

#include "cli/flags.h"
#include "cli/measure.h"
#include "cli/translation_work.h"
#include "cli/verbs.h"
#include "infer/decode_all.h"
#include "io/json.h"
#include "tensor/allocator.h"

namespace fovea::cli {
namespace {

constexpr const char* kFooter =
    "Every sentence becomes exactly --length tokens, its end among them, so that any program asked for the "
    "same "
    "does the same\n"
    "work. Sources have 8 to 22 tokens (tiny) or 18 to 32 (base); the vocabulary has 10 000.\n"
    "  fovea bench translate --preset base --batch 32 --beam 4 --json";

struct Options {
  std::string model = "transformer", preset = "tiny", compute = "float32";
  int64_t batch = 32, sentences = 0, length = 24, beam = 1;
  double seconds = 2;
  bool json = false;
};

void run(Options o) {
  if (o.sentences == 0) o.sentences = o.batch == 1 ? 1 : 2 * o.batch;
  for (const int64_t size : {o.batch, o.sentences, o.length, o.beam})
    require(size >= 1 && size <= 4096, "bench translate: a size of ", size, ", wanted 1 to 4096");
  const TranslationWork work = translation_work(o.model, o.preset);
  const auto sources = work.sources(o.sentences);
  const auto network = work.make_network();
  trim_memory();
  const MemoryWatch memory;
  const Inference inference(*network, compute_named(o.compute));
  const auto length = static_cast<int32_t>(o.length);
  const std::vector<int32_t> limits(sources.size(), length - 1);
  const BeamOptions beam{.beam = static_cast<int>(o.beam),
                         .min_length = length - 1,
                         .scores = false,
                         .begin = data::kBegin,
                         .end = data::kEnd};
  const auto step = [&] { decode_all(inference, sources, limits, beam, {.sentences = o.batch}); };
  Measured result = measure_beside_peak(step, o.seconds);
  result.peak_bytes = memory.peak_bytes();

  const double flops = work.translation_flops(*network, o.sentences, o.length, o.beam);
  const auto tokens = static_cast<double>(o.sentences * o.length);
  if (o.json) {
    Json line{{"model", o.model}, {"preset", work.preset},    {"threads", num_threads()},
              {"batch", o.batch}, {"sentences", o.sentences}, {"length", o.length},
              {"beam", o.beam},   {"compute", o.compute},     {"tokens_per_second", tokens / result.seconds}};
    line.update(work_json(result, flops));
    std::cout << line << std::endl;
    return;
  }
  std::printf("%s %s, batch %lld, beam %lld: %.1f ms (best of %d), %.0f output tokens/s%s\n", o.model.c_str(),
              work.preset.c_str(), static_cast<long long>(o.batch), static_cast<long long>(o.beam),
              result.seconds * 1e3, result.runs, tokens / result.seconds, work_text(result, flops).c_str());
}

}  // namespace

void add_bench_translate(CLI::App& bench) {
  CLI::App* verb = bench.add_subcommand("translate", "translating to a fixed length");
  const auto options = std::make_shared<Options>();
  verb->add_option("--model", options->model, "as in fovea train translate")->capture_default_str();
  verb->add_option("--preset", options->preset, "of the transformer: tiny or base")->capture_default_str();
  verb->add_option("--batch", options->batch, "sentences translated together")->capture_default_str();
  verb->add_option("--sentences", options->sentences, "sentences in all; 0: two batches, or one sentence");
  verb->add_option("--length", options->length, "tokens of a translation")->capture_default_str();
  verb->add_option("--beam", options->beam, "1 is greedy")->capture_default_str();
  verb->add_option("--compute", options->compute, "float32 or int8")->capture_default_str();
  verb->add_option("--seconds", options->seconds, "time to spend measuring")->capture_default_str();
  add_threads(*verb);
  add_json(*verb, options->json);
  verb->footer(kFooter);
  verb->callback([options] { run(*options); });
}

}  // namespace fovea::cli
