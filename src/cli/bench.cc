// fovea bench: what this machine gives, and how much of it Fovea takes.
#include "bench/benchmarks.h"

#include <iostream>

#include "cli/fields_flags.h"
#include "cli/flags.h"
#include "cli/verbs.h"

namespace fovea::cli {
namespace {

constexpr const char* kAttentionFooter =
    "Useful work is counted: 4 d multiply-adds and additions for every pair (query, key) that the pattern "
    "visits, 14 d\n"
    "with the backward pass. One query is limited by memory rather than by multiply-adds: see gbps, the "
    "gigabytes of keys\n"
    "and values read in a second.\n\n"
    "  fovea bench attention --n 8192 --spec \"scaled_dot / window(256,256) / soft\" --direction both";

constexpr const char* kTrainFooter =
    "A step is forward, backward, clipping and Adam on one batch, with the preset's dropout and label "
    "smoothing 0.1, vocabulary\n"
    "10 000: tiny has 270 sentences of 8 to 22 tokens, base 82 of 18 to 32, other models 64 of 10 to 20. "
    "Useful work is\n"
    "counted: no padding.\n\n"
    "  fovea bench train --preset tiny --threads 1 --json";

constexpr const char* kClassifyFooter =
    "A step is forward, backward, clipping and AdamW on one batch of texts of all lengths between --shortest and "
    "--longest, with\n"
    "the model's dropout; the vocabulary has 10 000 tokens, and there are two classes.\n\n"
    "  fovea bench classify --model lstm --threads 1 --json\n"
    "  fovea bench classify --model bert --preset mini --texts 8 --shortest 128 --longest 128";

constexpr const char* kTranslateFooter =
    "Every sentence becomes exactly --length tokens, its end among them, so that any program given the same "
    "sentences does\n"
    "the same work. Sources have 8 to 22 tokens (tiny) or 18 to 32 (base); the vocabulary has 10 000.\n\n"
    "  fovea bench translate --preset base --batch 32 --beam 4 --json";

constexpr const char* kEncodeFooter =
    "Random weights and random texts of equal length. Work is counted without padding; for Longformer and BigBird "
    "only the pairs\n"
    "that are computed count.\n\n"
    "  fovea bench encode --shape minilm --batch 32 --tokens 64 --lines 1024 --compute int8\n"
    "  fovea bench encode --model longformer --layers 2 --batch 1 --tokens 4096 --direction both";

void print(const bench::Row& row, bool json) {
  if (!json)
    std::cout << row.text << std::flush;
  else if (!row.json.is_null())
    std::cout << row.json << std::endl;
}

// A benchmark that gives one row, with a flag for each of its options.
template <HasFields Options, class Measure>
void add_benchmark(CLI::App& bench, const char* name, const char* meaning, const char* footer,
                   Measure measure) {
  CLI::App* verb = bench.add_subcommand(name, meaning);
  const auto options = std::make_shared<Options>();
  const auto json = std::make_shared<bool>(false);
  add_fields(*verb, *options);
  add_threads(*verb);
  add_json(*verb, *json);
  verb->footer(footer);
  verb->callback([options, json, measure] { print(measure(*options), *json); });
}

void add_peak(CLI::App& bench) {
  CLI::App* verb = bench.add_subcommand("peak", "measure FMA peak and memory bandwidth");
  const auto json = std::make_shared<bool>(false);
  add_threads(*verb);
  add_json(*verb, *json);
  verb->footer("  fovea bench peak --threads 1");
  verb->callback([json] { print(bench::bench_peak(), *json); });
}

void add_ops(CLI::App& bench) {
  CLI::App* verb = bench.add_subcommand("ops", "measure forward and backward of the ops that training uses");
  const auto options = std::make_shared<bench::OpsOptions>();
  const auto json = std::make_shared<bool>(false);
  verb->add_option("--filter", options->filter, "measure only ops whose name contains this")
      ->type_name("NAME");
  verb->add_option("--seconds", options->seconds, "time to spend on each op, in seconds (default 0.5)")
      ->type_name("FLOAT");
  verb->add_flag_callback(
      "--no-limits", [options] { options->limits = false; }, "do not measure the machine's limits first");
  add_threads(*verb);
  verb->add_flag("--json", *json, "print one line of JSON for each op");
  verb->footer("  fovea bench ops --filter linear --threads 1");
  verb->callback(
      [options, json] { bench::bench_ops(*options, [&](const bench::Row& row) { print(row, *json); }); });
}

}  // namespace

void add_bench(CLI::App& app) {
  CLI::App* verb =
      app.add_subcommand("bench", "measure how fast this machine is and how much of that Fovea reaches");
  verb->require_subcommand(1);
  add_benchmark<bench::AttentionOptions>(*verb, "attention", "measure attention of any kind and shape",
                                         kAttentionFooter, bench::bench_attention);
  add_ops(*verb);
  add_peak(*verb);
  add_benchmark<bench::TrainOptions>(*verb, "train", "measure steps of training a translator", kTrainFooter,
                                     bench::bench_train);
  add_benchmark<bench::EncodeOptions>(*verb, "encode", "measure reading with an encoder of the BERT family",
                                      kEncodeFooter, bench::bench_encode);
  add_benchmark<bench::ClassifyOptions>(*verb, "classify", "measure steps of training a text classifier",
                                        kClassifyFooter, bench::bench_classify);
  add_benchmark<bench::TranslateOptions>(*verb, "translate", "measure translation to a fixed length",
                                         kTranslateFooter, bench::bench_translate);
}

}  // namespace fovea::cli
