// fovea bench train: steps of training a translator on synthetic sentences, held against the machine's FMA
// peak.
#include <cstdio>
#include <iostream>

#include "cli/flags.h"
#include "cli/measure.h"
#include "cli/translation_work.h"
#include "cli/verbs.h"
#include "io/json.h"
#include "tensor/allocator.h"
#include "train/optimizer.h"

namespace fovea::cli {
namespace {

constexpr const char* kFooter =
    "A step is forward, backward, clipping and Adam on one batch, with the preset's dropout and label "
    "smoothing 0.1, vocabulary\n"
    "10 000: tiny has 270 sentences of 8 to 22 tokens, base 82 of 18 to 32, other models 64 of 10 to 20. "
    "Useful work is\n"
    "counted: no padding.\n"
    "  fovea bench train --preset tiny --threads 1 --json";

struct Options {
  std::string model = "transformer", preset = "tiny";
  double seconds = 2;
  bool json = false;
};

void run(const Options& o) {
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
  if (o.json) {
    Json line{{"model", o.model},
              {"preset", work.preset},
              {"threads", num_threads()},
              {"target_tokens", tokens},
              {"tokens_per_second", tokens / result.seconds}};
    line.update(work_json(result, flops));
    std::cout << line << std::endl;
    return;
  }
  std::printf("%s %s: %.1f ms a step (best of %d), %.0f target tokens/s%s\n", o.model.c_str(),
              work.preset.c_str(), result.seconds * 1e3, result.runs, tokens / result.seconds,
              work_text(result, flops).c_str());
}

}  // namespace

void add_bench_train(CLI::App& bench) {
  CLI::App* verb = bench.add_subcommand("train", "steps of training a translator");
  const auto options = std::make_shared<Options>();
  verb->add_option("--model", options->model, "as in fovea train translate")->capture_default_str();
  verb->add_option("--preset", options->preset, "of the transformer: tiny or base")->capture_default_str();
  verb->add_option("--seconds", options->seconds, "time to spend measuring")->capture_default_str();
  add_threads(*verb);
  add_json(*verb, options->json);
  verb->footer(kFooter);
  verb->callback([options] { run(*options); });
}

}  // namespace fovea::cli
