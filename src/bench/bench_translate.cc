// Translating synthetic sentences to a fixed length, held against the machine's FMA
// peak.
#include "base/error.h"
#include "bench/benchmarks.h"
#include "bench/measure.h"
#include "bench/translation_work.h"
#include "infer/decode_all.h"
#include "io/json.h"
#include "tensor/allocator.h"

namespace fovea::bench {
Row bench_translate(TranslateOptions o) {
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
  Json line{{"model", o.model}, {"preset", work.preset},    {"threads", num_threads()},
            {"batch", o.batch}, {"sentences", o.sentences}, {"length", o.length},
            {"beam", o.beam},   {"compute", o.compute},     {"tokens_per_second", tokens / result.seconds}};
  line.update(work_json(result, flops));
  return {std::move(line),
          message(o.model, " ", work.preset, ", batch ", o.batch, ", beam ", o.beam, ": ",
                  decimals(result.seconds * 1e3, 1), " ms (best of ", result.runs, "), ",
                  decimals(tokens / result.seconds, 0), " output tokens/s", work_text(result, flops), "\n")};
}

}  // namespace fovea::bench
