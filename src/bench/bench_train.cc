// Steps of training a translator on synthetic sentences, held against the machine's FMA
// peak.
#include "bench/benchmarks.h"
#include "bench/measure.h"
#include "bench/translation_work.h"
#include "io/json.h"
#include "tensor/allocator.h"
#include "train/optimizer.h"

namespace fovea::bench {
Row bench_train(const TrainOptions& o) {
  const TranslationWork work = translation_work(o.model, o.preset);
  trim_memory();
  const MemoryWatch memory;
  const auto network = work.make_network();
  const data::Batch batch = work.training_batch();
  train::Optimizer optimizer(network->parameters(),
                             train::Adam{.learning_rate = 1e-4, .beta2 = 0.98, .epsilon = 1e-9});
  nn::Context context{.training = true, .rng = Rng(4)};
  const auto step = [&] {
    network->loss(batch, 0.1f, context).loss.backward();
    const double norm = train::gradient_norm(optimizer.parameters()).norm;
    optimizer.step(1e-4, static_cast<float>(train::clip_factor(norm, 1)));
    optimizer.clear_grad();
  };
  Measured result = measure_beside_peak(step, o.seconds);
  result.peak_bytes = memory.peak_bytes();

  const double flops = work.training_flops(*network);
  const auto tokens = static_cast<double>(batch.target_out.size());
  Json line{{"model", o.model},
            {"preset", work.preset},
            {"threads", num_threads()},
            {"target_tokens", tokens},
            {"tokens_per_second", tokens / result.seconds}};
  line.update(work_json(result, flops));
  return {std::move(line),
          message(o.model, " ", work.preset, ": ", decimals(result.seconds * 1e3, 1), " ms a step (best of ",
                  result.runs, "), ", decimals(tokens / result.seconds, 0), " target tokens/s",
                  work_text(result, flops), "\n")};
}

}  // namespace fovea::bench
